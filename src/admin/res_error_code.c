/* Svc.Admin.ErrorCode: the names and numbers of error codes (docs/specification.md, section 5). */
#include "admin/builtin.h"
#include "query/shape.h"
#include "rest/rendered.h"
#include "json/json.h"
#include "json/member.h"

static const struct property properties[] = {
    READ_ONLY_PROPERTY("Name", TYPE_STRING, 0, "Name of the code"),
    READ_ONLY_PROPERTY("Code", TYPE_INTEGER, 0, "Its number"),
};

static const struct shape shape = {.properties = properties,
                                   .count = ARRAY_LEN(properties),
                                   .name = SPAN_INIT("Svc.Admin.ErrorCode")};

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    const struct err_info *info = object;

    (void)r;
    buf_add_char(b, '{');
    member_add_text(b, SPAN("Name"), info->name);
    json_add_plain_name(b, SPAN("Code"));
    buf_add_i64(b, info->number);
    buf_add_char(b, '}');
}

static struct err *open_source(struct call *call)
{
    struct err_info *listed = ARENA_ARRAY(call->arena, struct err_info, ERR_CODE_COUNT);
    size_t count = 0;

    for (enum err_code code = 0; code < ERR_CODE_COUNT; code++)
        if (!err_repeats(code))
            listed[count++] = *err_info(code);
    rendered_open_array(call, listed, count, sizeof(*listed), add_json);
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
