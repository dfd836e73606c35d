/* What a request meets on a node of a cluster, without sockets: a view that tests make. Requests
 * that wait, or go to the leader: check_passage.c, and ../http/check_conn_hold.c. */
#include "asking.h"
#include "base/header_field.h"

#include "access/access.h"
#include "base/clock.h"
#include "dispatch/node.h"
#include "journal/journal.h"
#include "protocol/node_headers.h"
#include "rest/cluster_view.h"
#include "rest/download.h"
#include "store/turn.h"

#define SECRET "0123456789abcdef0123456789abcdef"

static struct cluster_view view;

static void open_node(bool leads)
{
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]");
    view = (struct cluster_view){
        .node = SPAN("b"),
        .secret = SPAN(SECRET),
        .leads = leads,
        .leader_url = SPAN("http://a:1"),
    };
    asking.service->rest.cluster = &view;
}

static void close_node(void)
{
    asking.service->rest.cluster = NULL;
    asking_close();
}

static const struct asked {
    const char *method, *target;
    bool is_the_leaders;
} table[] = {
    {"GET", "/Shop.Person", false},
    {"HEAD", "/Shop.Person", false},
    {"REPORT", "/Shop.Person", false},
    {"OPTIONS", "/Shop.Person", false},
    {"NONE", "/Shop.Person", false},
    {"POST", "/Shop.Person", true},
    {"PATCH", "/Shop.Person", true},
    {"PUT", "/Shop.Person", true},
    {"DELETE", "/Shop.Person", true},
    {"POST", "/Svc.Event", true},
    {"POST", "/Svc.Admin.Webhook", true},
    {"PATCH", "/Svc.Admin.Delivery", true},
    {"DELETE", "/Svc.Admin.Error", true},
    {"POST", "/Svc.Echo", false},
    {"GET", "/Svc.Echo", false},
    {"POST", "/Svc.Aggregator", false},
    {"POST", "/Svc.Explain", false},
    {"POST", "/No.Such", true},
    {"GET", "/No.Such", false},
    {"POST", "/Shop.Person/((", true},
    {"POST", "/livez", false},
};

/* By resource and method, whatever else is wrong with it. */
START_TEST(who_answers)
{
    const struct asked *asked = &table[_i];

    open_node(false);
    ask(asked->method, asked->target, "{}");
    ck_assert_msg((asking.answer.error == ERR_NO_LEADER) == asked->is_the_leaders, "%s %s: %d",
                  asked->method, asked->target, asking.answer.status);
    view.leads = true;
    ask(asked->method, asked->target, "{}");
    ck_assert_int_ne(asking.answer.error, ERR_NO_LEADER);
    close_node();
}
END_TEST

START_TEST(why_nobody_answers)
{
    open_node(false);
    ck_refuses(ERR_NO_LEADER, "changes are made at the cluster's leader; nothing was done", "POST",
               "/Shop.Person", "{}");
    ck_header_eq("Retry-After", "1");
    view.leader_url = span_of(NULL, 0);
    ck_refuses(ERR_NO_LEADER, "no leader of the cluster is known", "POST", "/Shop.Person", "{}");
    ck_assert_uint_eq(asking_count("Shop.Person"), 0);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
    close_node();
}
END_TEST

START_TEST(redirections)
{
    open_node(false);
    view.redirects = true;
    ck_asks(307, "PUT", "/Shop.Person/Name=%41?q", "{}");
    ck_header_eq("Location", "http://a:1/Shop.Person/Name=%41?q");
    ck_header_eq("Svc-info", "changes are made at the cluster's leader, http://a:1");
    ck_assert_ptr_null(answered_header("Svc-serial").p);
    ck_asks(204, "GET", "/Shop.Person", NULL);
    close_node();
}
END_TEST

START_TEST(serials_of_changes)
{
    open_node(true);
    ck_asks(201, "POST", "/Shop.Person", "{\"Name\":\"a\"}");
    ck_span_is(answered_header("Svc-serial"), arena_u64(&asking.arena, asking_serial() - 1));
    ck_asks(200, "PATCH", "/Shop.Person/Name=a", "{\"Name\":\"a\"}"); /* nothing changes */
    ck_span_is(answered_header("Svc-serial"), arena_u64(&asking.arena, asking_serial() - 1));
    asking_commit();
    ck_asks(200, "DELETE", "/Shop.Person/Name=b", NULL);
    ck_span_is(answered_header("Svc-serial"), arena_u64(&asking.arena, asking_serial() - 1));
    ck_asks(200, "GET", "/Shop.Person", NULL);
    ck_assert_ptr_null(answered_header("Svc-serial").p);
    ck_asks(200, "POST", "/Svc.Echo", "{\"N\":1}");
    ck_assert_ptr_null(answered_header("Svc-serial").p);
    ck_asks(400, "POST", "/Shop.Person", "[");
    ck_assert_ptr_null(answered_header("Svc-serial").p);
    close_node();
}
END_TEST

