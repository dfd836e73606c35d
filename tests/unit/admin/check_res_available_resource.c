/* Svc.AvailableResource: what a key sees of what there is. */
#include "asking.h"

static void begin(void)
{
    asking_open(
        "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Description\":\"People\"},"
        "{\"Name\":\"Shop.Archive\",\"Kind\":\"EntityResource\",\"Methods\":[\"GET\"]},"
        "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]");
}

/* `Name: methods` of those that are listed, but for the server's own others. */
static struct span listed(const char *key)
{
    struct span all = SPAN("");

    ask_with(asking_printf("Authorization: apikey %s", key), "GET", "/", NULL);
    ck_status(200);
    for (int i = 0; answered(asking_printf("%d", i)).p != NULL; i++)
        all = arena_printf(&asking.arena, "%.*s%s%s %.*s", SPAN_FMT(all), i > 0 ? "; " : "",
                           answered_text(asking_printf("%d.Name", i)),
                           SPAN_FMT(answered(asking_printf("%d.Methods", i))));
    return all;
}

#define OWN "Svc.AvailableResource [\"GET\",\"REPORT\",\"HEAD\"]"

static const struct {
    const char *allow, *listed;
} keys[] = {
    {"[]", OWN},
    {"[{\"Resources\":[\"Shop.Person\"],\"Methods\":[\"PATCH\",\"POST\"]}]",
     "Shop.Person [\"POST\",\"PATCH\"]; " OWN},
    {"[{\"Resources\":[\"shop.*\"],\"Methods\":[\"GET\",\"DELETE\"]}]",
     "Shop.Archive [\"GET\",\"REPORT\",\"HEAD\"]; "
     "Shop.Person [\"GET\",\"DELETE\",\"REPORT\",\"HEAD\"]; Shop.Placed []; " OWN},
    {"[{\"Resources\":[\"Shop.Placed\"],\"Methods\":[\"GET\"]}]", "Shop.Placed []; " OWN},
    {"[{\"Resources\":[\"Svc.Health\"],\"Methods\":[\"*\"]}]",
     OWN "; Svc.Health [\"GET\",\"HEAD\"]"},
    {"[{\"Resources\":[\"Shop.Person\"],\"Methods\":[]}]", OWN},
};

START_TEST(a_key_sees_what_it_may_use)
{
    asking_add_key("other", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("key", keys[_i].allow);
    ck_span_is(listed("key"), span_str(keys[_i].listed));
}
END_TEST

START_TEST(without_keys_all_is_there_in_order)
{
    struct span before = SPAN("");
    int count = 0;

    ck_asks(200, "GET", "/", NULL);
    for (; answered(asking_printf("%d", count)).p != NULL; count++) {
        struct span name = span_str(answered_text(asking_printf("%d.Name", count)));

        ck_assert_int_lt(span_cmp(before, name), 0);
        before = name;
    }
    ck_assert_int_eq(count, 3 + 21);
    ck_asks(200, "GET", "/_/Name=Shop.Person", NULL);
    ck_body_eq(
        "[{\"Name\":\"Shop.Person\",\"Description\":\"People\",\"Methods\":[\"GET\",\"POST\","
        "\"PATCH\",\"PUT\",\"DELETE\",\"REPORT\",\"HEAD\"],\"Kind\":\"EntityResource\"}]");
}
END_TEST

START_TEST(an_answer_waits_for_the_declarations)
{
    uint64_t serial;

    asking_commit();
    serial = asking_serial();
    ck_asks(201, "POST", "/Svc.Admin.Resource",
            "{\"Name\":\"Shop.New\",\"Kind\":\"EntityResource\"}");
    ck_asks(200, "GET", "/_/Name=Shop.New", NULL);
    ck_assert_uint_eq(asking.answer.serial, serial);
    ck_asks(200, "DELETE", "/Svc.Admin.Resource/Name=Shop.New", NULL);
    ck_asks(204, "GET", "/_/Name=Shop.New", NULL);
    ck_assert_uint_eq(asking.answer.serial, serial + 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, a_key_sees_what_it_may_use, 0, ARRAY_LEN(keys));
    tcase_add_test(tc, without_keys_all_is_there_in_order);
    tcase_add_test(tc, an_answer_waits_for_the_declarations);
}
