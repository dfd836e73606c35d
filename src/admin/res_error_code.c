/* Svc.Admin.ErrorCode: the names and numbers of error codes (docs/specification.md, section 5). */
#include "admin/builtin.h"
#include "query/shape.h"
#include "rest/rendered.h"
#include "json/json.h"

static const struct property properties[] = {
    READ_ONLY_PROPERTY("Name", TYPE_STRING, 0, "Name of the code"),
    READ_ONLY_PROPERTY("Code", TYPE_INTEGER, 0, "Its number"),
};

static const struct shape shape = {.properties = properties,
                                   .count = ARRAY_LEN(properties),
                                   .name = SPAN_INIT("Svc.Admin.ErrorCode")};

/* Rows of one number follow one another: the first is listed. */
static bool repeats(int code)
{
    return code > 0 &&
           err_info((enum err_code)code)->number == err_info((enum err_code)(code - 1))->number;
}

static void *next(struct rendered *r)
{
    int *code = r->cursor;
    const struct err_info **line = ARENA_NEW(r->call->arena, const struct err_info *);

    while (*code < ERR_CODE_COUNT && repeats(*code))
        (*code)++;
    if (*code == ERR_CODE_COUNT)
        return NULL;
    *line = err_info((enum err_code)(*code)++);
    return line;
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    const struct err_info *info = *(const struct err_info *const *)object;

    (void)r;
    buf_add_str(b, "{\"Name\":");
    json_add_string(b, info->name);
    json_add_name(b, SPAN("Code"));
    buf_add_i64(b, info->number);
    buf_add_char(b, '}');
}

static struct err *open_source(struct call *call)
{
    rendered_open(call, next, add_json)->cursor = ARENA_NEW(call->arena, int);
    return NULL;
}

static const struct resource_ops ops = {.open = open_source};

const struct resource_definition res_error_code = {
    .name = SPAN_INIT("Svc.Admin.ErrorCode"),
    .description = SPAN_INIT("The error codes that answers and stored errors carry"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &shape,
    .ops = &ops,
};