START_TEST(what_is_to_be_seen)
{
    open_node(true);
    asking_commit();
    ask_with(asking_printf("Svc-min-serial: %d", (int)asking_serial() - 1), "GET", "/Shop.Person",
             NULL);
    ck_status(204);
    ask_with(asking_printf("Svc-min-serial: %d", (int)asking_serial()), "GET", "/Shop.Person",
             NULL);
    ck_problem(ERR_OVERLOADED, "Svc-min-serial: this node is at "); /* it cannot wait */
    ask_with("Svc-min-serial: -1", "GET", "/Shop.Person", NULL);
    ck_problem(ERR_INVALID_CONDITION_VALUE, "Svc-min-serial: '-1' is no serial");
    asking.service->rest.cluster = NULL;
    ask_with("Svc-min-serial: -1", "GET", "/Shop.Person", NULL);
    ck_status(204);
    close_node();
}
END_TEST

/* ---- for whom another node asks ---- */

static struct span claim(const char *key, const char *body)
{
    const struct passed_request request = {SPAN("POST"), SPAN("/Shop.Person"), span_str(body)};
    struct passed_on who = {
        .node = SPAN("c"), .client = SPAN("10.0.0.9"), .at_unix_ms = clock_unix_ns() / 1000000};
    struct access_key *named =
        access_find(asking.service->rest.access, span_of(NULL, 0), span_str(key));
    struct buf identity, b;

    buf_init_arena(&identity, &asking.arena);
    buf_init_arena(&b, &asking.arena);
    if (named != NULL) {
        access_add_identity(&identity, named);
        who.key = buf_span(&identity);
    }
    passed_on_add(&b, SPAN(SECRET), &who, &request);
    return buf_span(&b);
}

/* As a connection does it; false: it was not believed. */
static bool ask_for(struct span value, const char *body)
{
    const struct header_field header = {node_headers_passed_on, value};
    struct request request = {
        .method = SPAN("POST"),
        .target = SPAN("/Shop.Person"),
        .headers = &header,
        .header_count = 1,
        .body = span_str(body),
    };

    if (!node_believe(&asking.service->rest, &request, &asking.arena, &asking.answer))
        return false;
    ck_assert_ptr_nonnull(request.client);
    ask_request(&request);
    return true;
}

START_TEST(keys_of_others)
{
    struct span of_alice;

    open_node(true);
    ck_assert(ask_for(claim(NULL, "{}"), "{}"));
    ck_status(201);
    asking_add_key("alice", "[{\"Resources\":[\"Shop.Person\"],\"Methods\":[\"POST\"]}]");
    asking_add_key("bob", "[{\"Resources\":[\"Shop.Person\"],\"Methods\":[\"GET\"]}]");
    of_alice = claim("alice", "{}");
    ck_assert(ask_for(of_alice, "{}"));
    ck_status(201);
    ck_assert(ask_for(claim("bob", "{}"), "{}"));
    ck_problem(ERR_NOT_AUTHORIZED, "may not use POST");
    ck_assert(ask_for(claim(NULL, "{}"), "{}"));
    ck_problem(ERR_NOT_SIGNED_IN, "requires an API key");
    asking_remove_key("alice");
    ck_assert(ask_for(of_alice, "{}"));
    ck_problem(ERR_NOT_SIGNED_IN, "not known to the cluster's leader");
    ck_assert_uint_eq(asking_count("Shop.Person"), 2);
    close_node();
}
END_TEST

START_TEST(what_is_not_believed)
{
    open_node(true);
    ck_assert(!ask_for(claim(NULL, "{}"), "[]"));
    ck_problem(ERR_NOT_AUTHORIZED, "Svc-cluster: it was not made by a node");
    ck_assert(!ask_for(SPAN(""), "{}"));
    ck_problem(ERR_NOT_AUTHORIZED, "Svc-cluster");
    view.secret = span_of(NULL, 0);
    ck_assert(!ask_for(claim(NULL, "{}"), "{}"));
    ck_problem(ERR_NO_LEADER, "secret");
    ck_assert_uint_eq(asking_count("Shop.Person"), 0);
    close_node();
}
END_TEST

START_TEST(no_second_hop)
{
    open_node(false);
    ck_assert(ask_for(claim(NULL, "{}"), "{}"));
    ck_problem(ERR_NO_LEADER, "what 'c' has passed on is not passed on again");
    view.redirects = true;
    ck_assert(ask_for(claim(NULL, "{}"), "{}"));
    ck_problem(ERR_NO_LEADER, "what 'c' has passed on is not passed on again");
    close_node();
}
END_TEST

