/* Two sources. Secrets come from the kernel, 256 bytes a call, and are wiped from the reserve once
 * handed out. Jitter and sampling take xoshiro256**, which is seeded from it: fast, and not fit for
 * secrets. A test that sets the seed makes both repeatable. */
#include "base/rng.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

/* What the kernel gives in one call that no signal interrupts (random(7)). */
enum { RESERVE_BYTES = 256 };

static struct {
    unsigned char bytes[RESERVE_BYTES];
    size_t left; /* unused bytes, at the end */
} reserve;

static struct {
    uint64_t state[4]; /* xoshiro256** (Blackman, Vigna 2018) */
    bool seeded;
    bool fixed; /* by rng_seed: rng_secret follows from it too */
} generator;

static void fill_from_kernel(unsigned char *out, size_t n)
{
    ssize_t got;

    do
        got = getrandom(out, n, 0);
    while (got < 0 && errno == EINTR);
    MUST(got == (ssize_t)n);
}

/* What was handed out is wiped: a later leak of the reserve must not show it. */
static void take_from_reserve(unsigned char *out, size_t n)
{
    unsigned char *from = reserve.bytes + RESERVE_BYTES - reserve.left;

    memcpy(out, from, n);
    mem_wipe(from, n);
    reserve.left -= n;
}

static void fill_from_generator(unsigned char *out, size_t n)
{
    for (size_t done = 0; done < n; done += sizeof(uint64_t)) {
        uint64_t word = rng_u64();

        memcpy(out + done, &word, MIN(sizeof(word), n - done));
    }
}

void rng_secret(void *out, size_t n)
{
    unsigned char *to = out;

    if (generator.fixed) {
        fill_from_generator(to, n);
        return;
    }
    while (n > 0) {
        size_t part;

        if (reserve.left == 0) {
            fill_from_kernel(reserve.bytes, RESERVE_BYTES);
            reserve.left = RESERVE_BYTES;
        }
        part = MIN(n, reserve.left);
        take_from_reserve(to, part);
        to += part;
        n -= part;
    }
}

static uint64_t rotate_left(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

uint64_t rng_u64(void)
{
    uint64_t *s = generator.state;
    uint64_t result, shifted;

    if (!generator.seeded) {
        rng_secret(s, sizeof(generator.state));
        generator.seeded = true;
    }
    result = rotate_left(s[1] * 5, 7) * 9;
    shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Plain `% bound` would favour small results: the 2^64 mod bound first values are drawn again. */
uint64_t rng_below(uint64_t bound)
{
    uint64_t skip, value;

    MUST(bound > 0);
    skip = -bound % bound;
    do
        value = rng_u64();
    while (value < skip);
    return value % bound;
}

double rng_unit(void)
{
    return (double)(rng_u64() >> 11) * 0x1p-53;
}

/* splitmix64 turns the seed into a state that is never all zero. */
void rng_seed(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_LEN(generator.state); i++)
        generator.state[i] = hash_mix(seed, i + 1);
    generator.seeded = generator.fixed = true;
}

void rng_real(void)
{
    generator.seeded = generator.fixed = false;
}
