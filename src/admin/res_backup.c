/* Svc.Admin.Backup: the journal as it is now, in one piece, over HTTP (docs/operations/backup.md).
 * A part is read when the client has taken the one before, a part a turn: so a backup has one part
 * in memory, and neither it nor its client holds anybody up. A client that takes too little gives
 * its place back: there are few, and what a backup has still to read stays on the disk.
 *
 * It holds everything: the secrets that are written and never shown, and every tenant's data. So a
 * key that belongs to a tenant cannot have it, whatever its rights say; and it is sent to clients
 * and to nodes of the same cluster, not to what the service asks of itself. */
#include "access/access.h"
#include "admin/builtin.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/loop.h"
#include "io/timer.h"
#include "journal/journal_copy.h"
#include "protocol/schema.h"
#include "rest/download.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/turn.h"

#include <inttypes.h>

enum { RETRY_AFTER_S = 30, READ_AGAIN_MS = 2 };

struct backup {
    struct download download; /* first */
    struct rest *rest;
    struct journal_copy *copy;
    const struct download_sink *sink; /* NULL: not started */
    void *context;
    struct loop_task pump;
    struct timer again; /* until the disk is asked again */
    struct timer pace;  /* until it is asked what the client has taken */
    uint64_t paced;     /* of `sent`: what had been taken when that was asked last */
    struct buf part;
    uint64_t sent;
    bool is_lost;
};

static void backup_free(struct backup *b)
{
    struct rest *rest = b->rest;

    timer_stop(rest->loop, &b->again);
    timer_stop(rest->loop, &b->pace);
    loop_unpost(rest->loop, &b->pump);
    journal_copy_close(b->copy);
    buf_done(&b->part);
    rest->metrics->backups--;
    mem_free(b);
}

static void end(struct backup *b, bool is_whole)
{
    const struct download_sink *sink = b->sink;
    void *context = b->context;

    if (is_whole)
        log_info("backup", "sent: %" PRIu64 " bytes", b->sent);
    backup_free(b);
    sink->end(context, is_whole);
}

static void fail(struct backup *b, struct err *e)
{
    log_warn("backup", "ended after %" PRIu64 " of %" PRIu64 " bytes: %.*s", b->sent,
             journal_copy_bytes(b->copy), SPAN_FMT(err_message(e)));
    err_free(e);
    end(b, false);
}

static void go_on(struct backup *b)
{
    loop_post(b->rest->loop, &b->pump);
}

/* The sink may close the backup: it is called last. */
static void send_part(struct backup *b)
{
    b->sent += b->part.n;
    go_on(b);
    b->sink->write(b->context, buf_span(&b->part));
}

static void on_pump(struct loop_task *task)
{
    struct backup *b = CONTAINER_OF(task, struct backup, pump);
    bool is_there;
    struct err *e;

    if (!b->is_lost && !b->sink->is_free(b->context))
        return; /* download_go_on */
    e = journal_copy_read(b->copy, &b->part, &is_there);
    if (e != NULL)
        fail(b, e);
    else if (!is_there)
        timer_start(b->rest->loop, &b->again, READ_AGAIN_MS);
    else if (b->part.n == 0)
        end(b, true);
    else
        send_part(b);
}

static void on_again(struct timer *timer)
{
    go_on(CONTAINER_OF(timer, struct backup, again));
}

static void await_pace(struct backup *b)
{
    const struct limits *limits = b->rest->limits;

    b->paced = b->sent;
    if (limits->backup_bytes_per_second > 0)
        timer_start(b->rest->loop, &b->pace, (uint64_t)limits->backup_pace_seconds * 1000);
}

/* It is not the client's fault that there is nothing to take. */
static void on_pace(struct timer *timer)
{
    struct backup *b = CONTAINER_OF(timer, struct backup, pace);
    const struct limits *limits = b->rest->limits;
    uint64_t least = (uint64_t)(limits->backup_bytes_per_second * limits->backup_pace_seconds);

    if (b->sent - b->paced >= least || b->sink->is_free(b->context)) {
        await_pace(b);
        return;
    }
    b->rest->metrics->limit_hits[METRIC_BACKUP_PACE]++;
    fail(b, ERR(ERR_OVERLOADED,
                "its client took %" PRIu64 " bytes in %" PRId64
                " s (BackupPaceSeconds), less than BackupBytesPerSecond (%" PRId64 ") allows",
                b->sent - b->paced, limits->backup_pace_seconds, limits->backup_bytes_per_second));
}

