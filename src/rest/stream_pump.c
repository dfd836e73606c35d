/* When a stream sends: when something new is on disk, or its client has taken what it was sent, or
 * it has been silent for long. It is due then, and takes its turn, a text at a time.
 *
 * What is new is noticed at the end of a turn, and told GATHER_MS later at the earliest, so that a
 * busy service writes to each client now and then, and not for each event. The pump takes PUMP_NS
 * of a turn at most, and a slice of one batch. */
#include "base/clock.h"
#include "base/mem.h"
#include "rest/metrics.h"
#include "rest/stream_inner.h"
#include "store/turn.h"

enum {
    GATHER_MS = 5,
    READ_AGAIN_MS = 2,
    TICK_MS = 1000,
    SILENT_MS = 15000 - TICK_MS, /* after which a comment is sent */
    PUMP_NS = 4000000,
};

static const char *const end_texts[] = {
#define STREAM_AS_TEXT(symbol, text) [symbol] = (text),
    STREAM_ENDS(STREAM_AS_TEXT)
#undef STREAM_AS_TEXT
};

static struct stream *of_due(struct list_link *link)
{
    return CONTAINER_OF(link, struct stream, due);
}

static uint64_t now_ms(const struct streams *h)
{
    return loop_now_ms(h->rest->loop);
}

static void leave_lists(struct stream *s)
{
    struct streams *h = s->view->streams;

    if (!list_linked(&s->due))
        return;
    list_remove(s->is_reading ? &h->reading : &h->due, &s->due);
    s->is_reading = false;
}

static void make_due(struct stream *s)
{
    struct streams *h = s->view->streams;

    if (!list_linked(&s->due) && s != h->current)
        list_push_back(&h->due, &s->due);
}

void stream_go_on(struct stream *s)
{
    make_due(s);
    loop_post(s->view->streams->rest->loop, &s->view->streams->pump);
}

void stream_end(struct stream *s, enum stream_end why)
{
    if (s->is_ending)
        return;
    s->is_ending = true;
    s->why = why;
    if (s->sink != NULL)
        stream_go_on(s);
}

/* ---- what a stream does when it is its turn ---- */

enum step {
    STEP_MORE,
    STEP_DONE, /* until it is made due again */
    STEP_READS,
};

static void write_text(struct stream *s, struct span with_end)
{
    s->sent_ms = now_ms(s->view->streams);
    s->sink->write(s->context, span_sub(with_end, 0, with_end.n - 2));
}

static void write_comment(struct stream *s)
{
    s->greets = false;
    write_text(s, SPAN(":\n\n\r\n"));
}

static void write_gap(struct stream *s, uint64_t forgotten)
{
    struct buf b;

    buf_init(&b, 256);
    buf_add_str(&b, "event: gap\ndata: {\"From\":");
    buf_add_u64(&b, MAX(s->place, s->gap) + 1);
    buf_add_str(&b, ",\"To\":");
    buf_add_u64(&b, forgotten);
    buf_add_str(&b, "}\n\n\r\n");
    s->gap = forgotten;
    s->view->call.rest->metrics->stream_gaps++;
    write_text(s, buf_span(&b));
    buf_done(&b);
}

static void end(struct stream *s)
{
    const struct stream_sink *sink = s->sink;
    void *context = s->context;
    enum stream_end why = s->why;
    struct buf b;

    if (sink->is_free(context)) {
        buf_init(&b, 256);
        buf_printf(&b, ": %s\n\n\r\n", end_texts[why]);
        write_text(s, buf_span(&b));
        buf_done(&b);
    }
    if (s->is_gone)
        return;
    stream_close(s);
    sink->end(context, why);
}

static enum step send_next(struct stream *s)
{
    struct stream_chunk *chunk = stream_view_find(s->view, s->place);
    enum stream_render render = STREAM_RENDERED;
    enum stream_end why;

    if (chunk == NULL)
        render = stream_render(s, &chunk, &why);
    switch (render) {
    case STREAM_RENDERED:
        s->place = chunk->to;
        if (chunk->text.n > 0)
            write_text(s, buf_span(&chunk->text));
        if (!s->is_gone && list_count(&s->view->members) == 1)
            stream_chunk_free(chunk);
        return STEP_MORE;
    case STREAM_NOTHING:
        return STEP_DONE;
    case STREAM_READS:
        return STEP_READS;
    case STREAM_REFUSED:
        stream_end(s, why);
        return STEP_MORE;
    default:
        return STEP_MORE;
    }
}

static bool is_silent(const struct stream *s)
{
    return s->greets || now_ms(s->view->streams) - s->sent_ms >= SILENT_MS;
}

static enum step step(struct stream *s)
{
    const struct stream_view *v = s->view;
    uint64_t forgotten;

    if (!stream_view_is_allowed(v))
        stream_end(s, STREAM_KEY_GONE);
    if (s->is_ending) {
        end(s);
        return STEP_DONE;
    }
    if (!s->sink->is_free(s->context))
        return STEP_DONE;
    if (is_silent(s)) {
        write_comment(s);
        return STEP_MORE;
    }
    forgotten = v->source->forgotten(&v->call);
    if (forgotten > MAX(s->place, s->gap)) {
        write_gap(s, forgotten);
        return STEP_MORE;
    }
    return send_next(s);
}

