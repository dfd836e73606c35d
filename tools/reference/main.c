/* Prints the tables of docs/reference/resources.md and errors.md from those that the server itself
 * works by: the properties of the built-in resources, and the error codes. `svc-reference` writes
 * all of it to standard output; the documents' test compares. */
#include "admin/builtin.h"
#include "base/err.h"
#include "query/shape.h"

#include <stdio.h>

static void print_flags(const struct property *p)
{
    static const struct {
        unsigned flag;
        const char *text;
    } flags[] = {
        {PROPERTY_REQUIRED, "required"}, {PROPERTY_READ_ONLY, "read-only"},
        {PROPERTY_SECRET, "secret"},     {PROPERTY_HIDDEN, "only with `add`"},
        {PROPERTY_INDEXED, "indexed"},
    };
    const char *separator = "";

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if ((p->flags & flags[i].flag) == 0)
            continue;
        printf("%s%s", separator, flags[i].text);
        separator = ", ";
    }
}

static void print_property(const char *outer, const struct property *p)
{
    char path[256];

    snprintf(path, sizeof(path), "%s%.*s", outer, SPAN_FMT(p->name));
    printf("| `%s` | %.*s | ", path, SPAN_FMT(value_type_name(p->type)));
    print_flags(p);
    if (p->default_json.p != NULL)
        printf(" | `%.*s`", SPAN_FMT(p->default_json));
    else
        printf(" | ");
    printf(" | %.*s |\n", SPAN_FMT(p->meaning));
    if (p->members == NULL)
        return;
    snprintf(path, sizeof(path), "%s%.*s.", outer, SPAN_FMT(p->name));
    for (size_t i = 0; i < p->members->count; i++)
        print_property(path, &p->members->properties[i]);
}

static void print_resource(const struct resource_definition *definition)
{
    unsigned methods = resource_methods(definition->kind, definition->methods);
    struct buf list;

    buf_init(&list, BUF_NO_CAP);
    method_add_list(&list, methods);
    if (definition->kind == KIND_EVENT)
        buf_add_str(&list, "An event resource: its payload");
    printf("### %.*s\n\n%.*s. %.*s.\n", SPAN_FMT(definition->name),
           SPAN_FMT(definition->description), SPAN_FMT(buf_span(&list)));
    buf_done(&list);
    if (definition->shape->dynamic)
        return;
    printf("\n| property | type | | default | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < definition->shape->count; i++)
        print_property("", &definition->shape->properties[i]);
}

static void print_errors(void)
{
    printf("| HTTP | ErrorCode | number |\n|---|---|---|\n");
    for (enum err_code code = ERR_NO_ERROR + 1; code < ERR_CODE_COUNT; code++) {
        const struct err_info *info = err_info(code);

        printf("| %d | `%.*s` | %d |\n", info->status, SPAN_FMT(info->name), info->number);
    }
}

int main(void)
{
    static const struct resource_definition *const definitions[] = {
#define BUILTIN_AS_POINTER(definition) &definition,
        BUILTIN_RESOURCES(BUILTIN_AS_POINTER)
#undef BUILTIN_AS_POINTER
            & res_node,
    };

    print_errors();
    for (size_t i = 0; i < ARRAY_LEN(definitions); i++) {
        putchar('\n');
        print_resource(definitions[i]);
    }
    return 0;
}
