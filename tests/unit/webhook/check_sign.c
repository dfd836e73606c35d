/* The vectors are those of the Standard Webhooks project's own test suites, of FIPS 180-4 and of
 * RFC 8032 section 7.1. */
#include "testing.h"

#include "base/arena.h"
#include "base/text.h"
#include "webhook/sign.h"

#include <string.h>

#define HMAC_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define HMAC_SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define SEED_SECRET "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
#define SEED_SIGNATURE                                                                             \
    "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="

static const char message_id[] = "msg_p5jXN8AQM9LWM0D4loKWxJek";
static const char message_body[] = "{\"test\": 2432232314}";
static const int64_t message_time = 1614265330;

/* ---- signatures ---- */

static const struct {
    const char *secrets[3];
    size_t count;
    const char *signature;
} published[] = {
    {{HMAC_SECRET}, 1, HMAC_SIGNATURE},
    {{SEED_SECRET}, 1, SEED_SIGNATURE},
    {{HMAC_SECRET, SEED_SECRET, HMAC_SECRET},
     3,
     HMAC_SIGNATURE " " SEED_SIGNATURE " " HMAC_SIGNATURE},
    {{NULL}, 0, ""},
};

START_TEST(published_vectors)
{
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        struct span secrets[3];
        struct signer *signer;
        struct buf b;

        buf_init(&b, BUF_NO_CAP);
        for (size_t s = 0; s < published[i].count; s++)
            secrets[s] = span_str(published[i].secrets[s]);
        ck_ok(signer_new(secrets, published[i].count, &signer));
        /* The second time with the same keys. */
        for (size_t time = 0; time < 2; time++) {
            buf_clear(&b);
            ck_ok(
                signer_add(signer, &b, span_str(message_id), message_time, span_str(message_body)));
            ck_span_is(buf_span(&b), span_str(published[i].signature));
        }
        signer_unref(signer);
        buf_done(&b);
    }
}
END_TEST

static struct span signature_of(struct arena *a, struct span secret, const char *id, int64_t time,
                                struct span body)
{
    struct signer *signer;
    struct span signature;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    ck_ok(signer_new(&secret, 1, &signer));
    ck_ok(signer_add(signer, &b, span_str(id), time, body));
    signature = arena_copy(a, buf_span(&b));
    signer_unref(signer);
    buf_done(&b);
    return signature;
}

START_TEST(everything_is_signed)
{
    static const char *const secrets[] = {HMAC_SECRET, SEED_SECRET};
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        struct span secret = span_str(secrets[i]);
        struct span plain = signature_of(&a, secret, "id", 1, SPAN("body"));

        ck_span_is(signature_of(&a, secret, "id", 1, SPAN("body")), plain);
        ck_assert(!span_eq(signature_of(&a, secret, "ie", 1, SPAN("body")), plain));
        ck_assert(!span_eq(signature_of(&a, secret, "id", 2, SPAN("body")), plain));
        ck_assert(!span_eq(signature_of(&a, secret, "id", -1, SPAN("body")), plain));
        ck_assert(!span_eq(signature_of(&a, secret, "id", 1, SPAN("bodY")), plain));
        ck_assert(!span_eq(signature_of(&a, secret, "id", 1, SPAN("")), plain));
    }
    arena_done(&a);
}
END_TEST

START_TEST(bodies_of_any_size_and_kind)
{
    static char large[3000000];
    struct arena a;

    arena_init(&a);
    memset(large, 'x', sizeof(large));
    large[5] = '\0';
    signature_of(&a, SPAN(SEED_SECRET), "id", 1, span_of(large, sizeof(large)));
    signature_of(&a, SPAN(HMAC_SECRET), "id", 1, span_of(large, sizeof(large)));
    ck_span_is(signature_of(&a, SPAN(HMAC_SECRET), "id", 1, span_of(NULL, 0)),
               signature_of(&a, SPAN(HMAC_SECRET), "id", 1, SPAN("")));
    ck_span_is(signature_of(&a, SPAN(SEED_SECRET), "id", 1, span_of(NULL, 0)),
               signature_of(&a, SPAN(SEED_SECRET), "id", 1, SPAN("")));
    arena_done(&a);
}
END_TEST

