/* SHA-256 (FIPS 180-4), by libcrypto. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/span.h"

enum { DIGEST_BYTES = 32 };

void digest_sha256(struct span bytes, uint8_t out_digest[DIGEST_BYTES]);
/* Are n bytes the same? Takes the same time wherever they differ. */
bool digest_equal(const void *a, const void *b, size_t n);

#endif
