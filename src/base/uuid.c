/* Layout of version 7 (RFC 9562 section 5.7), in bits from the left: 48 milliseconds, 4 version,
 * 12 rand_a, 2 variant, 62 rand_b. In between, the fields without version and variant form one
 * number of 122 bits, so that a step onwards carries from field to field. */
#include "base/uuid.h"

#include "base/clock.h"
#include "base/must.h"
#include "base/rng.h"

#include <endian.h>
#include <string.h>

#define NANOS_PER_MS 1000000
#define MS_MASK ((UINT64_C(1) << 48) - 1)
#define RAND_A_BITS 12
#define RAND_A_MASK ((UINT64_C(1) << RAND_A_BITS) - 1)
#define RAND_B_BITS 62
#define RAND_B_MASK ((UINT64_C(1) << RAND_B_BITS) - 1)
/* The greatest step: small against 2^74, so that a burst within one millisecond does not run into
 * the next, and too large to guess the following id from one id. */
#define STEP_BITS 40

/* The fields of the last one that uuid_new made. */
static unsigned __int128 latest;

static unsigned __int128 to_fields(uint64_t ms, uint64_t rand_a, uint64_t rand_b)
{
    uint64_t high = ms << RAND_A_BITS | (rand_a & RAND_A_MASK);

    return (unsigned __int128)high << RAND_B_BITS | (rand_b & RAND_B_MASK);
}

static struct uuid from_fields(unsigned __int128 fields)
{
    uint64_t high = (uint64_t)(fields >> RAND_B_BITS), ms = high >> RAND_A_BITS;
    const uint64_t halves[] = {
        htobe64(ms << 16 | UINT64_C(7) << 12 | (high & RAND_A_MASK)),
        htobe64(UINT64_C(2) << RAND_B_BITS | ((uint64_t)fields & RAND_B_MASK)),
    };
    struct uuid u;

    memcpy(u.b, halves, sizeof(u.b));
    return u;
}

/* Times before 1970 have no version 7; they count as 1970. */
static uint64_t ms_field(int64_t unix_ns)
{
    return unix_ns < 0 ? 0 : (uint64_t)(unix_ns / NANOS_PER_MS) & MS_MASK;
}

struct uuid uuid_new(void)
{
    uint64_t ms = ms_field(clock_unix_ns());
    uint64_t random[2];

    rng_secret(random, sizeof(random));
    if (ms > (uint64_t)(latest >> (RAND_A_BITS + RAND_B_BITS)))
        latest = to_fields(ms, random[0], random[1]);
    else
        latest += (random[0] >> (64 - STEP_BITS)) + 1;
    return from_fields(latest);
}

struct uuid uuid_from_serial(int64_t unix_ns, uint16_t salt, uint64_t serial)
{
    MUST(serial <= RAND_B_MASK);
    return from_fields(to_fields(ms_field(unix_ns), salt, serial));
}

uint64_t uuid_serial(const struct uuid *u)
{
    uint64_t half;

    memcpy(&half, u->b + 8, sizeof(half));
    return be64toh(half) & RAND_B_MASK;
}

/* ---- text ---- */

/* All in the same way, and hyphens between them later: compilers make a few wide instructions of
 * it.
 */
static void encode_digits(const struct uuid *u, char out_digits[2 * sizeof(struct uuid)])
{
    for (size_t i = 0; i < sizeof(u->b); i++) {
        uint8_t high = u->b[i] >> 4, low = u->b[i] & 15;

        out_digits[2 * i] = (char)(high + (high < 10 ? '0' : 'a' - 10));
        out_digits[2 * i + 1] = (char)(low + (low < 10 ? '0' : 'a' - 10));
    }
}

void uuid_text(const struct uuid *u, char out_text[UUID_TEXT_BYTES + 1])
{
    char digits[2 * sizeof(struct uuid)];

    encode_digits(u, digits);
    memcpy(out_text, digits, 8);
    memcpy(out_text + 9, digits + 8, 4);
    memcpy(out_text + 14, digits + 12, 4);
    memcpy(out_text + 19, digits + 16, 4);
    memcpy(out_text + 24, digits + 20, 12);
    out_text[8] = out_text[13] = out_text[18] = out_text[23] = '-';
    out_text[UUID_TEXT_BYTES] = '\0';
}

void uuid_add(struct buf *b, const struct uuid *u)
{
    char text[UUID_TEXT_BYTES + 1];

    uuid_text(u, text);
    buf_add(b, span_of(text, UUID_TEXT_BYTES));
}

enum { FOLD = 'a' - 'A' }; /* makes a small letter of a capital; digits have that bit already */

/* Both loops look at everything in any case, so that compilers make a few wide instructions of
 * them: a third of what it costs digit by digit. */
static bool decode_digits(const char digits[2 * sizeof(struct uuid)], uint8_t fold,
                          struct uuid *out_uuid)
{
    uint8_t values[2 * sizeof(struct uuid)];
    uint8_t bad = 0;

    for (size_t i = 0; i < sizeof(values); i++) {
        uint8_t c = (uint8_t)digits[i];
        uint8_t number = (uint8_t)(c - '0'), letter = (uint8_t)((c | fold) - 'a');

        values[i] = number < 10 ? number : (uint8_t)(letter + 10);
        bad |= (uint8_t)(number >= 10 && letter >= 6);
    }
    for (size_t i = 0; i < sizeof(out_uuid->b); i++)
        out_uuid->b[i] = (uint8_t)(values[2 * i] << 4 | values[2 * i + 1]);
    return !bad;
}

/* The digits are brought together first: five groups with a hyphen between. */
static bool parse(struct span s, uint8_t fold, struct uuid *out_uuid)
{
    char digits[2 * sizeof(out_uuid->b)];
    struct uuid u;

    if (s.n != UUID_TEXT_BYTES || s.p[8] != '-' || s.p[13] != '-' || s.p[18] != '-' ||
        s.p[23] != '-')
        return false;
    memcpy(digits, s.p, 8);
    memcpy(digits + 8, s.p + 9, 4);
    memcpy(digits + 12, s.p + 14, 4);
    memcpy(digits + 16, s.p + 19, 4);
    memcpy(digits + 20, s.p + 24, 12);
    if (!decode_digits(digits, fold, &u))
        return false;
    *out_uuid = u;
    return true;
}

bool uuid_parse(struct span s, struct uuid *out_uuid)
{
    return parse(s, FOLD, out_uuid);
}

bool uuid_parse_own(struct span s, struct uuid *out_uuid)
{
    return parse(s, 0, out_uuid);
}

bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

struct span uuid_key(const struct uuid *u)
{
    return span_of((const char *)u->b, sizeof(u->b));
}
