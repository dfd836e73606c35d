/* Plain arithmetic over one number, that of mem_bytes: it is as cheap as a comparison, and right
 * whoever took the memory. Logs begin to make room an eighth before the end, so that requests are
 * refused only when that was not enough. */
#include "base/room.h"

#include "base/macros.h"
#include "base/mem.h"

enum { LEAST_PARTS = 32, LEAST_BYTES = 65536, SPARE_PARTS = 8 };

static uint64_t beyond(uint64_t bytes)
{
    uint64_t heap = mem_bytes();

    return heap > bytes ? heap - bytes : 0;
}

uint64_t room_left(const struct limits *limits, uint64_t held, int64_t limit)
{
    uint64_t all = (uint64_t)limits->memory_bytes;
    uint64_t others = beyond(held);
    uint64_t least = MIN(MAX(all / LEAST_PARTS, LEAST_BYTES), ROOM_MOST_LEAST_BYTES);

    return MIN((uint64_t)limit, MAX(all - MIN(others, all), least));
}

uint64_t room_lacking(const struct limits *limits)
{
    return limits->memory_bytes == 0 ? 0 : beyond((uint64_t)limits->memory_bytes);
}

uint64_t room_short(const struct limits *limits)
{
    uint64_t all = (uint64_t)limits->memory_bytes;

    return all == 0 ? 0 : beyond(all - all / SPARE_PARTS);
}
