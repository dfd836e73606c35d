/* Where the next page is: Svc-pager and Link (docs/specification.md, section 3). */
#include "query/query.h"
#include "query/source.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/crud_inner.h"
#include "rest/response.h"
#include "rest/rest.h"

static void add_meta(struct buf *b, struct span name, struct span value)
{
    if (b->n > 0)
        buf_add_char(b, '&');
    buf_add(b, name);
    buf_add_char(b, '=');
    uri_add_encoded(b, value);
}

/* RFC 8288: the target stands between `<` and `>`, so that its own have to be encoded. */
static void add_link(struct call *call, struct span target)
{
    struct buf link;

    buf_init(&link, BUF_NO_CAP);
    buf_add_char(&link, '<');
    for (size_t i = 0; i < target.n; i++) {
        if (target.p[i] == '<')
            buf_add_str(&link, "%3C");
        else if (target.p[i] == '>')
            buf_add_str(&link, "%3E");
        else
            buf_add_char(&link, target.p[i]);
    }
    buf_add_str(&link, ">; rel=\"next\"");
    response_add_header(call->response, SPAN("Link"), buf_span(&link));
    buf_done(&link);
}

/* Where entities are listed by their ObjectNo, the next page begins behind the last one of this:
 * whatever comes and goes meanwhile, nothing is repeated or left out. */
static bool is_by_object_no(const struct call *call)
{
    const struct meta *meta = &call->query->meta;

    return call->source->object_no != NULL && meta->order_count == 0 && !meta->distinct;
}

static bool is_from_object_no(const struct uri_condition *c)
{
    return c->op == URI_GT && span_ieq(c->key, SPAN("ObjectNo"));
}

/* `ObjectNo>n` takes the place of that of the page before. */
static void set_object_no(struct call *call, const struct query_result *result, struct uri *uri)
{
    const struct query_item *last = &result->items[result->count - 1];
    uint64_t n = call->source->object_no(call->source, last);
    struct uri_condition *conditions =
        ARENA_ARRAY(call->arena, struct uri_condition, uri->condition_count + 1);
    size_t count = 0;

    for (size_t i = 0; i < uri->condition_count; i++)
        if (!is_from_object_no(&uri->conditions[i]))
            conditions[count++] = uri->conditions[i];
    conditions[count++] =
        (struct uri_condition){SPAN("ObjectNo"), URI_GT, arena_u64(call->arena, n)};
    uri->conditions = conditions;
    uri->condition_count = count;
}

/* The offset moved on by one page; one from the end, to those left. */
static void add_offset(struct call *call, const struct query_result *result, struct buf *metas)
{
    const struct meta *meta = &call->query->meta;
    int64_t next = meta->offset < 0 ? -(int64_t)result->left : meta->offset + meta->limit;

    add_meta(metas, SPAN("offset"), arena_printf(call->arena, "%lld", (long long)next));
}

void crud_add_pager(struct call *call, const struct query_result *result)
{
    struct uri uri = *call->uri;
    struct buf target, metas;

    buf_init_arena(&target, call->arena);
    buf_init_arena(&metas, call->arena);
    uri.meta_count = 0;
    for (size_t i = 0; i < call->uri->meta_count; i++)
        if (!span_ieq(call->uri->metas[i].key, SPAN("offset")))
            add_meta(&metas, call->uri->metas[i].key, call->uri->metas[i].value);
    if (is_by_object_no(call))
        set_object_no(call, result, &uri);
    else
        add_offset(call, result, &metas);
    uri_add_normal(&target, &uri, call->resource->name, false);
    if (uri.condition_count == 0)
        buf_add_str(&target, "/_");
    buf_add_char(&target, '/');
    buf_add(&target, buf_span(&metas));
    response_add_header(call->response, SPAN("Svc-pager"), buf_span(&target));
    add_link(call, rest_link(call->rest, buf_span(&target), call->arena));
}
