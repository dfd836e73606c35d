/* Requests that give way, beside changes: what they answer is what the same request answers that
 * does not give way: one that reads, when its fiber begins; one that writes, when it ends. */
#include "serving.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/rng.h"
#include "rest/evaluation.h"
#include "store/change.h"
#include "store/turn.h"

#define PEOPLE "Shop.Person"

enum { SLICE = 7, ENTITIES = 60, ROUNDS = 20 };

static struct response plain;    /* of requests that do not give way */
static struct response expected; /* of the same request, which does not give way */
static bool is_done;
static struct evaluation *given_way; /* the one that was answered last */
static struct response *answer;

/* ---- the service ---- */

static const char *const declarations[] = {
    "[{\"Name\":\"" PEOPLE "\",\"Kind\":\"EntityResource\",\"Properties\":["
    "{\"Name\":\"Name\",\"Type\":\"string\"},{\"Name\":\"Age\",\"Type\":\"integer\"}]}]",
    "[{\"Name\":\"" PEOPLE "\",\"Kind\":\"EntityResource\",\"Properties\":["
    "{\"Name\":\"Age\",\"Type\":\"integer\"},{\"Name\":\"Name\",\"Type\":\"string\"}]}]",
    "[{\"Name\":\"" PEOPLE "\",\"Kind\":\"EntityResource\",\"Indexes\":[\"Age\"],\"Properties\":["
    "{\"Name\":\"Name\",\"Type\":\"string\"},{\"Name\":\"Age\",\"Type\":\"integer\"}]}]",
};

static void declare_people(size_t which)
{
    struct json_doc doc;

    ck_ok(json_parse(span_str(declarations[which]), NULL, &arena, &doc));
    ck_ok(declarations_configure(&service->rest, json_root(&doc), ".", false));
}

static void begin(void)
{
    clock_fake(INT64_C(1700000000000000000), 1);
    set_up();
    response_init(&plain, 1u << 20);
    response_init(&expected, 1u << 20);
    service->limits.scan_entities = SLICE;
    declare_people(0);
    is_done = false;
}

static void end(void)
{
    commit();
    evaluation_free(TAKE(given_way));
    response_done(&plain);
    response_done(&expected);
    tear_down();
    clock_real();
}

/* ---- requests ---- */

static const struct request_header json = {SPAN_INIT("Content-Type"),
                                           SPAN_INIT("application/json")};

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

    request_run(&service->rest, &request, &plain);
    ck_assert(!plain.gives_way);
}

static void insert(void)
{
    char body[64];

    snprintf(body, sizeof(body), "{\"Name\":\"n%u\",\"Age\":%u}", (unsigned)rng_below(8),
             (unsigned)rng_below(6));
    run("POST", "/" PEOPLE, body);
    ck_assert_int_eq(plain.status, 201);
}

/* Some of those that have a certain name, one of them or all. */
static void change(const char *method, const char *body)
{
    char target[80];

    snprintf(target, sizeof(target), "/" PEOPLE "/Name=n%u/unsafe=true&offset=%u%s",
             (unsigned)rng_below(8), (unsigned)rng_below(4), rng_below(4) > 0 ? "&limit=1" : "");
    run(method, target, body);
}

static void disturb(void)
{
    static const char *const bodies[] = {"{\"Age\":0}", "{\"Age\":3}", "{\"Name\":\"n0\"}",
                                         "{\"Name\":null}"};

    switch (rng_below(4)) {
    case 0:
        change("DELETE", NULL);
        break;
    case 1:
        insert();
        break;
    default:
        change("PATCH", bodies[rng_below(ARRAY_LEN(bodies))]);
        break;
    }
}

static void on_done(void *context)
{
    (void)context;
    is_done = true;
}

static void turn_loop(void)
{
    loop_wake(&loop);
    loop_run_once(&loop);
}

static void wait_for_end(void (*between)(void))
{
    for (unsigned turns = 0; !is_done; turns++) {
        ck_assert_uint_lt(turns, 1000);
        turn_loop();
        if (between != NULL && !is_done)
            between();
    }
}

/* Evaluates it until it is answered; returns whether it gave way. `at_once`: when it has begun to,
 * and nothing has changed yet. The answer is in *answer then. */
static unsigned run_giving_way(struct request *request, void (*at_once)(void),
                               void (*between)(void))
{
    evaluation_free(TAKE(given_way));
    request->gives_way = true;
    request_run(&service->rest, request, &response);
    answer = &response;
    if (!response.gives_way) {
        if (at_once != NULL)
            at_once();
        return 0;
    }
    is_done = false;
    given_way = evaluation_start(&service->rest, request, on_done, NULL);
    if (at_once != NULL)
        at_once();
    wait_for_end(between);
    answer = evaluation_response(given_way);
    return 1;
}

