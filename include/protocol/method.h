/* Request methods, in the order that every listing of the service uses (docs/specification.md,
 * section 4). */
#ifndef PROTOCOL_METHOD_H
#define PROTOCOL_METHOD_H

#include "base/macros.h"

struct buf;
struct enumeration;

#define METHODS(X)                                                                                 \
    X(METHOD_GET, "GET")                                                                           \
    X(METHOD_POST, "POST")                                                                         \
    X(METHOD_PATCH, "PATCH")                                                                       \
    X(METHOD_PUT, "PUT")                                                                           \
    X(METHOD_DELETE, "DELETE")                                                                     \
    X(METHOD_REPORT, "REPORT")                                                                     \
    X(METHOD_HEAD, "HEAD")

enum method {
    METHODS(AS_SYMBOL) METHOD_COUNT,
    METHOD_OPTIONS = METHOD_COUNT, /* answered for every resource, listed by none */
    METHOD_OTHER                   /* none of these: 501 */
};

#define METHOD_BIT(m) (1u << (m))
#define METHODS_READ (METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_REPORT) | METHOD_BIT(METHOD_HEAD))
/* Whose requests bring entities. */
#define METHODS_BRING (METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_PUT))
#define METHODS_ALL (METHOD_BIT(METHOD_COUNT) - 1)

extern const struct enumeration method_names;

struct span method_name(enum method m);
/* Of a request: methods are case-sensitive (RFC 9110, section 9.1). */
enum method method_of(struct span received);
/* Of a text that names one: ASCII case folded, among the seven; METHOD_OTHER when it is none. */
enum method method_parse(struct span name);
/* GET brings REPORT and HEAD. */
unsigned method_closure(unsigned methods);
/* `["GET","POST"]`, and `GET, POST` for Allow. */
void method_add_json(struct buf *b, unsigned methods);
void method_add_list(struct buf *b, unsigned methods);

#endif
