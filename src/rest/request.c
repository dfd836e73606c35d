/* What is read of a request besides its members. */
#include "rest/request.h"

#include "base/arena.h"
#include "base/header_field.h"

struct span request_header(const struct request *r, struct span name)
{
    const struct header_field *header = header_field_find(r->headers, r->header_count, name);

    return header != NULL ? header->value : (struct span){NULL, 0};
}

struct span request_header_all(const struct request *r, struct span name, struct arena *a)
{
    struct span all = {NULL, 0};

    for (size_t i = 0; i < r->header_count; i++) {
        if (!span_ieq(r->headers[i].name, name))
            continue;
        all = all.p == NULL
                  ? r->headers[i].value
                  : arena_printf(a, "%.*s, %.*s", SPAN_FMT(all), SPAN_FMT(r->headers[i].value));
    }
    return all;
}

uint8_t request_depth(const struct request *r)
{
    uint64_t depth;

    if (r->is_local || !span_to_u64(request_header(r, SPAN("Svc-depth")), &depth))
        return r->depth;
    return (uint8_t)MIN(depth, UINT8_MAX);
}
