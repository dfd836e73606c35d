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
void signer_free(struct signer *signer);
/* Appends one signature per secret, separated by blanks: the webhook-signature value. ERR_UNKNOWN
 * when libcrypto fails. */
struct err *signer_add(struct signer *signer, struct buf *b, struct span id, int64_t timestamp_s,
                       struct span body) MUST_USE;

#endif
