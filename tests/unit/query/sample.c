#include "sample.h"

#include "testing.h"

#include "base/rng.h"

static const struct span sample_kinds[] = {SPAN_INIT("Customer"), SPAN_INIT("Staff"),
                                           SPAN_INIT("Guest")};
const struct enumeration sample_kind = {"Kind", sample_kinds, ARRAY_LEN(sample_kinds)};

static const struct property sample_owner_properties[] = {
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Length"), .type = TYPE_NUMBER},
};
static const struct shape sample_owner = {sample_owner_properties, 2, .name = SPAN_INIT("Owner")};

static const struct property sample_account_properties[] = {
    {.name = SPAN_INIT("Number"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Balance"), .type = TYPE_NUMBER},
    {.name = SPAN_INIT("Opened"), .type = TYPE_DATETIME},
    {.name = SPAN_INIT("Owner"), .type = TYPE_OBJECT, .members = &sample_owner},
};
const struct shape sample_account = {sample_account_properties, 4};

static const struct property sample_line_properties[] = {
    {.name = SPAN_INIT("Sku"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Count"), .type = TYPE_INTEGER},
};
static const struct shape sample_line = {sample_line_properties, 2};

static const struct property sample_person_properties[] = {
    {.name = SPAN_INIT("Id"), .type = TYPE_STRING, .flags = PROPERTY_ENTITY},
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING, .flags = PROPERTY_REQUIRED},
    {.name = SPAN_INIT("Age"), .type = TYPE_INTEGER},
    {.name = SPAN_INIT("Height"), .type = TYPE_NUMBER},
    {.name = SPAN_INIT("IsActive"), .type = TYPE_BOOLEAN},
    {.name = SPAN_INIT("Born"), .type = TYPE_DATETIME},
    {.name = SPAN_INIT("Kind"), .type = TYPE_STRING, .values = &sample_kind},
    {.name = SPAN_INIT("Account"), .type = TYPE_OBJECT, .members = &sample_account},
    {.name = SPAN_INIT("Lines"), .type = TYPE_ARRAY, .members = &sample_line},
    {.name = SPAN_INIT("Tags"), .type = TYPE_ARRAY},
    {.name = SPAN_INIT("Headers"), .type = TYPE_OBJECT},
    {.name = SPAN_INIT("Extra"), .type = TYPE_ANY},
    {.name = SPAN_INIT("Visits"), .type = TYPE_INTEGER, .flags = PROPERTY_HIDDEN},
    {.name = SPAN_INIT("ObjectNo"), .type = TYPE_INTEGER, .flags = PROPERTY_ENTITY},
};
const struct shape sample_person = {sample_person_properties, ARRAY_LEN(sample_person_properties),
                                    .name = SPAN_INIT("Shop.Person")};

const struct shape sample_dynamic = {.dynamic = true, .name = SPAN_INIT("Shop.Note")};

const struct shape *sample_shape(enum sample sample)
{
    return sample == PERSON ? &sample_person : &sample_dynamic;
}

struct json_value sample_json(struct span text, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    ck_ok(json_parse(text, NULL, a, doc));
    return json_root(doc);
}

struct span sample_random_text(struct arena *a, size_t most)
{
    static const char *const pieces[] = {
        "a",
        "B",
        "c",
        "0",
        "7",
        "-",
        "_",
        ".",
        ",",
        "+",
        "'",
        "\"",
        "=",
        "!",
        "<",
        ">",
        "&",
        "/",
        "%",
        "?",
        "#",
        " ",
        "\\",
        "\t",
        "\xc3\xa9",
        "\xe2\x82\xac",
        ":",
        "@",
        "(",
        "~",
        "[",
        "{",
        "|",
        "%3E",
        "null",
        "true",
        "\xf0\x9f\x98\x80",
    };
    size_t n = (size_t)rng_below(most);
    struct span text = SPAN("");

    for (size_t i = 0; i < n; i++)
        text = arena_printf(a, "%.*s%s", SPAN_FMT(text), pieces[rng_below(ARRAY_LEN(pieces))]);
    return text;
}
