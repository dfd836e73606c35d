/* Shared by resource.c and resource_declare.c. */
#ifndef SERVICE_RESOURCE_INNER_H
#define SERVICE_RESOURCE_INNER_H

#include "service/resource.h"

/* With nothing but a name; NULL is allowed for resource_free. */
struct resource *resource_new(struct span name);
void resource_free(struct resource *resource);
/* Its name must be free. */
void resources_add(struct resources *r, struct resource *resource);

#endif
