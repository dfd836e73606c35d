/* The built-in resources. A new one is one file, res_<name>.c, and one line here. The order is that
 * in which their collections are told of a replay: what others refer to comes first. */
#ifndef ADMIN_BUILTIN_H
#define ADMIN_BUILTIN_H

#include "rest/resource.h"

/* Rows of their tables of properties. */
#define READ_ONLY_PROPERTY(property_name, property_type, more_flags, text)                         \
    {                                                                                              \
        .name = SPAN_INIT(property_name), .type = property_type,                                   \
        .flags = PROPERTY_READ_ONLY | (more_flags), .meaning = SPAN_INIT(text)                     \
    }
#define ID_PROPERTY(text) READ_ONLY_PROPERTY("Id", TYPE_STRING, PROPERTY_ENTITY, text)
#define OBJECT_NO_PROPERTY                                                                         \
    READ_ONLY_PROPERTY("ObjectNo", TYPE_INTEGER, PROPERTY_ENTITY, "Serial number in the store")

#define BUILTIN_RESOURCES(X)                                                                       \
    X(res_resource)                                                                                \
    X(res_available_resource)                                                                      \
    X(res_aggregator)                                                                              \
    X(res_echo)                                                                                    \
    X(res_event)                                                                                   \
    X(res_error)                                                                                   \
    X(res_error_code)                                                                              \
    X(res_webhook)                                                                                 \
    X(res_webhook_log)                                                                             \
    X(res_delivery)                                                                                \
    X(res_metrics)                                                                                 \
    X(res_health)

#define BUILTIN_AS_EXTERN(definition) extern const struct resource_definition definition;
BUILTIN_RESOURCES(BUILTIN_AS_EXTERN)
#undef BUILTIN_AS_EXTERN

/* Entity and binary resources that the application declares. */
extern const struct resource_ops res_declared_ops;
extern const struct resource_ops res_binary_ops;

#endif
