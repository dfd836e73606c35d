/* The steps of an evaluation: which of two faults is the answer, and what an answer with an error
 * looks like. */
#include "asking.h"

#include "base/limits.h"
#include "dispatch/dispatch.h"
#include "io/fault.h"
#include "rest/metrics.h"
#include "store/turn.h"

#define PROPERTIES "\"Properties\":[{\"Name\":\"Name\",\"Type\":\"string\",\"Required\":true}]"

static const char resources[] =
    "[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"," PROPERTIES "},"
    "{\"Name\":\"Shop.Archive\",\"Kind\":\"EntityResource\",\"Methods\":[\"GET\"]," PROPERTIES "},"
    "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]";

static const char admin[] = "Authorization: apikey admin";

static void begin(void)
{
    asking_open(resources);
}

static void require_keys(void)
{
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("reader", "[{\"Resources\":[\"Shop.*\"],\"Methods\":[\"GET\"]}]");
}

static size_t errors(void)
{
    return asking_count("Svc.Admin.Error");
}

/* ---- the order of checks ---- */

/* Members that are NULL leave the request as it is. */
struct parts {
    const char *key, *method, *resource, *conditions, *metas, *end, *accept, *type, *match, *body;
    int64_t memory_bytes; /* the limit */
};

static const struct parts good = {
    .key = "admin",
    .method = "PATCH",
    .resource = "Person",
    .conditions = "Name=Ann",
    .metas = "limit=1",
    .end = "",
    .accept = "*/*",
    .type = "application/json",
    .match = "*",
    .body = "{\"Name\":\"Ann\"}",
};

/* In the order in which they are looked for. */
static const struct {
    struct parts fault;
    enum err_code code;
} faults[] = {
    {{.key = "wrong"}, ERR_NOT_SIGNED_IN},
    {{.end = "/4"}, ERR_INVALID_URI_SYNTAX},
    {{.resource = "Nobody"}, ERR_UNKNOWN_RESOURCE},
    {{.method = "BREW"}, ERR_UNKNOWN_METHOD},
    {{.resource = "Archive"}, ERR_METHOD_NOT_ALLOWED},
    {{.key = "reader"}, ERR_NOT_AUTHORIZED},
    {{.conditions = "Name"}, ERR_INVALID_CONDITION_SYNTAX},
    {{.metas = "limit"}, ERR_INVALID_META_SYNTAX},
    {{.conditions = "Nam=Ann"}, ERR_UNKNOWN_PROPERTY},
    {{.metas = "limt=1"}, ERR_INVALID_META_KEY},
    {{.metas = "search_regex=("}, ERR_INVALID_META_SYNTAX},
    {{.accept = "image/png"}, ERR_NOT_ACCEPTABLE},
    {{.type = "image/png"}, ERR_UNSUPPORTED_CONTENT},
    {{.memory_bytes = 1}, ERR_OVERLOADED},
    {{.body = ""}, ERR_NO_DATA_SOURCE},
    {{.body = "{"}, ERR_FAILED_JSON},
    {{.body = "[]"}, ERR_DATA_SOURCE_FORMAT},
    {{.conditions = "Name=Bob"}, ERR_UNKNOWN_ENTITY},
    {{.metas = "limit=-1&offset=0"}, ERR_AMBIGUOUS_MATCH},
    {{.match = "\"0\""}, ERR_PRECONDITION_FAILED},
    {{.body = "{\"Nam\":1}"}, ERR_UNKNOWN_MEMBER},
};

enum { FAULTS = ARRAY_LEN(faults), FAULT_PAIRS = FAULTS * FAULTS };

static const char *other(const char *changed, const char *as_it_is)
{
    return changed != NULL ? changed : as_it_is;
}

static struct parts with(struct parts p, const struct parts *fault)
{
    return (struct parts){
        .key = other(fault->key, p.key),
        .method = other(fault->method, p.method),
        .resource = other(fault->resource, p.resource),
        .conditions = other(fault->conditions, p.conditions),
        .metas = other(fault->metas, p.metas),
        .end = other(fault->end, p.end),
        .accept = other(fault->accept, p.accept),
        .type = other(fault->type, p.type),
        .match = other(fault->match, p.match),
        .body = other(fault->body, p.body),
        .memory_bytes = MAX(fault->memory_bytes, p.memory_bytes),
    };
}

