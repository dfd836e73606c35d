/* Requests that give way, beside changes: what they answer is what the same request answers that
 * does not give way: one that reads, when its fiber begins; one that writes, when it ends. */
#include "serving.h"

#include "access/account.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/rng.h"
#include "dispatch/dispatch.h"
#include "rest/evaluation.h"
#include "store/change.h"
#include "store/turn.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PEOPLE "Shop.Person"

enum { SLICE = 7, ENTITIES = 60, ROUNDS = 20 };

static struct response plain;    /* of requests that do not give way */
static struct response expected; /* of the same request, which does not give way */
static bool is_done;
static struct evaluation *given_way; /* the one that was answered last */
static struct response *answer;

/* In the place of the library's: the thread's processor time, by which each look at it finds that
 * the time of the turn is up. */
static bool is_scripted;

int clock_gettime(clockid_t id, struct timespec *out)
{
    static uint64_t cpu_ns;

    if (id != CLOCK_THREAD_CPUTIME_ID || !is_scripted)
        return (int)syscall(SYS_clock_gettime, id, out);
    cpu_ns += 6000000;
    *out = (struct timespec){(time_t)(cpu_ns / 1000000000), (long)(cpu_ns % 1000000000)};
    return 0;
}

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
    ck_ok(declarations_configure(service->rest.resources, json_root(&doc), ".", false));
}

