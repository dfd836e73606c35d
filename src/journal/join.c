/* A copy is taken from one node after another until one is whole: from the node that has failed
 * least, a follower before the leader, who has enough to do, and of those the one that is furthest.
 * What is received is written by copy_in; when the disk is behind, reading the connection waits. */
#include "join_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sm.h"
#include "base/span.h"
#include "fetch/fetch.h"
#include "io/timer.h"
#include "journal/copy_in.h"
#include "journal/replica.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    PAUSE_LEAST_MS = 100,
    PAUSE_MOST_MS = 30000,
    PAUSE_DOUBLINGS = 9,
    SILENCE_MS = 30000,
    HELD_BYTES = 1 << 20, /* what was read and copy_in has not taken: 64 KiB in fact */
    FAILED_MOST = 64,     /* nodes whose failures are known */
    WHY_BYTES = 320,
};

#define PROGRESS_BYTES ((uint64_t)8 << 20)

enum join_state { IDLE, COPYING, CLEARING, PAUSING, SEALED };

static const struct sm_state states[] = {
    [IDLE] = {"idle", SM_TO(CLEARING)},
    [COPYING] = {"copying", SM_TO(CLEARING) | SM_TO(SEALED)},
    [CLEARING] = {"clearing", SM_TO(PAUSING)},
    [PAUSING] = {"pausing", SM_TO(COPYING) | SM_TO(PAUSING)},
    [SEALED] = {"sealed", 0},
};

static const struct sm_table machine = {"join", states, ARRAY_LEN(states)};

struct failure {
    char node[REPLICA_NAME_BYTES];
    size_t n;
    unsigned times;
};

struct join {
    struct loop *loop;
    struct join_options options; /* directory, node, base_path are owned */
    uint8_t state;               /* enum join_state */
    struct copy_in *copy;
    struct fetch fetch;
    struct header_field header;
    struct buf url, authorization, held;
    char source[REPLICA_NAME_BYTES + 1]; /* the node that is asked */
    bool has_ended;                      /* the answer */
    uint64_t told_bytes;
    uint64_t begun_ms;
    struct loop_task step; /* the next thing to be done, in this turn's end */
    struct timer again;
    unsigned tries;
    struct failure failures[FAILED_MOST];
    size_t failure_count;
    char why[WHY_BYTES]; /* of the copy that has failed; "" while it goes on */
};