static void ask_parts(const struct parts *p)
{
    asking.service->limits.memory_bytes = p->memory_bytes;
    ask_with(asking_printf("Authorization: apikey %s\nAccept: %s\nContent-Type: %s\nIf-Match: %s",
                           p->key, p->accept, p->type, p->match),
             p->method, asking_printf("/%s/%s/%s%s", p->resource, p->conditions, p->metas, p->end),
             p->body);
}

/* Two Anns, so that what has no limit matches several. */
static void make_anns(void)
{
    ck_asks(201, "POST", "/Person", "[{\"Name\":\"Ann\"},{\"Name\":\"Ann\"}]");
    require_keys();
}

START_TEST(the_first_fault_is_the_answer)
{
    size_t first = (size_t)_i / FAULTS, second = (size_t)_i % FAULTS;
    struct span before;
    struct parts p;

    if (first > second)
        return;
    make_anns();
    before = asking_entities("Shop.Person");
    p = with(good, &faults[second].fault);
    p = with(p, &faults[first].fault);
    ask_parts(&p);
    ck_assert_msg(asking.answer.error == faults[first].code, "%zu before %zu: %.*s", first, second,
                  SPAN_FMT(answered_body()));
    ck_assert_int_eq(asking.answer.status, err_info(faults[first].code)->status);
    ck_span_is(asking_entities("Shop.Person"), before);
}
END_TEST

START_TEST(without_a_fault_it_succeeds)
{
    make_anns();
    ask_parts(&good);
    ck_status(200);
}
END_TEST

START_TEST(a_target_is_decoded_before_it_is_read)
{
    ck_refuses(ERR_INVALID_URI_SYNTAX, "%zz", "POST", "/Nobody/Name=%zz", "{}");
    ck_refuses(ERR_INVALID_URI_SYNTAX, "%zz", "GET", "/%zz/x", NULL);
    ck_refuses(ERR_UNKNOWN_RESOURCE, "'Nobody'", "GET", "/Nobody/x/y", NULL);
    ck_refuses(ERR_METHOD_NOT_ALLOWED, "POST", "POST", "/Archive/x/y", NULL);
}
END_TEST

/* ---- answers with an error ---- */

START_TEST(a_problem_tells_where_it_is_stored)
{
    struct span link, expected;

    ck_refuses(ERR_UNKNOWN_RESOURCE, "Svc could not locate any resource by 'Nobody'.", "GET",
               "/Nobody", NULL);
    link = answered_header("ErrorInfo");
    ck_assert(span_starts(link, SPAN("/Svc.Admin.Error/id=")));
    expected = arena_printf(&asking.arena,
                            "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
                            "\"detail\":\"Svc could not locate any resource by 'Nobody'.\","
                            "\"instance\":\"%.*s\",\"ErrorCode\":\"UnknownResource\"}",
                            SPAN_FMT(link));
    ck_span_is(answered_body(), expected);
    ck_span_eq(asking.answer.content_type, "application/problem+json");
    ck_header_eq("Svc-info", "Svc could not locate any resource by 'Nobody'.");
    ck_header_eq("Vary", "Accept");
    ck_assert_uint_eq(asking.answer.header_count, 3);
    ck_assert_uint_eq(asking.answer.serial, asking_serial() - 2); /* what was there, not itself */
    link = arena_copy(&asking.arena, link);
    ck_asks(200, "GET", asking_printf("%.*s", SPAN_FMT(link)), NULL);
    ck_member_eq("0.ErrorCode", "\"UnknownResource\"");
}
END_TEST

START_TEST(what_was_begun_of_an_answer_is_dropped)
{
    ck_asks(201, "POST", "/Person", "[{\"Name\":\"Ann\"},{\"Name\":\"Bob\"}]");
    response_done(&asking.answer);
    response_init(&asking.answer, 400);
    ask("GET", "/Person", NULL);
    ck_status(200);
    ck_assert_ptr_nonnull(answered_header("Svc-count").p);
    ck_asks(201, "POST", "/Person",
            "[{\"Name\":\"Cid\"},{\"Name\":\"Dan\"},{\"Name\":\"Eve\"},{\"Name\":\"Fay\"}]");
    ask("GET", "/Person", NULL);
    ck_problem(ERR_PAYLOAD_TOO_LARGE, "AnswerBytes");
    ck_assert_ptr_null(answered_header("Svc-count").p);
    ck_assert_uint_eq(asking.answer.header_count, 3); /* Svc-info, ErrorInfo, Vary */
    ck_assert_uint_eq(asking.answer.serial, 0);
}
END_TEST

