/* Exact arithmetic comparison of JSON numbers in their text form, of any length: no value goes
 * through a double. Texts are JSON numbers (RFC 8259 section 6); a leading '+' and leading zeros
 * are allowed too, as they occur in conditions. */
#ifndef JSON_DECIMAL_H
#define JSON_DECIMAL_H

#include "base/buf.h"
#include "base/span.h"

bool decimal_valid(struct span s);
/* A JSON number without fraction and exponent that are not zero: 1, -0, 1.0, 1e3. */
bool decimal_is_integer(struct span s);
/* <0, 0, >0. 1 equals 1.0, 10e-1 and +01; -0 equals 0. Exponents beyond ±2^62 are taken as that. */
int decimal_cmp(struct span a, struct span b);
/* One spelling for all equal numbers, fit as a hash key: `0`, or [-]digits`e`exponent with no
 * trailing zero digit. */
void decimal_add_canonical(struct buf *b, struct span s);
/* The nearest double; for limits and seconds, never for comparing data. */
double decimal_to_double(struct span s);

#endif
