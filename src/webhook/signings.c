/* A turn reads no more than STEP_BYTES, which takes about a millisecond, or what ed25519 has to
 * read at once. */
#include "webhook/signings.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/loop.h"
#include "webhook/sign.h"

#include <inttypes.h>

enum { AT_ONCE_BYTES = 256 << 10, STEP_BYTES = 512 << 10 };

struct signings {
    struct loop *loop;
    const struct limits *limits;
    struct loop_task task;
    struct list queue; /* struct signing_job */
};

static void end(struct signing_job *job, struct err *e)
{
    struct signing *signing = TAKE(job->signing);

    job->on_done(job, e, e == NULL ? signing_value(signing) : SPAN(""));
    signing_free(signing);
}

static void on_turn(struct loop_task *task)
{
    struct signings *all = CONTAINER_OF(task, struct signings, task);
    struct signing_job *job = LIST_OBJECT(list_pop_front(&all->queue), struct signing_job, link);
    bool is_last = false;
    struct err *e;

    if (job == NULL)
        return; /* it was cancelled */
    e = signing_step(job->signing, STEP_BYTES, &is_last);
    if (e == NULL && !is_last)
        list_push_back(&all->queue, &job->link);
    if (!list_empty(&all->queue))
        loop_post(all->loop, task);
    if (e != NULL || is_last)
        end(job, e);
}

struct signings *signings_new(struct loop *loop, const struct limits *limits)
{
    struct signings *all = NEW(struct signings);

    all->loop = loop;
    all->limits = limits;
    all->task.run = on_turn;
    list_init(&all->queue);
    return all;
}

void signings_free(struct signings *all)
{
    if (all == NULL)
        return;
    MUST(list_empty(&all->queue));
    loop_unpost(all->loop, &all->task);
    mem_free(all);
}

/* It is read in one piece, while all else waits. */
static struct err *check_size(const struct signings *all, const struct signer *signer, size_t bytes)
{
    int64_t most = all->limits->ed25519_bytes;

    if (bytes <= (size_t)most || !signer_reads_whole(signer))
        return NULL;
    return ERR(ERR_PAYLOAD_TOO_LARGE,
               "the body has %zu bytes, more than a whsk_ secret signs by the limit Ed25519Bytes "
               "(%" PRId64 " bytes)",
               bytes, most);
}

struct err *signings_sign(struct signings *all, struct signing_job *job, struct signer *signer,
                          struct span id, int64_t timestamp_s, struct span body, struct buf *b)
{
    TRY(check_size(all, signer, body.n));
    if (body.n * signer_count(signer) <= AT_ONCE_BYTES)
        return signer_add(signer, b, id, timestamp_s, body);
    job->all = all;
    job->signing = signing_new(signer, id, timestamp_s, body);
    list_push_back(&all->queue, &job->link);
    loop_post(all->loop, &all->task);
    return NULL;
}

void signings_cancel(struct signing_job *job)
{
    if (job->signing == NULL)
        return;
    list_remove(&job->all->queue, &job->link);
    signing_free(TAKE(job->signing));
}
