/* Names of schemas and operations. They are those of the resources; but what generators make of
 * those, letters and digits alone, may be the same of two (`Shop.Order.Placed`,
 * `Shop.OrderPlaced`), or nothing at all (`_._`). Generators pass over one of these, or write it
 * over the other. So names of that kind are marked, by a hash of the whole name: it stays as it is
 * when others come and go. */
#include "base/buf.h"
#include "base/digest.h"
#include "openapi/openapi_inner.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"

#include <stdlib.h>

/* Schemas that no resource has given their names. */
static const struct span reserved[] = {SPAN_INIT("cloudevent"), SPAN_INIT("counts"),
                                       SPAN_INIT("errorcode"), SPAN_INIT("problem")};

static struct span bare_name(struct span name, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            buf_add_char(&b, c);
        else if (c >= 'A' && c <= 'Z')
            buf_add_char(&b, (char)(c - 'A' + 'a'));
    }
    return buf_span(&b);
}

static int by_text(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

void openapi_look_at_names(struct openapi *d)
{
    struct arena *a = d->call->arena;
    size_t most = d->call->rest->resources->count + ARRAY_LEN(reserved);
    struct openapi_resource r;

    d->names = ARENA_ARRAY(a, struct span, most);
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        d->names[d->name_count++] = reserved[i];
    for (size_t place = 0; openapi_next(d, &place, &r);)
        d->names[d->name_count++] = bare_name(r.resource->name, a);
    qsort(d->names, d->name_count, sizeof(*d->names), by_text);
}

static bool is_of_several(const struct openapi *d, struct span bare)
{
    const struct span *found = bsearch(&bare, d->names, d->name_count, sizeof(*d->names), by_text);
    const struct span *end = d->names + d->name_count;

    return found != NULL && ((found > d->names && span_eq(found[-1], bare)) ||
                             (found + 1 < end && span_eq(found[1], bare)));
}

static bool needs_mark(const struct openapi *d, struct span name)
{
    struct span bare = bare_name(name, d->call->arena);

    if (span_starts(name, SPAN("Svc.")))
        return false;
    return bare.n == 0 || span_starts(bare, SPAN("svc")) || is_of_several(d, bare);
}

/* Eight digits, or nothing. */
struct span openapi_mark(const struct openapi *d, struct span name)
{
    uint8_t digest[DIGEST_BYTES];

    if (!needs_mark(d, name))
        return SPAN("");
    digest_sha256(name, digest);
    return arena_printf(d->call->arena, "%02x%02x%02x%02x", digest[0], digest[1], digest[2],
                        digest[3]);
}
