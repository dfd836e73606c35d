/* Keys, bodies and names are known again by their SHA-256: whoever picks them could make two that a
 * weaker sum takes for one another. */
#include "base/digest.h"

#include "base/must.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

void digest_sha256(struct span bytes, uint8_t out_digest[DIGEST_BYTES])
{
    MUST(EVP_Digest(bytes.p, bytes.n, out_digest, NULL, EVP_sha256(), NULL) == 1);
}

bool digest_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
