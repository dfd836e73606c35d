#include "testing.h"

#include "base/limits.h"
#include "base/span.h"

#include <string.h>

static const struct row {
    struct span name;
    int64_t value, least, most;
    const char *unit, *meaning;
} rows[] = {
#define LIMIT_AS_ROW(member, name, value, least, most, unit, meaning)                              \
    {SPAN_INIT(name), value, least, most, unit, meaning},
    LIMITS(LIMIT_AS_ROW)
#undef LIMIT_AS_ROW
};

START_TEST(defaults_are_those_of_the_table)
{
    struct limits l;

    memset(&l, 0xff, sizeof(l));
    limits_init(&l);
#define LIMIT_AS_CHECK(member, name, value, least, most, unit, meaning)                            \
    ck_assert_int_eq(l.member, value);
    LIMITS(LIMIT_AS_CHECK)
#undef LIMIT_AS_CHECK
    ck_assert_int_eq(l.body_bytes, 1048576);
    ck_assert_int_eq(l.connections, 10000);
    ck_assert_int_eq(l.memory_bytes, 0);
    ck_assert_int_eq(l.output_bytes, 4194304);
}
END_TEST

START_TEST(rows_make_sense)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];

        ck_assert_msg(row->least <= row->value && row->value <= row->most, "%s", row->name.p);
        ck_assert_int_ge(row->least, 0);
        ck_assert(row->unit[0] != '\0' && row->meaning[0] != '\0');
        for (size_t k = 0; k < i; k++)
            ck_assert(!span_ieq(row->name, rows[k].name));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, defaults_are_those_of_the_table);
    tcase_add_test(tc, rows_make_sense);
}
