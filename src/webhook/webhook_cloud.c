/* What a webhook needs besides to send CloudEvents, and to ask its receiver first
 * (docs/specification.md, section 13). The source of an event that came without one is the
 * configuration's, so that must be there; that it goes later ends deliveries that would need it. */
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "rest/call.h"
#include "webhook/webhook_write.h"
#include "json/json.h"

static struct err *check_format(struct span source, struct call *call, const struct draft *draft)
{
    struct span name = json_string(draft_value(draft, SPAN("Format"), call->arena), call->arena);
    struct json_value headers = draft_value(draft, SPAN("Headers"), call->arena);
    struct json_value type = json_member_fold(headers, SPAN("Content-Type"));
    enum format format = FORMAT_JSON;

    if (!span_starts(name, SPAN("CloudEvents")))
        return NULL;
    if (source.n == 0)
        return ERR(ERR_INVALID_ENTITY,
                   "Format: %.*s needs a source, the configuration's CloudEventsSource, and there "
                   "is none",
                   SPAN_FMT(name));
    if (!json_exists(type))
        return NULL;
    err_free(negotiate_written_type(json_string(type, call->arena), &format));
    if (format == FORMAT_JSON)
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "Format: data in %.*s is JSON, and Headers.Content-Type is '%.*s'", SPAN_FMT(name),
               SPAN_FMT(format_media_types[format]));
}

struct err *webhook_check_cloud(struct span source, struct span origin, struct call *call,
                                const struct draft *draft)
{
    struct json_value verify = draft_value(draft, SPAN("Verify"), call->arena);
    struct json_value destination = draft_value(draft, SPAN("Destination"), call->arena);

    TRY(check_format(source, call, draft));
    if (json_type(verify) != JSON_STRING)
        return NULL;
    if (span_starts(json_string(destination, call->arena), SPAN("/")))
        return ERR(ERR_INVALID_ENTITY, "Verify: a local destination is not asked: it takes an "
                                       "absolute one");
    if (origin.n == 0)
        return ERR(ERR_INVALID_ENTITY,
                   "Verify: receivers are asked in the name of a host, that of the configuration's "
                   "CloudEventsSource, and there is none");
    return NULL;
}
