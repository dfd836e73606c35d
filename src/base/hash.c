/* SipHash-1-3 for keys that clients choose: without its key nobody can make entries of a table
 * collide. A few multiplications, keyed too, for keys that the server makes itself. CRC-32C (RFC
 * 3720, appendix B.4) for the journal: by the processor's own instruction where there is one, else
 * by a table. */
#include "base/hash.h"

#include "base/rng.h"

#include <endian.h>
#include <string.h>

static struct {
    uint64_t k[2];
    bool set;
} key;

void hash_set_key(uint64_t k0, uint64_t k1)
{
    key.k[0] = k0;
    key.k[1] = k1;
    key.set = true;
}

static void need_key(void)
{
    if (key.set)
        return;
    rng_secret(key.k, sizeof(key.k));
    key.set = true;
}

static inline uint64_t rotate_left(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static inline uint64_t load_word(const char *p, size_t n)
{
    uint64_t word = 0;

    memcpy(&word, p, n);
    return le64toh(word);
}

/* The bytes behind the last whole word; loaded with those before them where there are such, as a
 * copy of unknown length costs more than the rest. */
static inline uint64_t load_tail(struct span s)
{
    size_t n = s.n % 8;

    if (n == 0)
        return 0;
    if (s.n < 8)
        return load_word(s.p, n);
    return load_word(s.p + s.n - 8, 8) >> (64 - 8 * n);
}

uint64_t hash_bytes(struct span s)
{
    uint64_t v[4];
    uint64_t last = (uint64_t)s.n << 56;
    size_t whole = s.n - s.n % 8;

    need_key();
    v[0] = key.k[0] ^ UINT64_C(0x736f6d6570736575);
    v[1] = key.k[1] ^ UINT64_C(0x646f72616e646f6d);
    v[2] = key.k[0] ^ UINT64_C(0x6c7967656e657261);
    v[3] = key.k[1] ^ UINT64_C(0x7465646279746573);
    for (size_t i = 0; i < whole; i += 8)
        sip_word(v, load_word(s.p + i, 8));
    sip_word(v, last | load_tail(s));
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The factor's bits have no pattern, and the shift brings down what it has mixed best. */
static inline uint64_t stir(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

uint64_t hash_own(struct span s)
{
    size_t whole = s.n - s.n % 8;
    uint64_t hash;

    need_key();
    hash = key.k[0] ^ s.n;
    for (size_t i = 0; i < whole; i += 8)
        hash = stir(hash, load_word(s.p + i, 8));
    return stir(hash, load_tail(s));
}

/* The finishing steps of splitmix64: each input bit reaches each output bit. */
uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = hash + value * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The remainder of each byte for the reflected polynomial 0x82f63b78: that of a byte is those of
 * its bits, added without carry. */
#define BIT(byte, bit, remainder) ((byte) >> (bit)&1 ? UINT32_C(remainder) : 0)
#define R1(b)                                                                                      \
    (BIT(b, 0, 0xf26b8303) ^ BIT(b, 1, 0xe13b70f7) ^ BIT(b, 2, 0xc79a971f) ^                       \
     BIT(b, 3, 0x8ad958cf) ^ BIT(b, 4, 0x105ec76f) ^ BIT(b, 5, 0x20bd8ede) ^                       \
     BIT(b, 6, 0x417b1dbc) ^ BIT(b, 7, 0x82f63b78))
#define R4(b) R1(b), R1((b) + 1), R1((b) + 2), R1((b) + 3)
#define R16(b) R4(b), R4((b) + 4), R4((b) + 8), R4((b) + 12)
#define R64(b) R16(b), R16((b) + 16), R16((b) + 32), R16((b) + 48)

static const uint32_t crc_table[256] = {R64(0), R64(64), R64(128), R64(192)};

uint32_t hash_crc32c_table(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *bytes = p;

    crc = ~crc;
    for (size_t i = 0; i < n; i++)
        crc = (crc >> 8) ^ crc_table[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *p,
                                                               size_t n)
{
    const unsigned char *bytes = p;
    uint64_t state = ~crc;

    for (; n >= 8; n -= 8, bytes += 8) {
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        state = __builtin_ia32_crc32di(state, word);
    }
    crc = (uint32_t)state;
    for (; n > 0; n--, bytes++)
        crc = __builtin_ia32_crc32qi(crc, *bytes);
    return ~crc;
}

uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, p, n)
                                            : hash_crc32c_table(crc, p, n);
}
#else
uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n)
{
    return hash_crc32c_table(crc, p, n);
}
#endif
