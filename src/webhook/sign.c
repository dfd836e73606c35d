/* HMAC takes the signed text in pieces, so that a body is not copied, and a large one can be read
 * in several turns of the loop; ed25519 reads its text twice and needs it in one piece. To find an
 * algorithm and to take in a key costs libcrypto several times what signing a small body does: a
 * signer does both once. */
#include "webhook/sign.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>

enum {
    SEED_BYTES = 32,
    PUBLIC_BYTES = 32,
    KEY_PAIR_BYTES = SEED_BYTES + PUBLIC_BYTES, /* the seed, then the public key */
    SIGNATURE_BYTES_MOST = 64,
    HMAC_KEY_LEAST = 24,
    HMAC_KEY_MOST = 64,
};

/* What libcrypto says of its latest failure; its queue of errors is emptied. */
static struct err *crypto_failed(const char *doing)
{
    char why[256];

    ERR_error_string_n(ERR_peek_last_error(), why, sizeof(why));
    ERR_clear_error();
    return ERR(ERR_UNKNOWN, "libcrypto failed to %s: %s", doing, why);
}

struct scheme;

struct key {
    const struct scheme *scheme;
    struct arena memory; /* of the bytes */
    struct span bytes;
    /* Taken in by libcrypto: of the two what the scheme needs. */
    EVP_MAC_CTX *mac;
    EVP_PKEY *pair;
};

/* ---- ed25519 ---- */

static struct err *open_pair(struct key *key)
{
    key->pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, (const uint8_t *)key->bytes.p,
                                             SEED_BYTES);
    return key->pair != NULL ? NULL : crypto_failed("read an ed25519 key");
}

/* The second half of a whole key is the public key of the first: with another one there, receivers
 * would check against a key that never signs. */
static struct err *check_pair(const struct key *key)
{
    uint8_t public_key[PUBLIC_BYTES];
    size_t n = sizeof(public_key);

    if (key->bytes.n == SEED_BYTES)
        return NULL;
    if (EVP_PKEY_get_raw_public_key(key->pair, public_key, &n) != 1)
        return crypto_failed("derive an ed25519 public key");
    if (!digest_equal(public_key, key->bytes.p + SEED_BYTES, PUBLIC_BYTES))
        return ERR(ERR_INVALID_ENTITY,
                   "A whsk_ secret holds a public key that does not belong to its seed.");
    return NULL;
}

static struct err *sign_ed25519(struct key *key, const struct span *parts, size_t count,
                                uint8_t *out, size_t *out_n)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    struct err *e = NULL;
    struct buf text;

    buf_init(&text, BUF_NO_CAP);
    for (size_t i = 0; i < count; i++)
        buf_add(&text, parts[i]);
    if (md == NULL || EVP_DigestSignInit(md, NULL, NULL, NULL, key->pair) != 1 ||
        EVP_DigestSign(md, out, out_n, (const uint8_t *)text.p, text.n) != 1)
        e = crypto_failed("sign with ed25519");
    EVP_MD_CTX_free(md);
    buf_done(&text);
    return e;
}

/* ---- HMAC ---- */

static bool hmac_update(EVP_MAC_CTX *mac, const struct span *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (EVP_MAC_update(mac, (const uint8_t *)parts[i].p, parts[i].n) != 1)
            return false;
    return true;
}

static struct err *open_mac(struct key *key)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *algorithm = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);

    key->mac = EVP_MAC_CTX_new(algorithm);
    EVP_MAC_free(algorithm); /* the context holds it */
    if (key->mac == NULL ||
        EVP_MAC_init(key->mac, (const uint8_t *)key->bytes.p, key->bytes.n, params) != 1)
        return crypto_failed("read an HMAC key");
    return NULL;
}

/* Without a key EVP_MAC_init begins anew with the one it has. */
static struct err *sign_hmac(struct key *key, const struct span *parts, size_t count, uint8_t *out,
                             size_t *out_n)
{
    if (EVP_MAC_init(key->mac, NULL, 0, NULL) != 1 || !hmac_update(key->mac, parts, count) ||
        EVP_MAC_final(key->mac, out, out_n, *out_n) != 1)
        return crypto_failed("sign with HMAC");
    return NULL;
}

/* ---- secrets ---- */

struct scheme {
    struct span prefix;
    struct span version;
    size_t lengths[2]; /* of the key */
    bool between;      /* any length from the first to the second */
    const char *wanted;
    struct err *(*open)(struct key *key);
    struct err *(*check)(const struct key *key); /* beyond its length; NULL: anything goes */
    bool reads_whole;
    /* *out_n comes in as the room there is. */
    struct err *(*sign)(struct key *key, const struct span *parts, size_t count, uint8_t *out,
                        size_t *out_n);
};

