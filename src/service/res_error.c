/* Svc.Admin.Error: stored records of failed operations, written by error_log (service.md, "Error
 * entity"). */
#include "service/builtin.h"

#define READ_ONLY(property_name, property_type, text)                                              \
    {                                                                                              \
        .name = SPAN_INIT(property_name), .type = property_type, .flags = PROPERTY_READ_ONLY,      \
        .meaning = SPAN_INIT(text)                                                                 \
    }

static const struct property properties[] = {
    {.name = SPAN_INIT("Id"),
     .type = TYPE_STRING,
     .flags = PROPERTY_ENTITY | PROPERTY_READ_ONLY,
     .meaning = SPAN_INIT("ID of the error")},
    READ_ONLY("Time", TYPE_DATETIME, "When the error was encountered"),
    READ_ONLY("ResourceName", TYPE_STRING, "Resource of the request, or <unknown>"),
    READ_ONLY("Action", TYPE_STRING, "The action that failed: the request's method"),
    READ_ONLY("ErrorCode", TYPE_STRING, "Error code, see Svc.Admin.ErrorCode"),
    READ_ONLY("StackTrace", TYPE_STRING, "Places in the server that the error passed"),
    READ_ONLY("Message", TYPE_STRING, "What was wrong"),
    READ_ONLY("Uri", TYPE_STRING, "URI of the request in normal form"),
    READ_ONLY("Headers", TYPE_STRING, "Request headers, secrets masked"),
    READ_ONLY("Body", TYPE_STRING, "Body of the request"),
    {.name = SPAN_INIT("ObjectNo"),
     .type = TYPE_INTEGER,
     .flags = PROPERTY_ENTITY | PROPERTY_READ_ONLY,
     .meaning = SPAN_INIT("Serial number in the store")},
};

static const struct shape shape = {properties, ARRAY_LEN(properties), false};
static const struct resource_ops ops = {.open = NULL};

const struct resource_definition res_error = {
    .name = SPAN_INIT("Svc.Admin.Error"),
    .description = SPAN_INIT("Operations that were aborted because of an error"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
    .is_stored = true,
};
