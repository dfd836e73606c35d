/* Requests to a whole service whose loop stands still unless told otherwise: what they change stays
 * on its way to the disk. */
#include "testing.h"

#include "service/declaration.h"
#include "service/service.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[32];
static struct loop loop;
static struct service *service;
static struct response response;
static struct arena arena;

static void make_service(void)
{
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 1,
        .retention = {.errors = 100,
                      .events = 100,
                      .event_days = 1,
                      .idempotency_keys = 100,
                      .idempotency_seconds = 60},
        .fetch = {.connect_timeout_ms = 1000, .max_connections = 1, .max_connections_per_host = 1},
    };
    const struct turn_options turn = {.journal = {.directory = directory}};

    limits_init(&options.limits);
    egress_init(&options.egress);
    access_init(&options.access);
    ck_ok(loop_init(&loop));
    ck_ok(service_new(&loop, &options, &service));
    ck_ok(service_open(service, &turn));
}

static void declare(void)
{
    struct json_doc doc;

    ck_ok(json_parse(SPAN("[{\"Name\":\"Shop.OrderPlaced\",\"Kind\":\"EventResource\"}]"), NULL,
                     &arena, &doc));
    ck_ok(declarations_configure(service, json_root(&doc), ".", false));
}

static void set_up(void)
{
    strcpy(directory, "/tmp/svc-repeat-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    arena_init(&arena);
    response_init(&response, 1u << 20);
    make_service();
    declare();
}

static void remove_directory(void)
{
    DIR *d = opendir(directory);
    struct dirent *entry;

    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL)
        unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(directory);
}

static void tear_down(void)
{
    service_free(service);
    loop_run(&loop);
    loop_done(&loop);
    response_done(&response);
    arena_done(&arena);
    remove_directory();
}

/* Raises an event; returns the answer's body. */
static struct span raise_event(const char *key, const char *body)
{
    const struct request_header header = {SPAN("Idempotency-Key"), span_str(key)};
    const struct request request = {
        .method = SPAN("POST"),
        .target = SPAN("/Svc.Event"),
        .headers = &header,
        .header_count = key == NULL ? 0 : 1,
        .body = span_str(body),
    };

    request_run(service, &request, &response);
    return arena_copy(&arena, buf_span(&response.body));
}

static void commit(void)
{
    uint64_t last = journal_next_serial(turn_journal(service->turn)) - 1;

    while (!turn_is_committed(service->turn, last))
        loop_run_once(&loop);
}

#define EVENT "\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}"

static const struct {
    const char *key, *body;
} forms[] = {
    {NULL, "{\"Id\":\"1\"," EVENT},
    {NULL, "[{\"Id\":\"1\"," EVENT ",{\"Id\":\"2\"," EVENT "]"},
    {"1", "{" EVENT},
    {"1", "[{" EVENT ",{" EVENT "]"},
};

START_TEST(a_repetition_waits_for_the_first_ones_commit)
{
    struct span first = raise_event(forms[_i].key, forms[_i].body);

    ck_assert_int_eq(response.status, 201);
    ck_assert(!turn_is_committed(service->turn, response.serial));
    ck_span_is(raise_event(forms[_i].key, forms[_i].body), first);
    ck_assert_int_eq(response.status, 201);
    ck_assert(!turn_is_committed(service->turn, response.serial));
    commit();
    ck_assert(turn_is_committed(service->turn, response.serial));
    ck_span_is(raise_event(forms[_i].key, forms[_i].body), first);
    ck_assert(turn_is_committed(service->turn, response.serial)); /* nothing new was written */
}
END_TEST

START_TEST(a_conflict_changes_nothing)
{
    uint64_t next_serial;

    raise_event(NULL, "{\"Id\":\"1\"," EVENT);
    next_serial = journal_next_serial(turn_journal(service->turn));
    raise_event(NULL, "[{\"Id\":\"2\"," EVENT ",{ \"Id\":\"1\"," EVENT "]");
    ck_assert_int_eq(response.status, 409);
    ck_assert_int_eq(response.error, ERR_CONFLICT);
    ck_assert_uint_eq(once_count(service->once), 1);
    ck_assert_uint_eq(events_count(service->events), 1);
    /* But for the error that was stored. */
    ck_assert_uint_eq(journal_next_serial(turn_journal(service->turn)), next_serial + 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, a_repetition_waits_for_the_first_ones_commit, 0, ARRAY_LEN(forms));
    tcase_add_test(tc, a_conflict_changes_nothing);
}
