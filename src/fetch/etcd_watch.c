/* A watch goes through attempts, each an answer of one endpoint that does not end:
 *
 *   watch_start --> UNSIGNED --> SENT ----> READING   the attempt has ended, with lines left
 *                      ^          |  ^         |
 *                      |          v  |         |
 *                      +-------- PAUSED <------+      lost, silent, no leader: the next endpoint
 *
 * Each attempt asks for what follows the last revision that was yielded as a whole, so nothing is
 * left out and nothing comes twice; a revision that was cut (`fragment`) and not ended is asked for
 * anew, and as many of its events as were yielded are passed over.
 *
 * A connection that is frozen says nothing, and so does one whose member is cut off, unless it is
 * asked with `hasleader`; and silence is also what a quiet log sounds like. So after silence_ms the
 * watch is asked for anew: that costs a request. When nothing at all comes then, at the next
 * endpoint. The watch has an endpoint of its own: its silence moves no call to another.
 *
 * Bytes are only gathered while libcurl's socket is read; lines are read by a task, in which the
 * callbacks may do what they like. */
#include "etcd_private.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/sm.h"

#include <stdio.h>
#include <string.h>

enum { SIGN_INS_MOST = 2, LINES_KEPT = 65536 };

static const struct sm_state states[] = {
    [ETCD_OFF] = {"off", SM_TO(ETCD_UNSIGNED) | SM_TO(ETCD_SENT)},
    [ETCD_UNSIGNED] = {"unsigned", SM_TO(ETCD_SENT) | SM_TO(ETCD_PAUSED) | SM_TO(ETCD_OFF)},
    [ETCD_SENT] = {"sent", SM_TO(ETCD_READING) | SM_TO(ETCD_PAUSED) | SM_TO(ETCD_OFF)},
    [ETCD_PAUSED] = {"paused", SM_TO(ETCD_UNSIGNED) | SM_TO(ETCD_SENT) | SM_TO(ETCD_OFF)},
    [ETCD_READING] = {"reading", SM_TO(ETCD_PAUSED) | SM_TO(ETCD_OFF)},
};

static const struct sm_table machine = {"etcd watch", states, ETCD_STATE_COUNT};

static bool on_body(struct fetch *fetch, struct span bytes);
static void on_done(struct fetch *fetch, const struct fetch_result *result);

static void attempt(struct etcd_watch *w)
{
    struct etcd *e = w->etcd;
    struct buf body;

    if (etcd_needs_token(e)) {
        if (w->state != ETCD_UNSIGNED)
            sm_move(&machine, &w->state, ETCD_UNSIGNED);
        return;
    }
    sm_move(&machine, &w->state, ETCD_SENT);
    timer_stop(e->loop, &w->denial);
    w->attempts++;
    w->token = e->tokens;
    w->heard_now = w->is_over = false;
    w->skip = w->taken;
    buf_clear(&w->lines);
    buf_init(&body, BUF_NO_CAP);
    etcd_wire_add_watch(&body, buf_span(&w->key), buf_span(&w->range_end), w->next_revision);
    blob_unref(w->body);
    w->body = blob_new(buf_span(&body));
    buf_done(&body);
    w->fetch = (struct fetch){.on_body = on_body,
                              .on_done = on_done,
                              .body = w->body,
                              .timeout_ms = e->attempt_ms,
                              .read_bytes = 65536,
                              .keep_bytes = 65536};
    etcd_fill_fetch(e, ETCD_CALL_WATCH, w->endpoint, &w->fetch, w->url, w->headers);
    fetch_start(e->fetcher, &w->fetch);
}

static void on_pause_over(struct timer *timer)
{
    attempt(CONTAINER_OF(timer, struct etcd_watch, pause));
}

/* The attempt has ended, for whatever reason. An endpoint that has said something, and then
 * nothing, may have had nothing to say. */
