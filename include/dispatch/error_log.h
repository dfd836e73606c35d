/* Svc.Admin.Error: the record of every aborted operation (docs/specification.md, section 5). */
#ifndef DISPATCH_ERROR_LOG_H
#define DISPATCH_ERROR_LOG_H

#include "base/err.h"

struct call;
struct shape;

extern const struct span error_log_resource;
extern const struct shape error_log_shape;

/* Is an error of this kind stored? */
bool error_log_keeps(enum err_code code);
/* Stores it, or on a node that follows has the leader store it, and yields the link for ErrorInfo,
 * `/Svc.Admin.Error/id=...`, in the call's arena; the absent span when it could not be stored
 * (which is logged). `message` is the error's, without secrets. */
struct span error_log_store(struct call *call, const struct err *e, struct span message);

#endif
