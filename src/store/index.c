/* A hash map from each value of a property to the entities that have it, in the order of insertion,
 * which is the order of results. Values that are equal have one spelling (literal_add_key), so that
 * 1 finds 1.0. Only equality is indexed: it is what clients ask for most, and ranges would need a
 * tree for each property. */
#include "store/index.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "query/literal.h"
#include "query/path.h"
#include "query/shape.h"
#include "json/json.h"

#include <string.h>

struct index_bucket {
    struct list nodes; /* struct index_node, by object_no unless is_unordered */
    bool is_unordered; /* an older entity took this value later: sorted when next walked */
    size_t key_bytes;
    char key[];
};

struct index {
    struct arena arena; /* of the path */
    struct path path;
    struct map buckets;
    struct buf key;       /* scratch: what is looked for, or is added next */
    uint64_t hash;        /* of it, when it is added */
    struct arena scratch; /* of reading values, reset after each */
};

static struct span bucket_key(const void *item)
{
    const struct index_bucket *b = item;

    return span_of(b->key, b->key_bytes);
}

static bool is_scalar(enum value_type type)
{
    return type == TYPE_STRING || type == TYPE_INTEGER || type == TYPE_NUMBER ||
           type == TYPE_BOOLEAN || type == TYPE_DATETIME;
}

struct err *index_new(const struct shape *shape, struct span property, struct index **out_index)
{
    struct index *index = NEW(struct index);
    struct path path;
    bool fits;
    struct err *e;

    arena_init(&index->arena);
    arena_init(&index->scratch);
    map_init(&index->buckets, bucket_key);
    buf_init(&index->key, BUF_NO_CAP);
    TRY_GOTO(e, path_parse(property, shape, &index->scratch, &path), failed);
    fits = path_is_member(&path) && is_scalar(path.type); /* conditions demand no others */
    path_copy(&path, &index->arena, &index->path);
    index->path.property = NULL; /* the shape may go */
    arena_reset(&index->scratch);
    if (!fits) {
        e = ERR(ERR_INVALID_ENTITY, "'%.*s' cannot be indexed: it is not a declared scalar",
                SPAN_FMT(property));
        goto failed;
    }
    *out_index = index;
    return NULL;

failed:
    index_free(index);
    return e;
}

void index_free(struct index *index)
{
    if (index == NULL)
        return;
    MUST(map_count(&index->buckets) == 0);
    map_done(&index->buckets);
    buf_done(&index->key);
    arena_done(&index->scratch);
    arena_done(&index->arena);
    mem_free(index);
}

/* Objects and arrays equal nothing: where they stand does not matter. */
static void add_value(struct index *index, const struct value *value)
{
    struct literal literal = {.kind = LITERAL_NULL};

    literal_of_value(&index->path, value, &literal);
    literal_add_key(&index->key, &literal);
}

static struct index_bucket *bucket_get(struct index *index)
{
    struct span key = buf_span(&index->key);
    struct index_bucket *bucket = map_find_hashed(&index->buckets, key, index->hash);

    if (bucket != NULL)
        return bucket;
    bucket = mem_alloc(sizeof(*bucket) + key.n);
    list_init(&bucket->nodes);
    bucket->is_unordered = false;
    bucket->key_bytes = key.n;
    memcpy(bucket->key, key.p, key.n);
    map_add_hashed(&index->buckets, bucket, index->hash);
    return bucket;
}

static struct entity *entity_of(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct index_node, link)->entity;
}

struct span index_member(const struct index *index)
{
    return index->path.steps[0].name;
}

void index_expect(struct index *index, struct json_value member)
{
    struct value value = path_read_member(&index->path, member, &index->scratch);

    buf_clear(&index->key);
    add_value(index, &value);
    index->hash = map_hash(&index->buckets, buf_span(&index->key));
    map_expect_hashed(&index->buckets, index->hash);
    arena_reset(&index->scratch);
}

void index_add(struct index *index, struct index_node *node)
{
    const struct entity *last;

    node->bucket = bucket_get(index);
    last = entity_of(list_last(&node->bucket->nodes));
    if (last != NULL && last->object_no > node->entity->object_no)
        node->bucket->is_unordered = true;
    list_push_back(&node->bucket->nodes, &node->link);
}

void index_remove(struct index *index, struct index_node *node)
{
    struct index_bucket *bucket = node->bucket;

    list_remove(&bucket->nodes, &node->link);
    node->bucket = NULL;
    if (!list_empty(&bucket->nodes))
        return;
    map_remove(&index->buckets, bucket_key(bucket));
    mem_free(bucket);
}

bool index_find(struct index *index, const struct conditions *conditions,
                struct index_bucket **out_bucket)
{
    const struct literal *literal = conditions_equal_to(conditions, index->path.text);

    if (literal == NULL)
        return false;
    buf_clear(&index->key);
    literal_add_key(&index->key, literal);
    *out_bucket = map_find(&index->buckets, buf_span(&index->key));
    return true;
}

static bool comes_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct index_node, link)->entity->object_no <
           CONTAINER_OF_CONST(b, struct index_node, link)->entity->object_no;
}

static void put_in_order(struct index_bucket *bucket)
{
    if (bucket->is_unordered)
        list_sort(&bucket->nodes, comes_before);
    bucket->is_unordered = false;
}

struct entity *index_first(struct index_bucket *bucket)
{
    put_in_order(bucket);
    return entity_of(list_first(&bucket->nodes));
}

struct entity *index_last(struct index_bucket *bucket)
{
    put_in_order(bucket);
    return entity_of(list_last(&bucket->nodes));
}

struct entity *index_next(struct index_bucket *bucket, const struct entity *e, size_t index_place)
{
    return entity_of(list_next(&bucket->nodes, &e->indexed[index_place].link));
}

struct entity *index_previous(struct index_bucket *bucket, const struct entity *e,
                              size_t index_place)
{
    return entity_of(list_prev(&bucket->nodes, &e->indexed[index_place].link));
}

size_t index_bucket_count(const struct index_bucket *bucket)
{
    return list_count(&bucket->nodes);
}
