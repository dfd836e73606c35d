/* Keyed hashing (SipHash-1-3, Aumasson and Bernstein) with a key drawn once per process, so that
 * nobody outside can choose colliding keys; and checksums. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/span.h"

uint64_t hash_bytes(struct span s);
/* For keys that nobody outside chooses, such as the ids that the server gives: a third of the work,
 * no defence. Keyed as well. */
uint64_t hash_own(struct span s);
/* Mixes a further value into a hash. */
uint64_t hash_mix(uint64_t hash, uint64_t value);
/* Tests set the key to get the same order every time. */
void hash_set_key(uint64_t k0, uint64_t k1);

/* CRC-32C (Castagnoli, RFC 3720 appendix B.4), continuing from `crc`; start with 0. Uses the
 * processor's instruction where there is one. */
uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n);
/* The same on any processor. */
uint32_t hash_crc32c_table(uint32_t crc, const void *p, size_t n);

#endif
