/* A turn reads no more than STEP_BYTES, which takes about a millisecond, or what ed25519 has to
 * read at once. */
#include "webhook/signings.h"

#include "access/account.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/loop.h"
#include "rest/rest.h"
#include "webhook/sign.h"

#include <inttypes.h>

enum { AT_ONCE_BYTES = 256 << 10, STEP_BYTES = 512 << 10 };

struct signings {
    struct rest *rest;
    struct loop_task task;
    struct list ring; /* accounts with some, the one whose turn it is first */
};

/* Behind the others of its account, which comes to the end of the ring, if it is not in it. */
static void queue(struct signing_job *job)
{
    struct account *account = job->account;

    list_push_back(&account->signing, &job->link);
    if (!list_linked(&account->in_signing))
        list_push_back(&job->all->ring, &account->in_signing);
    loop_post(job->all->rest->loop, &job->all->task);
}

static void take_out(struct signing_job *job)
{
    struct account *account = job->account;

    list_remove(&account->signing, &job->link);
    if (list_empty(&account->signing))
        list_remove(&job->all->ring, &account->in_signing);
}

/* NULL: there is none. Its account's others come behind those of other accounts. */
static struct signing_job *take_next(struct signings *all)
{
    struct account *account = LIST_OBJECT(list_pop_front(&all->ring), struct account, in_signing);
    struct signing_job *job;

    if (account == NULL)
        return NULL;
    list_push_back(&all->ring, &account->in_signing);
    job = LIST_OBJECT(list_first(&account->signing), struct signing_job, link);
    take_out(job);
    return job;
}

/* Returns what was signed so far, which is to be freed. */
static struct signing *end(struct signing_job *job)
{
    account_unref(job->all->rest->accounts, TAKE(job->account));
    return TAKE(job->signing);
}

static void on_turn(struct loop_task *task)
{
    struct signings *all = CONTAINER_OF(task, struct signings, task);
    struct signing_job *job = take_next(all);
    struct signing *signing;
    bool is_last = false;
    struct err *e;

    if (job == NULL)
        return; /* it was cancelled */
    e = signing_step(job->signing, STEP_BYTES, &is_last);
    if (e == NULL && !is_last) {
        queue(job);
        return;
    }
    if (!list_empty(&all->ring))
        loop_post(all->rest->loop, task);
    signing = end(job);
    job->on_done(job, e, e == NULL ? signing_value(signing) : SPAN(""));
    signing_free(signing);
}

struct signings *signings_new(struct rest *rest)
{
    struct signings *all = NEW(struct signings);

    all->rest = rest;
    all->task.run = on_turn;
    list_init(&all->ring);
    return all;
}

void signings_free(struct signings *all)
{
    if (all == NULL)
        return;
    MUST(list_empty(&all->ring));
    loop_unpost(all->rest->loop, &all->task);
    mem_free(all);
}

/* It is read in one piece, while all else waits. */
static struct err *check_size(const struct signings *all, const struct signer *signer, size_t bytes)
{
    int64_t most = all->rest->limits->ed25519_bytes;

    if (bytes <= (size_t)most || !signer_reads_whole(signer))
        return NULL;
    return ERR(ERR_PAYLOAD_TOO_LARGE,
               "the body has %zu bytes, more than a whsk_ secret signs by the limit Ed25519Bytes "
               "(%" PRId64 " bytes)",
               bytes, most);
}

struct err *signings_sign(struct signings *all, struct signing_job *job, struct account *account,
                          struct signer *signer, struct span id, int64_t timestamp_s,
                          struct span body, struct buf *b)
{
    TRY(check_size(all, signer, body.n));
    if (body.n * signer_count(signer) <= AT_ONCE_BYTES)
        return signer_add(signer, b, id, timestamp_s, body);
    job->all = all;
    job->account = account_keep(account);
    job->signing = signing_new(signer, id, timestamp_s, body);
    queue(job);
    return NULL;
}

void signings_cancel(struct signing_job *job)
{
    if (job->signing == NULL)
        return;
    take_out(job);
    signing_free(end(job));
}
