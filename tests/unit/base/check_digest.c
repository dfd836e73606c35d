#include "testing.h"

#include "base/budget.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/fiber.h"
#include "base/text.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* In the place of the library's: by the thread's processor time each look finds that the time of
 * the turn is up. */
static bool is_scripted;

int clock_gettime(clockid_t id, struct timespec *out)
{
    static uint64_t cpu_ns;

    if (id != CLOCK_THREAD_CPUTIME_ID || !is_scripted)
        return (int)syscall(SYS_clock_gettime, id, out);
    cpu_ns += 6000000;
    *out = (struct timespec){(time_t)(cpu_ns / 1000000000), (long)(cpu_ns % 1000000000)};
    return 0;
}

/* FIPS 180-4. */
static const struct {
    const char *text, *hex;
} digests[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}, /* once more */
};

START_TEST(sha256_vectors)
{
    for (size_t i = 0; i < ARRAY_LEN(digests); i++) {
        uint8_t digest[DIGEST_BYTES], expected[DIGEST_BYTES];

        digest_sha256(span_str(digests[i].text), digest);
        ck_assert(text_from_hex(span_str(digests[i].hex), expected));
        ck_assert_mem_eq(digest, expected, sizeof(digest));
        ck_assert(digest_equal(digest, expected, sizeof(digest)));
        expected[DIGEST_BYTES - 1] ^= 1;
        ck_assert(!digest_equal(digest, expected, sizeof(digest)));
        ck_assert(digest_equal(digest, expected, DIGEST_BYTES - 1));
        ck_assert(digest_equal(digest, expected, 0));
    }
}
END_TEST

START_TEST(sha256_in_parts)
{
    for (size_t i = 0; i < ARRAY_LEN(digests); i++) {
        struct span text = span_str(digests[i].text);
        uint8_t digest[DIGEST_BYTES], whole[DIGEST_BYTES];
        struct digest *d = digest_new();

        for (size_t at = 0; at < text.n; at += 7)
            digest_add(d, span_sub(text, at, MIN(at + 7, text.n)));
        digest_end(d, digest);
        digest_sha256(text, whole);
        ck_assert_mem_eq(digest, whole, sizeof(digest));
        digest_free(d);
    }
    digest_free(NULL);
}
END_TEST

/* RFC 4231, cases 1, 2 and 6. */
START_TEST(hmac_vectors)
{
    static const struct {
        const char *key, *text, *hex;
        size_t times; /* the key is repeated */
    } cases[] = {
        {"\x0b", "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
         20},
        {"Jefe", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", 1},
        {"\xaa", "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54", 131},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t code[DIGEST_BYTES], expected[DIGEST_BYTES];
        struct buf key;

        buf_init(&key, BUF_NO_CAP);
        for (size_t n = 0; n < cases[i].times; n++)
            buf_add_str(&key, cases[i].key);
        digest_hmac(buf_span(&key), span_str(cases[i].text), code);
        ck_assert(text_from_hex(span_str(cases[i].hex), expected));
        ck_assert_mem_eq(code, expected, sizeof(code));
        buf_done(&key);
    }
}
END_TEST

/* Whatever its length, and though others make one meanwhile. */
static char long_text[400000];

static const size_t lengths[] = {0, 1, 65535, 65536, 65537, 131072, 200000, sizeof(long_text)};

static void make_long(void *out_digest)
{
    digest_long(span_of(long_text, sizeof(long_text)), out_digest);
}

START_TEST(a_long_one_is_the_same)
{
    uint8_t digest[DIGEST_BYTES], expected[DIGEST_BYTES];

    for (size_t i = 0; i < sizeof(long_text); i++)
        long_text[i] = (char)(i * i >> 5);
    digest_long(span_of(long_text, lengths[_i]), digest);
    digest_sha256(span_of(long_text, lengths[_i]), expected);
    ck_assert_mem_eq(digest, expected, sizeof(digest));
}
END_TEST

START_TEST(a_long_one_gives_way)
{
    uint8_t digest[DIGEST_BYTES], expected[DIGEST_BYTES];
    struct fiber *fiber = fiber_new(make_long, digest);
    struct budget budget;
    unsigned turns = 0;

    budget_init(&budget, 0);
    budget.is_on_fiber = true;
    for (bool goes_on = true; goes_on; turns++) {
        budget_enter(&budget);
        is_scripted = true;
        goes_on = fiber_resume(fiber);
        is_scripted = false;
        budget_leave(&budget);
        digest_sha256(SPAN("abc"), expected);
    }
    ck_assert_uint_gt(turns, 3);
    digest_sha256(span_of(long_text, sizeof(long_text)), expected);
    ck_assert_mem_eq(digest, expected, sizeof(digest));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, sha256_in_parts);
    tcase_add_test(tc, hmac_vectors);
    tcase_add_loop_test(tc, a_long_one_is_the_same, 0, ARRAY_LEN(lengths));
    tcase_add_test(tc, a_long_one_gives_way);
    tcase_add_test(tc, sha256_vectors);
}
