/* What a follower hands to the leader, and how the leader takes it. Over sockets:
 * ../http/check_conn_hold.c. */
#include "serving.h"

#include "base/clock.h"
#include "base/log.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "dispatch/handover.h"
#include "dispatch/node.h"
#include "protocol/node_headers.h"
#include "rest/cluster_view.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define START_NS (INT64_C(1800000000) * 1000000000)
#define START_MONO_NS UINT64_C(5000000000)
#define ID "01890a5d-ac96-774b-bcce-b302099a8057"
#define ERROR "E{\"Id\":\"" ID "\",\"Message\":\"m\"}\n"

static struct cluster_view view;

static void begin(bool leads)
{
    clock_fake(START_NS, START_MONO_NS);
    log_configure(LOG_ERROR, LOG_TEXT);
    set_up();
    commit();
    view = (struct cluster_view){.node = SPAN("b"), .secret = SPAN(SECRET), .leads = leads};
    service->rest.cluster = &view;
}

static void end(void)
{
    tear_down();
    clock_real();
}

static struct handover *handover(void)
{
    return service->rest.handover;
}

static size_t count_errors(void)
{
    return collection_count(store_collection(service->store, SPAN("Svc.Admin.Error")));
}

static void ask(const char *target)
{
    const struct request request = {.method = SPAN("GET"), .target = span_str(target)};

    dispatch_run(&service->rest, &request, &response);
}

static void pass_ms(uint64_t ms)
{
    clock_advance(ms * 1000000);
    for (int i = 0; i < 12; i++) {
        loop_wake(&loop);
        loop_run_once(&loop);
    }
}

/* Nothing is written here, though the answer says where the record will be. */
START_TEST(an_error_of_a_follower)
{
    struct span link;

    begin(false);
    ask("/No.Such");
    ck_assert_int_eq(response.status, 404);
    link = arena_copy(&arena, response_header(&response, SPAN("ErrorInfo")));
    ck_assert(span_starts(link, SPAN("/Svc.Admin.Error/id=")));
    ck_assert_uint_eq(count_errors(), 0);
    ck_assert_uint_gt(handover_bytes(handover()), 0);
    pass_ms(HANDOVER_MS); /* no leader is known */
    ck_assert_uint_gt(handover_bytes(handover()), 0);
    view.leads = true;
    pass_ms(HANDOVER_MS); /* it leads by now */
    ck_assert_uint_eq(handover_bytes(handover()), 0);
    ask(arena_printf(&arena, "%.*s/select=Message,ObjectNo", SPAN_FMT(link)).p);
    ck_assert_int_eq(response.status, 200);
    ck_assert(span_find(buf_span(&response.body), SPAN("No.Such")) != SIZE_MAX);
    end();
}
END_TEST

START_TEST(what_finds_no_room)
{
    struct span json;
    size_t taken = 0;

    begin(false);
    json = arena_printf(&arena, "{\"Id\":\"" ID "\",\"Body\":\"%030000d\"}", 1);
    while (handover_add_error(handover(), json))
        taken++;
    ck_assert_uint_eq(taken, HANDOVER_BYTES / (json.n + 2));
    ck_assert_uint_le(handover_bytes(handover()), HANDOVER_BYTES);
    ck_assert_uint_eq(handover_dropped(handover()), 1);
    ask("/No.Such");
    ck_assert_int_eq(response.status, 404);
    end();
}
END_TEST

/* ---- the leader ---- */

static void hand(const char *client, const char *target, const char *body)
{
    const struct passed_request request = {SPAN("POST"), span_str(target), span_str(body)};
    const struct passed_on who = {
        .node = SPAN("c"), .client = span_str(client), .at_unix_ms = clock_unix_ns() / 1000000};
    struct header_field header = {.name = node_headers_passed_on};
    struct request asked = {.method = SPAN("POST"),
                            .target = request.target,
                            .headers = &header,
                            .header_count = 1,
                            .body = request.body};
    struct buf b;

    buf_init_arena(&b, &arena);
    passed_on_add(&b, SPAN(SECRET), &who, &request);
    header.value = buf_span(&b);
    ck_assert(node_believe(&service->rest, &asked, &arena, &response));
    dispatch_run(&service->rest, &asked, &response);
}

