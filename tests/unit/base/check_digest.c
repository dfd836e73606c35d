#include "testing.h"

#include "base/digest.h"
#include "base/text.h"

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

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, sha256_vectors);
}
