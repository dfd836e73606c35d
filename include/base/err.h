/* Errors. A function that can fail returns `struct err *`, NULL on success; the compiler makes
 * the caller look. An error carries its ErrorCode, its message and the places it passed, innermost
 * first: that chain is Error.StackTrace (docs/specification.md, section 5).
 *
 *     struct err *thing_do(struct span input, struct thing **out_thing) MUST_USE;
 *
 *     TRY(thing_do(input, &thing));              pass it on
 *     return ERR(ERR_UNKNOWN_ENTITY, "...");     make one
 *
 * Ownership: whoever receives an error passes it on, or frees it with err_free. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/buf.h"
#include "base/macros.h"
#include "base/span.h"

/* symbol, ErrorCode name, its number, HTTP status (docs/specification.md, section 5). Rows of one
 * number are one ErrorCode that means another status in another place: the first is the one listed.
 */
#define ERR_CODES(X)                                                                               \
    X(ERR_NO_ERROR, "NoError", -1, 200)                                                            \
    X(ERR_UNKNOWN, "Unknown", 0, 500)                                                              \
    X(ERR_INVALID_URI_SYNTAX, "InvalidUriSyntax", 1, 400)                                          \
    X(ERR_INVALID_META_VALUE, "InvalidMetaConditionValueType", 2, 400)                             \
    X(ERR_INVALID_META_OPERATOR, "InvalidMetaConditionOperator", 3, 400)                           \
    X(ERR_INVALID_META_SYNTAX, "InvalidMetaConditionSyntax", 4, 400)                               \
    X(ERR_INVALID_META_KEY, "InvalidMetaConditionKey", 5, 400)                                     \
    X(ERR_INVALID_CONDITION_SYNTAX, "InvalidConditionSyntax", 6, 400)                              \
    X(ERR_INVALID_CONDITION_OPERATOR, "InvalidConditionOperator", 7, 400)                          \
    X(ERR_INVALID_EVENT_SELECTOR, "InvalidEventSelector", 8, 400)                                  \
    X(ERR_INVALID_CONDITION_VALUE, "InvalidConditionValueType", 9, 400)                            \
    X(ERR_FAILED_JSON, "FailedJsonDeserialization", 10, 400)                                       \
    X(ERR_DATA_SOURCE_FORMAT, "DataSourceFormat", 12, 400)                                         \
    X(ERR_NO_DATA_SOURCE, "NoDataSource", 13, 400)                                                 \
    X(ERR_UNSUPPORTED_CONTENT, "UnsupportedContent", 14, 415)                                      \
    X(ERR_UNSUPPORTED_CODING, "UnsupportedContent", 14, 501)                                       \
    X(ERR_NOT_ACCEPTABLE, "NotAcceptable", 16, 406)                                                \
    X(ERR_INVALID_ENUM_VALUE, "InvalidEnumValue", 19, 400)                                         \
    X(ERR_UNKNOWN_RESOURCE, "UnknownResource", 100, 404)                                           \
    X(ERR_AMBIGUOUS_RESOURCE, "AmbiguousResource", 102, 404)                                       \
    X(ERR_AMBIGUOUS_MATCH, "AmbiguousMatch", 103, 400)                                             \
    X(ERR_INVALID_ENTITY, "InvalidResourceEntity", 104, 400)                                       \
    X(ERR_WRONG_RESOURCE_KIND, "WrongResourceKind", 108, 404)                                      \
    X(ERR_WRONG_SELECTOR_KIND, "WrongResourceKind", 108, 400)                                      \
    X(ERR_UNKNOWN_PROPERTY, "UnknownProperty", 110, 404)                                           \
    X(ERR_UNKNOWN_MEMBER, "UnknownProperty", 110, 400)                                             \
    X(ERR_UNKNOWN_ENTITY, "UnknownEntity", 114, 404)                                               \
    X(ERR_CONFLICT, "Conflict", 115, 409)                                                          \
    X(ERR_PRECONDITION_FAILED, "PreconditionFailed", 116, 412)                                     \
    X(ERR_PAYLOAD_TOO_LARGE, "PayloadTooLarge", 117, 413)                                          \
    X(ERR_TOO_MANY_REQUESTS, "TooManyRequests", 118, 429)                                          \
    X(ERR_OVERLOADED, "Overloaded", 119, 503)                                                      \
    X(ERR_REQUEST_TOO_COSTLY, "RequestTooCostly", 120, 400)                                        \
    X(ERR_NO_LEADER, "NoLeader", 121, 503)                                                         \
    X(ERR_REQUEST_TIMEOUT, "RequestTimeout", 122, 408)                                             \
    X(ERR_URI_TOO_LONG, "UriTooLong", 123, 414)                                                    \
    X(ERR_EXPECTATION_FAILED, "ExpectationFailed", 124, 417)                                       \
    X(ERR_HEADERS_TOO_LARGE, "HeadersTooLarge", 125, 431)                                          \
    X(ERR_UNKNOWN_METHOD, "UnknownMethod", 126, 501)                                               \
    X(ERR_HTTP_VERSION, "HttpVersionNotSupported", 127, 505)                                       \
    X(ERR_NOT_SIGNED_IN, "NotSignedIn", 210, 401)                                                  \
    X(ERR_NOT_AUTHORIZED, "NotAuthorized", 211, 403)                                               \
    X(ERR_METHOD_NOT_ALLOWED, "MethodNotAllowed", 214, 405)                                        \
    X(ERR_STORAGE_FAILURE, "StorageFailure", 300, 507)                                             \
    X(ERR_INFINITE_LOOP, "InfiniteLoopDetected", 404, 508)

