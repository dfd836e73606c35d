/* Keys, bodies and names are known again by their SHA-256: whoever picks them could make two that a
 * weaker sum takes for one another. To find the algorithm by its name and to make a context costs
 * libcrypto more than the sum of a key: there is one context. */
#include "base/digest.h"

#include "base/budget.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/must.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

struct digest {
    EVP_MD_CTX *context;
};

enum { PIECE_BYTES = 65536, PIECE_UNITS = 2 * PIECE_BYTES };

static EVP_MD_CTX *sha256_new(void)
{
    EVP_MD *algorithm = EVP_MD_fetch(NULL, OSSL_DIGEST_NAME_SHA2_256, NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    MUST(context != NULL && EVP_DigestInit_ex2(context, algorithm, NULL) == 1);
    EVP_MD_free(algorithm); /* the context holds it */
    return context;
}

void digest_sha256(struct span bytes, uint8_t out_digest[DIGEST_BYTES])
{
    static EVP_MD_CTX *context;

    if (context == NULL)
        context = sha256_new();
    MUST(EVP_DigestInit_ex2(context, NULL, NULL) == 1 && /* anew */
         EVP_DigestUpdate(context, bytes.p, bytes.n) == 1 &&
         EVP_DigestFinal_ex(context, out_digest, NULL) == 1);
}

struct digest *digest_new(void)
{
    struct digest *d = NEW(struct digest);

    d->context = sha256_new();
    return d;
}

void digest_add(struct digest *d, struct span bytes)
{
    MUST(EVP_DigestUpdate(d->context, bytes.p, bytes.n) == 1);
}

void digest_end(struct digest *d, uint8_t out_digest[DIGEST_BYTES])
{
    MUST(EVP_DigestFinal_ex(d->context, out_digest, NULL) == 1);
}

void digest_free(struct digest *d)
{
    if (d == NULL)
        return;
    EVP_MD_CTX_free(d->context);
    mem_free(d);
}

void digest_hmac(struct span key, struct span bytes, uint8_t out_code[DIGEST_BYTES])
{
    MUST(key.n > 0 && key.n <= INT_MAX);
    MUST(HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)bytes.p, bytes.n, out_code,
              NULL) != NULL);
}

/* Others may need the one context while this gives way. */
void digest_long(struct span bytes, uint8_t out_digest[DIGEST_BYTES])
{
    struct digest *d;

    if (bytes.n <= PIECE_BYTES) {
        digest_sha256(bytes, out_digest);
        return;
    }
    d = digest_new();
    for (size_t at = 0; at < bytes.n && budget_ask(PIECE_UNITS); at += PIECE_BYTES)
        digest_add(d, span_sub(bytes, at, MIN(at + PIECE_BYTES, bytes.n)));
    digest_end(d, out_digest);
    digest_free(d);
}

bool digest_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
