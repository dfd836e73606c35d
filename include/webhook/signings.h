/* Bodies that are signed: small ones at once, large ones a piece a turn of the loop, so that who
 * waits for something else does not wait for them. Accounts take turns, whatever number of bodies
 * each has, and so do the bodies of an account. */
#ifndef WEBHOOK_SIGNINGS_H
#define WEBHOOK_SIGNINGS_H

#include "base/err.h"
#include "base/list.h"

struct account;
struct rest;
struct signer;
struct signing;
struct signings;

/* Embedded in its owner, who sets `on_done`. */
struct signing_job {
    struct list_link link; /* account->signing */
    struct signings *all;
    struct account *account; /* kept while it is under way */
    struct signing *signing; /* NULL: it is not under way */
    /* From the loop: what signer_add appends, as long as it is called; or an error, which is its to
     * free. */
    void (*on_done)(struct signing_job *job, struct err *e, struct span value);
};

struct signings *signings_new(struct rest *rest);
/* None is under way. NULL is allowed. */
void signings_free(struct signings *all);
/* As signer_add; or, of a large body, the job is under way in the name of the account, and nothing
 * is appended. Account and signer are kept, the body is to stay. ERR_PAYLOAD_TOO_LARGE past
 * Ed25519Bytes, when a key is ed25519; ERR_UNKNOWN when libcrypto fails. */
struct err *signings_sign(struct signings *all, struct signing_job *job, struct account *account,
                          struct signer *signer, struct span id, int64_t timestamp_s,
                          struct span body, struct buf *b) MUST_USE;
/* One that is not under way stays so. */
void signings_cancel(struct signing_job *job);

#endif
