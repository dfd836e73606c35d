/* Signatures of outgoing requests as in the Standard Webhooks specification: `v1,<base64>`
 * HMAC-SHA256 for whsec_ secrets, `v1a,<base64>` ed25519 for whsk_ secrets, over
 * `<webhook-id>.<webhook-timestamp>.<body>`. Arithmetic by libcrypto. */
#ifndef WEBHOOK_SIGN_H
#define WEBHOOK_SIGN_H

#include "base/err.h"

/* ERR_INVALID_ENTITY: no known prefix, not base64, a length out of range (whsec_: 24 to 64 bytes,
 * whsk_: 32-byte seed or 64-byte key). The message never repeats the secret. */
struct err *sign_check_secret(struct span secret) MUST_USE;

/* A new secret of the same kind as `like`: `whsec_` with 32 random bytes, or `whsk_` with the seed
 * and the public key of an ed25519 pair; absent: `whsec_`. In the arena. ERR_UNKNOWN when libcrypto
 * fails. */
struct err *sign_make_secret(struct span like, struct arena *a, struct span *out_secret) MUST_USE;

/* Keys that are ready to sign with. Their bytes are wiped in the end. */
struct signer;
/* Of secrets that have passed sign_check_secret. ERR_UNKNOWN when libcrypto fails. */
struct err *signer_new(const struct span *secrets, size_t count,
                       struct signer **out_signer) MUST_USE;
/* NULL is allowed. */
void signer_unref(struct signer *signer);
/* How many signatures it makes of a body, each of which reads it. */
size_t signer_count(const struct signer *signer);
/* Does one of them read all of it at once: is one ed25519? */
bool signer_reads_whole(const struct signer *signer);
/* Appends one signature per secret, separated by blanks: the webhook-signature value. ERR_UNKNOWN
 * when libcrypto fails. */
struct err *signer_add(struct signer *signer, struct buf *b, struct span id, int64_t timestamp_s,
                       struct span body) MUST_USE;

/* The same of a body that is too large to be read in one turn of the loop: in steps. */
struct signing;
/* Keeps the signer. The body is not copied. */
struct signing *signing_new(struct signer *signer, struct span id, int64_t timestamp_s,
                            struct span body);
/* NULL is allowed. */
void signing_free(struct signing *signing);
/* Reads so many bytes more, or for ed25519 all. Not after the last one, which *out_is_last tells.
 * ERR_UNKNOWN when libcrypto fails: then there is no further step either. */
struct err *signing_step(struct signing *signing, size_t bytes, bool *out_is_last) MUST_USE;
/* What signer_add appends; valid as long as the signing. */
struct span signing_value(const struct signing *signing);

#endif
