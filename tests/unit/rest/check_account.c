#include "testing.h"

#include "rest/account.h"

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

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_tenant_comes_before_a_key);
    tcase_add_test(tc, it_is_there_while_somebody_refers_to_it);
}
