/* Svc.Admin.Error: stored records of failed operations, written by error_log (service.md, "Error
 * entity"). */
#include "admin/builtin.h"

static const struct span code_names[] = {
#define CODE_AS_NAME(symbol, name, number, status) SPAN_INIT(name),
    ERR_CODES(CODE_AS_NAME)
#undef CODE_AS_NAME
};
static const struct enumeration codes = {"ErrorCode", code_names, ARRAY_LEN(code_names)};

static const struct property properties[] = {
    ID_PROPERTY("ID of the error"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When the error was encountered"),
    READ_ONLY_PROPERTY("ResourceName", TYPE_STRING, 0, "Resource of the request, or <unknown>"),
    READ_ONLY_PROPERTY("Action", TYPE_STRING, 0, "The action that failed: the request's method"),
    {.name = SPAN_INIT("ErrorCode"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .values = &codes,
     .meaning = SPAN_INIT("Error code, see Svc.Admin.ErrorCode")},
    READ_ONLY_PROPERTY("StackTrace", TYPE_STRING, 0, "Places in the server that the error passed"),
    READ_ONLY_PROPERTY("Message", TYPE_STRING, 0, "What was wrong"),
    READ_ONLY_PROPERTY("Uri", TYPE_STRING, 0, "URI of the request in normal form"),
    READ_ONLY_PROPERTY("Headers", TYPE_STRING, 0, "Request headers, secrets masked"),
    READ_ONLY_PROPERTY("Body", TYPE_STRING, 0, "Body of the request"),
    OBJECT_NO_PROPERTY,
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
