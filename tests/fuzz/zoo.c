#include "zoo.h"

#include "admin/builtin.h"
#include "base/uuid.h"
#include "fuzzing.h"
#include "protocol/schema.h"
#include "resource/declaration.h"
#include "store/entity.h"
#include "json/json.h"

const char zoo_declarations[] =
    "[{\"Name\":\"Zoo.Animal\",\"Kind\":\"EntityResource\",\"Properties\":["
    "{\"Name\":\"Name\",\"Type\":\"string\",\"Required\":true},"
    "{\"Name\":\"Legs\",\"Type\":\"integer\"},{\"Name\":\"Weight\",\"Type\":\"number\"},"
    "{\"Name\":\"Tame\",\"Type\":\"boolean\"},{\"Name\":\"Born\",\"Type\":\"datetime\"},"
    "{\"Name\":\"Tags\",\"Type\":\"array\"},{\"Name\":\"Home\",\"Type\":\"object\"}],"
    "\"Indexes\":[\"Name\",\"Legs\"],\"Events\":{\"Inserted\":\"Zoo.AnimalBorn\"}},"
    "{\"Name\":\"Zoo.AnimalBorn\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":\"Zoo."
    "Animal\"}},"
    "{\"Name\":\"Zoo.Rumour\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Zoo.Photo\",\"Kind\":\"EventResource\","
    "\"Payload\":{\"ContentType\":\"image/png\"}},"
    "{\"Name\":\"Zoo.Thing\",\"Kind\":\"EntityResource\"},"
    "{\"Name\":\"Zoo.Archive\",\"Kind\":\"EntityResource\",\"Methods\":[\"GET\"]}]";

static void zoo_declare(struct resources *resources, struct json_value declaration, struct arena *a)
{
    const struct uuid id = {.b = {1}};
    const struct json_value nothing = {NULL, NULL};
    struct resource *made = resource_new();
    struct draft draft;
    struct buf b;

    MUST(schema_decode(&declaration_shape, declaration, nothing, SCHEMA_INSERT, a, &draft) == NULL);
    buf_init(&b, BUF_NO_CAP);
    schema_encode(&b, &draft, &id, 1);
    MUST(resource_make(entity_parse(input_written(&b, a), a), a, made) == NULL);
    resources_put(resources, made);
}

void zoo_init(struct resources *resources)
{
    struct json_value all;
    struct arena a;

    arena_init(&a);
    resources_init(resources, NULL, NULL);
    resources_add_builtin(resources, &res_echo, NULL);
    all = entity_parse(span_str(zoo_declarations), &a);
    for (struct json_value v = json_first(all); json_exists(v); v = json_next(all, v))
        zoo_declare(resources, v, &a);
    arena_done(&a);
}
