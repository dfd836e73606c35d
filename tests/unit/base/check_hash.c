#include "testing.h"

#include "base/hash.h"
#include "base/rng.h"

#include <string.h>

/* From the reference implementation: key 00 01 .. 0f, message 00 01 .. n - 1. */
static const struct sip_vector {
    size_t n;
    uint64_t hash;
} sip_vectors[] = {
    {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
    {2, UINT64_C(0x82cb9b024dc7d44d)},  {7, UINT64_C(0xd3927d989bb11140)},
    {8, UINT64_C(0x369095118d299a8e)},  {9, UINT64_C(0x25a48eb36c063de4)},
    {15, UINT64_C(0xd320d86d2a519956)},
};

START_TEST(siphash_1_3)
{
    char message[16];

    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (char)i;
    hash_set_key(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908));
    for (size_t i = 0; i < ARRAY_LEN(sip_vectors); i++)
        ck_assert_uint_eq(hash_bytes(span_of(message, sip_vectors[i].n)), sip_vectors[i].hash);
    ck_assert_uint_eq(hash_bytes(span_of(NULL, 0)), sip_vectors[0].hash);
}
END_TEST

START_TEST(the_key_decides)
{
    uint64_t hash;

    hash_set_key(1, 2);
    hash = hash_bytes(SPAN("name"));
    hash_set_key(1, 3);
    ck_assert_uint_ne(hash_bytes(SPAN("name")), hash);
    hash_set_key(1, 2);
    ck_assert_uint_eq(hash_bytes(SPAN("name")), hash);
}
END_TEST

START_TEST(own_hashes_spread)
{
    enum { KEYS = 4096, BITS = 128 };
    uint64_t words[BITS / 64] = {1, 2}, hash;
    const struct span key = span_of((const char *)words, sizeof(words));
    unsigned counts[256] = {0}, most = 0;

    hash_set_key(1, 2);
    hash = hash_own(key);
    ck_assert_uint_ne(hash_own(span_sub(key, 0, key.n - 1)), hash);
    for (unsigned bit = 0; bit < BITS; bit++) {
        words[bit / 64] ^= UINT64_C(1) << bit % 64;
        ck_assert_uint_ne(hash_own(key), hash);
        words[bit / 64] ^= UINT64_C(1) << bit % 64;
    }
    for (; words[1] < KEYS; words[1]++)
        most = MAX(most, ++counts[hash_mix(hash_own(key), 256) % 256]);
    ck_assert_uint_lt(most, 4 * KEYS / 256);
    hash_set_key(3, 2);
    words[1] = 2;
    ck_assert_uint_ne(hash_own(key), hash);
}
END_TEST

START_TEST(mix_depends_on_both)
{
    ck_assert_uint_ne(hash_mix(1, 2), hash_mix(2, 1));
    ck_assert_uint_ne(hash_mix(1, 2), hash_mix(1, 3));
    ck_assert_uint_ne(hash_mix(0, 1), hash_mix(1, 0));
    ck_assert_uint_eq(hash_mix(7, 9), hash_mix(7, 9));
}
END_TEST

/* RFC 3720, appendix B.4, and the check value of the usual catalogues. */
static const struct crc_vector {
    struct span message;
    uint32_t crc;
} crc_vectors[] = {
    {{NULL, 0}, 0},
    {SPAN_INIT("123456789"), 0xe3069283},
    {SPAN_INIT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 0x8a9136aa},
    {SPAN_INIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
               "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
     0x62a8ab43},
    {SPAN_INIT("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
               "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"),
     0x46dd794e},
    {SPAN_INIT("\x1f\x1e\x1d\x1c\x1b\x1a\x19\x18\x17\x16\x15\x14\x13\x12\x11\x10"
               "\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08\x07\x06\x05\x04\x03\x02\x01\x00"),
     0x113fdb5c},
    {SPAN_INIT("\x01\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
               "\x14\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x14\x00\x00\x00\x18"
               "\x28\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"),
     0xd9963a56},
};

START_TEST(crc32c_as_published)
{
    for (size_t i = 0; i < ARRAY_LEN(crc_vectors); i++) {
        const struct crc_vector *v = &crc_vectors[i];

        ck_assert_uint_eq(hash_crc32c(0, v->message.p, v->message.n), v->crc);
        ck_assert_uint_eq(hash_crc32c_table(0, v->message.p, v->message.n), v->crc);
    }
}
END_TEST

START_TEST(crc32c_is_the_same_with_and_without_the_instruction)
{
    unsigned char bytes[400];

    rng_secret(bytes, sizeof(bytes));
    for (size_t from = 0; from < 9; from++) {
        for (size_t n = 0; from + n <= sizeof(bytes); n++) {
            uint32_t start = (uint32_t)rng_u64();

            ck_assert_uint_eq(hash_crc32c(start, bytes + from, n),
                              hash_crc32c_table(start, bytes + from, n));
        }
    }
}
END_TEST

START_TEST(crc32c_may_be_continued)
{
    struct span s = SPAN("the quick brown fox jumps over the lazy dog");
    uint32_t whole = hash_crc32c(0, s.p, s.n);

    for (size_t cut = 0; cut <= s.n; cut++) {
        uint32_t first = hash_crc32c(0, s.p, cut);

        ck_assert_uint_eq(hash_crc32c(first, s.p + cut, s.n - cut), whole);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, siphash_1_3);
    tcase_add_test(tc, the_key_decides);
    tcase_add_test(tc, own_hashes_spread);
    tcase_add_test(tc, mix_depends_on_both);
    tcase_add_test(tc, crc32c_as_published);
    tcase_add_test(tc, crc32c_is_the_same_with_and_without_the_instruction);
    tcase_add_test(tc, crc32c_may_be_continued);
}
