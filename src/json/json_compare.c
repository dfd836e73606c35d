/* Comparing parsed values and looking for double names. All recursion here is as deep as the
 * document, which the parser has limited. Scratch memory is an arena that allocates only when
 * something is escaped or out of order. */
#include "base/budget.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/text.h"
#include "json_private.h"
#include "json/decimal.h"
#include "json/json.h"

#include <stdlib.h>

/* ---- sorted names ---- */

static struct span name_key(struct span name, bool fold, struct arena *a)
{
    return fold ? text_fold(a, name) : name;
}

static int cmp_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Without the place. */
static int cmp_keys(const struct json_name *x, const struct json_name *y)
{
    int order = cmp_u64(x->hash, y->hash);

    return order != 0 ? order : span_cmp(x->name, y->name);
}

/* What it costs to compare two, and to put one in its place among very many. */
enum { COMPARE_UNITS = 16, SORT_UNITS = 16 * COMPARE_UNITS };

static int cmp_names(const void *a, const void *b)
{
    const struct json_name *x = a, *y = b;
    int order = cmp_keys(x, y);

    budget_spend(COMPARE_UNITS);
    return order != 0 ? order : cmp_u64(x->place, y->place);
}

static int cmp_key_to_name(const void *key, const void *name)
{
    return cmp_keys(key, name);
}

struct json_names json_names_sort(struct json_value object, bool fold, struct arena *a)
{
    struct json_names names = {.fold = fold};

    names.sorted = ARENA_ARRAY(a, struct json_name, json_count(object));
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        struct json_name *name = &names.sorted[names.count];

        name->name = name_key(json_string(m.name, a), fold, a);
        name->hash = hash_bytes(name->name);
        name->index = (uint32_t)(m.name.node - object.doc->nodes);
        name->place = names.count++;
    }
    if (budget_may_begin(SORT_UNITS * (size_t)names.count))
        qsort(names.sorted, names.count, sizeof(*names.sorted), cmp_names);
    return names;
}

const struct json_name *json_names_find(const struct json_names *names, struct span name,
                                        struct arena *a)
{
    struct json_name key = {.name = name_key(name, names->fold, a)};

    key.hash = hash_bytes(key.name);
    return bsearch(&key, names->sorted, names->count, sizeof(*names->sorted), cmp_key_to_name);
}

static struct json_value name_of(struct json_value object, const struct json_name *entry)
{
    return (struct json_value){object.doc, &object.doc->nodes[entry->index]};
}

struct json_value json_names_value(struct json_value object, const struct json_name *entry)
{
    return (struct json_value){object.doc, &object.doc->nodes[entry->index + 1]};
}

/* ---- double names ---- */

/* Up to so many members, comparing all pairs is faster than sorting. */
#define FEW_MEMBERS 16

struct name_pair {
    struct json_value first, second; /* absent: no name occurs twice */
};

static struct name_pair double_of_few(struct json_value object, bool fold, struct arena *a)
{
    bool (*eq)(struct span, struct span) = fold ? span_ieq : span_eq;
    struct json_value values[FEW_MEMBERS];
    struct span names[FEW_MEMBERS];
    size_t count = 0;

    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m), count++) {
        values[count] = m.name;
        names[count] = json_string(m.name, a);
        for (size_t i = 0; i < count; i++)
            if (names[i].n == names[count].n && eq(names[i], names[count]))
                return (struct name_pair){values[i], m.name};
    }
    return (struct name_pair){0};
}

static struct name_pair double_of_many(struct json_value object, bool fold, struct arena *a)
{
    struct json_names names = json_names_sort(object, fold, a);

    for (uint32_t i = 1; i < names.count; i++)
        if (cmp_keys(&names.sorted[i - 1], &names.sorted[i]) == 0)
            return (struct name_pair){name_of(object, &names.sorted[i - 1]),
                                      name_of(object, &names.sorted[i])};
    return (struct name_pair){0};
}

/* The name as written, with its quotes, cut to what an error message takes. */
static struct span quoted(struct json_value name)
{
    return text_cut(json_text(name), 80);
}

struct err *json_check_unique(struct json_value v, bool fold, struct arena *a)
{
    const struct json_node *end = json_exists(v) ? v.doc->nodes + v.node->next : NULL;

    for (; v.node < end; v.node++) {
        struct name_pair pair;
        struct json_place place;

        if (v.node->type != JSON_OBJECT)
            continue;
        pair =
            v.node->count <= FEW_MEMBERS ? double_of_few(v, fold, a) : double_of_many(v, fold, a);
        if (!json_exists(pair.first))
            continue;
        place = json_place(v.doc->text.p, json_text(pair.second).p);
        return ERR(ERR_FAILED_JSON,
                   "invalid JSON at line %zu, column %zu: member %.*s repeats %.*s", place.line,
                   place.column, SPAN_FMT(quoted(pair.second)), SPAN_FMT(quoted(pair.first)));
    }
    return NULL;
}

/* ---- equality ---- */

static bool equal_values(struct json_value x, struct json_value y, struct arena *a);

/* The node behind the last descendant. */
static const struct json_node *behind(struct json_value v)
{
    return &v.doc->nodes[v.node->next];
}

static struct json_value first_child(struct json_value v)
{
    return (struct json_value){v.doc, v.node + 1};
}

static struct json_value next_child(struct json_value child)
{
    return (struct json_value){child.doc, behind(child)};
}

