#include "testing.h"

#include "base/sm.h"

#include <signal.h>

enum door_state { DOOR_OPEN, DOOR_SHUT, DOOR_LOCKED };

static const struct sm_state door_states[] = {
    [DOOR_OPEN] = {"Open", SM_TO(DOOR_SHUT)},
    [DOOR_SHUT] = {"Shut", SM_TO(DOOR_OPEN) | SM_TO(DOOR_LOCKED)},
    [DOOR_LOCKED] = {"Locked", SM_TO(DOOR_SHUT)},
};
static const struct sm_table door = {"door", door_states, ARRAY_LEN(door_states)};

START_TEST(table_decides)
{
    static const bool allowed[3][3] = {{false, true, false}, {true, false, true}, {false, true}};

    for (unsigned from = 0; from < door.count; from++) {
        for (unsigned to = 0; to < door.count; to++)
            ck_assert_int_eq(sm_allows(&door, from, to), allowed[from][to]);
    }
    ck_assert_str_eq(sm_name(&door, DOOR_LOCKED), "Locked");
}
END_TEST

START_TEST(allowed_moves_move)
{
    uint8_t state = DOOR_OPEN;

    sm_move(&door, &state, DOOR_SHUT);
    ck_assert_uint_eq(state, DOOR_SHUT);
    sm_move(&door, &state, DOOR_LOCKED);
    ck_assert_uint_eq(state, DOOR_LOCKED);
}
END_TEST

START_TEST(highest_state_has_a_bit)
{
    ck_assert_uint_eq(SM_TO(31), UINT32_C(0x80000000));
}
END_TEST

START_TEST(forbidden_move_aborts)
{
    uint8_t state = DOOR_OPEN;

    sm_move(&door, &state, DOOR_LOCKED);
}
END_TEST

START_TEST(move_to_nowhere_aborts)
{
    uint8_t state = DOOR_OPEN;

    sm_move(&door, &state, 3);
}
END_TEST

START_TEST(nameless_state_aborts)
{
    sm_name(&door, 3);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, table_decides);
    tcase_add_test(tc, allowed_moves_move);
    tcase_add_test(tc, highest_state_has_a_bit);
    tcase_add_test_raise_signal(tc, forbidden_move_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, move_to_nowhere_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, nameless_state_aborts, SIGABRT);
}
