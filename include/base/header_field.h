/* A header field of HTTP: of a request or an answer, received or to be sent. */
#ifndef BASE_HEADER_FIELD_H
#define BASE_HEADER_FIELD_H

#include "base/span.h"

struct header_field {
    struct span name, value;
};

/* The first of that name (ASCII case folded); NULL: there is none. Inline, for most have none of
 * those that are asked for, and where the name is known its length tells. */
static inline const struct header_field *header_field_find(const struct header_field *fields,
                                                           size_t count, struct span name)
{
    for (size_t i = 0; i < count; i++)
        if (span_ieq(fields[i].name, name))
            return &fields[i];
    return NULL;
}

#endif