static void check_same_answer(void)
{
    ck_assert_int_eq(answer->status, expected.status);
    ck_assert_int_eq(answer->error, expected.error);
    ck_span_is(buf_span(&answer->body), buf_span(&expected.body));
    ck_assert_uint_eq(answer->header_count, expected.header_count);
    for (size_t i = 0; i < expected.header_count; i++) {
        ck_span_is(answer->headers[i].name, expected.headers[i].name);
        ck_span_is(answer->headers[i].value, expected.headers[i].value);
    }
}

/* ---- answers ---- */

static const char *const reads[] = {
    "/" PEOPLE "/Age=3",
    "/" PEOPLE "/Age>2&Name!=n0",
    "/" PEOPLE "/Age<9",
    "/" PEOPLE "/Age=77",
    "/" PEOPLE "/Age=3/limit=2",
    "/" PEOPLE "/Age=3/limit=2&offset=3",
    "/" PEOPLE "/Age>1/limit=0",
    "/" PEOPLE "/Age>1/offset=-3",
    "/" PEOPLE "/Age>1/offset=-6&limit=2",
    "/" PEOPLE "/Age>1/order_desc=Name&limit=4",
    "/" PEOPLE "/Age>1/select=Name&distinct=true",
    "/" PEOPLE "/Age>1/select=Name&distinct=true&limit=3",
    "/" PEOPLE "/Age>1/select=Name&distinct=true&limit=20",
    "/" PEOPLE "/Age>1/select=Name&distinct=true&search=n1",
    "/" PEOPLE "/Age>1/select=Name&distinct=true&search=3,Age",
    "/" PEOPLE "/_/search=n1",
    "/" PEOPLE "/_/search=n1,Name&limit=3",
    "/" PEOPLE "/_/search_regex=n[1-3]&rename=Name-%3ETitle",
    "/" PEOPLE "/Age=3/search_regex=n[1-3],Name&order_asc=Name",
    "/" PEOPLE "/Age=3&Name=n1",
    "/" PEOPLE "/Age=3/limit=12",
    "/" PEOPLE "/Age>1/limit=9&offset=14",
    "/" PEOPLE "/Age<4/offset=11",
    "/" PEOPLE "/ObjectNo>30&Age!=2/limit=25",
};

static void insert_many(void)
{
    for (unsigned i = 0; i < ENTITIES; i++)
        insert();
}

static const struct request *asked;

static void run_asked(void)
{
    struct request request = *asked;

    request.gives_way = false;
    request_run(&service->rest, &request, &expected);
}

static void check_read(const char *method, const char *target, void (*between)(void))
{
    struct request request = request_of(method, target, NULL);

    asked = &request;
    run_giving_way(&request, run_asked, between);
    check_same_answer();
    ck_assert_uint_eq(answer->serial, expected.serial);
    ck_assert_uint_eq(evaluations_count(service->rest.evaluations), 0);
    evaluation_free(TAKE(given_way));
}

START_TEST(answers_are_those_of_one_turn)
{
    insert_many();
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        check_read("GET", reads[i], NULL);
        check_read("REPORT", reads[i], NULL);
        check_read("HEAD", reads[i], NULL);
    }
}
END_TEST

START_TEST(changes_meanwhile_are_not_seen)
{
    rng_seed((uint64_t)_i);
    insert_many();
    for (unsigned round = 0; round < ROUNDS; round++)
        check_read(round % 3 == 0 ? "REPORT" : "GET", reads[rng_below(ARRAY_LEN(reads))], disturb);
}
END_TEST

/* As the cleaner does it: the record is newer then, the entity is not. */
static void move_oldest(void)
{
    struct change change;
    uint64_t serial;

    change_init(&change, service->turn, &arena);
    ck_ok(store_move(service->store, store_oldest(service->store), &change));
    ck_ok(turn_apply(service->turn, &change, &serial));
    change_done(&change);
}

/* In and out of what is looked for, where the scan has been and where it has not, and what it comes
 * to next. */
