/* HMAC-SHA256 for whsec_, ed25519 for whsk_ and whpk_, over `<id>.<timestamp>.<body>`. Written from
 * the receiver's side and on its own, so that it also checks how the server signs. */
#include "cli/signature.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/http_text.h"

#include <openssl/evp.h>

enum { NEW_SECRET_BYTES = 24, LEAST_BYTES = 24, MOST_BYTES = 64, ED25519_BYTES = 32 };

enum scheme { SCHEME_HMAC, SCHEME_PRIVATE, SCHEME_PUBLIC };

static const struct {
    struct span prefix;
    struct span version;
    size_t least, most;
} schemes[] = {
    [SCHEME_HMAC] = {SPAN_INIT("whsec_"), SPAN_INIT("v1,"), LEAST_BYTES, MOST_BYTES},
    [SCHEME_PRIVATE] = {SPAN_INIT("whsk_"), SPAN_INIT("v1a,"), ED25519_BYTES,
                        (size_t)2 * ED25519_BYTES},
    [SCHEME_PUBLIC] = {SPAN_INIT("whpk_"), SPAN_INIT("v1a,"), ED25519_BYTES, ED25519_BYTES},
};

struct secret_key {
    enum scheme scheme;
    struct span bytes;
};

struct signed_request signature_of(const struct http_text *request, struct span body)
{
    return (struct signed_request){
        .id = http_text_field(request, SPAN("webhook-id")),
        .timestamp = http_text_field(request, SPAN("webhook-timestamp")),
        .signature = http_text_field(request, SPAN("webhook-signature")),
        .body = body,
    };
}

void signature_add_secret(struct buf *b)
{
    uint8_t bytes[NEW_SECRET_BYTES];

    rng_secret(bytes, sizeof(bytes));
    buf_add(b, schemes[SCHEME_HMAC].prefix);
    text_add_base64(b, span_of((const char *)bytes, sizeof(bytes)));
    mem_wipe(bytes, sizeof(bytes));
}

static struct err *read_secret(struct span secret, struct arena *a, struct secret_key *out)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        struct span prefix = schemes[i].prefix;

        if (!span_starts(secret, prefix))
            continue;
        out->scheme = (enum scheme)i;
        if (!text_from_base64(span_sub(secret, prefix.n, secret.n), a, &out->bytes))
            return ERR(ERR_UNKNOWN, "the %.*s secret is not base64", SPAN_FMT(prefix));
        if (out->bytes.n < schemes[i].least || out->bytes.n > schemes[i].most)
            return ERR(ERR_UNKNOWN, "the %.*s secret has %zu bytes, not %zu to %zu",
                       SPAN_FMT(prefix), out->bytes.n, schemes[i].least, schemes[i].most);
        return NULL;
    }
    return ERR(ERR_UNKNOWN, "a secret begins with whsec_, whsk_ or whpk_");
}

static void add_signed_text(struct buf *b, const struct signed_request *request)
{
    buf_add(b, request->id);
    buf_add_char(b, '.');
    buf_add(b, request->timestamp);
    buf_add_char(b, '.');
    buf_add(b, request->body);
}

static void add_hmac(struct buf *b, const struct secret_key *key, struct span text)
{
    uint8_t mac[DIGEST_BYTES];

    digest_hmac(key->bytes, text, mac);
    text_add_base64(b, span_of((const char *)mac, sizeof(mac)));
}

static struct err *add_ed25519(struct buf *b, const struct secret_key *key, struct span text)
{
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL,
                                                  (const uint8_t *)key->bytes.p, ED25519_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t signature[2 * ED25519_BYTES];
    size_t n = sizeof(signature);
    bool done = pair != NULL && context != NULL &&
                EVP_DigestSignInit(context, NULL, NULL, NULL, pair) == 1 &&
                EVP_DigestSign(context, signature, &n, (const uint8_t *)text.p, text.n) == 1;

    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pair);
    if (!done)
        return ERR(ERR_UNKNOWN, "libcrypto does not take the secret");
    text_add_base64(b, span_of((const char *)signature, n));
    return NULL;
}

