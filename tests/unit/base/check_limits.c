#include "testing.h"

#include "base/limits.h"

#include <string.h>

static int64_t member_at(const struct limits *l, size_t offset)
{
    int64_t value;

    memcpy(&value, (const char *)l + offset, sizeof(value));
    return value;
}

START_TEST(defaults_are_those_of_the_table)
{
    struct limits l;

    memset(&l, 0xff, sizeof(l));
    limits_init(&l);
    for (size_t i = 0; i < limits_count; i++)
        ck_assert_int_eq(member_at(&l, limits_table[i].offset), limits_table[i].value);
    ck_assert_int_eq(l.body_bytes, 1048576);
    ck_assert_int_eq(l.connections, 10000);
    ck_assert_int_eq(l.memory_bytes, 0);
    ck_assert_int_eq(l.output_bytes, 4194304);
}
END_TEST

START_TEST(every_member_has_its_row)
{
    ck_assert_uint_eq(limits_count * sizeof(int64_t), sizeof(struct limits));
    for (size_t i = 0; i < limits_count; i++)
        ck_assert_uint_eq(limits_table[i].offset, i * sizeof(int64_t));
}
END_TEST

START_TEST(rows_make_sense)
{
    for (size_t i = 0; i < limits_count; i++) {
        const struct limit_info *row = &limits_table[i];

        ck_assert_msg(row->least <= row->value && row->value <= row->most, "%s", row->name.p);
        ck_assert_int_ge(row->least, 0);
        ck_assert(row->unit[0] != '\0' && row->meaning[0] != '\0');
        for (size_t k = 0; k < i; k++)
            ck_assert(!span_ieq(row->name, limits_table[k].name));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, defaults_are_those_of_the_table);
    tcase_add_test(tc, every_member_has_its_row);
    tcase_add_test(tc, rows_make_sense);
}
