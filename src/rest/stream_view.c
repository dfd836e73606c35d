/* A view has a call of its own, which lasts: key, resource, and the query anew from a copy of its
 * target, as the request's is gone when the first entity comes.
 *
 * Chunks are found by where they begin: streams of a view that have once sent the same chunk are at
 * the same place, and stay together from then on. Who is somewhere else gets texts of its own up to
 * where the next chunk begins. */
#include "rest/stream_inner.h"

#include "access/access.h"
#include "base/mem.h"
#include "base/room.h"
#include "query/uri.h"
#include "rest/tenant.h"

/* ---- chunks ---- */

void stream_chunk_free(struct stream_chunk *chunk)
{
    struct streams *h = chunk->view->streams;

    list_remove(&chunk->view->chunks, &chunk->of_view);
    list_remove(&h->chunks, &chunk->of_all);
    h->chunk_bytes -= chunk->text.size;
    chunk->view->call.account->bytes -= chunk->text.size;
    buf_done(&chunk->text);
    mem_free(chunk);
}

static struct stream_chunk *of_view(struct list_link *link)
{
    return CONTAINER_OF(link, struct stream_chunk, of_view);
}

/* The oldest go first, whose they are. */
static void make_room(struct streams *h)
{
    uint64_t most = room_most(h->rest->limits, h->chunk_bytes, STREAM_CHUNK_BYTES_MOST);

    while (h->chunk_bytes > most && !list_empty(&h->chunks))
        stream_chunk_free(CONTAINER_OF(list_first(&h->chunks), struct stream_chunk, of_all));
}

struct stream_chunk *stream_view_add(struct stream_view *v, uint64_t from, uint64_t to,
                                     struct buf *text)
{
    enum { CHUNKS_MOST = 64 };
    struct streams *h = v->streams;
    struct stream_chunk *chunk = NEW(struct stream_chunk);

    make_room(h);
    if (list_count(&v->chunks) >= CHUNKS_MOST)
        stream_chunk_free(of_view(list_first(&v->chunks)));
    *chunk = (struct stream_chunk){.view = v, .from = from, .to = to, .text = *text};
    buf_init(text, BUF_NO_CAP);
    list_push_back(&v->chunks, &chunk->of_view);
    list_push_back(&h->chunks, &chunk->of_all);
    h->chunk_bytes += chunk->text.size;
    v->call.account->bytes += chunk->text.size;
    return chunk;
}

struct stream_chunk *stream_view_find(struct stream_view *v, uint64_t from)
{
    struct list_link *at = list_last(&v->chunks);

    while (at != NULL && of_view(at)->from != from)
        at = list_prev(&v->chunks, at);
    return at == NULL ? NULL : of_view(at);
}

uint64_t stream_view_next_place(const struct stream_view *v, uint64_t from)
{
    uint64_t least = UINT64_MAX;

    LIST_EACH(&v->chunks, at)
        if (of_view(at)->from > from)
            least = MIN(least, of_view(at)->from);
    return least;
}

/* ---- views ---- */

bool stream_view_is_allowed(const struct stream_view *v)
{
    const struct access *access = v->call.rest->access;
    const struct access_key *key = v->call.key;

    if (key == NULL)
        return !access_requires_key(access);
    return access_find(access, key->tenant, key->name) == key && !access_has_expired(key);
}

static struct stream_view *find(struct streams *h, const struct call *call, struct span target)
{
    LIST_EACH(&h->views, at) {
        struct stream_view *v = CONTAINER_OF(at, struct stream_view, link);

        if (v->call.key == call->key && span_eq(v->target, target))
            return v;
    }
    return NULL;
}

static void view_free(struct stream_view *v)
{
    struct streams *h = v->streams;

    stream_batch_cancel(v, NULL);
    LIST_EACH(&v->chunks, at)
        stream_chunk_free(of_view(at));
    list_remove(&h->views, &v->link);
    if (list_empty(&h->views))
        stream_pump_stop(h);
    query_done(&v->query);
    access_key_unref(h->rest->access, v->call.key);
    account_unref(h->rest->accounts, v->call.account);
    arena_done(&v->arena);
    mem_free(v);
}

static struct stream_view *make(struct streams *h, const struct call *call)
{
    struct stream_view *v = NEW(struct stream_view);

    v->streams = h;
    v->source = call->resource->ops->stream;
    v->call = (struct call){
        .rest = call->rest,
        .arena = &v->arena,
        .key = call->key == NULL ? NULL : access_key_ref(call->key),
        .account = account_keep(call->account),
        .method = METHOD_GET,
        .resource = call->resource,
        .query = &v->query,
    };
    arena_init(&v->arena);
    list_init(&v->members);
    list_init(&v->chunks);
    if (list_empty(&h->views))
        stream_pump_start(h);
    list_push_back(&h->views, &v->link);
    return v;
}

static struct err *read_query(struct stream_view *v, const struct uri *uri)
{
    struct uri *own = ARENA_NEW(&v->arena, struct uri);

    uri_copy(uri, &v->arena, own);
    TRY(resource_parse_query(v->call.resource, own, &v->arena, &v->query));
    tenant_confine(&v->call);
    return NULL;
}

struct err *stream_view_join(struct streams *h, struct call *call, const struct uri *uri,
                             struct stream *s)
{
    struct stream_view *v;
    struct buf target;
    struct err *e;

    buf_init_arena(&target, call->arena);
    uri_add_normal(&target, uri, call->resource->name, false);
    v = find(h, call, buf_span(&target));
    if (v == NULL) {
        v = make(h, call);
        v->target = arena_copy(&v->arena, buf_span(&target));
        e = read_query(v, uri);
        if (e != NULL) {
            view_free(v);
            return e;
        }
    }
    s->view = v;
    list_push_back(&v->members, &s->of_view);
    return NULL;
}

void stream_view_leave(struct stream *s)
{
    struct stream_view *v = s->view;

    stream_batch_cancel(v, s);
    list_remove(&v->members, &s->of_view);
    if (list_empty(&v->members))
        view_free(v);
}
