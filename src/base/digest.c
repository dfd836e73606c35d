/* Keys, bodies and names are known again by their SHA-256: whoever picks them could make two that a
 * weaker sum takes for one another. To find the algorithm by its name and to make a context costs
 * libcrypto more than the sum of a key: there is one context. */
#include "base/digest.h"

#include "base/must.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

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

bool digest_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
