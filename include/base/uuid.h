/* UUIDs (RFC 9562). New ones are version 7, and each is greater than the one before. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include "base/buf.h"
#include "base/span.h"

struct uuid {
    uint8_t b[16];
};

#define UUID_TEXT_BYTES 36

/* Millisecond of the wall clock, 74 random bits; within one millisecond, or when the clock went
 * back, the previous one plus a random step. */
struct uuid uuid_new(void);
/* A version 7 UUID made of a time and a serial number: the same input gives the same UUID, and
 * uuid_serial gives the number back. The low 12 bits of `salt` are rand_a; `serial` < 2^62. */
struct uuid uuid_from_serial(int64_t unix_ns, uint16_t salt, uint64_t serial);
uint64_t uuid_serial(const struct uuid *u);
/* Canonical form: lower case, hyphens. */
void uuid_add(struct buf *b, const struct uuid *u);
void uuid_text(const struct uuid *u, char out_text[UUID_TEXT_BYTES + 1]);
/* Canonical form, either case. */
bool uuid_parse(struct span s, struct uuid *out_uuid);
/* Canonical form as uuid_text spells it: lower case. */
bool uuid_parse_own(struct span s, struct uuid *out_uuid);
bool uuid_eq(const struct uuid *a, const struct uuid *b);
/* The 16 bytes, as a map key. */
struct span uuid_key(const struct uuid *u);

#endif
