/* Shared by the files of crud. */
#ifndef SERVICE_CRUD_INNER_H
#define SERVICE_CRUD_INNER_H

#include "service/crud.h"

/* May the call's key see secrets of this resource? */
bool crud_sees_secrets(const struct call *call);
/* The entity's text, in the form that its resource has now: members that are no longer declared are
 * left out, new ones are null. */
struct span crud_text(const struct call *call, const struct entity *e);
/* The text as the caller may see it. */
struct span crud_visible(const struct call *call, struct span json);
/* `/<resource>/...` below the base path: for headers that clients follow as they stand. Svc-pager
 * and ErrorInfo are relative to the base path instead. */
struct span crud_link(const struct call *call, struct span target);
/* If-Match against the entity; ERR_PRECONDITION_FAILED. `e` NULL: there is no entity. */
struct err *crud_check_if_match(const struct call *call, const struct entity *e) MUST_USE;

#endif