static void note_why(struct join *j, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The first reason counts. */
static void note_why(struct join *j, const char *fmt, ...)
{
    va_list args;

    if (j->why[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(j->why, sizeof(j->why), fmt, args);
    va_end(args);
}

static void note_error(struct join *j, struct err *e)
{
    note_why(j, "%.*s", SPAN_FMT(err_message(e)));
    err_free(e);
}

/* Whom to ask. ------------------------------------------------------------------------------ */

static struct failure *failure_of(struct join *j, struct span node)
{
    for (size_t i = 0; i < j->failure_count; i++)
        if (span_eq(span_of(j->failures[i].node, j->failures[i].n), node))
            return &j->failures[i];
    return NULL;
}

/* Of more nodes than are known the others count as new. */
static void note_failure(struct join *j)
{
    struct span node = span_str(j->source);
    struct failure *f = failure_of(j, node);

    if (node.n == 0)
        return;
    if (f == NULL && j->failure_count < FAILED_MOST) {
        f = &j->failures[j->failure_count++];
        *f = (struct failure){.n = node.n};
        memcpy(f->node, node.p, node.n);
    }
    if (f != NULL)
        f->times++;
}

static unsigned times_failed(struct join *j, const struct replica_node *node)
{
    const struct failure *f = failure_of(j, node->name);

    return f == NULL ? 0 : f->times;
}

static bool can_give(const struct join *j, const struct replica_node *node)
{
    bool has_all = node->role == REPLICA_FOLLOWING || node->role == REPLICA_CANDIDATE ||
                   node->role == REPLICA_TAKING_OVER || node->role == REPLICA_LEADING;

    return has_all && node->next >= j->options.begins && node->url.n > 0 &&
           !span_eq(node->name, span_str(j->options.node));
}

static bool is_better(struct join *j, const struct replica_node *a, const struct replica_node *b)
{
    unsigned of_a = times_failed(j, a), of_b = times_failed(j, b);

    if (of_a != of_b)
        return of_a < of_b;
    if ((a->role == REPLICA_LEADING) != (b->role == REPLICA_LEADING))
        return b->role == REPLICA_LEADING;
    return a->next > b->next;
}

static const struct replica_node *choose(struct join *j)
{
    const struct replica_node *best = NULL;

    for (size_t i = 0; i < replica_node_count(j->options.replica); i++) {
        const struct replica_node *node = replica_node_at(j->options.replica, i);

        if (can_give(j, node) && (best == NULL || is_better(j, node, best)))
            best = node;
    }
    return best;
}

/* Its end. ---------------------------------------------------------------------------------- */

static void let_go(struct join *j)
{
    fetch_cancel(j->options.fetcher, &j->fetch);
    fetch_origin_put(TAKE(j->fetch.origin));
    copy_in_free(TAKE(j->copy));
    buf_clear(&j->held);
}

static void go_on(struct join *j)
{
    loop_post(j->loop, &j->step);
}

/* The connection goes at once, what was received in the turns to come. */
static void give_up(struct join *j)
{
    char why[WHY_BYTES];

    let_go(j);
    note_failure(j);
    memcpy(why, j->why, sizeof(why));
    log_warn("join", "no copy of the journal from node '%s': %s", j->source, why);
    sm_move(&machine, &j->state, CLEARING);
    go_on(j);
    if (j->options.on_failed != NULL)
        j->options.on_failed(j->options.context, why);
}

static void seal(struct join *j)
{
    uint64_t bytes = copy_in_bytes(j->copy), next = copy_in_head(j->copy)->serial + 1;
    uint64_t ms = MAX(loop_now_ms(j->loop) - j->begun_ms, 1u);
    struct err *e;

    let_go(j);
    e = join_seal(j->options.directory, &j->options.cluster);
    if (e != NULL) {
        note_error(j, e);
        give_up(j);
        return;
    }
    sm_move(&machine, &j->state, SEALED);
    log_info("join",
             "a copy of the journal from node '%s': %" PRIu64 " bytes in %" PRIu64
             " ms, up to serial %" PRIu64,
             j->source, bytes, ms, next - 1);
    j->options.on_joined(j->options.context, next);
}

/* A copy. ----------------------------------------------------------------------------------- */

static void tell_progress(struct join *j)
{
    const struct backup_head *head = copy_in_head(j->copy);
    uint64_t bytes = copy_in_bytes(j->copy);

    if (bytes < j->told_bytes + PROGRESS_BYTES && j->told_bytes > 0)
        return;
    j->told_bytes = bytes;
    if (j->options.on_progress != NULL)
        j->options.on_progress(j->options.context, bytes, head != NULL ? head->bytes : 0);
}

/* What it ends with does not change: better to know it before the rest comes. */
static bool is_of_use(struct join *j)
{
    const struct backup_head *head = copy_in_head(j->copy);

    if (head == NULL || head->serial + 1 >= j->options.begins)
        return true;
    note_why(j, "it ends before serial %" PRIu64 ", where the log begins", j->options.begins);
    return false;
}

/* Inside of it nothing may be cancelled. */
static bool on_body(struct fetch *fetch, struct span bytes)
{
    struct join *j = CONTAINER_OF(fetch, struct join, fetch);
    size_t taken = 0;

    if (j->held.n == 0)
        taken = copy_in_take(j->copy, bytes);
    if (taken < bytes.n) {
        buf_add(&j->held, span_sub(bytes, taken, bytes.n));
        fetch_pause(fetch);
    }
    tell_progress(j);
    return is_of_use(j);
}

static void on_room(void *context)
{
    struct join *j = context;

    buf_drop_front(&j->held, copy_in_take(j->copy, buf_span(&j->held)));
    if (j->held.n == 0)
        fetch_resume(&j->fetch);
    if (j->held.n == 0 && j->has_ended)
        go_on(j);
}

static void on_copied(void *context, struct err *e)
{
    struct join *j = context;

    if (e != NULL) {
        note_error(j, e);
        give_up(j);
    } else {
        seal(j);
    }
}

/* A whole one ends with on_copied; this may come before it, with what is being written. */
static void on_done(struct fetch *fetch, const struct fetch_result *result)
{
    struct join *j = CONTAINER_OF(fetch, struct join, fetch);

    j->has_ended = true;
    if (result->error != FETCH_OK)
        note_why(j, "%s", result->why);
    else if (result->status != 200)
        note_why(j, "it answers %d", result->status);
    go_on(j);
}

/* All has come that will. What copy_in has found by itself is the reason then, as it came first. */
static void on_end_of_answer(struct join *j)
{
    const struct backup_head *head = copy_in_head(j->copy);

    if (j->why[0] == '\0' && j->held.n > 0)
        return; /* on_room */
    if (j->why[0] == '\0' && (head == NULL || copy_in_bytes(j->copy) < head->bytes))
        note_why(j, "it was cut off after %" PRIu64 " bytes", copy_in_bytes(j->copy));
    if (j->why[0] == '\0')
        return; /* on_copied */
    copy_in_stop(j->copy, ERR(ERR_STORAGE_FAILURE, "%s", j->why));
    j->why[0] = '\0';
}

static void set_request(struct join *j, const struct replica_node *node)
{
    struct span base = span_str(j->options.base_path);
    struct buf target = {.max = BUF_NO_CAP};

    buf_add(&target, base);
    if (!span_ends(base, SPAN("/")))
        buf_add_char(&target, '/');
    buf_add_str(&target, "Svc.Admin.Backup");
    buf_clear(&j->url);
    buf_add(&j->url,
            span_ends(node->url, SPAN("/")) ? span_sub(node->url, 0, node->url.n - 1) : node->url);
    buf_add(&j->url, buf_span(&target));
    buf_clear(&j->authorization);
    j->options.authorize(j->options.context, SPAN("GET"), buf_span(&target), &j->authorization);
    buf_done(&target);
    j->header = (struct header_field){SPAN("Svc-cluster"), buf_span(&j->authorization)};
    j->fetch = (struct fetch){
        .origin = fetch_origin_get(j->options.fetcher, buf_span(&j->url)),
        .method = SPAN("GET"),
        .url = buf_span(&j->url),
        .headers = &j->header,
        .header_count = 1,
        .timeout_ms = SILENCE_MS,
        .on_body = on_body,
        .on_done = on_done,
    };
}

static struct err *open_copy(struct join *j)
{
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e;

    buf_printf(&path, "%s/%s", j->options.directory, JOIN_COMING);
    e = copy_in_new(j->loop, buf_text(&path), &(struct copy_in_callbacks){on_room, on_copied, j},
                    &j->copy);
    buf_done(&path);
    return e;
}

static void ask(struct join *j, const struct replica_node *node)
{
    struct err *e;

    sm_move(&machine, &j->state, COPYING);
    j->tries++;
    j->has_ended = false;
    j->told_bytes = 0;
    j->begun_ms = loop_now_ms(j->loop);
    j->why[0] = '\0';
    snprintf(j->source, sizeof(j->source), "%.*s", SPAN_FMT(node->name));
    log_info("join", "asking node '%s' for a copy of its journal", j->source);
    e = open_copy(j);
    if (e != NULL) {
        note_error(j, e);
        go_on(j); /* to give up */
        j->has_ended = true;
        return;
    }
    set_request(j, node);
    fetch_start(j->options.fetcher, &j->fetch);
}

/* One after another. ------------------------------------------------------------------------ */

static void pause_ms(struct join *j, uint64_t ms)
{
    sm_move(&machine, &j->state, PAUSING);
    timer_start(j->loop, &j->again, ms);
}

static uint64_t pause_after(unsigned tries)
{
    uint64_t most_ms = MIN((uint64_t)PAUSE_LEAST_MS << MIN(tries, (unsigned)PAUSE_DOUBLINGS),
                           (uint64_t)PAUSE_MOST_MS);

    return tries == 0 ? 0 : most_ms - rng_below(most_ms / 2);
}

static void on_again(struct timer *timer)
{
    struct join *j = CONTAINER_OF(timer, struct join, again);
    const struct replica_node *node = choose(j);

    if (node != NULL)
        ask(j, node);
    else
        pause_ms(j, PAUSE_LEAST_MS);
}

/* A file a turn. What cannot be deleted is in the way of the next copy, which says so. */
static void clear(struct join *j)
{
    bool is_gone = false;
    struct err *e = join_clear_step(j->options.directory, &is_gone);

    if (e != NULL)
        log_warn("join", "%.*s", SPAN_FMT(err_message(e)));
    if (e == NULL && !is_gone)
        go_on(j);
    else
        pause_ms(j, pause_after(j->tries));
    err_free(e);
}

static void on_step(struct loop_task *task)
{
    struct join *j = CONTAINER_OF(task, struct join, step);

    if (j->state == CLEARING)
        clear(j);
    else if (j->state == COPYING && j->copy == NULL)
        give_up(j);
    else if (j->state == COPYING && j->has_ended)
        on_end_of_answer(j);
}

/* Made and freed. --------------------------------------------------------------------------- */

struct join *join_start(struct loop *loop, const struct join_options *options)
{
    struct join *j = NEW(struct join);

    j->loop = loop;
    j->options = *options;
    j->options.directory = mem_string(span_str(options->directory));
    j->options.node = mem_string(span_str(options->node));
    j->options.base_path = mem_string(span_str(options->base_path));
    j->step.run = on_step;
    timer_init(&j->again, on_again);
    buf_init(&j->url, BUF_NO_CAP);
    buf_init(&j->authorization, BUF_NO_CAP);
    buf_init(&j->held, HELD_BYTES);
    sm_move(&machine, &j->state, CLEARING);
    go_on(j);
    return j;
}

void join_free(struct join *j)
{
    if (j == NULL)
        return;
    let_go(j);
    loop_unpost(j->loop, &j->step);
    timer_stop(j->loop, &j->again);
    buf_done(&j->url);
    buf_done(&j->authorization);
    buf_done(&j->held);
    mem_free((void *)(uintptr_t)j->options.directory);
    mem_free((void *)(uintptr_t)j->options.node);
    mem_free((void *)(uintptr_t)j->options.base_path);
    mem_free(j);
}
