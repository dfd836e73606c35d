/* SHA-256 (FIPS 180-4), by libcrypto. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/span.h"

enum { DIGEST_BYTES = 32 };

void digest_sha256(struct span bytes, uint8_t out_digest[DIGEST_BYTES]);
/* The same of bytes that come a part at a time. digest_free takes NULL too. */
struct digest;
struct digest *digest_new(void);
void digest_add(struct digest *d, struct span bytes);
/* Nothing may be added after it. */
void digest_end(struct digest *d, uint8_t out_digest[DIGEST_BYTES]);
void digest_free(struct digest *d);
/* HMAC-SHA-256 (RFC 2104). The key has a byte at least. */
void digest_hmac(struct span key, struct span bytes, uint8_t out_code[DIGEST_BYTES]);
/* The same of what may be long: it may give way (base/budget.h), and is any digest when it has been
 * told to stop. */
void digest_long(struct span bytes, uint8_t out_digest[DIGEST_BYTES]);
/* Are n bytes the same? Takes the same time wherever they differ. */
bool digest_equal(const void *a, const void *b, size_t n);

#endif
