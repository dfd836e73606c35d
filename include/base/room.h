/* Who may hold how much. MemoryBytes bounds the heap, which weighs everything; no second book is
 * kept beside it. Each that holds bytes for others (requests that come in, answers that wait,
 * bodies of attempts, payloads, logs) keeps the sum of its own, and asks here how large that may be
 * now: up to its own limit, and as far as all others together have left room. So who holds most of
 * what could go gives way first, and what is stored for good takes the room of the rest. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include "base/limits.h"

/* What each may hold however full the heap is, so that everything goes on, one after the other:
 * a 32nd of MemoryBytes, at least 64 KiB and at most this. */
enum { ROOM_MOST_LEAST_BYTES = 4 << 20 };

/* room_most with a MemoryBytes. */
uint64_t room_left(const struct limits *limits, uint64_t held, int64_t limit);
/* The most that one which holds `held` bytes of the heap now may hold; `limit` is its own. */
static inline uint64_t room_most(const struct limits *limits, uint64_t held, int64_t limit)
{
    return limits->memory_bytes == 0 ? (uint64_t)limit : room_left(limits, held, limit);
}

/* The heap is beyond MemoryBytes by so much; 0: it is not, or there is no such limit. */
uint64_t room_lacking(const struct limits *limits);
/* The heap is so near to MemoryBytes that logs make room: so many bytes of them. 0: none. */
uint64_t room_short(const struct limits *limits);

#endif