/* What is said of it shows in no record. */
START_TEST(records_keep_no_claim)
{
    open_node(true);
    ck_assert(ask_for(claim(NULL, "["), "["));
    ck_status(400);
    ck_asks(200, "GET", "/Svc.Admin.Error", NULL);
    ck_span_eq(span_str(answered_text("0.Headers")), "Svc-cluster: *******");
    close_node();
}
END_TEST

/* ---- what a node asks for itself ---- */

#define BACKUP "/Svc.Admin.Backup"

/* As node `c` would, signed for `claimed`. */
static bool ask_as(const char *secret, struct span client, const char *method, const char *target,
                   const char *claimed)
{
    const struct passed_on who = {
        .node = SPAN("c"), .client = client, .at_unix_ms = clock_unix_ns() / 1000000};
    const struct passed_request passed = {span_str(method), span_str(claimed), SPAN("")};
    struct header_field header = {.name = node_headers_passed_on};
    struct request request = {
        .method = span_str(method),
        .target = span_str(target),
        .headers = &header,
        .header_count = 1,
    };
    struct buf value;

    buf_init_arena(&value, &asking.arena);
    passed_on_add(&value, span_str(secret), &who, &passed);
    header.value = buf_span(&value);
    if (!node_believe(&asking.service->rest, &request, &asking.arena, &asking.answer))
        return false;
    ask_request(&request);
    return true;
}

static void open_with_keys(void)
{
    open_node(true);
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
}

START_TEST(a_node_takes_a_copy)
{
    open_with_keys();
    ck_assert(ask_as(SECRET, PASSED_ON_ITSELF, "GET", BACKUP, BACKUP));
    ck_status(200);
    ck_assert_ptr_nonnull(asking.answer.download);
    ck_assert_uint_gt(asking.answer.later_bytes, 0);
    download_close(TAKE(asking.answer.download));
    close_node();
}
END_TEST

static const struct {
    const char *method, *target;
    enum err_code error;
} not_for_nodes[] = {
    {"GET", "/Svc.Admin.Webhook", ERR_NOT_AUTHORIZED},
    {"GET", "/Svc.Admin.ApiKey", ERR_NOT_AUTHORIZED},
    {"REPORT", BACKUP, ERR_NOT_SIGNED_IN},
    {"POST", "/Svc.Event", ERR_NOT_SIGNED_IN},
    {"DELETE", "/Svc.Admin.Webhook", ERR_NOT_SIGNED_IN},
};

START_TEST(and_nothing_else)
{
    const char *method = not_for_nodes[_i].method, *target = not_for_nodes[_i].target;

    open_with_keys();
    ck_assert(ask_as(SECRET, PASSED_ON_ITSELF, method, target, target));
    ck_assert_int_eq(asking.answer.error, not_for_nodes[_i].error);
    close_node();
}
END_TEST

/* Another secret, another request, a client, a cluster that is not known yet. */
START_TEST(nobody_else_is_a_node)
{
    open_with_keys();
    ck_assert(!ask_as("0123456789abcdef0123456789abcdeX", PASSED_ON_ITSELF, "GET", BACKUP, BACKUP));
    ck_assert_int_eq(asking.answer.error, ERR_NOT_AUTHORIZED);
    ck_assert(!ask_as(SECRET, PASSED_ON_ITSELF, "GET", BACKUP, "/Svc.Metrics"));
    ck_assert_int_eq(asking.answer.error, ERR_NOT_AUTHORIZED);
    ck_assert(ask_as(SECRET, SPAN("192.0.2.1"), "GET", BACKUP, BACKUP));
    ck_assert_int_eq(asking.answer.error, ERR_NOT_SIGNED_IN);
    view.secret = SPAN("");
    ck_assert(!ask_as(SECRET, PASSED_ON_ITSELF, "GET", BACKUP, BACKUP));
    ck_assert_int_eq(asking.answer.error, ERR_NO_LEADER);
    ck_assert_ptr_null(asking.answer.download);
    close_node();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, who_answers, 0, ARRAY_LEN(table));
    tcase_add_test(tc, why_nobody_answers);
    tcase_add_test(tc, redirections);
    tcase_add_test(tc, serials_of_changes);
    tcase_add_test(tc, what_is_to_be_seen);
    tcase_add_test(tc, keys_of_others);
    tcase_add_test(tc, what_is_not_believed);
    tcase_add_test(tc, no_second_hop);
    tcase_add_test(tc, records_keep_no_claim);
    tcase_add_test(tc, a_node_takes_a_copy);
    tcase_add_loop_test(tc, and_nothing_else, 0, ARRAY_LEN(not_for_nodes));
    tcase_add_test(tc, nobody_else_is_a_node);
}