static const struct scheme schemes[] = {
    {
        .prefix = SPAN_INIT("whsec_"),
        .version = SPAN_INIT("v1,"),
        .lengths = {HMAC_KEY_LEAST, HMAC_KEY_MOST},
        .between = true,
        .wanted = "24 to 64 bytes",
        .open = open_mac,
        .sign = sign_hmac,
    },
    {
        .prefix = SPAN_INIT("whsk_"),
        .version = SPAN_INIT("v1a,"),
        .lengths = {SEED_BYTES, KEY_PAIR_BYTES},
        .wanted = "a seed of 32 bytes or a key of 64",
        .open = open_pair,
        .check = check_pair,
        .reads_whole = true,
        .sign = sign_ed25519,
    },
};

static const struct scheme *scheme_of(struct span secret)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (span_starts(secret, schemes[i].prefix))
            return &schemes[i];
    return NULL;
}

static bool length_fits(const struct scheme *scheme, size_t n)
{
    if (scheme->between)
        return n >= scheme->lengths[0] && n <= scheme->lengths[1];
    return n == scheme->lengths[0] || n == scheme->lengths[1];
}

static void key_done(struct key *key)
{
    /* The bytes lie in the key's own arena, which hands them out as a span. */
    mem_wipe((void *)(uintptr_t)key->bytes.p, key->bytes.n);
    arena_done(&key->memory);
    EVP_MAC_CTX_free(key->mac);
    EVP_PKEY_free(key->pair);
}

static struct err *key_open(struct key *key, struct span secret)
{
    struct span digits;

    *key = (struct key){.scheme = scheme_of(secret)};
    if (key->scheme == NULL)
        return ERR(ERR_INVALID_ENTITY, "A secret must begin with whsec_ or whsk_.");
    digits = span_sub(secret, key->scheme->prefix.n, secret.n);
    if (!text_from_base64(digits, &key->memory, &key->bytes))
        return ERR(ERR_INVALID_ENTITY, "A %.*s secret is not base64.",
                   SPAN_FMT(key->scheme->prefix));
    if (!length_fits(key->scheme, key->bytes.n))
        return ERR(ERR_INVALID_ENTITY, "A %.*s secret has %zu bytes, but must have %s.",
                   SPAN_FMT(key->scheme->prefix), key->bytes.n, key->scheme->wanted);
    return key->scheme->open(key);
}

struct err *sign_check_secret(struct span secret)
{
    struct key key;
    struct err *e = NULL;

    TRY_GOTO(e, key_open(&key, secret), out);
    if (key.scheme->check != NULL)
        TRY_GOTO(e, key.scheme->check(&key), out);
out:
    key_done(&key);
    return e;
}

/* ---- new ones ---- */

static struct err *add_public_key(uint8_t pair[KEY_PAIR_BYTES])
{
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, pair, SEED_BYTES);
    size_t n = PUBLIC_BYTES;
    bool is_made = key != NULL && EVP_PKEY_get_raw_public_key(key, pair + SEED_BYTES, &n) == 1;

    EVP_PKEY_free(key);
    return is_made ? NULL : crypto_failed("make an ed25519 key");
}

struct err *sign_make_secret(struct span like, struct arena *a, struct span *out_secret)
{
    const struct scheme *scheme = like.n == 0 ? &schemes[0] : scheme_of(like);
    bool is_pair = scheme != NULL && scheme->sign == sign_ed25519;
    uint8_t bytes[KEY_PAIR_BYTES];
    struct err *e = NULL;
    struct buf b;

    rng_secret(bytes, SEED_BYTES);
    if (is_pair)
        e = add_public_key(bytes);
    if (e == NULL) {
        buf_init_arena(&b, a);
        buf_add(&b, is_pair ? scheme->prefix : schemes[0].prefix);
        text_add_base64(&b, span_of((const char *)bytes, is_pair ? KEY_PAIR_BYTES : SEED_BYTES));
        *out_secret = buf_span(&b);
    }
    mem_wipe(bytes, sizeof(bytes));
    return e;
}

struct signer {
    unsigned users;
    size_t count;
    struct key keys[];
};

struct err *signer_new(const struct span *secrets, size_t count, struct signer **out_signer)
{
    struct signer *signer = mem_zero(sizeof(*signer) + count * sizeof(struct key));
    struct err *e = NULL;

    signer->users = 1;
    while (signer->count < count && e == NULL) {
        e = key_open(&signer->keys[signer->count], secrets[signer->count]);
        signer->count++;
    }
    if (e == NULL)
        *out_signer = signer;
    else
        signer_unref(signer);
    return e;
}

void signer_unref(struct signer *signer)
{
    if (signer == NULL || --signer->users > 0)
        return;
    for (size_t i = 0; i < signer->count; i++)
        key_done(&signer->keys[i]);
    mem_free(signer);
}