static bool equal_strings(struct json_value x, struct json_value y, struct arena *a)
{
    if (span_eq(json_text(x), json_text(y)))
        return true;
    return (x.node->escaped || y.node->escaped) && span_eq(json_string(x, a), json_string(y, a));
}

static bool equal_numbers(struct json_value x, struct json_value y)
{
    return span_eq(json_text(x), json_text(y)) || decimal_cmp(json_text(x), json_text(y)) == 0;
}

/* Elements, or names and values, one by one. */
static bool equal_children(struct json_value x, struct json_value y, struct arena *a)
{
    const struct json_node *end = behind(x);
    struct json_value i = first_child(x), j = first_child(y);

    for (; i.node < end; i = next_child(i), j = next_child(j))
        if (!equal_values(i, j, a))
            return false;
    return true;
}

static bool same_name_order(struct json_value x, struct json_value y, struct arena *a)
{
    const struct json_node *end = behind(x);
    struct json_value i = first_child(x), j = first_child(y);

    for (; i.node < end; i = next_child(next_child(i)), j = next_child(next_child(j)))
        if (!equal_strings(i, j, a))
            return false;
    return true;
}

/* Of a name that occurs several times, the first is compared to the first, and so on. */
static bool equal_sorted(struct json_value x, struct json_value y, struct arena *a)
{
    struct json_names xs = json_names_sort(x, false, a), ys = json_names_sort(y, false, a);

    for (uint32_t i = 0; i < xs.count; i++)
        if (cmp_keys(&xs.sorted[i], &ys.sorted[i]) != 0 ||
            !equal_values(json_names_value(x, &xs.sorted[i]), json_names_value(y, &ys.sorted[i]),
                          a))
            return false;
    return true;
}

static bool equal_objects(struct json_value x, struct json_value y, struct arena *a)
{
    return same_name_order(x, y, a) ? equal_children(x, y, a) : equal_sorted(x, y, a);
}

static bool equal_values(struct json_value x, struct json_value y, struct arena *a)
{
    budget_spend(16 + json_text(x).n / 16);
    if (x.node->type != y.node->type || x.node->count != y.node->count)
        return false;
    switch ((enum json_type)x.node->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOLEAN:
        return json_is_true(x) == json_is_true(y);
    case JSON_NUMBER:
        return equal_numbers(x, y);
    case JSON_STRING:
        return equal_strings(x, y, a);
    case JSON_ARRAY:
        return equal_children(x, y, a);
    case JSON_OBJECT:
        return equal_objects(x, y, a);
    }
    MUST_NOT_REACH();
}

bool json_equal(struct json_value a, struct json_value b)
{
    struct arena scratch;
    bool equal;

    if (!json_exists(a) || !json_exists(b))
        return json_type(a) == JSON_NULL && json_type(b) == JSON_NULL;
    arena_init(&scratch);
    equal = equal_values(a, b, &scratch);
    arena_done(&scratch);
    return equal;
}

/* ---- hash ---- */

/* What nobody who sends values can work out beforehand is mixed in from the first token on: the
 * process's secret, in each hash_bytes. A hash that took as little as null or [] in without it
 * would let collisions be looked for elsewhere, once for all servers. */
struct hashing {
    struct arena scratch;
    struct buf number; /* canonical form of the number at hand */
};

static uint64_t hash_value(struct hashing *h, struct json_value v);

static uint64_t hash_words(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t words[] = {a, b, c};

    return hash_bytes(span_of((const char *)words, sizeof(words)));
}

static uint64_t hash_number(struct hashing *h, struct json_value v)
{
    buf_clear(&h->number);
    decimal_add_canonical(&h->number, json_text(v));
    return hash_bytes(buf_span(&h->number));
}

static uint64_t hash_array(struct hashing *h, struct json_value v)
{
    const struct json_node *end = behind(v);
    uint64_t hash = 0;

    for (struct json_value i = first_child(v); i.node < end; i = next_child(i))
        hash = hash_words(JSON_ARRAY, hash, hash_value(h, i));
    return hash;
}

/* A sum, so that the order of members does not matter. */
static uint64_t hash_object(struct hashing *h, struct json_value v)
{
    const struct json_node *end = behind(v);
    uint64_t sum = 0;

    for (struct json_value i = first_child(v); i.node < end; i = next_child(i)) {
        uint64_t name = hash_bytes(json_string(i, &h->scratch));

        i = next_child(i);
        sum += hash_words(JSON_OBJECT, name, hash_value(h, i));
    }
    return sum;
}

static uint64_t hash_content(struct hashing *h, struct json_value v)
{
    switch (json_type(v)) {
    case JSON_NULL:
        return 0;
    case JSON_BOOLEAN:
        return json_is_true(v);
    case JSON_NUMBER:
        return hash_number(h, v);
    case JSON_STRING:
        return hash_bytes(json_string(v, &h->scratch));
    case JSON_ARRAY:
        return hash_array(h, v);
    case JSON_OBJECT:
        return hash_object(h, v);
    }
    MUST_NOT_REACH();
}

static uint64_t hash_value(struct hashing *h, struct json_value v)
{
    uint64_t count = json_exists(v) ? v.node->count : 0;

    budget_spend(32 + json_text(v).n / 4);
    return hash_words(json_type(v), count, hash_content(h, v));
}

uint64_t json_hash(struct json_value v)
{
    struct hashing h;
    uint64_t hash;

    arena_init(&h.scratch);
    buf_init(&h.number, BUF_NO_CAP);
    hash = hash_value(&h, v);
    buf_done(&h.number);
    arena_done(&h.scratch);
    return hash;
}