/* Is `signature` one that belongs to the key? It is public: its comparison may take any time. */
static bool is_of_pair(const struct secret_key *key, struct span text, struct span signature)
{
    const uint8_t *bytes = (const uint8_t *)key->bytes.p;
    EVP_PKEY *pair =
        key->scheme == SCHEME_PUBLIC
            ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, ED25519_BYTES)
            : EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes, ED25519_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_good = pair != NULL && context != NULL &&
                   EVP_DigestVerifyInit(context, NULL, NULL, NULL, pair) == 1 &&
                   EVP_DigestVerify(context, (const uint8_t *)signature.p, signature.n,
                                    (const uint8_t *)text.p, text.n) == 1;

    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pair);
    return is_good;
}

struct err *signature_check_secret(struct span secret)
{
    struct secret_key key;
    struct arena a;
    struct err *e;

    arena_init(&a);
    e = read_secret(secret, &a, &key);
    arena_done(&a);
    return e;
}

struct err *signature_add(struct buf *b, struct span secret, const struct signed_request *request)
{
    struct secret_key key;
    struct arena a;
    struct buf text;
    struct err *e = NULL;

    arena_init(&a);
    buf_init_arena(&text, &a);
    TRY_GOTO(e, read_secret(secret, &a, &key), out);
    add_signed_text(&text, request);
    buf_add(b, schemes[key.scheme].version);
    if (key.scheme == SCHEME_HMAC)
        add_hmac(b, &key, buf_span(&text));
    else if (key.scheme == SCHEME_PRIVATE)
        TRY_GOTO(e, add_ed25519(b, &key, buf_span(&text)), out);
    else
        e = ERR(ERR_UNKNOWN, "a whpk_ key checks signatures and makes none");
out:
    arena_done(&a);
    return e;
}

/* Does one of the signatures, separated by blanks, belong to the key? */
static bool find_signature(const struct secret_key *key, struct arena *a,
                           const struct signed_request *request)
{
    struct span rest = request->signature, version = schemes[key->scheme].version;
    struct buf text, expected;
    bool found = false;

    buf_init_arena(&text, a);
    buf_init_arena(&expected, a);
    add_signed_text(&text, request);
    if (key->scheme == SCHEME_HMAC)
        add_hmac(&expected, key, buf_span(&text));
    while (rest.n > 0 && !found) {
        struct span one = span_split(&rest, ' '), bytes;
        struct span digits = span_sub(one, version.n, one.n);

        if (!span_starts(one, version))
            continue;
        if (key->scheme == SCHEME_HMAC)
            found = digits.n == expected.n && digest_equal(digits.p, expected.p, digits.n);
        else
            found = text_from_base64(digits, a, &bytes) && is_of_pair(key, buf_span(&text), bytes);
    }
    return found;
}

static struct err *check_fields(const struct signed_request *request, int64_t now_s, bool any_time)
{
    uint64_t then;
    int64_t age;

    if (request->id.n == 0)
        return ERR(ERR_UNKNOWN, "there is no webhook-id");
    if (request->timestamp.n == 0)
        return ERR(ERR_UNKNOWN, "there is no webhook-timestamp");
    if (request->signature.n == 0)
        return ERR(ERR_UNKNOWN, "there is no webhook-signature");
    if (!span_to_u64(request->timestamp, &then) || then > INT64_MAX)
        return ERR(ERR_UNKNOWN, "webhook-timestamp is not seconds since 1970");
    age = now_s - (int64_t)then;
    if (!any_time && age > SIGNATURE_AGE_S)
        return ERR(ERR_UNKNOWN, "it is %lld s old, more than %d s", (long long)age,
                   SIGNATURE_AGE_S);
    if (!any_time && age < -SIGNATURE_AGE_S)
        return ERR(ERR_UNKNOWN, "it is from %lld s ahead, more than %d s", -(long long)age,
                   SIGNATURE_AGE_S);
    return NULL;
}

struct err *signature_verify(struct span secret, const struct signed_request *request,
                             int64_t now_s, bool any_time)
{
    struct secret_key key;
    struct arena a;
    struct err *e = NULL;

    arena_init(&a);
    TRY_GOTO(e, read_secret(secret, &a, &key), out);
    TRY_GOTO(e, check_fields(request, now_s, any_time), out);
    if (!find_signature(&key, &a, request))
        e = ERR(ERR_UNKNOWN, "no signature of it was made with this secret");
out:
    arena_done(&a);
    return e;
}
