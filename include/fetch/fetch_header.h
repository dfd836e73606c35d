/* A header field of a request that is to be fetched. */
#ifndef FETCH_FETCH_HEADER_H
#define FETCH_FETCH_HEADER_H

#include "base/span.h"

struct fetch_header {
    struct span name, value;
};

#endif
