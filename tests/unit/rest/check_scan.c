/* What a change that gives way finds, beside others: all that it is looked for when it ends, each
 * once. */
#include "serving.h"

#include "base/rng.h"
#include "dispatch/dispatch.h"
#include "rest/evaluation.h"

#define MESSAGES "/Shop.Message"

enum { ENTITIES = 50, ROUNDS = 30 };

static struct response other;
static bool is_done;

static void begin(void)
{
    set_up();
    response_init(&other, 1u << 20);
    service->limits.scan_entities = 3;
}

static void end(void)
{
    commit();
    response_done(&other);
    tear_down();
}

static const struct header_field json = {SPAN_INIT("Content-Type"), SPAN_INIT("application/json")};

static struct request request_of(const char *method, const char *target, const char *body)
{
    return (struct request){
        .method = span_str(method),
        .target = span_str(target),
        .headers = &json,
        .header_count = 1,
        .body = body == NULL ? (struct span){NULL, 0} : span_str(body),
    };
}

static void run(const char *method, const char *target, const char *body)
{
    const struct request request = request_of(method, target, body);

    dispatch_run(&service->rest, &request, &other);
}

static void insert(void)
{
    char body[64];

    snprintf(body, sizeof(body), "{\"A\":%u,\"B\":0}", (unsigned)rng_below(4));
    run("POST", MESSAGES, body);
    ck_assert_int_eq(other.status, 201);
}

static void disturb(void)
{
    char target[96], body[32];

    snprintf(target, sizeof(target), MESSAGES "/_/unsafe=true&offset=%u&limit=%u",
             (unsigned)rng_below(ENTITIES), 1 + (unsigned)rng_below(5));
    snprintf(body, sizeof(body), "{\"A\":%u}", (unsigned)rng_below(4));
    if (rng_below(4) == 0)
        insert();
    else
        run(rng_below(5) == 0 ? "DELETE" : "PATCH", target, body);
}

static void on_done(void *context)
{
    (void)context;
    is_done = true;
}

/* Returns how many were changed. */
static unsigned change(const char *method, const char *target, const char *body,
                       void (*between)(void))
{
    struct request request = request_of(method, target, body);
    struct evaluation *e;
    unsigned count = 0;

    request.gives_way = true;
    dispatch_run(&service->rest, &request, &response);
    ck_assert(response.gives_way);
    is_done = false;
    e = evaluation_start(&service->rest, &request, on_done, NULL);
    while (!is_done) {
        between();
        loop_wake(&loop);
        loop_run_once(&loop);
    }
    if (evaluation_response(e)->status == 200)
        sscanf(response_header(evaluation_response(e), SPAN("Svc-info")).p, "%u", &count);
    else
        ck_assert_int_eq(evaluation_response(e)->status, 404);
    evaluation_free(e);
    return count;
}

static unsigned count_of(const char *target)
{
    unsigned count = 0;

    run("REPORT", target, NULL);
    buf_add_char(&other.body, '\0');
    ck_assert_int_eq(sscanf(other.body.p, "[{\"Count\":%u", &count), 1);
    return count;
}

START_TEST(all_are_changed_once)
{
    rng_seed((uint64_t)_i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned changed;

        while (collection_count(store_collection(service->store, SPAN("Shop.Message"))) < ENTITIES)
            insert();
        run("PATCH", MESSAGES "/_/unsafe=true", "{\"B\":0}");
        changed = change("PATCH", MESSAGES "/A=1&A<2/unsafe=true", "{\"B\":1}", disturb);
        ck_assert_uint_eq(count_of(MESSAGES "/A=1&B=0"), 0);
        ck_assert_uint_eq(count_of(MESSAGES "/B=1"), changed);
    }
}
END_TEST

START_TEST(all_are_deleted_once)
{
    rng_seed((uint64_t)_i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        while (collection_count(store_collection(service->store, SPAN("Shop.Message"))) < ENTITIES)
            insert();
        change("DELETE", MESSAGES "/A=1/unsafe=true", NULL, disturb);
        ck_assert_uint_eq(count_of(MESSAGES "/A=1"), 0);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, all_are_changed_once, 0, 5);
    tcase_add_loop_test(tc, all_are_deleted_once, 0, 5);
}
