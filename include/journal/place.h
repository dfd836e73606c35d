/* Where a record stands: what its reader keeps to find it again. */
#ifndef JOURNAL_PLACE_H
#define JOURNAL_PLACE_H

#include <stdint.h>

struct journal_place {
    uint32_t segment; /* its number */
    uint32_t offset;  /* of the record header, in bytes */
};

#endif
