/* Entity tags, and the preconditions that name them (RFC 9110, sections 8.8.3 and 13).
 *
 * What is stored has its version for a tag, which costs nothing to know. What never changes has its
 * ObjectNo. All else is made for the answer, and has a digest of its text and version. Behind that
 * stands how it is shown, so that a cache does not take one form for another; a precondition asks
 * about the entity, and holds with each of them. */
#include "base/digest.h"
#include "protocol/negotiate.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/crud_inner.h"
#include "rest/rendered.h"
#include "rest/response.h"
#include "store/entity.h"

#include <string.h>

enum { HOW_BYTES = 2, DIGITS = 16 };

enum how { HOW_COMPACT, HOW_INDENTED, HOW_LINES, HOW_CSV, HOW_COUNT };

static const struct span hows[HOW_COUNT] = {
    [HOW_COMPACT] = SPAN_INIT(""),
    [HOW_INDENTED] = SPAN_INIT("-i"),
    [HOW_LINES] = SPAN_INIT("-l"),
    [HOW_CSV] = SPAN_INIT("-c"),
};

/* What the entity's tags have in common; a byte before it and some behind it are there for the rest
 * of a tag. */
struct core {
    char *p;
    size_t n;
};

static char *core_room(const struct call *call)
{
    return (char *)arena_alloc(call->arena, 1 + MAX(SPAN_U64_BYTES, DIGITS) + HOW_BYTES + 1) + 1;
}

static struct core core_of_number(const struct call *call, uint64_t n)
{
    char *room = core_room(call);
    struct span digits = span_u64(n, room); /* they end where the room ends */

    return (struct core){room + (digits.p - room), digits.n};
}

static struct core core_of_text(const struct call *call, struct span json, uint64_t version)
{
    static const char digits[] = "0123456789abcdef";
    struct core core = {core_room(call), DIGITS};
    uint8_t digest[DIGEST_BYTES];

    digest_long(arena_printf(call->arena, "%llu%.*s", (unsigned long long)version, SPAN_FMT(json)),
                digest);
    for (size_t i = 0; i < DIGITS; i++)
        core.p[i] = digits[i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15];
    return core;
}

/* The number that an entity's text ends with. */
static uint64_t object_no_of(struct span json)
{
    size_t end = json.n - 1, at = end;
    uint64_t n = 0;

    while (at > 0 && json.p[at - 1] >= '0' && json.p[at - 1] <= '9')
        at--;
    return span_to_u64(span_sub(json, at, end), &n) ? n : 0;
}

/* An entity of a collection looks different too when its resource is declared otherwise. */
static struct core core_of(const struct call *call, const struct query_item *item)
{
    const struct resource_ops *ops = call->resource->ops;

    if (call->resource->collection != NULL)
        return core_of_number(
            call, MAX(crud_seen(call, item->object)->version, call->resource->shape_since));
    if (ops->never_changes)
        return core_of_number(call, object_no_of(item->json));
    return core_of_text(call, item->json, ops->version != NULL ? rendered_version(call, item) : 0);
}

/* In the core's room: good until the next. */
static struct span tag(struct core core, enum how how)
{
    char *end = core.p + core.n;

    core.p[-1] = '"';
    memcpy(end, hows[how].p, hows[how].n);
    end[hows[how].n] = '"';
    return span_of(core.p - 1, core.n + hows[how].n + 2);
}

/* That of what is answered, which is in the core's room. */
static struct span add_tag(const struct call *call, struct core core)
{
    static const enum how how_of[FORMAT_COUNT] = {
        [FORMAT_JSON] = HOW_COMPACT, [FORMAT_NDJSON] = HOW_LINES, [FORMAT_CSV] = HOW_CSV};
    bool is_indented = call->formats->out.format == FORMAT_JSON && call->formats->out.indent > 0;
    struct span added = tag(core, is_indented ? HOW_INDENTED : how_of[call->formats->out.format]);

    response_add_own_header(call->response, SPAN("ETag"), added);
    return added;
}

void crud_add_version_tag(const struct call *call, uint64_t version)
{
    add_tag(call, core_of_number(call, version));
}

void crud_add_text_tag(const struct call *call, struct span json, uint64_t version)
{
    add_tag(call, core_of_text(call, json, version));
}

/* Is one of the tags listed that the entity has now, however it was shown? */
static bool lists(struct span list, struct core core, bool weak)
{
    for (enum how how = 0; how < HOW_COUNT; how++)
        if (negotiate_etag_listed(list, tag(core, how), weak))
            return true;
    return false;
}

static struct span if_none_match(const struct call *call)
{
    return request_header_all(call->request, SPAN("If-None-Match"), call->arena);
}

static struct err *check_if_match(const struct call *call, struct core core)
{
    if (lists(request_header_all(call->request, SPAN("If-Match"), call->arena), core, false))
        return NULL;
    return ERR(ERR_PRECONDITION_FAILED, "If-Match: the entity has changed, its tag is now %.*s",
               SPAN_FMT(tag(core, HOW_COMPACT)));
}

struct err *crud_answer_tag(const struct call *call, const struct query_item *item,
                            bool *out_is_known)
{
    struct core core = core_of(call, item);
    struct span shown;

    if (request_header(call->request, SPAN("If-Match")).p != NULL)
        TRY(check_if_match(call, core));
    shown = add_tag(call, core);
    *out_is_known = request_header(call->request, SPAN("If-None-Match")).p != NULL &&
                    negotiate_etag_listed(if_none_match(call), shown, true);
    return NULL;
}

struct err *crud_check_preconditions(const struct call *call, const struct query_item *item)
{
    bool has_wanted = request_header(call->request, SPAN("If-Match")).p != NULL;
    bool has_unwanted = request_header(call->request, SPAN("If-None-Match")).p != NULL;
    struct core core;

    if (!has_wanted && (!has_unwanted || item == NULL))
        return NULL;
    if (item == NULL)
        return ERR(ERR_PRECONDITION_FAILED, "If-Match: '%.*s' has no such entity",
                   SPAN_FMT(call->resource->name));
    core = core_of(call, item);
    if (has_wanted)
        TRY(check_if_match(call, core));
    if (!has_unwanted || !lists(if_none_match(call), core, true))
        return NULL;
    return ERR(ERR_PRECONDITION_FAILED, "If-None-Match: '%.*s' has this entity, its tag is %.*s",
               SPAN_FMT(call->resource->name), SPAN_FMT(tag(core, HOW_COMPACT)));
}
