/* What a change consists of: see change.h. */
#ifndef STORE_CHANGE_RECORD_H
#define STORE_CHANGE_RECORD_H

#include "json/json.h"

struct change_record {
    unsigned kind;
    uint32_t serials;
    size_t offset, n;       /* of the body in `bodies` */
    struct json_value read; /* change_entity_read */
};

#endif
