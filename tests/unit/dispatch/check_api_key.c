#include "asking.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "access/account.h"
#include "base/clock.h"
#include "dispatch/api_key.h"
#include "rest/rest.h"
#include "store/collection.h"
#include "store/entity.h"
#include "json/json.h"

#define ADMIN "Authorization: apikey admin"
#define START_S 1800000000 /* at the beginning of an hour */

static size_t told;
static char told_name[128];

static struct err *on_keys_changed(void *context, struct span name, struct arena *a,
                                   uint64_t *out_serial)
{
    (void)context;
    (void)a;
    told++;
    snprintf(told_name, sizeof(told_name), "%.*s", SPAN_FMT(name));
    *out_serial = 1000;
    return NULL;
}

static void begin(void)
{
    clock_fake(INT64_C(1000000000) * START_S, 1000000000);
    asking_open(NULL);
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking.service->rest.observer.keys_changed = on_keys_changed;
    told = 0;
}

static void end(void)
{
    asking.service->rest.observer.keys_changed = NULL;
    asking_close();
    clock_real();
}

/* Makes a key; the header by which it signs in. */
static const char *make(const char *members)
{
    ask_with(ADMIN, "POST", "/ApiKey", asking_printf("{\"AllowAccess\":[],%s}", members));
    ck_status(201);
    return asking_printf("Authorization: apikey %s", answered_text("0.Key"));
}

static void signs_in(const char *header, bool should)
{
    ask_with(header, "GET", "/", NULL);
    ck_status(should ? 200 : 401);
}

static struct access_key *key_of(const char *tenant, const char *name)
{
    return access_find(asking.service->rest.access, span_str(tenant), span_str(name));
}

START_TEST(who_observes_hears_which_key_is_another)
{
    begin();
    make("\"Name\":\"a\"");
    ck_assert_uint_eq(told, 1);
    ck_assert_str_eq(told_name, "a");
    ck_assert_uint_eq(asking.answer.serial, 1000); /* what the answer waits for */
    ask_with(ADMIN, "PATCH", "/ApiKey/Name=a", "{\"ExpiresAt\":\"2030-01-01\"}");
    ck_assert_str_eq(told_name, "a");
    ask_with(ADMIN, "PATCH", "/ApiKey/Name=a", "{\"Name\":\"b\"}");
    ck_assert_str_eq(told_name, ""); /* it was two names' */
    ask_with(ADMIN, "DELETE", "/ApiKey/Name=b", NULL);
    ck_status(200);
    ck_assert_uint_eq(told, 4);
    ck_assert_str_eq(told_name, "b");
    ask_with(ADMIN, "POST", "/ApiKey", "{\"Name\":\"b\"}");
    ck_status(400);
    ask_with(ADMIN, "DELETE", "/ApiKey/Name=b", NULL);
    ck_assert_uint_eq(told, 4);
    end();
}
END_TEST

START_TEST(a_key_that_expires_is_told_of_when_it_does)
{
    const char *one, *other;

    begin();
    one = make(asking_printf("\"Name\":\"one\",\"ExpiresAt\":\"%s\"", "2027-01-15T08:00:10Z"));
    other = make(asking_printf("\"Name\":\"other\",\"ExpiresAt\":\"%s\"", "2027-01-15T08:00:20Z"));
    make("\"Name\":\"third\",\"ExpiresAt\":\"2027-01-15T08:00:20Z\"");
    told = 0;
    clock_advance(UINT64_C(9999000000));
    asking_turn();
    ck_assert_uint_eq(told, 0);
    signs_in(one, true);
    clock_advance(2000000);
    asking_turn();
    ck_assert_uint_eq(told, 1);
    ck_assert_str_eq(told_name, "one");
    signs_in(one, false);
    signs_in(other, true);
    clock_advance(UINT64_C(10000000000));
    asking_turn();
    ck_assert_uint_eq(told, 2);
    ck_assert_str_eq(told_name, ""); /* two of them */
    signs_in(other, false);
    end();
}
END_TEST