static void try_again(struct etcd_watch *w, bool is_silent)
{
    struct etcd *e = w->etcd;

    fetch_cancel(e->fetcher, &w->fetch);
    loop_unpost(e->loop, &w->read);
    if (!is_silent || !w->heard_now)
        w->endpoint = (w->endpoint + 1) % e->endpoint_count;
    w->failures = w->heard_now ? 1 : w->failures + 1;
    sm_move(&machine, &w->state, ETCD_PAUSED);
    timer_start(e->loop, &w->pause, etcd_pause_ms(e, w->failures));
}

static void end(struct etcd_watch *w, enum etcd_watch_end reason, const char *why)
{
    char text[ETCD_WHY_BYTES];

    snprintf(text, sizeof(text), "%s", why);
    etcd_watch_stop(w->etcd, w);
    w->on_end(w, reason, text);
}

/* What a revision that was cut has yielded before, when it comes again. */
static struct etcd_line without_taken(struct etcd_watch *w, struct etcd_line line)
{
    size_t again = 0;

    while (again < line.count && w->skip > 0 &&
           line.events[again].kv.mod_revision == w->next_revision) {
        again++;
        w->skip--;
    }
    line.events += again;
    line.count -= again;
    return line;
}

/* Counts what is yielded, so that the next attempt asks for what follows. */
static void note(struct etcd_watch *w, const struct etcd_line *line)
{
    for (size_t i = 0; i < line->count; i++) {
        if (line->events[i].kv.mod_revision != w->next_revision) {
            w->next_revision = line->events[i].kv.mod_revision;
            w->taken = w->skip = 0;
        }
        w->taken++;
    }
    if (!line->is_cut && w->taken > 0) {
        w->next_revision++;
        w->taken = w->skip = 0;
    }
}

static void take_events(struct etcd_watch *w, const struct etcd_line *said)
{
    struct etcd_line line = without_taken(w, *said);

    w->sign_ins = 0;
    note(w, &line);
    if (line.count > 0)
        w->on_events(w, line.events, line.count);
}

/* The last statement of whoever calls it: the watch may be stopped, or gone. */
static void take_line(struct etcd_watch *w, const struct etcd_line *line)
{
    switch (line->kind) {
    case ETCD_LINE_EVENTS:
        take_events(w, line);
        break;
    case ETCD_LINE_COMPACTED:
        end(w, ETCD_WATCH_COMPACTED, line->why);
        break;
    case ETCD_LINE_CANCELLED:
        end(w, ETCD_WATCH_CANCELLED, line->why);
        break;
    case ETCD_LINE_DENIED:
        end(w, ETCD_WATCH_DENIED, line->why);
        break;
    case ETCD_LINE_BAD_TOKEN:
        if (w->sign_ins++ >= SIGN_INS_MOST) {
            end(w, ETCD_WATCH_DENIED, line->why);
            break;
        }
        etcd_drop_token(w->etcd, w->token);
        try_again(w, true);
        break;
    case ETCD_LINE_LOST:
        try_again(w, false);
        break;
    }
}

/* One line a call: after each the watch may have been stopped, and started anew. */
static void on_read(struct loop_task *task)
{
    struct etcd_watch *w = CONTAINER_OF(task, struct etcd_watch, read);
    struct etcd *e = w->etcd;
    struct span text = buf_span(&w->lines);
    size_t n = span_find_char(text, '\n', 0);
    struct etcd_line line;
    char why[ETCD_WHY_BYTES];

    if (n == text.n) {
        if (w->is_over)
            end(w, ETCD_WATCH_TOO_LARGE, "more at once than is read");
        else if (w->state == ETCD_READING)
            try_again(w, w->is_silent);
        return;
    }
    arena_reset(&e->arena);
    etcd_wire_read_line(span_sub(text, 0, n), &e->arena, &line);
    buf_drop_front(&w->lines, n + 1);
    if (w->lines.n == 0)
        buf_shrink(&w->lines, LINES_KEPT);
    loop_post(e->loop, &w->read);
    if (etcd_is_other(e, line.cluster_id, why))
        end(w, ETCD_WATCH_OTHER, why);
    else
        take_line(w, &line);
}

