/* Where a mask was written, the stored text is followed by the same path: members by name, elements
 * by place. A mask outside of the places for secrets, over a text that was none, is a text. */
#include "access/secrets.h"

#include "base/mem.h"
#include "query/shape.h"
#include "store/entity.h"
#include "json/json.h"

#include <string.h>

struct keeping {
    const struct mask *m;
    struct arena *a;
    struct buf b;    /* the value, complete */
    struct buf path; /* of what is looked at */
    struct buf kept; /* paths */
};

static struct err *keep(struct keeping *k, struct json_value value, struct json_value old,
                        bool is_secret);

static void note_kept(struct keeping *k)
{
    if (k->kept.n > 0)
        buf_add_str(&k->kept, ", ");
    buf_add(&k->kept, buf_span(&k->path));
}

static bool is_shown_as_mask(struct json_value old, bool is_secret, struct arena *a)
{
    if (json_type(old) == JSON_NULL)
        return false;
    return is_secret || (json_type(old) == JSON_STRING && mask_is_secret_text(json_string(old, a)));
}

static struct err *keep_stored(struct keeping *k, struct json_value mask, struct json_value old,
                               bool is_secret)
{
    if (is_shown_as_mask(old, is_secret, k->a)) {
        json_add_compact(&k->b, old);
        note_kept(k);
        return NULL;
    }
    if (is_secret)
        return ERR(ERR_INVALID_ENTITY, "%.*s is " MASK ", but no value is stored to keep",
                   SPAN_FMT(buf_span(&k->path)));
    json_add_compact(&k->b, mask);
    return NULL;
}

static struct err *keep_below(struct keeping *k, struct span step, struct json_value value,
                              struct json_value old, bool is_secret)
{
    size_t n = k->path.n;

    if (n > 0)
        buf_add_char(&k->path, '.');
    buf_add(&k->path, step);
    TRY(keep(k, value, old, is_secret));
    buf_truncate(&k->path, n);
    return NULL;
}

static struct err *keep_elements(struct keeping *k, struct json_value list, struct json_value old,
                                 bool is_secret)
{
    uint32_t place = 0;

    buf_add_char(&k->b, '[');
    for (struct json_value v = json_first(list); json_exists(v); v = json_next(list, v)) {
        struct json_value known = {NULL, NULL};

        json_add_comma(&k->b);
        if (json_type(old) == JSON_ARRAY)
            known = json_at(old, place);
        TRY(keep_below(k, arena_u64(k->a, place), v, known, is_secret));
        place++;
    }
    buf_add_char(&k->b, ']');
    return NULL;
}

static struct err *keep_members(struct keeping *k, struct json_value object, struct json_value old)
{
    buf_add_char(&k->b, '{');
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        struct span name = json_string(m.name, k->a);

        json_add_comma(&k->b);
        buf_add(&k->b, json_text(m.name));
        buf_add_char(&k->b, ':');
        TRY(keep_below(k, name, m.value, json_member_fold(old, name),
                       mask_is_secret_header(k->m, name) || mask_is_secret_list(name)));
    }
    buf_add_char(&k->b, '}');
    return NULL;
}

/* A list of secrets is no secret as a whole. */
static struct err *keep(struct keeping *k, struct json_value value, struct json_value old,
                        bool is_secret)
{
    if (mask_is(value, k->a))
        return keep_stored(k, value, old, is_secret);
    switch (json_type(value)) {
    case JSON_OBJECT:
        return keep_members(k, value, old);
    case JSON_ARRAY:
        return keep_elements(k, value, old, is_secret);
    default:
        json_add_compact(&k->b, value);
        return NULL;
    }
}

/* Most values hold no mask, however it is spelled. */
static bool may_hold_mask(struct span json)
{
    return span_find(json, SPAN(MASK)) != SIZE_MAX || span_find_char(json, '\\', 0) < json.n;
}

static struct err *keep_in_draft(struct keeping *k, struct json_value old, struct draft *draft)
{
    for (size_t i = 0; i < draft->shape->count; i++) {
        struct span name = draft->shape->properties[i].name;

        if (!may_hold_mask(draft->values[i]))
            continue;
        buf_clear(&k->b);
        TRY(keep_below(k, name, entity_parse(draft->values[i], k->a), json_member(old, name),
                       mask_is_secret_header(k->m, name)));
        draft->values[i] = arena_copy(k->a, buf_span(&k->b));
    }
    draft->kept = arena_copy(k->a, buf_span(&k->kept));
    return NULL;
}

static struct span *copy_values(const struct draft *draft, struct arena *a)
{
    struct span *values = ARENA_ARRAY(a, struct span, draft->shape->count);

    memcpy(values, draft->values, draft->shape->count * sizeof(*values));
    return values;
}

struct err *secrets_decode(const struct mask *m, const struct shape *shape, struct json_value input,
                           struct span old, enum schema_mode mode, struct arena *a,
                           struct draft *out_draft)
{
    struct keeping k = {.m = m, .a = a};
    struct json_value stored = {NULL, NULL}, seen = {NULL, NULL};
    struct err *e;

    if (old.p != NULL) {
        stored = entity_parse(old, a);
        seen = entity_parse(mask_value(m, stored, a), a);
    }
    TRY(schema_decode(shape, input, seen, mode, a, out_draft));
    out_draft->written = copy_values(out_draft, a);
    buf_init(&k.b, BUF_NO_CAP);
    buf_init(&k.path, BUF_NO_CAP);
    buf_init(&k.kept, BUF_NO_CAP);
    e = keep_in_draft(&k, stored, out_draft);
    mem_wipe(k.b.p, k.b.n);
    buf_done(&k.b);
    buf_done(&k.path);
    buf_done(&k.kept);
    return e;
}

static bool is_written(const struct mask *m, struct span name, struct span json, struct arena *a)
{
    if (mask_is_secret_header(m, name))
        return !span_eq(json, SPAN("null")) && !mask_is(entity_parse(json, a), a);
    return !span_eq(mask_value(m, entity_parse(json, a), a), json);
}

bool secrets_are_written(const struct mask *m, const struct draft *draft, struct arena *a)
{
    for (size_t i = 0; draft->written != NULL && i < draft->shape->count; i++)
        if (is_written(m, draft->shape->properties[i].name, draft->written[i], a))
            return true;
    return false;
}