START_TEST(a_key_is_on_the_account_of_the_one_that_made_it)
{
    const char *maker;
    struct account *account;

    begin();
    maker = make("\"Name\":\"maker\"");
    ask_with(ADMIN, "PATCH", "/ApiKey/Name=maker",
             "{\"AllowAccess\":[{\"Resources\":[\"Svc.Admin.ApiKey\"],\"Methods\":[\"POST\"]}]}");
    ask_with(maker, "POST", "/ApiKey", "{\"Name\":\"child\",\"AllowAccess\":[]}");
    ck_status(201);
    make("\"Name\":\"tenant\",\"Tenant\":\"acme\"");
    ck_span_eq(key_of(NULL, "maker")->account->name, "kadmin");
    ck_span_eq(key_of(NULL, "child")->account->name, "kadmin");
    ck_span_eq(key_of("acme", "tenant")->account->name, "tacme");
    account = rest_account_of(&asking.service->rest, span_of(NULL, 0), SPAN("child"));
    ck_span_eq(account->name, "kadmin");
    ck_assert_ptr_eq(rest_find_account(&asking.service->rest, span_of(NULL, 0), SPAN("maker")),
                     account);
    account_unref(asking.service->rest.accounts, account);
    asking_reload();
    ck_span_eq(key_of(NULL, "child")->account->name, "kadmin");
    end();
}
END_TEST

static struct span last_used(const char *name)
{
    ask_with(ADMIN, "GET", asking_printf("/ApiKey/Name=%s", name), NULL);
    ck_status(200);
    return answered("0.LastUsedTime");
}

START_TEST(uses_are_noted_once_an_hour_and_written_a_minute_later)
{
    const char *key;
    uint64_t serial;

    begin();
    key = make("\"Name\":\"a\"");
    asking_commit();
    clock_advance(UINT64_C(1800000000000)); /* half past */
    asking_turn();
    serial = asking_serial();
    for (int i = 0; i < 5; i++)
        signs_in(key, true);
    ck_assert_uint_eq(asking_serial(), serial);
    clock_advance(UINT64_C(59000000000));
    asking_turn();
    ck_assert_uint_eq(asking_serial(), serial);
    clock_advance(UINT64_C(1000000000));
    asking_turn();
    ck_assert_uint_eq(asking_serial(), serial + 1);
    ck_span_eq(last_used("a"), "\"2027-01-15T08:00:00.0000000Z\"");
    signs_in(key, true);
    api_keys_write_uses(asking.service->rest.api_keys);
    ck_assert_uint_eq(asking_serial(), serial + 1); /* it is the same hour */
    clock_advance(UINT64_C(1800000000000));
    asking_turn();
    signs_in(key, true);
    api_keys_write_uses(asking.service->rest.api_keys);
    ck_assert_uint_eq(asking_serial(), serial + 2);
    ck_span_eq(last_used("a"), "\"2027-01-15T09:00:00.0000000Z\"");
    asking_commit();
    asking_reload();
    ck_assert_int_eq(key_of(NULL, "a")->used_until_unix_s, 0);
    end();
}
END_TEST

/* More than are written in one change. */
START_TEST(many_uses_are_written_in_several_changes)
{
    enum { KEYS = 600 };
    const char *keys[KEYS];
    uint64_t serial;

    begin();
    for (int i = 0; i < KEYS; i++)
        keys[i] = make(asking_printf("\"Name\":\"k%d\"", i));
    for (int i = 0; i < KEYS; i++)
        signs_in(keys[i], true);
    asking_commit();
    serial = asking_serial();
    clock_advance(UINT64_C(60000000000));
    for (int i = 0; i < 3; i++) {
        asking_turn();
        asking_commit();
        clock_advance(20000000);
    }
    ck_assert_uint_eq(asking_serial(), serial + KEYS);
    end();
}
END_TEST

/* A request that has begun may go on with it. */
START_TEST(a_key_that_goes_is_kept_while_it_is_used)
{
    struct access_key *key;

    begin();
    make("\"Name\":\"a\"");
    key = access_key_ref(key_of(NULL, "a"));
    ask_with(ADMIN, "DELETE", "/ApiKey/Name=a", NULL);
    ck_status(200);
    ck_assert_ptr_null(key_of(NULL, "a"));
    ck_assert_ptr_null(key->stored);
    ck_span_eq(key->name, "a");
    api_key_note_use(asking.service->rest.api_keys, key); /* which nobody wants to know */
    access_key_unref(asking.service->rest.access, key);
    end();
}
END_TEST