static bool on_body(struct fetch *fetch, struct span bytes)
{
    struct etcd_watch *w = CONTAINER_OF(fetch, struct etcd_watch, fetch);

    w->heard_ns = clock_mono_ns();
    w->heard_now = true;
    fetch->timeout_ms = w->etcd->silence_ms;
    buf_add(&w->lines, bytes);
    w->is_over = buf_over(&w->lines);
    loop_post(w->etcd->loop, &w->read);
    return !w->is_over;
}

static void take_refusal(struct etcd_watch *w, const struct fetch_result *result)
{
    struct etcd *e = w->etcd;
    struct etcd_answer answer;
    struct span token;

    arena_reset(&e->arena);
    etcd_wire_read(ETCD_CALL_WATCH, result->status, result->body, &e->arena, &answer, &token);
    if (etcd_wire_is_bad_token(result->status, &answer) && w->sign_ins < SIGN_INS_MOST) {
        w->sign_ins++;
        etcd_drop_token(e, w->token);
        try_again(w, true);
    } else if (answer.outcome == ETCD_DENIED) {
        end(w, ETCD_WATCH_DENIED, answer.why);
    } else if (answer.outcome == ETCD_INVALID) {
        end(w, ETCD_WATCH_CANCELLED, answer.why);
    } else {
        try_again(w, false);
    }
}

static void on_done(struct fetch *fetch, const struct fetch_result *result)
{
    struct etcd_watch *w = CONTAINER_OF(fetch, struct etcd_watch, fetch);

    if (result->error == FETCH_OK && result->status != 200) {
        take_refusal(w, result);
        return;
    }
    w->is_silent = result->error == FETCH_TIMEOUT;
    sm_move(&machine, &w->state, ETCD_READING);
    loop_post(w->etcd->loop, &w->read);
}

void etcd_watches_signed_in(struct etcd *e, const char *why)
{
    LIST_EACH(&e->watches, at) {
        struct etcd_watch *w = CONTAINER_OF(at, struct etcd_watch, link);

        if (w->state != ETCD_UNSIGNED)
            continue;
        if (why == NULL)
            attempt(w);
        else if (!timer_running(&w->denial))
            timer_start(e->loop, &w->denial, 0);
    }
}

/* The password was not taken. From a timer, so that no callback meets the walk above. */
static void on_denied(struct timer *timer)
{
    end(CONTAINER_OF(timer, struct etcd_watch, denial), ETCD_WATCH_DENIED,
        "signing in was refused");
}

static void copy(struct buf *b, struct span s)
{
    buf_init(b, BUF_NO_CAP);
    buf_add(b, s);
}

void etcd_watch_start(struct etcd *e, struct etcd_watch *w, struct span key, struct span range_end,
                      int64_t revision)
{
    MUST(w->state == ETCD_OFF && w->on_events != NULL && w->on_end != NULL);
    w->etcd = e;
    w->failures = w->sign_ins = w->attempts = 0;
    w->endpoint = e->endpoint;
    w->next_revision = revision;
    w->taken = w->skip = 0;
    w->heard_ns = clock_mono_ns();
    copy(&w->key, key);
    copy(&w->range_end, range_end);
    buf_init(&w->lines, e->answer_bytes);
    w->read = (struct loop_task){.run = on_read};
    w->fetch = (struct fetch){0};
    timer_init(&w->pause, on_pause_over);
    timer_init(&w->denial, on_denied);
    list_push_back(&e->watches, &w->link);
    attempt(w);
}

void etcd_watch_stop(struct etcd *e, struct etcd_watch *w)
{
    if (w->state == ETCD_OFF)
        return;
    fetch_cancel(e->fetcher, &w->fetch);
    loop_unpost(e->loop, &w->read);
    timer_stop(e->loop, &w->pause);
    timer_stop(e->loop, &w->denial);
    list_remove(&e->watches, &w->link);
    blob_unref(TAKE(w->body));
    buf_done(&w->key);
    buf_done(&w->range_end);
    buf_done(&w->lines);
    sm_move(&machine, &w->state, ETCD_OFF);
}