static void begin(void)
{
    clock_fake(INT64_C(1700000000000000000), 1);
    set_up();
    response_init(&plain, 1u << 20);
    response_init(&expected, 1u << 20);
    service->limits.scan_entities = SLICE;
    declare_people(0);
    is_done = is_scripted = false;
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

    dispatch_run(&service->rest, &request, &plain);
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
    dispatch_run(&service->rest, request, &response);
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
    dispatch_run(&service->rest, &request, &expected);
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

/* As the cleaner does it: the record is another then, the entity is not. */
static void move_oldest(void)
{
    struct change change;
    uint64_t serial;

    change_init(&change, service->turn, &arena);
    change.is_move = true;
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

/* As those that took too long on the loop's stack: on a fiber from the beginning. */
static void run_on_fiber(const struct request *request, void (*at_once)(void),
                         void (*between)(void))
{
    evaluation_free(TAKE(given_way));
    is_done = false;
    given_way = evaluation_start(&service->rest, request, on_done, NULL);
    at_once();
    wait_for_end(between);
    answer = evaluation_response(given_way);
}

static const char *const indexed_reads[] = {
    "/" PEOPLE "/Age=3",           "/" PEOPLE "/Age=77",
    "/" PEOPLE "/Age=3&Name!=n1",  "/" PEOPLE "/Age=3/order_desc=Name&limit=4",
    "/" PEOPLE "/Age=3/search=n2",
};

/* Into the index's value and out of it, before the walk and behind it, and all of it away. */
static void disturb_index(void)
{
    disturb_often();
    if (rng_below(9) == 0)
        run("DELETE", "/" PEOPLE "/Age=3/unsafe=true", NULL);
}

START_TEST(what_an_index_leads_to_is_of_one_moment)
{
    rng_seed((uint64_t)(3000 + _i));
    declare_people(2);
    service->limits.scan_entities = 1;
    for (unsigned round = 0; round < 5 * ROUNDS; round++) {
        struct request request =
            request_of(rng_below(4) == 0 ? "REPORT" : "GET",
                       indexed_reads[rng_below(ARRAY_LEN(indexed_reads))], NULL);

        while (collection_count(store_collection(service->store, SPAN(PEOPLE))) < ENTITIES)
            insert();
        asked = &request;
        run_on_fiber(&request, run_asked, disturb_index);
        check_same_answer();
    }
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
    ck_ok(declarations_configure(service->rest.resources, json_root(&nothing), ".", false));
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

static void nothing(void)
{
}

/* Where an index leads, each turn another is looked at. */
START_TEST(what_an_index_leads_to_is_changed_once)
{
    rng_seed((uint64_t)(4000 + _i));
    declare_people(2);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const size_t which = round % ARRAY_LEN(changes);
        struct request request =
            request_of(changes[which].method, "/" PEOPLE "/Age=3/unsafe=true", changes[which].body);

        service->limits.scan_entities = 1;
        insert_many();
        run_on_fiber(&request, nothing, disturb_often);
        ck_assert(answer->status == 200 || answer->status == 404);
        run("REPORT", "/" PEOPLE "/Age=3", NULL);
        ck_span_eq(buf_span(&plain.body), "[{\"Count\":0}]");
    }
}
END_TEST

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

/* ---- changes of very many ---- */

enum { VERY_MANY = 3000 };

static char many[VERY_MANY * 32];
static struct evaluation *long_one;

static void insert_very_many(void)
{
    size_t n = 1;

    many[0] = '[';
    for (unsigned i = 0; i < VERY_MANY; i++)
        n += (size_t)snprintf(many + n, sizeof(many) - n, "{\"Name\":\"m\",\"Age\":%u},", i);
    many[n - 1] = ']';
    service->limits.request_cpu_ms = 3600000;
    service->limits.scan_entities = 1000;
    run("POST", "/" PEOPLE, many);
    ck_assert_int_eq(plain.status, 201);
    commit();
    is_scripted = true;
}

static void start_long(struct request *request)
{
    request->gives_way = true;
    dispatch_run(&service->rest, request, &response);
    ck_assert(response.gives_way);
    is_done = false;
    long_one = evaluation_start(&service->rest, request, on_done, NULL);
}

static void end_long(int status)
{
    wait_for_end(NULL);
    ck_assert_int_eq(evaluation_response(long_one)->status, status);
    evaluation_free(TAKE(long_one));
    while (turn_is_held(service->turn))
        turn_loop();
    is_scripted = false;
}

static unsigned count_of(const char *target)
{
    unsigned count = 0;

    run("REPORT", target, NULL);
    buf_add_char(&plain.body, '\0');
    ck_assert_int_eq(sscanf(plain.body.p, "[{\"Count\":%u", &count), 1);
    return count;
}

static struct request long_changes[3];

static void make_long_changes(void)
{
    long_changes[0] = request_of("PATCH", "/" PEOPLE "/_/unsafe=true", "{\"Name\":\"x\"}");
    long_changes[1] = request_of("DELETE", "/" PEOPLE "/Age>=0/unsafe=true", NULL);
    long_changes[2] = request_of("POST", "/" PEOPLE "/_/safepost=Age", many);
}

/* By the list, by its number, and one after the other by their ids. */
static void check_one_state(unsigned most)
{
    unsigned old = count_of("/" PEOPLE "/Name=m"), all = count_of("/" PEOPLE);

    ck_assert(old == 0 || old == most);
    ck_assert(all == 0 || all == most);
    run("GET", "/" PEOPLE "/Name=m/limit=1", NULL);
    ck_assert_int_eq(plain.status, old == 0 ? 204 : 200);
}

static const struct {
    unsigned old, all;
} after_long[] = {{0, VERY_MANY}, {0, 0}, {VERY_MANY, VERY_MANY}};

START_TEST(others_see_a_long_change_whole)
{
    unsigned applying = 0;

    insert_very_many();
    make_long_changes();
    start_long(&long_changes[_i]);
    for (unsigned turns = 0; !is_done; turns++) {
        ck_assert_uint_lt(turns, 5000);
        turn_loop();
        applying += turn_is_applying(service->turn);
        check_one_state(VERY_MANY);
    }
    ck_assert_uint_gt(applying, 3);
    end_long(200);
    ck_assert_uint_eq(count_of("/" PEOPLE "/Name=m"), after_long[_i].old);
    ck_assert_uint_eq(count_of("/" PEOPLE), after_long[_i].all);
}
END_TEST

static void wait_until_held(void)
{
    for (unsigned turns = 0; !turn_is_held(service->turn); turns++) {
        ck_assert_uint_lt(turns, 1000);
        turn_loop();
    }
}

static bool other_is_done;

static void on_other_done(void *context)
{
    (void)context;
    other_is_done = true;
    ck_assert(!turn_is_applying(service->turn));
}

static const struct {
    const char *method, *target, *body;
    int status;
} others[] = {
    {"POST", "/" PEOPLE, "{\"Name\":\"late\"}", 201},
    {"PATCH", "/" PEOPLE "/Age=7", "{\"Name\":\"x\"}", 200},
    {"GET", "/Shop.Nobody", NULL, 404}, /* whose error is stored */
};

/* They come after it, and it is not disturbed. */
START_TEST(who_changes_something_waits_for_it)
{
    struct request other = request_of(others[_i].method, others[_i].target, others[_i].body);
    struct evaluation *waiting;

    insert_very_many();
    make_long_changes();
    start_long(&long_changes[0]);
    wait_until_held();
    other.gives_way = true;
    other_is_done = false;
    dispatch_run(&service->rest, &other, &plain);
    ck_assert(plain.gives_way);
    waiting = evaluation_start(&service->rest, &other, on_other_done, NULL);
    end_long(200);
    while (!other_is_done)
        turn_loop();
    ck_assert_int_eq(evaluation_response(waiting)->status, others[_i].status);
    evaluation_free(waiting);
    ck_assert_uint_eq(count_of("/" PEOPLE "/Name=x"), VERY_MANY);
}
END_TEST

/* As resources were declared anew meanwhile. */
START_TEST(who_begins_anew_sees_no_part_of_it)
{
    struct request request = request_of("REPORT", "/" PEOPLE "/Name=m", NULL);
    uint64_t *declared_anew = &service->rest.resources->changes;
    struct evaluation *reading;

    insert_very_many();
    make_long_changes();
    start_long(&long_changes[0]);
    wait_until_held();
    request.gives_way = true;
    other_is_done = false;
    reading = evaluation_start(&service->rest, &request, on_other_done, NULL);
    for (; !turn_is_applying(service->turn); ++*declared_anew)
        turn_loop();
    end_long(200);
    while (!other_is_done)
        turn_loop();
    ck_span_is(buf_span(&evaluation_response(reading)->body), SPAN("[{\"Count\":0}]"));
    evaluation_free(reading);
}
END_TEST

/* Before it has been handed to the journal nothing has changed; afterwards all will have. */
START_TEST(a_client_that_goes_leaves_all_or_nothing)
{
    unsigned old;

    rng_seed((uint64_t)_i);
    insert_very_many();
    make_long_changes();
    start_long(&long_changes[_i % 2]);
    for (int turns = 0; turns < 3 * _i && !is_done; turns++)
        turn_loop();
    evaluation_free(TAKE(long_one));
    while (turn_is_held(service->turn))
        turn_loop();
    is_scripted = false;
    old = count_of("/" PEOPLE "/Name=m");
    ck_assert(old == 0 || old == VERY_MANY);
    run("POST", "/" PEOPLE, "{\"Name\":\"next\"}");
    ck_assert_int_eq(plain.status, 201);
}
END_TEST

/* Who cannot wait comes before it; it begins anew, and changes what there is then. */
START_TEST(who_cannot_wait_makes_it_begin_anew)
{
    insert_very_many();
    make_long_changes();
    start_long(&long_changes[0]);
    wait_until_held();
    ck_assert(!turn_is_applying(service->turn));
    run("POST", "/" PEOPLE, "{\"Name\":\"m\"}");
    ck_assert_int_eq(plain.status, 201);
    end_long(200);
    ck_assert_uint_eq(count_of("/" PEOPLE "/Name=x"), VERY_MANY + 1);
}
END_TEST

START_TEST(what_is_too_costly_changes_nothing)
{
    uint64_t before;

    insert_very_many();
    make_long_changes();
    service->limits.request_cpu_ms = 100;
    before = next_serial();
    start_long(&long_changes[_i]);
    end_long(400);
    ck_assert_uint_eq(next_serial(), before + 1); /* the error */
    ck_assert_uint_eq(count_of("/" PEOPLE "/Name=m"), VERY_MANY);
}
END_TEST

/* ---- how often an account may ---- */

enum { HELD_MS = 100, REST_LOOK_MS = 20, LOOKS = 400 };

static const char *const names_then[] = {"{\"Name\":\"x\"}", "{\"Name\":\"y\"}",
                                         "{\"Name\":\"z\"}"};

static void advance_ms(unsigned ms)
{
    clock_advance(ms * UINT64_C(1000000));
}

static struct request change_names(unsigned which)
{
    struct request request = request_of("PATCH", "/" PEOPLE "/_/unsafe=true", names_then[which]);

    request.gives_way = true;
    return request;
}

static struct evaluation *start_of(struct account *account, const struct request *request)
{
    is_done = false;
    evaluations_are_of(service->rest.evaluations, account);
    return evaluation_start(&service->rest, request, on_done, NULL);
}

static void end_of(struct evaluation *e)
{
    wait_for_end(NULL);
    ck_assert_int_eq(evaluation_response(e)->status, 200);
    evaluation_free(e);
}

/* It has the turn for HELD_MS; `is_wanted`: somebody else waits for it. */
static void change_for_long(struct account *account, bool is_wanted)
{
    struct request request = change_names(0),
                   other = request_of("POST", "/" PEOPLE, "{\"Age\":-1}");
    struct evaluation *e = start_of(account, &request), *waiting = NULL;

    wait_until_held();
    other.gives_way = true;
    other_is_done = !is_wanted;
    if (is_wanted)
        waiting = evaluation_start(&service->rest, &other, on_other_done, NULL);
    for (unsigned i = 0; i < 3; i++)
        turn_loop();
    advance_ms(HELD_MS);
    end_of(e);
    while (!other_is_done)
        turn_loop();
    evaluation_free(waiting);
}

/* How often the turn was held. */
static unsigned look_often(void)
{
    unsigned held = 0;

    for (unsigned i = 0; i < LOOKS && !is_done; i++) {
        turn_loop();
        held += turn_is_held(service->turn);
    }
    return held;
}

START_TEST(an_account_rests)
{
    struct account *busy = account_ref(service->rest.accounts, SPAN("busy"), SPAN(""));
    struct account *modest = account_ref(service->rest.accounts, SPAN("modest"), SPAN(""));
    struct request again = change_names(1), others_own = change_names(2);
    struct evaluation *e;

    insert_very_many();
    change_for_long(busy, true);
    e = start_of(busy, &again);
    ck_assert_uint_lt(look_often(), 10); /* until it was known to be long */
    ck_assert(!is_done);
    end_of(start_of(modest, &others_own));
    ck_assert_uint_eq(count_of("/" PEOPLE "/Name=y"), 0);
    ck_assert_uint_ge(count_of("/" PEOPLE "/Name=z"), VERY_MANY);
    is_done = false;
    advance_ms(EVALUATIONS_REST * HELD_MS - 1);
    ck_assert_uint_eq(look_often(), 0);
    advance_ms(REST_LOOK_MS);
    end_of(e);
    ck_assert_uint_ge(count_of("/" PEOPLE "/Name=y"), VERY_MANY);
    is_scripted = false;
    account_unref(service->rest.accounts, busy);
    account_unref(service->rest.accounts, modest);
}
END_TEST

/* Nor when nobody else wanted it, nor for what is short. */
START_TEST(nobody_rests_for_nothing)
{
    struct account *busy = account_ref(service->rest.accounts, SPAN("busy"), SPAN(""));
    struct request again = change_names(1);
    struct evaluation *e;
    struct request brief = request_of("PUT", "/" PEOPLE "/Id=01890000-0000-7000-8000-000000000000",
                                      "{\"Name\":\"b\"}");

    insert_very_many();
    change_for_long(busy, false);
    end_of(start_of(busy, &again));
    change_for_long(busy, true);
    is_scripted = false;
    brief.gives_way = true;
    e = start_of(busy, &brief);
    wait_for_end(NULL);
    ck_assert_int_eq(evaluation_response(e)->status, 404); /* it would have changed something */
    evaluation_free(e);
    account_unref(service->rest.accounts, busy);
}
END_TEST

/* It was put aside while it rested. */
START_TEST(who_rests_may_be_given_up)
{
    struct account *busy = account_ref(service->rest.accounts, SPAN("busy"), SPAN(""));
    struct request again = change_names(1);
    struct evaluation *e;

    insert_very_many();
    change_for_long(busy, true);
    e = start_of(busy, &again);
    look_often();
    ck_assert(!is_done);
    evaluation_free(e);
    ck_assert_uint_eq(evaluations_count(service->rest.evaluations), 0);
    is_scripted = false;
    account_unref(service->rest.accounts, busy);
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

/* However many the one has, the other's comes to its end as soon as if the one had one. */
START_TEST(accounts_take_turns)
{
    struct account *busy = account_ref(service->rest.accounts, SPAN("busy"), SPAN(""));
    struct account *modest = account_ref(service->rest.accounts, SPAN("modest"), SPAN(""));
    struct request request = request_of("GET", "/" PEOPLE "/Age=3", NULL);
    struct evaluation *one;
    unsigned turns = 0;

    insert_many();
    ended_count = 0;
    for (unsigned i = 0; i < MANY; i++) {
        requests[i] = request_of("GET", "/" PEOPLE "/Age=3", NULL);
        evaluations_are_of(service->rest.evaluations, busy);
        evaluations[i] = evaluation_start(&service->rest, &requests[i], note_end, &evaluations[i]);
    }
    for (unsigned i = 0; i < 3 * EVALUATIONS_OF_ACCOUNT; i++)
        turn_loop();
    is_done = false;
    evaluations_are_of(service->rest.evaluations, modest);
    one = evaluation_start(&service->rest, &request, on_done, NULL);
    for (; !is_done; turns++)
        turn_loop();
    ck_assert_uint_le(turns, 2 * (ENTITIES / SLICE + 3));
    ck_assert_uint_lt(ended_count, EVALUATIONS_OF_ACCOUNT);
    evaluation_free(one);
    for (unsigned i = 0; i < MANY; i++)
        evaluation_free(TAKE(evaluations[i]));
    account_unref(service->rest.accounts, busy);
    account_unref(service->rest.accounts, modest);
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

/* ---- room ---- */

enum { WIDE = 40, WIDE_BYTES = 8000 };

static void fill_memory(void)
{
    service->limits.memory_bytes = 1;
}

/* What renames makes a text of its own of each. */
START_TEST(an_answer_that_grows_finds_no_room)
{
    const struct request request = request_of("GET", "/" PEOPLE "/Age=1/rename=Name-%3ET", NULL);
    struct request few = request_of("GET", "/" PEOPLE "/Age=1/select=Age", NULL);
    struct request all = request;
    uint64_t hits = service->rest.metrics->limit_hits[METRIC_MEMORY_BYTES];
    char *body = mem_zero(WIDE_BYTES + 64);

    is_scripted = true;
    snprintf(body, WIDE_BYTES, "{\"Age\":1,\"Name\":\"%0*d\"}", WIDE_BYTES - 100, 0);
    for (unsigned i = 0; i < WIDE; i++) {
        run("POST", "/" PEOPLE, body);
        ck_assert_int_eq(plain.status, 201);
    }
    mem_free(body);
    commit();
    dispatch_run(&service->rest, &request, &expected);
    ck_assert_int_eq(expected.status, 200);
    ck_assert_uint_eq(run_giving_way(&all, NULL, NULL), 1);
    check_same_answer();
    ck_assert_uint_eq(run_giving_way(&all, fill_memory, NULL), 1);
    ck_assert_int_eq(answer->status, 503);
    ck_assert_int_eq(answer->error, ERR_OVERLOADED);
    ck_assert(span_find(buf_span(&answer->body), SPAN("MemoryBytes")) != SIZE_MAX);
    ck_span_eq(response_header(answer, SPAN("Retry-After")), "5");
    ck_assert_uint_eq(service->rest.metrics->limit_hits[METRIC_MEMORY_BYTES], hits + 1);
    run_giving_way(&few, NULL, NULL); /* it takes next to nothing */
    ck_assert_int_eq(answer->status, 200);
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
    tcase_add_loop_test(tc, what_an_index_leads_to_is_of_one_moment, 0, 10);
    tcase_add_loop_test(tc, what_an_index_leads_to_is_changed_once, 0, 5);
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
    tcase_add_test(tc, accounts_take_turns);
    tcase_add_loop_test(tc, others_see_a_long_change_whole, 0, ARRAY_LEN(long_changes));
    tcase_add_loop_test(tc, who_changes_something_waits_for_it, 0, ARRAY_LEN(others));
    tcase_add_test(tc, who_begins_anew_sees_no_part_of_it);
    tcase_add_loop_test(tc, a_client_that_goes_leaves_all_or_nothing, 0, 30);
    tcase_add_test(tc, who_cannot_wait_makes_it_begin_anew);
    tcase_add_loop_test(tc, what_is_too_costly_changes_nothing, 0, ARRAY_LEN(long_changes));
    tcase_add_test(tc, an_account_rests);
    tcase_add_test(tc, nobody_rests_for_nothing);
    tcase_add_test(tc, who_rests_may_be_given_up);
    tcase_add_loop_test(tc, any_may_be_given_up, 0, 5);
    tcase_add_test(tc, an_answer_that_grows_finds_no_room);
}