enum err_code {
    ERR_CODES(AS_SYMBOL) ERR_CODE_COUNT,
    ERR_GIVES_WAY /* no ErrorCode, for it is never answered: see budget.h */
};

struct err_info {
    struct span name;
    int number;
    int status;
};

const struct err_info *err_info(enum err_code code);
/* Is it the ErrorCode of the row before it, in another place? */
bool err_repeats(enum err_code code);

struct err;

/* fmt and arguments make the message. Callers use the macro. */
struct err *err_make(enum err_code code, const char *function, const char *file, int line,
                     const char *fmt, ...) PRINTF_LIKE(5, 6) MUST_USE NEVER_NULL;
/* gcc's analyzer believes no NEVER_NULL of a function that it does not see. */
static inline NEVER_NULL struct err *err_there(struct err *e)
{
    if (e == NULL)
        __builtin_unreachable();
    return e;
}
#define ERR(code, ...) err_there(err_make((code), __func__, __FILE__, __LINE__, __VA_ARGS__))

/* Notes that e passed through a place, and returns it. */
struct err *err_pass(struct err *e, const char *function, const char *file,
                     int line) MUST_USE NEVER_NULL;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        struct err *try_err_ = (call);                                                             \
        if (try_err_ != NULL)                                                                      \
            return err_pass(try_err_, __func__, __FILE__, __LINE__);                               \
    } while (0)

/* For functions with a cleanup label: sets `err_variable` and jumps. */
#define TRY_GOTO(err_variable, call, label)                                                        \
    do {                                                                                           \
        struct err *try_err_ = (call);                                                             \
        if (try_err_ != NULL) {                                                                    \
            (err_variable) = err_pass(try_err_, __func__, __FILE__, __LINE__);                     \
            goto label;                                                                            \
        }                                                                                          \
    } while (0)

/* Puts text in front of the message: "Headers: " + message. Returns e, which may have moved. */
struct err *err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_USE NEVER_NULL;

/* Another code for the same message and places. Returns e. */
struct err *err_recode(struct err *e, enum err_code code) MUST_USE NEVER_NULL;

enum err_code err_code(const struct err *e);
/* Valid UTF-8 whatever the arguments were (bad bytes become U+FFFD), cut at 10 000 characters; as
 * long as e lives and is not prefixed. */
struct span err_message(const struct err *e);
/* `at <function> (<file>:<line>)` per line, innermost first; file without the source root. The last
 * line is not ended. After 32 places no more are noted. */
void err_add_trace(const struct err *e, struct buf *b);
/* Seconds for the Retry-After header; 0: none. Returns e. */
struct err *err_set_retry_after(struct err *e, unsigned seconds) NEVER_NULL;
unsigned err_retry_after(const struct err *e);
/* NULL is allowed. */
void err_free(struct err *e);

#endif
