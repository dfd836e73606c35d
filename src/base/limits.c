/* The defaults, out of the table. */
#include "base/limits.h"

void limits_init(struct limits *l)
{
#define LIMIT_AS_DEFAULT(member, name, value, least, most, unit, meaning) .member = value,
    *l = (struct limits){LIMITS(LIMIT_AS_DEFAULT)};
#undef LIMIT_AS_DEFAULT
}
