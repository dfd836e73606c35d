/* Signatures of webhooks as their receivers see them (Standard Webhooks): made for what `svc
 * listen` forwards, checked by `svc sink` and `svc verify`. */
#ifndef CLI_SIGNATURE_H
#define CLI_SIGNATURE_H

#include "base/buf.h"
#include "base/err.h"

enum { SIGNATURE_AGE_S = 300 };

struct http_text;

/* What a signature covers, as it stands in the request. */
struct signed_request {
    struct span id, timestamp, signature; /* webhook-id, webhook-timestamp, webhook-signature */
    struct span body;
};

/* Of a request as text whose body ends elsewhere; spans lie in it. */
struct signed_request signature_of(const struct http_text *request, struct span body);

/* whsec_ with 24 random bytes. */
void signature_add_secret(struct buf *b);

/* One that can check: whsec_, whsk_, or whpk_, which is the public key alone. Errors never repeat
 * the secret. */
struct err *signature_check_secret(struct span secret) MUST_USE;

/* Appends `v1,...` or `v1a,...`. A whpk_ secret cannot sign: an error. */
struct err *signature_add(struct buf *b, struct span secret,
                          const struct signed_request *request) MUST_USE;

/* An error says what is wrong: a header field that is missing, a time more than SIGNATURE_AGE_S
 * from now_s unless any_time, or no signature that this secret made. */
struct err *signature_verify(struct span secret, const struct signed_request *request,
                             int64_t now_s, bool any_time) MUST_USE;

#endif
