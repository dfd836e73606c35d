#include "base/limits.h"

#include "base/macros.h"

const struct limit_info limits_table[] = {
#define LIMIT_AS_INFO(member, name, value, least, most, unit, meaning)                             \
    {SPAN_INIT(name), offsetof(struct limits, member), value, least, most, unit, meaning},
    LIMITS(LIMIT_AS_INFO)
#undef LIMIT_AS_INFO
};

const size_t limits_count = ARRAY_LEN(limits_table);

void limits_init(struct limits *l)
{
#define LIMIT_AS_DEFAULT(member, name, value, least, most, unit, meaning) .member = value,
    *l = (struct limits){LIMITS(LIMIT_AS_DEFAULT)};
#undef LIMIT_AS_DEFAULT
}