size_t signer_count(const struct signer *signer)
{
    return signer->count;
}

bool signer_reads_whole(const struct signer *signer)
{
    for (size_t i = 0; i < signer->count; i++)
        if (signer->keys[i].scheme->reads_whole)
            return true;
    return false;
}

/* ---- the value ---- */

/* What stands between id and body. */
static void add_time(struct buf *b, int64_t timestamp_s)
{
    buf_add_char(b, '.');
    buf_add_i64(b, timestamp_s);
    buf_add_char(b, '.');
}

static void add_signature(struct buf *b, const struct key *key, const uint8_t *signature, size_t n)
{
    buf_add(b, key->scheme->version);
    text_add_base64(b, span_of((const char *)signature, n));
}

static struct err *sign(struct buf *b, struct key *key, const struct span *parts, size_t count)
{
    uint8_t signature[SIGNATURE_BYTES_MOST];
    size_t n = sizeof(signature);

    TRY(key->scheme->sign(key, parts, count, signature, &n));
    add_signature(b, key, signature, n);
    return NULL;
}

struct err *signer_add(struct signer *signer, struct buf *b, struct span id, int64_t timestamp_s,
                       struct span body)
{
    char room[32];
    struct buf time = {.p = room, .size = sizeof(room), .max = sizeof(room)};
    struct span parts[] = {id, {NULL, 0}, body};

    add_time(&time, timestamp_s);
    parts[1] = buf_span(&time);
    for (size_t i = 0; i < signer->count; i++) {
        if (i > 0)
            buf_add_char(b, ' ');
        TRY(sign(b, &signer->keys[i], parts, ARRAY_LEN(parts)));
    }
    return NULL;
}

/* ---- in steps ---- */

struct signing {
    struct signer *signer;
    struct buf head; /* what is signed before the body */
    struct span body;
    struct buf value;
    size_t at;        /* the key that signs */
    EVP_MAC_CTX *mac; /* its own one of that key, which others may sign with meanwhile; or NULL */
    size_t read;      /* of the body */
};

struct signing *signing_new(struct signer *signer, struct span id, int64_t timestamp_s,
                            struct span body)
{
    struct signing *s = NEW(struct signing);

    s->signer = signer;
    signer->users++;
    buf_init(&s->head, BUF_NO_CAP);
    buf_add(&s->head, id);
    add_time(&s->head, timestamp_s);
    s->body = body;
    buf_init(&s->value, BUF_NO_CAP);
    return s;
}

void signing_free(struct signing *s)
{
    if (s == NULL)
        return;
    EVP_MAC_CTX_free(s->mac);
    buf_done(&s->head);
    buf_done(&s->value);
    signer_unref(s->signer);
    mem_free(s);
}

static bool begin_mac(struct signing *s, const struct key *key)
{
    const struct span head = buf_span(&s->head);

    s->mac = EVP_MAC_CTX_dup(key->mac);
    s->read = 0;
    return s->mac != NULL && EVP_MAC_init(s->mac, NULL, 0, NULL) == 1 &&
           hmac_update(s->mac, &head, 1);
}

static bool end_mac(struct signing *s, const struct key *key)
{
    uint8_t signature[SIGNATURE_BYTES_MOST];
    size_t n;

    if (EVP_MAC_final(s->mac, signature, &n, sizeof(signature)) != 1)
        return false;
    add_signature(&s->value, key, signature, n);
    EVP_MAC_CTX_free(TAKE(s->mac));
    s->at++;
    return true;
}

static struct err *step_hmac(struct signing *s, const struct key *key, size_t bytes)
{
    bool is_good = s->mac != NULL || begin_mac(s, key);
    const struct span piece = span_sub(s->body, s->read, s->read + bytes);

    s->read += piece.n;
    if (is_good && hmac_update(s->mac, &piece, 1) && (s->read < s->body.n || end_mac(s, key)))
        return NULL;
    return crypto_failed("sign with HMAC");
}

static struct err *step_whole(struct signing *s, struct key *key)
{
    const struct span parts[] = {buf_span(&s->head), s->body};

    s->at++;
    return sign(&s->value, key, parts, ARRAY_LEN(parts));
}

struct err *signing_step(struct signing *s, size_t bytes, bool *out_is_last)
{
    struct key *key = &s->signer->keys[s->at];

    if (s->at > 0 && s->mac == NULL)
        buf_add_char(&s->value, ' ');
    TRY(key->scheme->reads_whole ? step_whole(s, key) : step_hmac(s, key, bytes));
    *out_is_last = s->at == s->signer->count;
    return NULL;
}

struct span signing_value(const struct signing *s)
{
    return buf_span(&s->value);
}
