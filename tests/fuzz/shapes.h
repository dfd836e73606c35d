/* The shapes that targets, conditions and meta-conditions are read against. */
#ifndef SHAPES_H
#define SHAPES_H

#include "query/shape.h"

/* One declared property of each type, and below that anything but in Dog. */
extern const struct shape shapes_declared;
/* Id is declared, and anything may be there. */
extern const struct shape shapes_dynamic;

#endif
