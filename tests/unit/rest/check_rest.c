/* Requests over a store alone: nobody observes what changes, and nothing is built in but
 * declarations. */
#include "testing.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "access/account.h"
#include "admin/builtin.h"
#include "base/limits.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "journal/journal_options.h"
#include "resource/declaration.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/store.h"
#include "store/turn.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[TESTING_PATH_BYTES];
static struct loop loop;
static struct limits limits;
static struct metrics metrics;
static struct store *store;
static struct turn *turn;
static struct rest rest;
static struct response response;

static void begin(void)
{
    const struct journal_options journal = {.directory = directory, .segment_bytes = 1u << 16};

    testing_make_directory(directory);
    ck_ok(loop_init(&loop));
    limits_init(&limits);
    metrics_init(&metrics);
    store = store_new();
    turn = turn_new(&loop, store);
    rest = (struct rest){.loop = &loop,
                         .store = store,
                         .turn = turn,
                         .limits = &limits,
                         .metrics = &metrics,
                         .base_path = SPAN("/")};
    rest_init(&rest);
    dispatch_init(&rest);
    resources_add_builtin(rest.resources, &res_resource, NULL);
    declarations_observe(rest.resources);
    ck_ok(turn_open(turn, &(struct turn_options){.journal = &journal}));
    response_init(&response, 1u << 20);
}

static void end(void)
{
    response_done(&response);
    dispatch_done(&rest);
    rest_done(&rest);
    turn_free(turn);
    store_free(store);
    loop_run(&loop);
    loop_done(&loop);
    testing_remove_directory(directory);
}

static void ask(const char *method, const char *target, const char *body)
{
    const struct request request = {
        .method = span_str(method), .target = span_str(target), .body = span_str(body)};

    dispatch_run(&rest, &request, &response);
}

static void declare(const char *text)
{
    ask("POST", "/Svc.Admin.Resource", text);
    ck_assert_int_eq(response.status, 201);
}

START_TEST(it_works_without_anybody_who_observes)
{
    declare("[{\"Name\":\"A.Person\",\"Kind\":\"EntityResource\",\"Events\":{\"Inserted\":"
            "\"A.Born\"}},{\"Name\":\"A.Born\",\"Kind\":\"EventResource\"}]");
    ask("POST", "/A.Person", "{\"a\":1}");
    ck_assert_int_eq(response.status, 201);
    ask("PATCH", "/A.Person", "{\"a\":2}");
    ck_assert_int_eq(response.status, 200);
    ask("PATCH", "/Svc.Admin.Resource/Name=A.Person", "{\"Methods\":[\"GET\"]}");
    ck_assert_int_eq(response.status, 200);
    ask("GET", "/A.Person/a=2", NULL);
    ck_assert_int_eq(response.status, 200);
    ask("DELETE", "/Svc.Admin.Resource/_/unsafe=true", NULL);
    ck_assert_int_eq(response.status, 200);
}
END_TEST

/* ---- the observer ---- */

static unsigned stored, changing, changed, errors;
static bool refuses;

static struct err *on_stored(void *context, struct call *call, enum method verb, struct span json)
{
    (void)call;
    ck_assert_ptr_eq(context, &stored);
    ck_assert_int_eq(verb, METHOD_POST);
    ck_assert(span_starts(json, SPAN("{\"Id\":\"")));
    stored++;
    return refuses ? ERR(ERR_CONFLICT, "not that") : NULL;
}

static void on_error(void *context)
{
    ck_assert_ptr_eq(context, &stored);
    errors++;
}

static void on_changing(void *context, struct resource *resource)
{
    ck_assert_ptr_eq(context, &stored);
    changing += span_eq(resource->name, SPAN("A.Person"));
}

static struct err *on_changed(void *context, struct arena *a, uint64_t *out_serial)
{
    (void)a;
    ck_assert_ptr_eq(context, &stored);
    changed++;
    *out_serial = 1000;
    return NULL;
}

START_TEST(who_observes_hears_of_each_change)
{
    rest.observer = (struct rest_observer){
        .context = &stored, .entity_stored = on_stored, .error_stored = on_error};
    rest.resources->observer = (struct resources_observer){&stored, on_changing, on_changed};
    stored = changing = changed = errors = 0;
    refuses = false;
    declare("[{\"Name\":\"A.Person\",\"Kind\":\"EntityResource\",\"Events\":{\"Inserted\":"
            "\"A.Born\"}},{\"Name\":\"A.Born\",\"Kind\":\"EventResource\"},"
            "{\"Name\":\"A.Thing\",\"Kind\":\"EntityResource\"}]");
    ck_assert_uint_eq(changing, 0); /* it is new */
    ck_assert_uint_eq(changed, 1);
    ck_assert_uint_eq(response.serial, 1000); /* what the answer waits for */
    ask("POST", "/A.Person", "[{},{}]");
    ck_assert_uint_eq(stored, 2);
    ask("POST", "/A.Thing", "{}");
    ck_assert_int_eq(response.status, 201);
    ck_assert_uint_eq(stored, 2); /* nothing follows from it */
    refuses = true;
    ask("POST", "/A.Person", "{}");
    ck_assert_int_eq(response.error, ERR_CONFLICT);
    ck_assert_uint_eq(errors, 1);
    ask("REPORT", "/A.Person", NULL);
    ck_span_eq(buf_span(&response.body), "[{\"Count\":2}]");
    ask("PATCH", "/Svc.Admin.Resource/Name=A.Person", "{\"Description\":\"x\"}");
    ck_assert_uint_eq(changing, 1);
    ask("DELETE", "/Svc.Admin.Resource/_/unsafe=true", NULL);
    ck_assert_uint_eq(changing, 2);
    ck_assert_uint_eq(changed, 3);
    rest.observer = (struct rest_observer){.context = NULL};
    rest.resources->observer = (struct resources_observer){.context = NULL};
}
END_TEST

START_TEST(keys_take_the_place_of_others)
{
    struct access required;

    for (int i = 0; i < 2; i++) {
        access_init(&required);
        required.required = i == 0;
        api_keys_replace(rest.api_keys, &required);
        access_done(&required); /* it was taken over */
        ask("GET", "/Svc.Admin.Resource", NULL);
        ck_assert_int_eq(response.status, i == 0 ? 401 : 204);
    }
}
END_TEST

START_TEST(work_is_on_an_account)
{
    struct span absent = {NULL, 0};
    struct account *tenant = rest_account_of(&rest, SPAN("acme"), SPAN("one"));
    struct account *owner = rest_account_of(&rest, absent, SPAN("one"));

    ck_span_eq(tenant->name, "tacme");
    ck_span_eq(owner->name, "kone");
    ck_assert_ptr_eq(rest_account_of(&rest, absent, absent), rest.everybody);
    account_unref(rest.accounts, rest.everybody);
    account_unref(rest.accounts, tenant);
    account_unref(rest.accounts, owner);
    ck_assert_uint_eq(accounts_count(rest.accounts), 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, it_works_without_anybody_who_observes);
    tcase_add_test(tc, who_observes_hears_of_each_change);
    tcase_add_test(tc, keys_take_the_place_of_others);
    tcase_add_test(tc, work_is_on_an_account);
}