START_TEST(a_message_is_no_way_into_the_head)
{
    ck_refuses(ERR_UNKNOWN_RESOURCE, "\r\nX: y\x7f", "GET", "/a%0D%0AX:%20y%7F", NULL);
    ck_header_eq("Svc-info", "Svc could not locate any resource by 'a  X: y '.");
}
END_TEST

START_TEST(what_a_refusal_offers)
{
    ck_refuses(ERR_METHOD_NOT_ALLOWED, "'Shop.Archive' does not support DELETE", "DELETE",
               "/Archive", NULL);
    ck_header_eq("Allow", "GET, REPORT, HEAD");
    ck_refuses(ERR_METHOD_NOT_ALLOWED, "'Shop.Placed' does not support POST", "POST", "/Placed",
               "{}");
    ck_header_eq("Allow", "");
    ck_refuses(ERR_UNKNOWN_METHOD, "'BREW' is not known", "BREW", "/Archive", NULL);
    ck_assert_ptr_null(answered_header("Allow").p);
    require_keys();
    ck_refuses(ERR_NOT_SIGNED_IN, "", "GET", "/Person", NULL);
    ck_header_eq("WWW-Authenticate", "apikey realm=\"Svc\"");
}
END_TEST

START_TEST(some_errors_are_not_stored)
{
    require_keys();
    ck_refuses(ERR_NOT_SIGNED_IN, "", "GET", "/Person", NULL);
    ask_with("Authorization: apikey reader", "DELETE", "/Person", NULL);
    ck_problem(ERR_NOT_AUTHORIZED, "the API key may not use DELETE on 'Shop.Person'");
    asking.service->limits.memory_bytes = 1;
    ask_with(admin, "POST", "/Person", "{\"Name\":\"Ann\"}");
    ck_problem(ERR_OVERLOADED, "the limit MemoryBytes (1) is reached");
    ck_header_eq("Retry-After", "5");
    ck_assert_ptr_null(answered("instance").p);
    ck_assert_ptr_null(answered_header("ErrorInfo").p);
    ask_with(admin, "OPTIONS", "/Nobody", NULL);
    ck_problem(ERR_UNKNOWN_RESOURCE, "");
    ck_assert_ptr_null(answered_header("ErrorInfo").p);
    ck_assert_uint_eq(errors(), 0);
    ask_with(admin, "GET", "/Nobody", NULL);
    ck_assert_uint_eq(errors(), 1);
}
END_TEST

/* ---- MemoryBytes ---- */

START_TEST(past_memory_bytes_nothing_is_taken_in)
{
    static const struct {
        const char *method, *target, *body;
        int status;
    } requests[] = {
        {"POST", "/Person", "{\"Name\":\"Bob\"}", 503},
        {"PUT", "/Person/Name=Ann", "{\"Name\":\"Bob\"}", 503},
        {"PATCH", "/Person/Name=Ann", "{\"Name\":\"Bob\"}", 503},
        {"POST", "/Svc.Event", "{\"Resource\":\"Placed\",\"Payload\":{}}", 503},
        {"GET", "/Person/Name=Ann", NULL, 200},
        {"REPORT", "/Person", NULL, 200},
        {"HEAD", "/Person", NULL, 200},
        {"OPTIONS", "/Person", NULL, 200},
        {"DELETE", "/Person/Name=Ann", NULL, 200},
    };
    uint64_t hits = 0;

    ck_asks(201, "POST", "/Person", "{\"Name\":\"Ann\"}");
    asking.service->limits.memory_bytes = 1;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        ck_asks(requests[i].status, requests[i].method, requests[i].target, requests[i].body);
        hits += requests[i].status == 503;
    }
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_MEMORY_BYTES], hits);
    asking.service->limits.memory_bytes = INT64_MAX;
    ck_asks(201, "POST", "/Person", "{\"Name\":\"Bob\"}");
}
END_TEST

/* ---- BasePath ---- */

