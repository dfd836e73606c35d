/* ISO 8601 dates and datetimes as JSON strings carry them, compared as instants. Years 0001 to
 * 9999, proleptic Gregorian calendar. */
#ifndef BASE_DATETIME_H
#define BASE_DATETIME_H

#include "base/buf.h"
#include "base/span.h"

/* Seconds since 1970-01-01T00:00:00Z, and the nanoseconds (0 to 999 999 999) beyond them. */
struct instant {
    int64_t seconds;
    uint32_t nanos;
};

struct datetime_parts { /* in UTC */
    int year, month, day, hour, minute, second;
    int day_of_week; /* 0 Sunday to 6 Saturday */
};

/* `YYYY-MM-DD`, or that with `T` (or `t`, or one space) and `hh:mm[:ss[.fraction]]` and an optional
 * zone: `Z` (or `z`), `+hh:mm`, `-hh:mm`, `+hhmm`, `+hh`. No zone means UTC. Fraction: 1 to 18
 * digits, those after the ninth are dropped. `24:00:00` and second 60 are not accepted, nor what is
 * outside of the years 0001 to 9999 in UTC. */
bool datetime_parse(struct span s, struct instant *out_instant);
int datetime_cmp(struct instant a, struct instant b);
void datetime_parts(struct instant at, struct datetime_parts *out_parts);
/* `2026-01-31T12:00:00.0000000Z`: seven digits and Z. */
void datetime_add(struct buf *b, int64_t unix_ns);
struct instant datetime_from_unix_ns(int64_t unix_ns);

#endif