static void disturb_anything(void)
{
    static const char *const whole[] = {"{\"Age\":1}", "{\"Age\":3}", "{\"Name\":\"n2\"}"};
    char target[80];
    unsigned place = (unsigned)rng_below(ENTITIES);

    snprintf(target, sizeof(target), "/" PEOPLE "/_/unsafe=true&offset=%u&limit=%u", place,
             1 + (unsigned)rng_below(9));
    switch (rng_below(6)) {
    case 0:
        run("PATCH", target, whole[rng_below(ARRAY_LEN(whole))]);
        break;
    case 1:
        run("DELETE", target, NULL);
        break;
    case 2:
        for (unsigned i = (unsigned)rng_below(9); i > 0; i--)
            insert();
        break;
    case 3:
        run("POST", "/Shop.Message", "{\"Age\":3}");
        move_oldest();
        break;
    default:
        disturb();
        break;
    }
}

static void disturb_often(void)
{
    for (uint64_t i = rng_below(8); i > 0; i--)
        disturb_anything();
}

START_TEST(whatever_happens_answers_are_those_of_the_first_turn)
{
    rng_seed((uint64_t)(1000 + _i));
    for (unsigned round = 0; round < 10 * ROUNDS; round++) {
        service->limits.scan_entities = 1 + (int64_t)rng_below(2 * SLICE);
        while (collection_count(store_collection(service->store, SPAN(PEOPLE))) < ENTITIES)
            insert();
        check_read(rng_below(4) == 0 ? "REPORT" : "GET", reads[rng_below(ARRAY_LEN(reads))],
                   rng_below(3) == 0 ? disturb : disturb_often);
    }
}
END_TEST

static void change_all(void)
{
    static const char *const ages[] = {"{\"Age\":2}", "{\"Age\":3}"};

    run("PATCH", "/" PEOPLE "/_/unsafe=true", ages[rng_below(ARRAY_LEN(ages))]);
    insert();
}

static void insert_some(void)
{
    for (unsigned i = 0; i < 5; i++)
        insert();
}

/* Each turn changes or inserts more than a slice begins with. */
START_TEST(no_writer_keeps_a_read_from_its_end)
{
    void (*const writers[])(void) = {change_all, insert_some};

    insert_many();
    service->limits.scan_entities = 1;
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        uint64_t before = service->metrics->scan_slices;

        check_read("GET", reads[i], writers[_i]);
        ck_assert_uint_lt(service->metrics->scan_slices - before, 10 * ENTITIES);
        run("DELETE", "/" PEOPLE "/_/unsafe=true&offset=60", NULL);
    }
}
END_TEST

/* Older entities are shown in the new form; the order of members tells. */
START_TEST(an_older_form_is_tested_as_it_is_shown)
{
    insert_many();
    declare_people(1);
    for (unsigned round = 0; round < ROUNDS; round++)
        check_read("GET", reads[rng_below(ARRAY_LEN(reads))], disturb);
}
END_TEST

static size_t declared;

static void disturb_declaration(void)
{
    disturb();
    if (rng_below(12) == 0)
        declare_people(++declared % ARRAY_LEN(declarations));
}

/* Then the request begins anew: its moment is a later one. */
START_TEST(another_declaration_meanwhile_counts)
{
    rng_seed((uint64_t)_i);
    declared = 0;
    insert_many();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct request request = request_of("GET", reads[rng_below(ARRAY_LEN(reads))], NULL);

        run_giving_way(&request, NULL, disturb_declaration);
        ck_assert(answer->status == 200 || answer->status == 204);
    }
}
END_TEST

static unsigned redeclarations;

static void redeclare(void)
{
    if (redeclarations > 0)
        declare_people(--redeclarations % 2);
}

START_TEST(what_is_declared_anew_is_read_anew)
{
    struct request request = request_of("GET", "/" PEOPLE "/Age=3", NULL);

    insert_many();
    redeclarations = 10;
    ck_assert_uint_eq(run_giving_way(&request, NULL, redeclare), 1);
    asked = &request;
    run_asked();
    check_same_answer();
}
END_TEST

static void forget_resources(void)
{
    struct json_doc nothing;

    ck_ok(json_parse(SPAN("[]"), NULL, &arena, &nothing));
    ck_ok(declarations_configure(&service->rest, json_root(&nothing), ".", false));
}

START_TEST(a_resource_that_is_gone_is_unknown)
{
    struct request request = request_of("GET", "/" PEOPLE "/Age=3", NULL);

    insert_many();
    ck_assert_uint_eq(run_giving_way(&request, NULL, forget_resources), 1);
    ck_assert_int_eq(answer->status, 404);
}
END_TEST

/* ---- changes ---- */

static uint64_t next_serial(void)
{
    return journal_next_serial(turn_journal(service->turn));
}

static const struct {
    const char *method, *body, *done;
} changes[] = {
    {"PATCH", "{\"Age\":0}", "updated in"},
    {"PATCH", "{\"Age\":0,\"Name\":\"n1\"}", "updated in"},
    {"DELETE", NULL, "deleted from"},
};

