/* JSON out of hostile bytes, beside cJSON, which reads everything that is JSON and some that is
 * not. What we accept it accepts too, and finds the same in it; what we write of it means the same.
 * An array of two objects is a target and what is laid over it. */
#include "fuzzing.h"
#include "json/json.h"

#include <cjson/cJSON.h>

static const struct json_limits limits = {64, 10000};

static int type_in_cjson(struct json_value v)
{
    switch (json_type(v)) {
    case JSON_NULL:
        return cJSON_NULL;
    case JSON_BOOLEAN:
        return json_is_true(v) ? cJSON_True : cJSON_False;
    case JSON_NUMBER:
        return cJSON_Number;
    case JSON_STRING:
        return cJSON_String;
    case JSON_ARRAY:
        return cJSON_Array;
    default:
        return cJSON_Object;
    }
}

static void check_same(struct json_value v, const cJSON *other, struct arena *a);

static void check_children(struct json_value v, const cJSON *other, struct arena *a)
{
    const cJSON *child = other->child;

    if (json_type(v) == JSON_ARRAY) {
        for (struct json_value e = json_first(v); json_exists(e); e = json_next(v, e)) {
            check_same(e, child, a);
            child = child->next;
        }
    } else {
        for (struct json_member m = json_first_member(v); json_exists(m.name);
             m = json_next_member(v, m)) {
            check_same(m.value, child, a);
            child = child->next;
        }
    }
    MUST(child == NULL);
}

/* cJSON ends strings at an escaped NUL, and does not know what to do with lone surrogates. */
static bool has_no_odd_escape(struct span text)
{
    return memmem(text.p, text.n, "\\u0000", 6) == NULL &&
           memmem(text.p, text.n, "\\ud", 3) == NULL && memmem(text.p, text.n, "\\uD", 3) == NULL;
}

static void check_same(struct json_value v, const cJSON *other, struct arena *a)
{
    MUST(other != NULL && (other->type & 0xff) == type_in_cjson(v));
    if (json_type(v) == JSON_STRING && has_no_odd_escape(json_text(v)))
        MUST(span_eq(json_string(v, a), span_str(other->valuestring)));
    if (json_type(v) == JSON_ARRAY || json_type(v) == JSON_OBJECT)
        check_children(v, other, a);
}

static bool fits_cjson(const struct json_doc *doc)
{
    for (uint32_t i = 0; i < doc->node_count; i++)
        if (doc->nodes[i].type == JSON_NUMBER && doc->nodes[i].end - doc->nodes[i].start > 60)
            return false;
    return has_no_odd_escape(doc->text);
}

static void check_written(const struct json_doc *doc, struct arena *a)
{
    struct json_doc compact, indented;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    json_add_compact(&b, json_root(doc));
    MUST(json_parse(arena_copy(a, buf_span(&b)), &limits, a, &compact) == NULL);
    buf_clear(&b);
    json_add_indented(&b, json_root(doc), 2);
    MUST(json_parse(arena_copy(a, buf_span(&b)), &limits, a, &indented) == NULL);
    MUST(json_equal(json_root(doc), json_root(&compact)));
    MUST(json_equal(json_root(doc), json_root(&indented)));
    MUST(json_hash(json_root(doc)) == json_hash(json_root(&indented)));
    buf_done(&b);
}

/* ---- merging ---- */

static struct json_value merge(struct json_value target, struct json_value patch, bool fold,
                               struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    json_add_merged(&b, target, patch, fold, a);
    MUST(json_parse(input_written(&b, a), &limits, a, doc) == NULL);
    return json_root(doc);
}

static struct json_value find(struct json_value object, struct span name, bool fold)
{
    return fold ? json_member_fold(object, name) : json_member(object, name);
}

/* Each member of the one is what both make of it, and there is no other. */
static void check_merged(struct json_value target, struct json_value patch, bool fold,
                         struct arena *a)
{
    struct json_value merged = merge(target, patch, fold, a);
    uint32_t count = json_count(patch);

    for (struct json_member m = json_first_member(patch); json_exists(m.name);
         m = json_next_member(patch, m)) {
        struct span name = json_string(m.name, a);
        struct json_value old = find(target, name, fold);

        if (json_type(m.value) == JSON_OBJECT && json_type(old) == JSON_OBJECT)
            MUST(json_equal(find(merged, name, fold), merge(old, m.value, fold, a)));
        else
            MUST(json_equal(find(merged, name, fold), m.value));
    }
    for (struct json_member m = json_first_member(target); json_exists(m.name);
         m = json_next_member(target, m)) {
        struct span name = json_string(m.name, a);

        if (json_exists(find(patch, name, fold)))
            continue;
        MUST(json_equal(json_member(merged, name), m.value));
        count++;
    }
    MUST(json_count(merged) == count);
}

static void check_merging(struct json_value root, struct arena *a)
{
    struct json_value target = json_first(root), patch = json_at(root, 1);

    if (json_type(target) != JSON_OBJECT || json_type(patch) != JSON_OBJECT)
        return;
    for (unsigned fold = 0; fold < 2; fold++) {
        struct err *e = json_check_unique(root, fold, a);

        if (e == NULL)
            check_merged(target, patch, fold, a);
        err_free(e);
    }
}

/* ---- the whole ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct json_doc doc;
    struct err *e;

    arena_init(&a);
    e = json_parse(arena_copy(&a, span_of((const char *)data, n)), &limits, &a, &doc);
    if (e == NULL) {
        check_written(&doc, &a);
        check_merging(json_root(&doc), &a);
        if (fits_cjson(&doc)) {
            cJSON *other = cJSON_ParseWithLength((const char *)data, n);

            check_same(json_root(&doc), other, &a);
            cJSON_Delete(other);
        }
    }
    err_free(e);
    arena_done(&a);
    return 0;
}
