/* A stream's life: what was asked for, the number of them, and why they end.
 *
 * One account may have all that there are, as long as no other wants any: then the newest of the
 * one that has most makes room. */
#include "rest/stream.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "journal/journal.h"
#include "query/uri.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/stream_inner.h"
#include "store/turn.h"

#include <string.h>

enum { RETRY_AFTER_S = 5 };

struct streams *streams_new(struct rest *rest)
{
    struct streams *h = NEW(struct streams);

    h->rest = rest;
    list_init(&h->started);
    list_init(&h->views);
    list_init(&h->chunks);
    stream_pump_init(h);
    return h;
}

void streams_free(struct streams *h)
{
    if (h == NULL)
        return;
    MUST(list_empty(&h->views));
    mem_free(h);
}

size_t streams_count(const struct streams *h)
{
    return h->open;
}

size_t streams_bytes(const struct streams *h)
{
    return h->chunk_bytes;
}

/* ---- how many ---- */

static struct account *account_of(const struct stream *s)
{
    return s->view->call.account;
}

static void stream_count(struct stream *s)
{
    s->is_counted = true;
    s->view->streams->open++;
    account_of(s)->streams++;
}

void stream_uncount(struct stream *s)
{
    if (!s->is_counted)
        return;
    s->is_counted = false;
    s->view->streams->open--;
    account_of(s)->streams--;
}

/* The newest stream of the account that has most; NULL: none has more than one besides `account`.
 */
static struct stream *to_give_way(const struct streams *h, const struct account *account)
{
    struct stream *found = NULL;
    uint32_t most = account->streams + 1;

    LIST_EACH(&h->started, at) {
        struct stream *s = CONTAINER_OF(at, struct stream, link);

        if (s->is_counted && account_of(s)->streams > most) {
            most = account_of(s)->streams;
            found = s;
        } else if (s->is_counted && found != NULL && account_of(s) == account_of(found)) {
            found = s;
        }
    }
    return found;
}

static struct err *refuse(const struct streams *h)
{
    return err_set_retry_after(h->is_draining
                                   ? ERR(ERR_OVERLOADED, "the server is shutting down")
                                   : ERR(ERR_OVERLOADED, "the limit Streams (%lld) is reached",
                                         (long long)h->rest->limits->streams),
                               RETRY_AFTER_S);
}

static struct err *make_room(struct streams *h, const struct account *account)
{
    struct stream *other;

    if (h->is_draining)
        return refuse(h);
    if (h->open < (size_t)h->rest->limits->streams)
        return NULL;
    h->rest->metrics->limit_hits[METRIC_STREAMS]++;
    other = to_give_way(h, account);
    if (other == NULL)
        return refuse(h);
    stream_uncount(other);
    stream_end(other, STREAM_MADE_ROOM);
    return NULL;
}

/* ---- what is asked for ---- */

static struct err *check_metas(const struct call *call)
{
    const struct uri *uri = call->uri;

    for (size_t i = 0; i < uri->meta_count; i++) {
        struct span key = uri->metas[i].key;

        if (!span_ieq(key, SPAN("select")) && !span_ieq(key, SPAN("add")))
            return ERR(ERR_INVALID_META_KEY,
                       "a stream knows the meta-conditions select and add, not '%.*s'",
                       SPAN_FMT(key));
    }
    return NULL;
}

static bool is_begin(const struct uri_condition *c, uint64_t *out_number)
{
    return c->op == URI_GT && span_ieq(c->key, SPAN("ObjectNo")) &&
           span_to_u64(c->value, out_number);
}

/* What it begins after, as far as its conditions say. They are left out of `rest`, so that streams
 * which begin elsewhere are of one view; but for what has yet to come. */