/* A client that takes nothing is told now: what it waits for is gone. */
static void on_lost(void *context, enum journal_copy_loss loss)
{
    struct backup *b = context;

    if (loss == JOURNAL_COPY_HELD_TOO_MUCH)
        b->rest->metrics->limit_hits[METRIC_BACKUP_HELD_BYTES]++;
    b->is_lost = true;
    if (b->sink != NULL)
        go_on(b);
}

/* ---- as a download ---- */

static struct backup *of_download(struct download *d)
{
    return CONTAINER_OF(d, struct backup, download);
}

static void download_start_sending(struct download *d, const struct download_sink *sink,
                                   void *context)
{
    struct backup *b = of_download(d);

    b->sink = sink;
    b->context = context;
    await_pace(b);
    go_on(b);
}

static void download_is_free(struct download *d)
{
    go_on(of_download(d));
}

static void download_is_closed(struct download *d)
{
    struct backup *b = of_download(d);

    log_info("backup", "closed by its client after %" PRIu64 " of %" PRIu64 " bytes", b->sent,
             journal_copy_bytes(b->copy));
    backup_free(b);
}

static const struct download_ops download_ops = {
    .start = download_start_sending,
    .go_on = download_is_free,
    .close = download_is_closed,
};

/* ---- the request ---- */

static struct err *check_key(const struct call *call)
{
    if (call->key == NULL || call->key->tenant.n == 0)
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED,
               "a backup holds what belongs to every tenant: a key with a tenant cannot have it");
}

static struct err *check_room(struct rest *rest)
{
    if (rest->metrics->backups < (uint64_t)rest->limits->backups)
        return NULL;
    rest->metrics->limit_hits[METRIC_BACKUPS]++;
    return err_set_retry_after(
        ERR(ERR_OVERLOADED, "the limit Backups (%" PRId64 ") is reached", rest->limits->backups),
        RETRY_AFTER_S);
}

static struct err *backup_new(struct rest *rest, struct backup **out_backup)
{
    struct backup *b = NEW(struct backup);
    const struct journal_copy_options options = {
        .held_bytes = (uint64_t)rest->limits->backup_held_bytes,
        .on_lost = on_lost,
        .context = b,
    };
    struct err *e = journal_copy_open(turn_journal(rest->turn), &options, &b->copy);

    if (e != NULL) {
        mem_free(b);
        return e;
    }
    b->download.ops = &download_ops;
    b->rest = rest;
    b->pump.run = on_pump;
    timer_init(&b->again, on_again);
    timer_init(&b->pace, on_pace);
    buf_init(&b->part, JOURNAL_COPY_PART_BYTES);
    rest->metrics->backups++;
    *out_backup = b;
    return NULL;
}

static void add_headers(struct call *call, uint64_t serial)
{
    struct response *response = call->response;

    response->status = 200;
    response->content_type = SPAN("application/octet-stream");
    response_add_own_header(response, SPAN("Cache-Control"), SPAN("no-store"));
    response_add_own_header(
        response, SPAN("Content-Disposition"),
        arena_printf(call->arena, "attachment; filename=\"svcd-%" PRIu64 ".backup\"", serial));
}

static struct err *get(struct call *call)
{
    struct rest *rest = call->rest;
    struct response *response = call->response;
    struct backup *b;

    TRY(check_key(call));
    TRY(check_room(rest));
    TRY(backup_new(rest, &b));
    add_headers(call, journal_copy_serial(b->copy));
    response->later_bytes = journal_copy_bytes(b->copy);
    if (call->method == METHOD_HEAD) {
        backup_free(b);
        return NULL;
    }
    log_info("backup", "begins: %" PRIu64 " bytes, up to serial %" PRIu64 ", for %s%.*s",
             response->later_bytes, journal_copy_serial(b->copy),
             call->is_node       ? "a node of the cluster"
             : call->key == NULL ? "a client without a key"
                                 : "the key ",
             SPAN_FMT(call->key == NULL ? span_of(NULL, 0) : call->key->name));
    response->download = &b->download;
    response->has_flow = true;
    return NULL;
}

static const struct resource_ops ops = {.get = get, .is_for_nodes = true, .is_for_clients = true};

const struct resource_definition res_backup = {
    .name = SPAN_INIT("Svc.Admin.Backup"),
    .description = SPAN_INIT("The journal as it is now, for svc-journal restore"),
    .kind = KIND_BINARY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