static void take_over(const char *keys)
{
    struct access access;
    struct json_doc doc;

    access_init(&access);
    access.required = true;
    ck_ok(json_parse(span_str(keys), NULL, &asking.arena, &doc));
    for (struct json_value v = json_first(json_root(&doc)); json_exists(v);
         v = json_next(json_root(&doc), v))
        ck_ok(access_add(&access, v, &asking.arena));
    ck_ok(access_check_beside(asking.service->rest.access, &access));
    api_keys_replace(asking.service->rest.api_keys, &access);
}

/* SHA-256 of "admin" and "beta". */
#define SHA_ADMIN "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918"
#define SHA_BETA "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"
#define THE_ADMIN                                                                                  \
    "{\"Name\":\"admin\",\"KeySha256\":\"" SHA_ADMIN                                               \
    "\",\"AllowAccess\":[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]}"
#define BETA(access)                                                                               \
    "{\"Name\":\"beta\",\"KeySha256\":\"" SHA_BETA "\",\"Tenant\":\"t\",\"AllowAccess\":" access "}"

START_TEST(the_configurations_keys_are_listed)
{
    struct span id;

    begin();
    take_over("[" THE_ADMIN "," BETA("[]") "]");
    ck_assert_uint_eq(told, 1);
    ck_assert_str_eq(told_name, "");
    ck_assert_uint_eq(asking_count("Svc.Admin.ApiKey"), 2);
    ask_with(ADMIN, "GET", "/ApiKey/Name=beta", NULL);
    ck_member_eq("0.Tenant", "\"t\"");
    ck_member_eq("0.AllowAccess", "[]");
    id = arena_copy(&asking.arena, answered("0.Id"));
    ck_assert(api_key_is_configured(
        api_key_find(asking.service->rest.api_keys, span_sub(id, 1, id.n - 1))));
    signs_in("Authorization: apikey beta", true);
    api_keys_write_uses(asking.service->rest.api_keys);
    take_over("[" THE_ADMIN "," BETA("[{\"Resources\":[\"A.B\"],\"Methods\":[\"GET\"]}]") "]");
    ask_with(ADMIN, "GET", "/ApiKey/Name=beta", NULL);
    ck_span_is(answered("0.Id"), id);
    ck_member_eq("0.AllowAccess", "[{\"Resources\":[\"A.B\"],\"Methods\":[\"GET\"]}]");
    ck_member_eq("0.LastUsedTime", "\"2027-01-15T08:00:00.0000000Z\"");
    take_over("[" THE_ADMIN "]");
    ck_assert_uint_eq(asking_count("Svc.Admin.ApiKey"), 1);
    signs_in("Authorization: apikey beta", false);
    asking_add_key("other", "[]");
    take_over("[" THE_ADMIN "]");
    ck_assert_uint_eq(access_count(asking.service->rest.access), 1);
    take_over("[]"); /* it is closed and opened without any */
    ck_assert_uint_eq(asking_count("Svc.Admin.ApiKey"), 0);
    end();
}
END_TEST

static const struct {
    const char *text;
    int64_t unix_ns; /* -1: it is none */
} times[] = {
    {"2027-01-15T08:00:00Z", INT64_C(1800000000000000000)},
    {"1970-01-01T00:00:00.5Z", 500000000},
    {"0001-01-01", 0},
    {"1969-12-31T23:59:59Z", 0},
    {"9999-12-31", INT64_C(9223372035000000000)},
    {"soon", -1},
    {"", -1},
};

START_TEST(a_time_is_read_as_far_as_it_goes)
{
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        int64_t unix_ns = -1;

        ck_assert(api_key_time(span_str(times[i].text), &unix_ns) == (times[i].unix_ns >= 0));
        ck_assert_int_eq(unix_ns, times[i].unix_ns);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, who_observes_hears_which_key_is_another);
    tcase_add_test(tc, a_key_that_expires_is_told_of_when_it_does);
    tcase_add_test(tc, a_key_is_on_the_account_of_the_one_that_made_it);
    tcase_add_test(tc, uses_are_noted_once_an_hour_and_written_a_minute_later);
    tcase_add_test(tc, many_uses_are_written_in_several_changes);
    tcase_add_test(tc, a_key_that_goes_is_kept_while_it_is_used);
    tcase_add_test(tc, the_configurations_keys_are_listed);
    tcase_add_test(tc, a_time_is_read_as_far_as_it_goes);
}
