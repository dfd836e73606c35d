/* Declares resources in a registry of a test, as a request to Svc.Admin.Resource would. */
#ifndef DECLARING_H
#define DECLARING_H

#include "testing.h"

#include "resource/declaration.h"
#include "resource/resource.h"
#include "store/entity.h"

/* One of them as it is stored. */
struct err *declaring_decode(struct json_value declaration, struct arena *a,
                             struct span *out_json) MUST_USE;
/* `text` is an array of declarations: all of them, or an error and none. */
struct err *declaring(struct resources *resources, const char *text, struct arena *a) MUST_USE;

#endif