START_TEST(the_leader_takes_them)
{
    begin(true);
    service->rest.access->required = true; /* a node needs no key */
    hand("node", "/Svc.Cluster.Records", ERROR);
    ck_assert_int_eq(response.status, 204);
    ck_assert_uint_gt(response.serial, 0);
    ck_assert_uint_eq(count_errors(), 1);
    hand("node", "/Svc.Cluster.Records", ERROR); /* its answer was lost */
    ck_assert_int_eq(response.status, 204);
    ck_assert_uint_eq(count_errors(), 1);
    service->rest.access->required = false;
    ask("/Svc.Admin.Error/Id=" ID);
    ck_assert_int_eq(response.status, 200);
    ck_assert(span_find(buf_span(&response.body), SPAN("\"ObjectNo\":")) != SIZE_MAX);
    view.leads = false;
    hand("node", "/Svc.Cluster.Records", ERROR);
    ck_assert_int_eq(response.error, ERR_NO_LEADER);
    end();
}
END_TEST

/* A client's request never is one of these, whatever its path. */
START_TEST(a_client_hands_nothing_over)
{
    begin(true);
    hand("10.0.0.1", "/Svc.Cluster.Records", ERROR);
    ck_assert_int_eq(response.status, 404);
    service->rest.access->required = true;
    hand("node", "/Shop.Message", "{}");
    ck_assert_int_eq(response.status, 401);
    ck_assert_uint_eq(collection_count(store_collection(service->store, SPAN("Shop.Message"))), 0);
    end();
}
END_TEST

static const char *const bad[] = {
    "X\n",
    "\n",
    "E{\n",
    "E[]\n",
    "E{}\n",
    "E{\"Id\":1}\n",
    "E{\"Id\":\"" ID "\",\"ObjectNo\":1}\n",
    "U\n",
    "U" ID "\n",
    "U" ID " x\n",
    ERROR "E{}\n",
};

START_TEST(what_is_no_record)
{
    size_t before;

    begin(true);
    before = count_errors();
    hand("node", "/Svc.Cluster.Records", bad[_i]);
    ck_assert_int_eq(response.status, 400);
    ck_assert_uint_eq(count_errors(), before + 1); /* that of the request itself */
    ask("/Svc.Admin.Error/Id=" ID);
    ck_assert_int_eq(response.status, 204);
    end();
}
END_TEST

/* ---- uses of keys ---- */

static const char *make_key(void)
{
    const struct request request = {
        .method = SPAN("POST"),
        .target = SPAN("/Svc.Admin.ApiKey"),
        .body = SPAN("{\"Name\":\"k\",\"AllowAccess\":[{\"Resources\":[\"*\"],\"Methods\":"
                     "[\"*\"]}]}")};
    struct json_doc doc;

    dispatch_run(&service->rest, &request, &response);
    ck_assert_int_eq(response.status, 201);
    ck_ok(json_parse(arena_copy(&arena, buf_span(&response.body)), NULL, &arena, &doc));
    return arena_copy(&arena,
                      json_string(json_member(json_first(json_root(&doc)), SPAN("Id")), &arena))
        .p;
}

static bool key_says(const char *text)
{
    ask("/Svc.Admin.ApiKey/Name=k");
    ck_assert_int_eq(response.status, 200);
    return span_find(buf_span(&response.body), span_str(text)) != SIZE_MAX;
}

START_TEST(uses_of_keys)
{
    struct access_key *key;
    const char *id;

    begin(true);
    id = make_key();
    key = access_find(service->rest.access, span_of(NULL, 0), SPAN("k"));
    ck_assert(key_says("\"LastUsedTime\":null"));
    view.leads = false;
    api_key_note_use(service->rest.api_keys, key);
    api_keys_write_uses(service->rest.api_keys);
    ck_assert(key_says("\"LastUsedTime\":null"));
    ck_assert_uint_gt(handover_bytes(handover()), 0);
    view.leads = true;
    hand("node", "/Svc.Cluster.Records",
         arena_printf(&arena, "U%s %lld\n", id, (long long)(START_NS / 1000000000 + 7200)).p);
    ck_assert_int_eq(response.status, 204);
    api_keys_write_uses(service->rest.api_keys);
    ck_assert(key_says("\"LastUsedTime\":\"2027-01-15T10:00:00"));
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_error_of_a_follower);
    tcase_add_test(tc, what_finds_no_room);
    tcase_add_test(tc, the_leader_takes_them);
    tcase_add_test(tc, a_client_hands_nothing_over);
    tcase_add_loop_test(tc, what_is_no_record, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, uses_of_keys);
}