/* Others sign with the same keys meanwhile; then nobody else has them any more. */
static void check_steps(const char *const *texts, size_t count, struct span body, size_t bytes)
{
    struct span secrets[3];
    struct signer *signer;
    struct signing *signing;
    bool is_last = false;
    size_t steps = 0;
    struct buf b;

    for (size_t i = 0; i < count; i++)
        secrets[i] = span_str(texts[i]);
    ck_ok(signer_new(secrets, count, &signer));
    ck_assert_uint_eq(signer_count(signer), count);
    signing = signing_new(signer, span_str(message_id), message_time, body);
    buf_init(&b, BUF_NO_CAP);
    for (; !is_last; steps++) {
        ck_ok(signing_step(signing, bytes, &is_last));
        if (!is_last) {
            buf_clear(&b);
            ck_ok(signer_add(signer, &b, span_str(message_id), message_time, body));
        }
    }
    buf_clear(&b);
    ck_ok(signer_add(signer, &b, span_str(message_id), message_time, body));
    signer_unref(signer);
    ck_span_is(signing_value(signing), buf_span(&b));
    ck_assert_uint_ge(steps, count);
    signing_free(signing);
    buf_done(&b);
}

static const size_t step_bytes[] = {1, 7, 64, 999, 1000, 1001, 5000};

START_TEST(in_steps_as_at_once)
{
    static char body[1000];

    memset(body, 'y', sizeof(body));
    for (size_t i = 0; i < ARRAY_LEN(published); i++)
        for (size_t s = 0; s < ARRAY_LEN(step_bytes) && published[i].count > 0; s++) {
            size_t most = published[i].count;

            check_steps(published[i].secrets, most, span_of(body, sizeof(body)), step_bytes[s]);
            check_steps(published[i].secrets, most, SPAN(""), step_bytes[s]);
        }
}
END_TEST

/* Of HMAC each step reads so much, of ed25519 the first one all. */
START_TEST(steps_read_what_they_may)
{
    static const char body[1000];
    const struct span secrets[] = {SPAN(HMAC_SECRET), SPAN(SEED_SECRET)};
    bool is_last;

    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        struct signer *signer;
        struct signing *signing;
        size_t steps = 0;

        ck_ok(signer_new(&secrets[i], 1, &signer));
        ck_assert(signer_reads_whole(signer) == (i == 1));
        signing = signing_new(signer, SPAN("id"), 1, span_of(body, sizeof(body)));
        do {
            ck_ok(signing_step(signing, 300, &is_last));
            steps++;
        } while (!is_last);
        ck_assert_uint_eq(steps, i == 0 ? 4 : 1);
        signing_free(signing);
        signing = signing_new(signer, SPAN("id"), 1, span_of(body, sizeof(body)));
        ck_ok(signing_step(signing, 300, &is_last));
        signing_free(signing); /* in the midst of it */
        signer_unref(signer);
    }
    signing_free(NULL);
    signer_unref(NULL);
}
END_TEST

/* ---- secrets ---- */

static struct span secret_of(struct buf *b, const char *prefix, struct span key)
{
    buf_clear(b);
    buf_add_str(b, prefix);
    text_add_base64(b, key);
    return buf_span(b);
}

static const struct {
    const char *prefix;
    size_t bytes;
    bool fits;
} lengths[] = {
    {"whsec_", 23, false}, {"whsec_", 24, true},  {"whsec_", 25, true}, {"whsec_", 32, true},
    {"whsec_", 64, true},  {"whsec_", 65, false}, {"whsec_", 0, false}, {"whsec_", 5000, false},
    {"whsk_", 31, false},  {"whsk_", 32, true},   {"whsk_", 33, false}, {"whsk_", 48, false},
    {"whsk_", 65, false},  {"whsk_", 0, false},
};

