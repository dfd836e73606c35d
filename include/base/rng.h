/* The only source of randomness. rng_secret is fit for keys and ids that must not be guessed;
 * the others (xoshiro256**, seeded from it) are for jitter and sampling. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* From the kernel (getrandom), through a small reserve so that few calls are made. */
void rng_secret(void *out, size_t n);
uint64_t rng_u64(void);
/* Uniform in [0, bound); bound > 0. */
uint64_t rng_below(uint64_t bound);
/* Uniform in [0, 1). */
double rng_unit(void);
/* Tests: everything, rng_secret too, follows from this seed from now on. */
void rng_seed(uint64_t seed);
/* Tests: back to the kernel's randomness. */
void rng_real(void);

#endif