static const struct {
    const char *target;
    enum err_code code; /* ERR_NO_ERROR: it is answered */
} based[] = {
    {"/v1/Person", ERR_NO_ERROR},
    {"/v1", ERR_NO_ERROR},
    {"/v1/", ERR_NO_ERROR},
    {"/v1/?/Person", ERR_NO_ERROR},
    {"/v1/Svc.Admin.Error/_/limit=1", ERR_NO_ERROR},
    {"/Person", ERR_INVALID_URI_SYNTAX},
    {"/v1x/Person", ERR_INVALID_URI_SYNTAX},
    {"/V1/Person", ERR_NO_ERROR},
    {"/", ERR_INVALID_URI_SYNTAX},
    {"", ERR_INVALID_URI_SYNTAX},
    {"/v1/v1/Person", ERR_UNKNOWN_RESOURCE},
    {"/v1/Nobody", ERR_UNKNOWN_RESOURCE},
};

START_TEST(targets_begin_with_the_base_path)
{
    asking_below("/v1");
    ask("GET", based[_i].target, NULL);
    ck_assert_int_eq(asking.answer.error, based[_i].code);
    if (asking.answer.error == ERR_NO_ERROR)
        return;
    ck_assert(span_starts(answered_header("ErrorInfo"), SPAN("/Svc.Admin.Error/id=")));
    ck_asks(200, "GET", "/v1/Error/_/select=Uri", NULL);
    if (span_str(based[_i].target).n == 0 || based[_i].code == ERR_INVALID_URI_SYNTAX)
        ck_assert_str_eq(answered_text("0.Uri"), based[_i].target); /* as it came */
}
END_TEST

START_TEST(local_requests_have_no_base_path)
{
    struct request request = {.method = SPAN("GET"), .target = SPAN("/Person"), .is_local = true};

    asking_below("/v1");
    ask_request(&request);
    ck_status(204);
    request.target = SPAN("/v1/Person");
    ask_request(&request);
    ck_problem(ERR_UNKNOWN_RESOURCE, "'v1'");
}
END_TEST

/* ---- local requests ---- */

static const struct {
    const char *method, *body;
    int status; /* of a local one */
} lists[] = {
    {"PATCH", "[{\"Name\":\"Bob\"}]", 200},
    {"PUT", "[{\"Name\":\"Bob\"}]", 200},
    {"PATCH", "[]", 400},
    {"PATCH", "[{\"Name\":\"Bob\"},{\"Name\":\"Bob\"}]", 400},
    {"PUT", "[5]", 400},
    {"PATCH", "5", 400},
};

/* A webhook sends an array, of one entity too. */
START_TEST(a_local_request_may_send_an_array_of_one)
{
    struct request request = {
        .method = span_str(lists[_i].method),
        .target = SPAN("/Person/Name=Ann"),
        .body = span_str(lists[_i].body),
    };

    ck_asks(201, "POST", "/Person", "{\"Name\":\"Ann\"}");
    ask_request(&request);
    ck_problem(lists[_i].body[0] == '[' ? ERR_DATA_SOURCE_FORMAT : ERR_INVALID_ENTITY,
               "takes one JSON object as its body");
    request.is_local = true;
    ask_request(&request);
    ck_status(lists[_i].status);
}
END_TEST

/* ---- OPTIONS ---- */

START_TEST(options_tell_what_there_is)
{
    ck_asks(200, "OPTIONS", "/Person/whatever", NULL);
    ck_body_eq("[{\"Resource\":\"Shop.Person\",\"ResourceKind\":\"EntityResource\",\"Methods\":"
               "[\"GET\",\"POST\",\"PATCH\",\"PUT\",\"DELETE\",\"REPORT\",\"HEAD\"]}]");
    ck_header_eq("Allow", "GET, POST, PATCH, PUT, DELETE, REPORT, HEAD");
    ck_asks(200, "OPTIONS", "*", NULL);
    ck_member_eq("0.Resource", "\"Svc.AvailableResource\"");
    asking_below("/v1");
    ck_asks(200, "OPTIONS", "*", NULL);
    ck_member_eq("0.Resource", "\"Svc.AvailableResource\"");
    ck_asks(400, "OPTIONS", "/Person", NULL);
    require_keys();
    ck_asks(401, "OPTIONS", "/v1/Person", NULL);
    ask_with("Authorization: apikey reader", "OPTIONS", "/v1/Person", NULL);
    ck_status(200);
    ask_with("Authorization: apikey reader", "OPTIONS", "/v1/Svc.Event", NULL);
    ck_problem(ERR_NOT_AUTHORIZED, "OPTIONS");
    ck_assert_uint_eq(errors(), 0);
}
END_TEST

