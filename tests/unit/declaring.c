#include "declaring.h"

#include "base/uuid.h"
#include "protocol/schema.h"
#include "json/json.h"

struct err *declaring_decode(struct json_value declaration, struct arena *a, struct span *out_json)
{
    static struct uuid id;
    struct json_value nothing = {NULL, NULL};
    struct draft draft;
    struct buf b;

    TRY(schema_decode(&declaration_shape, declaration, nothing, SCHEMA_INSERT, a, &draft));
    buf_init(&b, BUF_NO_CAP);
    schema_encode(&b, &draft, &id, 1);
    *out_json = arena_copy(a, buf_span(&b));
    buf_done(&b);
    return NULL;
}

struct err *declaring(struct resources *resources, const char *text, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct declaration_set set;
    struct span *all;
    size_t count = 0;

    ck_ok(json_parse(span_str(text), NULL, a, doc));
    all = ARENA_ARRAY(a, struct span, json_count(json_root(doc)));
    declaration_set_init(&set, resources, a);
    for (struct json_value v = json_first(json_root(doc)); json_exists(v);
         v = json_next(json_root(doc), v)) {
        TRY(declaring_decode(v, a, &all[count]));
        TRY(declaration_set_add(&set, METHOD_POST, all[count++]));
    }
    TRY(declaration_set_check(&set));
    for (size_t i = 0; i < count; i++) {
        struct resource *made = resource_new();

        ck_ok(resource_make(entity_parse(all[i], a), a, made));
        resources_put(resources, made);
    }
    return NULL;
}