/* What is changed is what has the value at that moment: then none has it. */
static void check_change(size_t which)
{
    struct request request =
        request_of(changes[which].method, "/" PEOPLE "/Age=3/unsafe=true", changes[which].body);

    ck_assert_uint_eq(run_giving_way(&request, NULL, disturb), 1);
    ck_assert(answer->status == 200 || answer->status == 404);
    if (answer->status == 200)
        ck_assert(span_find(response_header(answer, SPAN("Svc-info")),
                            span_str(changes[which].done)) != SIZE_MAX);
    run("REPORT", "/" PEOPLE "/Age=3", NULL);
    ck_span_eq(buf_span(&plain.body), "[{\"Count\":0}]");
}

START_TEST(changes_meanwhile_are_changed_too)
{
    rng_seed((uint64_t)_i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        insert_many();
        check_change(round % ARRAY_LEN(changes));
    }
}
END_TEST

static size_t count_errors(void)
{
    return collection_count(store_collection(service->store, SPAN("Svc.Admin.Error")));
}

static const struct {
    const char *method, *target, *body;
    int status;
} refusals[] = {
    {"PATCH", "/" PEOPLE "/Age=77", "{\"Age\":1}", 404},
    {"PATCH", "/" PEOPLE "/Age<77", "{\"Age\":1}", 400},
    {"PATCH", "/" PEOPLE "/Age<77/unsafe=true", "{\"Age\":1", 400},
    {"PUT", "/" PEOPLE "/Age<77", "{\"Age\":1}", 400},
    {"GET", "/" PEOPLE "/_/search_regex=(a%2B)%2BQ", NULL, 400},
};

START_TEST(refusals_are_those_of_one_turn)
{
    struct request request =
        request_of(refusals[_i].method, refusals[_i].target, refusals[_i].body);
    uint64_t before;
    size_t errors;

    service->limits.request_cpu_ms = 50;
    insert_many();
    run("POST", "/" PEOPLE,
        "{\"Name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab Q\"}");
    errors = count_errors();
    before = next_serial();
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), 1);
    ck_assert_int_eq(answer->status, refusals[_i].status);
    ck_assert_uint_eq(count_errors(), errors + 1);
    ck_assert_uint_eq(next_serial(), before + 1);
    run(refusals[_i].method, refusals[_i].target, refusals[_i].body);
    ck_assert_int_eq(answer->error, plain.error);
}
END_TEST

/* Each turn changes all of what has been looked at. */
START_TEST(no_writer_keeps_a_change_from_its_end)
{
    struct request request = request_of("PATCH", "/" PEOPLE "/Age>1/unsafe=true", "{\"Age\":0}");
    uint64_t before;

    insert_many();
    service->limits.scan_entities = 1;
    before = service->metrics->scan_slices;
    ck_assert_uint_eq(run_giving_way(&request, NULL, change_all), 1);
    ck_assert_int_eq(answer->status, 200);
    ck_assert_uint_lt(service->metrics->scan_slices - before, 10 * ENTITIES);
}
END_TEST

START_TEST(a_put_that_finds_none_inserts_once)
{
    struct request request = request_of("PUT", "/" PEOPLE "/Age=77", "{\"Age\":77}");

    insert_many();
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), 1);
    ck_assert_int_eq(answer->status, 201);
    run("REPORT", "/" PEOPLE "/Age=77", NULL);
    ck_span_eq(buf_span(&plain.body), "[{\"Count\":1}]");
}
END_TEST

/* ---- who gives way, and when ---- */

static const struct {
    const char *target;
    unsigned scans;
} ways[] = {
    {"/" PEOPLE, 0},
    {"/" PEOPLE "/_/limit=50", 0},
    {"/" PEOPLE "/_/order_asc=Name", 0},
    {"/" PEOPLE "/Age=3", 1},
    {"/" PEOPLE "/Age<9/limit=3", 0}, /* among the first */
    {"/" PEOPLE "/Age<9/limit=50", 1},
    {"/" PEOPLE "/_/search=n1", 1},
    {"/" PEOPLE "/_/search=n&limit=3", 0},
    {"/" PEOPLE "/_/select=Name&distinct=true", 0},
    {"/" PEOPLE "/Id=01890000-0000-7000-8000-000000000000&Age=3", 0},
    {"/Svc.AvailableResource/Kind=EntityResource", 0},
};

START_TEST(only_long_walks_give_way)
{
    struct request request = request_of("GET", ways[_i].target, NULL);

    insert_many();
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), ways[_i].scans);
}
END_TEST