static uint64_t begin_of(const struct call *call, uint64_t now, struct uri *rest)
{
    struct uri_condition *kept =
        ARENA_ARRAY(call->arena, struct uri_condition, call->uri->condition_count + 1);
    uint64_t number, begin = 0;
    size_t count = 0;
    bool is_said = false;

    *rest = *call->uri;
    rest->conditions = kept;
    for (size_t i = 0; i < call->uri->condition_count; i++) {
        const struct uri_condition *c = &call->uri->conditions[i];

        if (is_begin(c, &number) && number <= now) {
            begin = MAX(begin, number);
            is_said = true;
        } else {
            kept[count++] = *c;
        }
    }
    rest->condition_count = count;
    return is_said ? begin : now;
}

/* What a client has read last must have been here: if the journal has begun anew since, or lost its
 * end with the power, the numbers say nothing any more. */
static struct err *read_last_id(const struct call *call, uint64_t now, uint64_t *place,
                                bool *out_said)
{
    struct span text = request_header_all(call->request, SPAN("Last-Event-ID"), call->arena);
    uint64_t number;

    *out_said = text.n > 0;
    if (text.n == 0)
        return NULL;
    if (!span_to_u64(text, &number))
        return ERR(ERR_INVALID_CONDITION_VALUE, "Last-Event-ID: '%.*s' is no ObjectNo",
                   SPAN_FMT(text));
    if (number > now)
        return ERR(ERR_INVALID_CONDITION_VALUE,
                   "Last-Event-ID: %llu is no ObjectNo that there has been: the last one is %llu",
                   (unsigned long long)number, (unsigned long long)now);
    *place = number;
    return NULL;
}

static struct err *read_place(const struct call *call, struct uri *rest, uint64_t *out_place)
{
    uint64_t now = journal_committed_serial(turn_journal(call->rest->turn));
    uint64_t begin = begin_of(call, now, rest), place = begin;
    bool is_resumed;

    TRY(read_last_id(call, now, &place, &is_resumed));
    if (is_resumed && rest->condition_count < call->uri->condition_count)
        place = MAX(place, begin);
    *out_place = place;
    return NULL;
}

static struct err *open_stream(struct call *call)
{
    struct streams *h = call->rest->streams;
    struct stream *s;
    struct uri rest;
    uint64_t place;
    struct err *e;

    TRY(read_place(call, &rest, &place));
    TRY(make_room(h, call->account));
    s = NEW(struct stream);
    s->place = place;
    s->greets = true;
    e = stream_view_join(h, call, &rest, s);
    if (e != NULL) {
        mem_free(s);
        return e;
    }
    stream_count(s);
    call->response->stream = s;
    call->response->has_flow = true;
    return NULL;
}

struct err *stream_answer(struct call *call)
{
    struct response *response = call->response;

    TRY(check_metas(call));
    if (call->method == METHOD_GET)
        TRY(open_stream(call));
    response->status = 200;
    response->is_stream = true;
    response->content_type = SPAN("text/event-stream");
    response_add_own_header(response, SPAN("Cache-Control"), SPAN("no-store"));
    response_add_own_header(response, SPAN("X-Accel-Buffering"), SPAN("no"));
    return NULL;
}

/* ---- life ---- */

void stream_start(struct stream *s, const struct stream_sink *sink, void *context)
{
    struct streams *h = s->view->streams;

    MUST(s->sink == NULL);
    s->sink = sink;
    s->context = context;
    list_push_back(&h->started, &s->link);
    if (h->is_draining)
        stream_end(s, STREAM_SHUTDOWN);
    stream_go_on(s);
}

void streams_check_keys(struct streams *h)
{
    LIST_EACH(&h->started, at) {
        struct stream *s = CONTAINER_OF(at, struct stream, link);

        if (!stream_view_is_allowed(s->view))
            stream_end(s, STREAM_KEY_GONE);
    }
}

void streams_drain(struct streams *h)
{
    h->is_draining = true;
    LIST_EACH(&h->started, at)
        stream_end(CONTAINER_OF(at, struct stream, link), STREAM_SHUTDOWN);
}
