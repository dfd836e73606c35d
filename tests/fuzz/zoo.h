/* A few declared resources, for targets that need a registry. */
#ifndef ZOO_H
#define ZOO_H

#include "resource/resource.h"

/* An array, as in the configuration. */
extern const char zoo_declarations[];
/* A registry that holds these, and Svc.Echo. */
void zoo_init(struct resources *resources);

#endif
