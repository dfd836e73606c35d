#include "testing.h"

#include "access/account.h"

static struct span absent;

START_TEST(a_tenant_comes_before_a_key)
{
    struct accounts *a = accounts_new();
    struct account *tenant = account_ref(a, SPAN("acme"), SPAN("one"));
    struct account *key = account_ref(a, absent, SPAN("acme"));
    struct account *all = account_ref(a, absent, absent);

    ck_assert_ptr_ne(tenant, key);
    ck_assert_ptr_ne(tenant, all);
    ck_assert_ptr_ne(key, all);
    ck_assert_uint_eq(accounts_count(a), 3);
    ck_assert_ptr_eq(account_ref(a, SPAN("acme"), SPAN("two")), tenant);
    ck_assert_ptr_eq(account_ref(a, absent, SPAN("acme")), key);
    ck_assert_ptr_eq(account_ref(a, absent, absent), all);
    for (int i = 0; i < 2; i++) {
        account_unref(a, tenant);
        account_unref(a, key);
        account_unref(a, all);
    }
    accounts_free(a);
}
END_TEST

START_TEST(it_is_there_while_somebody_refers_to_it)
{
    struct accounts *a = accounts_new();
    struct account *one = account_ref(a, SPAN("acme"), absent);

    one->pending = 7;
    ck_assert_uint_eq(account_ref(a, SPAN("acme"), absent)->pending, 7);
    account_unref(a, one);
    ck_assert_uint_eq(accounts_count(a), 1);
    account_unref(a, one);
    ck_assert_uint_eq(accounts_count(a), 0);
    account_unref(a, NULL);
    accounts_free(a);
    accounts_free(NULL);
}
END_TEST

START_TEST(one_is_found_while_it_is_there)
{
    struct accounts *a = accounts_new();
    struct account *one;

    ck_assert_ptr_null(account_find(a, SPAN("acme"), absent));
    one = account_ref(a, SPAN("acme"), absent);
    ck_assert_ptr_eq(account_find(a, SPAN("acme"), SPAN("k")), one);
    ck_assert_ptr_null(account_find(a, absent, SPAN("acme")));
    ck_assert_uint_eq(one->refs, 1);
    account_unref(a, one);
    ck_assert_ptr_null(account_find(a, SPAN("acme"), absent));
    accounts_free(a);
}
END_TEST

START_TEST(names_may_be_long)
{
    struct accounts *a = accounts_new();
    char name[ACCOUNT_NAME_BYTES - 1];
    struct account *one;

    memset(name, 'x', sizeof(name));
    one = account_ref(a, absent, span_of(name, sizeof(name)));
    ck_assert_uint_eq(one->name.n, ACCOUNT_NAME_BYTES);
    account_unref(a, one);
    accounts_free(a);
}
END_TEST

/* A second's in hand, and then as many as the rate says. */
START_TEST(requests_are_taken_from_a_bucket)
{
    struct account account = {.refs = 1};
    uint64_t now_ms = 5000;

    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(account_take_request(&account, 10, now_ms), 0);
    ck_assert_uint_eq(account_take_request(&account, 10, now_ms), 1);
    ck_assert_uint_eq(account_take_request(&account, 10, now_ms + 99), 1);
    ck_assert_uint_eq(account_take_request(&account, 10, now_ms + 100), 0);
    ck_assert_uint_eq(account_take_request(&account, 10, now_ms + 100), 1);
    now_ms += 60000;
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(account_take_request(&account, 10, now_ms), 0);
    ck_assert_uint_eq(account_take_request(&account, 10, now_ms), 1);
}
END_TEST

START_TEST(a_rate_of_one_is_one_a_second)
{
    struct account account = {.refs = 1};

    ck_assert_uint_eq(account_take_request(&account, 1, 0), 0);
    ck_assert_uint_eq(account_take_request(&account, 1, 1), 1);
    ck_assert_uint_eq(account_take_request(&account, 1, 999), 1);
    ck_assert_uint_eq(account_take_request(&account, 1, 1000), 0);
    account.paid_until_ns = 0;
    for (int i = 0; i < 10000000; i += 1000)
        ck_assert_uint_eq(account_take_request(&account, 10000000, 0), 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, one_is_found_while_it_is_there);
    tcase_add_test(tc, names_may_be_long);
    tcase_add_test(tc, requests_are_taken_from_a_bucket);
    tcase_add_test(tc, a_rate_of_one_is_one_a_second);
    tcase_add_test(tc, a_tenant_comes_before_a_key);
    tcase_add_test(tc, it_is_there_while_somebody_refers_to_it);
}
