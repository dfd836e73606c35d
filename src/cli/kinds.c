/* Entities travel as their text: numbers, order and escapes stay as they are. */
#include "cli/kinds.h"

const struct kind kinds[KIND_COUNT] = {
    {"Resources",
     "resource",
     "Svc.Admin.Resource",
     "Name",
     NULL,
     {"Id", "ObjectNo", "IsReadOnly"},
     true},
    {"Keys",
     "key",
     "Svc.Admin.ApiKey",
     "Name",
     "Tenant",
     {"Id", "ObjectNo", "Time", "LastUsedTime", "CreatedBy"},
     false},
    {"Webhooks",
     "webhook",
     "Svc.Admin.Webhook",
     "Label",
     "Tenant",
     {"Id", "ObjectNo", "Time", "Owner", "ErrorMessage"},
     false},
};

bool kind_drops(const struct kind *kind, struct span member)
{
    for (size_t i = 0; i < ARRAY_LEN(kind->dropped) && kind->dropped[i] != NULL; i++)
        if (span_eq(member, span_str(kind->dropped[i])))
            return true;
    return false;
}

void kind_add_entity(struct cli *cli, const struct kind *kind, struct json_value entity,
                     struct buf *b)
{
    buf_add_char(b, '{');
    for (struct json_member m = json_first_member(entity); json_exists(m.name);
         m = json_next_member(entity, m)) {
        struct span name = json_string(m.name, cli->arena);

        if (kind_drops(kind, name))
            continue;
        json_add_name(b, name);
        json_add_compact(b, m.value);
    }
    buf_add_char(b, '}');
}

int kind_get_all(struct cli *cli, const struct kind *kind, struct entities *out)
{
    return client_get_all(cli, arena_printf(cli->arena, "/%s/_", kind->resource), out);
}
