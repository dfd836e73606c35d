/* Svc.Admin.Limit: the limits that the server runs with, from the table that the configuration is
 * read by (docs/specification.md, section 8). They are of this process: a change of the
 * configuration shows when it has been restarted. */
#include "admin/builtin.h"
#include "base/limits.h"
#include "query/shape.h"
#include "rest/rendered.h"
#include "rest/rest.h"
#include "json/json.h"
#include "json/member.h"

#include <stddef.h>

static const struct property properties[] = {
    READ_ONLY_PROPERTY("Name", TYPE_STRING, 0, "Its name among the configuration's Limits"),
    READ_ONLY_PROPERTY("Value", TYPE_INTEGER, 0, "What it is set to"),
    READ_ONLY_PROPERTY("Unit", TYPE_STRING, 0, "What the value counts"),
    READ_ONLY_PROPERTY("Default", TYPE_INTEGER, 0, "What it is where nothing is configured"),
    READ_ONLY_PROPERTY("Meaning", TYPE_STRING, 0, "What it bounds, in words"),
};

static const struct shape shape = {
    .properties = properties, .count = ARRAY_LEN(properties), .name = SPAN_INIT("Svc.Admin.Limit")};

struct limit {
    struct span name, unit, meaning;
    int64_t otherwise;
    size_t offset; /* in struct limits */
};

static const struct limit table[] = {
#define LIMIT_AS_ROW(member, name, value, least, most, unit, meaning)                              \
    {SPAN_INIT(name), SPAN_INIT(unit), SPAN_INIT(meaning), value, offsetof(struct limits, member)},
    LIMITS(LIMIT_AS_ROW)
#undef LIMIT_AS_ROW
};

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    const struct limit *limit = object;
    const char *limits = (const char *)r->call->rest->limits;

    buf_add_char(b, '{');
    member_add_text(b, SPAN("Name"), limit->name);
    json_add_plain_name(b, SPAN("Value"));
    buf_add_i64(b, *(const int64_t *)(limits + limit->offset));
    member_add_text(b, SPAN("Unit"), limit->unit);
    json_add_plain_name(b, SPAN("Default"));
    buf_add_i64(b, limit->otherwise);
    member_add_text(b, SPAN("Meaning"), limit->meaning);
    buf_add_char(b, '}');
}

static struct err *open_source(struct call *call)
{
    rendered_open_array(call, table, ARRAY_LEN(table), sizeof(*table), add_json);
    return NULL;
}

static const struct resource_ops ops = {.open = open_source};

const struct resource_definition res_limit = {
    .name = SPAN_INIT("Svc.Admin.Limit"),
    .description = SPAN_INIT("The limits that the server runs with"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &shape,
    .ops = &ops,
};
