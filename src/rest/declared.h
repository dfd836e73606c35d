/* What declared resources do their own way: see struct resources. */
#ifndef REST_DECLARED_H
#define REST_DECLARED_H

struct resource_ops;

extern const struct resource_ops declared_entity_ops, declared_binary_ops;

#endif
