/* Svc.OpenApi: what the key may use, as an OpenAPI 3.1 document (docs/specification.md, section
 * 10). It is made for each answer: there is nothing that could be older than a declaration. */
#include "admin/builtin.h"
#include "base/digest.h"
#include "openapi/openapi.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "rest/crud.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/collection.h"
#include "store/store.h"

static struct span tag_of(struct span text, struct arena *a)
{
    enum { TAG_BYTES = 8 };
    uint8_t digest[DIGEST_BYTES];
    struct buf tag;

    digest_long(text, digest);
    buf_init_arena(&tag, a);
    for (size_t i = 0; i < TAG_BYTES; i++)
        buf_printf(&tag, "%s%02x", i == 0 ? "\"" : "", (unsigned)digest[i]);
    buf_add_char(&tag, '"');
    return buf_span(&tag);
}

/* A client that knows it is told so, and nothing more. */
static void answer_tag(struct call *call)
{
    struct response *response = call->response;
    struct span known = request_header_all(call->request, SPAN("If-None-Match"), call->arena);
    struct span tag = tag_of(buf_span(&response->body), call->arena);

    response_add_own_header(response, SPAN("ETag"), tag);
    if (known.p == NULL || !negotiate_etag_listed(known, tag, true))
        return;
    response->status = 304;
    response->content_type = span_of(NULL, 0);
    buf_clear(&response->body);
}

static struct err *get(struct call *call)
{
    struct response *response = call->response;

    crud_shows(call, collection_version(store_collection(call->rest->store, res_resource.name)));
    openapi_write(call, &response->body);
    response->status = 200;
    response->content_type = SPAN("application/json");
    if (!buf_over(&response->body))
        answer_tag(call);
    return NULL;
}

static const struct resource_ops ops = {.get = get};

const struct resource_definition res_openapi = {
    .name = SPAN_INIT("Svc.OpenApi"),
    .description = SPAN_INIT("What the key may use, as an OpenAPI 3.1 document"),
    .kind = KIND_BINARY,
    .content_type = SPAN_INIT("application/json"),
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