START_TEST(lengths_are_checked)
{
    static char key[5000];
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct span secret = secret_of(&b, lengths[i].prefix, span_of(key, lengths[i].bytes));

        if (lengths[i].fits)
            ck_ok(sign_check_secret(secret));
        else
            ck_fails(sign_check_secret(secret), ERR_INVALID_ENTITY, "bytes, but must have");
    }
    buf_done(&b);
}
END_TEST

static const struct {
    const char *secret, *text;
} bad[] = {
    {"", "must begin with whsec_ or whsk_"},
    {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must begin with"},
    {"WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must begin with"},
    {"whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must begin with"},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "A whsec_ secret is not base64"},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_", "not base64"},
    {"whsk_ VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=", "A whsk_ secret is not base64"},
    {"whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk", "not base64"},
};

START_TEST(bad_secrets_are_refused_and_not_repeated)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err *e = sign_check_secret(span_str(bad[i].secret));

        ck_assert_ptr_nonnull(e);
        ck_assert_uint_eq(span_find(err_message(e), SPAN("MfKQ9r8")), SIZE_MAX);
        ck_assert_uint_eq(span_find(err_message(e), SPAN("VEVTVF")), SIZE_MAX);
        err_free(e);
        ck_fails(sign_check_secret(span_str(bad[i].secret)), ERR_INVALID_ENTITY, bad[i].text);
    }
}
END_TEST

/* RFC 8032 section 7.1, test 1. */
#define RFC_SEED "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define RFC_PUBLIC "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

START_TEST(a_whole_key_signs_as_its_seed)
{
    char bytes[64];
    struct span whole, seed;
    struct arena a;
    struct buf b;

    arena_init(&a);
    buf_init(&b, BUF_NO_CAP);
    ck_assert(text_from_hex(SPAN(RFC_SEED RFC_PUBLIC), (uint8_t *)bytes));
    seed = arena_copy(&a, secret_of(&b, "whsk_", span_of(bytes, 32)));
    whole = arena_copy(&a, secret_of(&b, "whsk_", span_of(bytes, 64)));
    ck_ok(sign_check_secret(whole));
    ck_span_is(signature_of(&a, whole, "id", 1, SPAN("body")),
               signature_of(&a, seed, "id", 1, SPAN("body")));
    bytes[63] ^= 1;
    ck_fails(sign_check_secret(secret_of(&b, "whsk_", span_of(bytes, 64))), ERR_INVALID_ENTITY,
             "does not belong to its seed");
    buf_done(&b);
    arena_done(&a);
}
END_TEST

START_TEST(secrets_are_made_of_the_kind_that_is_asked_for)
{
    static const char *const like[] = {"", HMAC_SECRET, SEED_SECRET};
    struct span made[2];
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(like); i++) {
        for (size_t n = 0; n < ARRAY_LEN(made); n++) {
            ck_ok(sign_make_secret(span_str(like[i]), &a, &made[n]));
            ck_ok(sign_check_secret(made[n]));
            ck_assert(span_starts(made[n], i == 2 ? SPAN("whsk_") : SPAN("whsec_")));
            /* A seed with its public key, or 32 bytes, in base64. */
            ck_assert_uint_eq(made[n].n, i == 2 ? 5 + 88 : 6 + 44);
        }
        ck_assert(!span_eq(made[0], made[1]));
    }
    arena_done(&a);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, secrets_are_made_of_the_kind_that_is_asked_for);
    tcase_add_test(tc, published_vectors);
    tcase_add_test(tc, everything_is_signed);
    tcase_add_test(tc, bodies_of_any_size_and_kind);
    tcase_add_test(tc, in_steps_as_at_once);
    tcase_add_test(tc, steps_read_what_they_may);
    tcase_add_test(tc, lengths_are_checked);
    tcase_add_test(tc, bad_secrets_are_refused_and_not_repeated);
    tcase_add_test(tc, a_whole_key_signs_as_its_seed);
}
