#include "sample.h"
#include "testing.h"

#include <stdio.h>

static const struct {
    enum value_type type;
    const char *name;
} types[] = {
    {TYPE_ANY, "any"},       {TYPE_STRING, "string"},   {TYPE_INTEGER, "integer"},
    {TYPE_NUMBER, "number"}, {TYPE_BOOLEAN, "boolean"}, {TYPE_DATETIME, "datetime"},
    {TYPE_OBJECT, "object"}, {TYPE_ARRAY, "array"},
};

START_TEST(type_names)
{
    enum value_type type;

    ck_assert_uint_eq(ARRAY_LEN(types), TYPE_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        ck_span_is(value_type_name(types[i].type), span_str(types[i].name));
        ck_assert(value_type_parse(span_str(types[i].name), &type));
        ck_assert_int_eq(type, types[i].type);
    }
    ck_assert(value_type_parse(SPAN("DateTime"), &type));
    ck_assert_int_eq(type, TYPE_DATETIME);
    ck_assert(!value_type_parse(SPAN("str"), &type));
    ck_assert(!value_type_parse(SPAN("strings"), &type));
    ck_assert(!value_type_parse(SPAN(""), &type));
}
END_TEST

START_TEST(enumeration_values)
{
    ck_span_eq(enumeration_find(&sample_kind, SPAN("Staff")), "Staff");
    ck_span_eq(enumeration_find(&sample_kind, SPAN("gUEST")), "Guest");
    ck_assert_ptr_null(enumeration_find(&sample_kind, SPAN("Staf")).p);
    ck_span_is(sample_kind.values[enumeration_place(&sample_kind, SPAN("gUEST"))], SPAN("Guest"));
    ck_assert_uint_eq(enumeration_place(&sample_kind, SPAN("Staf")), sample_kind.count);
    ck_assert_ptr_null(enumeration_find(&sample_kind, SPAN("")).p);
}
END_TEST

START_TEST(finding_properties)
{
    ck_assert_ptr_eq(shape_find(&sample_person, SPAN("Name")), &sample_person.properties[1]);
    ck_assert_ptr_eq(shape_find(&sample_person, SPAN("OBJECTNO")),
                     &sample_person.properties[sample_person.count - 1]);
    ck_assert_ptr_null(shape_find(&sample_person, SPAN("Nam")));
    ck_assert_ptr_null(shape_find(&sample_person, SPAN("")));
    ck_assert_ptr_null(shape_find(&sample_dynamic, SPAN("Name")));
}
END_TEST

START_TEST(finding_one_of_many)
{
    enum { COUNT = 500, NAME_BYTES = 16 };
    static char names[COUNT][NAME_BYTES], asked[NAME_BYTES];
    static struct property properties[COUNT];
    uint16_t by_name[COUNT];
    struct shape shape = {.properties = properties, .count = COUNT};

    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], NAME_BYTES, "%s%d", i % 3 == 0 ? "Ab" : "x_", i * 7919 % COUNT);
        properties[i].name = span_str(names[i]);
    }
    shape_sort(&shape, by_name);
    shape.by_name = by_name;
    for (int i = 0; i < COUNT; i++) {
        snprintf(asked, NAME_BYTES, "%s%d", i % 3 == 0 ? "aB" : "X_", i * 7919 % COUNT);
        ck_assert_ptr_eq(shape_find(&shape, span_str(asked)), &properties[i]);
        snprintf(asked, NAME_BYTES, "y_%d", i);
        ck_assert_ptr_null(shape_find(&shape, span_str(asked)));
    }
    ck_assert_ptr_null(shape_find(&shape, SPAN("")));
}
END_TEST

START_TEST(nearest_names)
{
    ck_span_eq(shape_nearest(&sample_person, SPAN("Nmae")), "Name");
    ck_span_eq(shape_nearest(&sample_person, SPAN("isactiv")), "IsActive");
    ck_assert_ptr_null(shape_nearest(&sample_person, SPAN("Xylophone")).p);
    ck_assert_ptr_null(shape_nearest(&sample_dynamic, SPAN("Name")).p);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, type_names);
    tcase_add_test(tc, enumeration_values);
    tcase_add_test(tc, finding_properties);
    tcase_add_test(tc, finding_one_of_many);
    tcase_add_test(tc, nearest_names);
}