static void after_step(struct streams *h, struct stream *s, enum step step)
{
    if (s->is_gone) {
        mem_free(s);
        return;
    }
    if (step == STEP_MORE) {
        make_due(s);
    } else if (step == STEP_READS) {
        s->is_reading = true;
        list_push_back(&h->reading, &s->due);
        if (!timer_running(&h->again))
            timer_start(h->rest->loop, &h->again, READ_AGAIN_MS);
    }
}

static void on_pump(struct loop_task *task)
{
    struct streams *h = CONTAINER_OF(task, struct streams, pump);
    uint64_t until_ns = clock_mono_ns() + PUMP_NS;
    struct list_link *first;

    while ((first = list_pop_front(&h->due)) != NULL) {
        struct stream *s = of_due(first);
        enum step done;

        h->current = s;
        done = step(s);
        h->current = NULL;
        after_step(h, s, done);
        if (clock_mono_ns() >= until_ns)
            break;
    }
    if (!list_empty(&h->due))
        loop_post(h->rest->loop, &h->pump);
}

static void on_again(struct timer *timer)
{
    struct streams *h = CONTAINER_OF(timer, struct streams, again);

    LIST_EACH(&h->reading, at)
        of_due(at)->is_reading = false;
    list_take_all(&h->due, &h->reading);
    loop_post(h->rest->loop, &h->pump);
}

/* ---- what is new ---- */

static void tell(struct streams *h)
{
    h->told_ms = now_ms(h);
    LIST_EACH(&h->started, at)
        make_due(CONTAINER_OF(at, struct stream, link));
    loop_post(h->rest->loop, &h->pump);
}

static void on_gathered(struct timer *timer)
{
    tell(CONTAINER_OF(timer, struct streams, gather));
}

static void tell_soon(struct streams *h, uint64_t number)
{
    uint64_t passed = now_ms(h) - h->told_ms;

    h->told = number;
    if (timer_running(&h->gather))
        return;
    if (passed >= GATHER_MS)
        tell(h);
    else
        timer_start(h->rest->loop, &h->gather, GATHER_MS - passed);
}

static void on_committed(struct turn_wait *wait)
{
    tell_soon(CONTAINER_OF(wait, struct streams, commit), wait->serial);
}

/* Views of one resource stand together mostly: it is asked once. */
static uint64_t newest(const struct streams *h)
{
    const struct stream_source *asked = NULL;
    uint64_t number = 0;

    LIST_EACH(&h->views, at) {
        const struct stream_view *v = CONTAINER_OF(at, struct stream_view, link);

        if (v->source != asked)
            number = MAX(number, v->source->last(&v->call));
        asked = v->source;
    }
    return number;
}

/* What is being applied is told of when all of it can be seen. */
static void on_turn_end(struct loop_hook *hook)
{
    struct streams *h = CONTAINER_OF(hook, struct streams, at_turn_end);
    uint64_t number;

    if (turn_is_applying(h->rest->turn))
        return;
    number = newest(h);
    if (number <= h->told || heap_contains(&h->commit.node))
        return;
    if (turn_is_committed(h->rest->turn, number))
        tell_soon(h, number);
    else
        turn_wait(h->rest->turn, &h->commit, number);
}

/* ---- silence ---- */

static void on_tick(struct timer *timer)
{
    struct streams *h = CONTAINER_OF(timer, struct streams, tick);

    timer_start(h->rest->loop, timer, TICK_MS);
    streams_check_keys(h);
    LIST_EACH(&h->started, at) {
        struct stream *s = CONTAINER_OF(at, struct stream, link);

        if (is_silent(s))
            stream_go_on(s);
    }
}

/* ---- life ---- */

void stream_pump_init(struct streams *h)
{
    list_init(&h->due);
    list_init(&h->reading);
    h->at_turn_end.run = on_turn_end;
    h->pump.run = on_pump;
    h->commit.on_committed = on_committed;
    timer_init(&h->gather, on_gathered);
    timer_init(&h->again, on_again);
    timer_init(&h->tick, on_tick);
}

void stream_pump_start(struct streams *h)
{
    loop_add_hook(h->rest->loop, &h->at_turn_end);
    timer_start(h->rest->loop, &h->tick, TICK_MS);
}

void stream_pump_stop(struct streams *h)
{
    struct loop *loop = h->rest->loop;

    loop_remove_hook(loop, &h->at_turn_end);
    loop_unpost(loop, &h->pump);
    turn_unwait(h->rest->turn, &h->commit);
    timer_stop(loop, &h->gather);
    timer_stop(loop, &h->again);
    timer_stop(loop, &h->tick);
}

/* In the midst of its own turn it is freed after that. */
void stream_close(struct stream *s)
{
    struct streams *h;

    if (s == NULL)
        return;
    h = s->view->streams;
    leave_lists(s);
    if (list_linked(&s->link))
        list_remove(&h->started, &s->link);
    stream_uncount(s);
    stream_view_leave(s);
    if (h->current == s)
        s->is_gone = true;
    else
        mem_free(s);
}