START_TEST(a_star_is_a_target_of_options_alone)
{
    ck_refuses(ERR_INVALID_URI_SYNTAX, "*", "GET", "*", NULL);
}
END_TEST

/* ---- the list of resources ---- */

START_TEST(every_key_may_list_resources)
{
    require_keys();
    asking_add_key("none", "[]");
    ask_with("Authorization: apikey none", "GET", "/", NULL);
    ck_assert_int_eq(asking.answer.error, ERR_NO_ERROR);
    ask_with("Authorization: apikey none", "REPORT", "/_", NULL);
    ck_status(200);
    ask_with("Authorization: apikey none", "GET", "/Person", NULL);
    ck_problem(ERR_NOT_AUTHORIZED, "may not use GET on 'Shop.Person'");
}
END_TEST

/* ---- what is no request ---- */

START_TEST(a_refusal_is_not_stored)
{
    ck_asks(201, "POST", "/Person", "{\"Name\":\"Ann\"}");
    dispatch_refuse(&asking.answer, 431, ERR_INVALID_URI_SYNTAX, SPAN("too \"long\""), 0);
    ck_body_eq(
        "{\"type\":\"about:blank\",\"title\":\"Request Header Fields Too Large\","
        "\"status\":431,\"detail\":\"too \\\"long\\\"\",\"ErrorCode\":\"InvalidUriSyntax\"}");
    ck_assert_int_eq(asking.answer.error, ERR_INVALID_URI_SYNTAX);
    ck_assert_uint_eq(asking.answer.header_count, 1); /* Svc-info: Location is gone */
    ck_assert_uint_eq(asking.answer.serial, 0);
    dispatch_refuse(&asking.answer, 503, ERR_OVERLOADED, SPAN("busy"), 7);
    ck_header_eq("Retry-After", "7");
    ck_assert_uint_eq(errors(), 0);
}
END_TEST

/* ---- a full disk ---- */

#ifdef SVCD_FAULTS

/* More than a segment holds, so that the next one has to be made. */
static const char *a_large_entity(void)
{
    enum { BYTES = 100000 };
    char *text = arena_alloc(&asking.arena, BYTES + 32);
    int n = snprintf(text, 32, "{\"Name\":\"");

    memset(text + n, 'x', BYTES);
    memcpy(text + n + BYTES, "\"}", sizeof("\"}"));
    return text;
}

START_TEST(on_a_full_disk_nothing_has_changed)
{
    const char *large = a_large_entity();

    ck_asks(201, "POST", "/Person", "{\"Name\":\"Ann\"}");
    asking_commit();
    ck_assert(fault_set("disk.allocate:1+"));
    ask("POST", "/Person", large);
    ck_problem(ERR_STORAGE_FAILURE, "");
    ck_assert_uint_eq(asking_count("Shop.Person"), 1);
    ck_assert_uint_eq(asking.answer.serial, 0);
    ck_asks(200, "GET", "/Person/Name=Ann", NULL);
    ck_assert(fault_set(NULL));
    ck_asks(200, "DELETE", "/Person/Name=Ann", NULL);
}
END_TEST

#endif

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, the_first_fault_is_the_answer, 0, FAULT_PAIRS);
    tcase_add_test(tc, without_a_fault_it_succeeds);
    tcase_add_test(tc, a_target_is_decoded_before_it_is_read);
    tcase_add_test(tc, a_problem_tells_where_it_is_stored);
    tcase_add_test(tc, what_was_begun_of_an_answer_is_dropped);
    tcase_add_test(tc, a_message_is_no_way_into_the_head);
    tcase_add_test(tc, what_a_refusal_offers);
    tcase_add_test(tc, some_errors_are_not_stored);
    tcase_add_test(tc, past_memory_bytes_nothing_is_taken_in);
    tcase_add_loop_test(tc, targets_begin_with_the_base_path, 0, ARRAY_LEN(based));
    tcase_add_test(tc, local_requests_have_no_base_path);
    tcase_add_loop_test(tc, a_local_request_may_send_an_array_of_one, 0, ARRAY_LEN(lists));
    tcase_add_test(tc, options_tell_what_there_is);
    tcase_add_test(tc, a_star_is_a_target_of_options_alone);
    tcase_add_test(tc, every_key_may_list_resources);
    tcase_add_test(tc, a_refusal_is_not_stored);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, on_a_full_disk_nothing_has_changed);
#endif
}
