#include "testing.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "resource/resource.h"
#include "webhook/webhook.h"
#include "webhook/webhook_owner.h"

static const struct span nobody = {NULL, 0};

START_TEST(an_owner_is_there_while_it_has_webhooks)
{
    struct webhook_owners *o = webhook_owners_new();
    struct webhook_owner *acme = webhook_owner_get(o, SPAN("acme"), SPAN("k"), nobody);
    struct webhook_owner *key = webhook_owner_get(o, nobody, SPAN("k"), SPAN("//k"));
    struct webhook_owner *none = webhook_owner_get(o, nobody, nobody, nobody);
    struct webhook_owner *unknown = webhook_owner_get(o, nobody, SPAN("k"), nobody);
    struct webhook webhook = {.entity = NULL};

    ck_assert(acme != key && key != none && acme != none);
    ck_span_eq(acme->tenant, "acme");
    ck_span_eq(acme->name, "k");
    ck_span_eq(acme->identity, "");
    ck_assert_ptr_ne(unknown, key);
    ck_span_eq(key->identity, "//k");
    ck_assert_ptr_eq(webhook_owner_get(o, SPAN("acme"), SPAN("k"), nobody), acme);
    list_push_back(&acme->webhooks, &webhook.owned);
    webhook_owner_put(o, acme);
    webhook_owner_put(o, key);
    webhook_owner_put(o, unknown);
    webhook_owner_put(o, none);
    ck_assert_uint_eq(webhook_owners_count(o), 1);
    list_remove(&acme->webhooks, &webhook.owned);
    webhook_owner_put(o, acme);
    ck_assert_uint_eq(webhook_owners_count(o), 0);
    webhook_owners_free(o);
    webhook_owners_free(NULL);
}
END_TEST

START_TEST(an_owner_answers_for_what_is_read)
{
    struct span patterns[] = {SPAN_INIT("shop.*")};
    struct access_entry entry = {patterns, 1, METHOD_BIT(METHOD_GET)};
    const struct access_key keys[] = {
        {.name = SPAN_INIT("k"),
         .sha256 = {1},
         .entries = &entry,
         .entry_count = 1,
         .expires_unix_ns = ACCESS_FOREVER},
        {.name = SPAN_INIT("old"), .sha256 = {2}, .expires_unix_ns = 1},
        {.name = SPAN_INIT("t"),
         .tenant = SPAN_INIT("acme"),
         .sha256 = {3},
         .expires_unix_ns = ACCESS_FOREVER},
    };
    struct access access;
    struct access_key *put[ARRAY_LEN(keys)];
    const struct resource shop = {.name = SPAN_INIT("Shop.Paid")}, hr = {.name = SPAN_INIT("Hr.X")};
    const struct webhook_owner key = {.name = SPAN_INIT("k")}, gone = {.name = SPAN_INIT("g")};
    const struct webhook_owner expired = {.name = SPAN_INIT("old")};
    const struct webhook_owner none = {.name = {NULL, 0}};
    const struct webhook_owner same = {.name = SPAN_INIT("k"), .identity = SPAN_INIT("//k")};
    const struct webhook_owner later = {
        .name = SPAN_INIT("k"),
        .identity = SPAN_INIT("01890000-0000-7000-8000-000000000000//k"),
    };
    const struct webhook_owner moved = {
        .tenant = SPAN_INIT("globex"), .name = SPAN_INIT("t"), .identity = SPAN_INIT("/acme/t")};
    const struct webhook_owner other = {.tenant = SPAN_INIT("globex"), .name = SPAN_INIT("t")};

    access_init(&access);
    access.required = true;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        put[i] = access_put(&access, &keys[i]);
    ck_ok(webhook_owner_check(&key, &access, &shop));
    ck_fails(webhook_owner_check(&expired, &access, &shop), ERR_NOT_AUTHORIZED, "has expired");
    ck_fails(webhook_owner_check(&key, &access, &hr), ERR_NOT_AUTHORIZED, "'k' may not GET 'Hr.X'");
    ck_fails(webhook_owner_check(&gone, &access, &shop), ERR_NOT_AUTHORIZED, "no API key 'g'");
    ck_fails(webhook_owner_check(&other, &access, &shop), ERR_NOT_AUTHORIZED, "no API key 't'");
    ck_fails(webhook_owner_check(&moved, &access, &shop), ERR_NOT_AUTHORIZED, "another tenant's");
    ck_ok(webhook_owner_check(&same, &access, &shop));
    ck_fails(webhook_owner_check(&later, &access, &shop), ERR_NOT_AUTHORIZED, "no API key 'k'");
    ck_assert(webhook_owner_is(&same, &access, put[0]));
    ck_assert(webhook_owner_is(&key, &access, put[0]));
    ck_assert(!webhook_owner_is(&later, &access, put[0]));
    ck_assert(!webhook_owner_is(&none, &access, NULL));
    ck_ok(webhook_owner_check(&none, &access, &hr));
    for (int again = 0; again < 2; again++) {
        struct webhook_owner asked = key;

        ck_assert(webhook_owner_reads(&asked, &access, &shop));
        ck_assert(webhook_owner_reads(&asked, &access, &shop));
        ck_assert(!webhook_owner_reads(&asked, &access, &hr));
        ck_assert(webhook_owner_reads(&asked, &access, &shop));
    }
    access.required = false;
    ck_ok(webhook_owner_check(&gone, &access, &hr));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        access_remove(&access, put[i]);
    access_done(&access);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_owner_is_there_while_it_has_webhooks);
    tcase_add_test(tc, an_owner_answers_for_what_is_read);
}