START_TEST(a_limit_ends_a_scan)
{
    struct request request = request_of("GET", "/" PEOPLE "/Age<9/limit=20", NULL);

    insert_many();
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), 1);
    ck_assert_uint_eq(service->metrics->scan_slices, 21 / SLICE);
}
END_TEST

START_TEST(few_entities_are_no_reason)
{
    struct request request = request_of("GET", "/" PEOPLE "/Age=3", NULL);

    for (unsigned i = 0; i < SLICE; i++)
        insert();
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), 0);
    insert();
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), 1);
}
END_TEST

START_TEST(an_index_is_a_way)
{
    struct request request = request_of("GET", "/" PEOPLE "/Age=3", NULL);

    insert_many();
    declare_people(2);
    ck_assert_uint_eq(run_giving_way(&request, NULL, NULL), 0);
}
END_TEST

/* ---- many at once ---- */

enum { MANY = 3 * EVALUATIONS_MOST };

static struct request requests[MANY];
static struct evaluation *evaluations[MANY];
static size_t ended[MANY]; /* their places */
static size_t ended_count;

static void note_end(void *context)
{
    ended[ended_count++] = (size_t)((struct evaluation **)context - evaluations);
}

static void start_many(void)
{
    ended_count = 0;
    for (unsigned i = 0; i < MANY; i++) {
        requests[i] = request_of("GET", "/" PEOPLE "/Age=3", NULL);
        requests[i].gives_way = true;
        evaluations[i] = evaluation_start(&service->rest, &requests[i], note_end, &evaluations[i]);
    }
}

START_TEST(many_take_turns)
{
    size_t freed = 0;

    insert_many();
    start_many();
    ck_assert_uint_eq(evaluations_count(service->rest.evaluations), MANY);
    for (unsigned turns = 0; ended_count < MANY; turns++) {
        ck_assert_uint_lt(turns, 2 * MANY * (ENTITIES / SLICE + 2));
        disturb();
        turn_loop();
        for (; freed < ended_count; freed++) {
            ck_assert_uint_lt(ended[freed], freed + EVALUATIONS_MOST); /* others had to wait */
            ck_assert_int_eq(evaluation_response(evaluations[ended[freed]])->status, 200);
            evaluation_free(evaluations[ended[freed]]);
        }
    }
    ck_assert_uint_eq(evaluations_count(service->rest.evaluations), 0);
}
END_TEST

/* Within a request, which goes on. */
static void give_up(struct evaluation *e)
{
    struct budget budget;

    budget_init(&budget, 0);
    budget_enter(&budget);
    evaluation_free(e);
    ck_assert_ptr_eq(budget_now.current, &budget);
    budget_leave(&budget);
}

/* Before their turn, in the middle of it, and after it. */
START_TEST(any_may_be_given_up)
{
    rng_seed((uint64_t)_i);
    insert_many();
    start_many();
    for (size_t left = MANY; left > 0;) {
        size_t i = rng_below(MANY);

        left -= evaluations[i] != NULL;
        give_up(TAKE(evaluations[i]));
        disturb();
        turn_loop();
    }
    ck_assert_uint_eq(evaluations_count(service->rest.evaluations), 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, answers_are_those_of_one_turn);
    tcase_add_loop_test(tc, changes_meanwhile_are_not_seen, 0, 10);
    tcase_add_loop_test(tc, whatever_happens_answers_are_those_of_the_first_turn, 0, 10);
    tcase_add_loop_test(tc, no_writer_keeps_a_read_from_its_end, 0, 2);
    tcase_add_test(tc, an_older_form_is_tested_as_it_is_shown);
    tcase_add_loop_test(tc, another_declaration_meanwhile_counts, 0, 5);
    tcase_add_test(tc, what_is_declared_anew_is_read_anew);
    tcase_add_test(tc, a_resource_that_is_gone_is_unknown);
    tcase_add_loop_test(tc, changes_meanwhile_are_changed_too, 0, 5);
    tcase_add_loop_test(tc, refusals_are_those_of_one_turn, 0, ARRAY_LEN(refusals));
    tcase_add_test(tc, no_writer_keeps_a_change_from_its_end);
    tcase_add_test(tc, a_put_that_finds_none_inserts_once);
    tcase_add_loop_test(tc, only_long_walks_give_way, 0, ARRAY_LEN(ways));
    tcase_add_test(tc, a_limit_ends_a_scan);
    tcase_add_test(tc, few_entities_are_no_reason);
    tcase_add_test(tc, an_index_is_a_way);
    tcase_add_test(tc, many_take_turns);
    tcase_add_loop_test(tc, any_may_be_given_up, 0, 5);
}
