/* Requests word by word, and answers: good ones, as etcd 3.4 gives them, and what is none. */
#include "../../../src/fetch/etcd_wire.h"

#include "testing.h"

#include "base/macros.h"

static struct arena arena;
static struct buf text;

static void begin(void)
{
    arena_init(&arena);
    buf_init(&text, BUF_NO_CAP);
}

static void end(void)
{
    buf_done(&text);
    arena_done(&arena);
}

START_TEST(a_transaction_says_everything)
{
    const struct etcd_compare compares[] = {
        {.key = SPAN("leader"), .create_revision = INT64_MAX},
        {.key = SPAN("log/1"), .range_end = SPAN("log0")},
    };
    const struct etcd_op then[] = {
        {.kind = ETCD_PUT, .key = SPAN("a"), .value = SPAN("\0\1"), .lease = INT64_MAX},
        {.kind = ETCD_DELETE, .key = SPAN("a"), .range_end = SPAN("b")},
    };
    const struct etcd_op otherwise = {.kind = ETCD_GET,
                                      .key = SPAN("a"),
                                      .range_end = SPAN("b"),
                                      .limit = 2,
                                      .revision = 3,
                                      .keys_only = true,
                                      .descending = true};

    begin();
    etcd_wire_add_txn(&text, &(struct etcd_txn){compares, 2, then, 2, &otherwise, 1});
    ck_span_eq(
        buf_span(&text),
        "{\"compare\":["
        "{\"result\":\"EQUAL\",\"target\":\"CREATE\",\"key\":\"bGVhZGVy\","
        "\"create_revision\":\"9223372036854775807\"},"
        "{\"result\":\"EQUAL\",\"target\":\"CREATE\",\"key\":\"bG9nLzE=\",\"range_end\":"
        "\"bG9nMA==\",\"create_revision\":\"0\"}],"
        "\"success\":[{\"request_put\":{\"key\":\"YQ==\",\"value\":\"AAE=\",\"lease\":"
        "\"9223372036854775807\"}},"
        "{\"request_delete_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\"}}],"
        "\"failure\":[{\"request_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"limit\":\"2\","
        "\"revision\":\"3\",\"sort_order\":\"DESCEND\",\"sort_target\":\"KEY\","
        "\"keys_only\":true}}]}");
    end();
}
END_TEST

START_TEST(other_requests)
{
    begin();
    etcd_wire_add_number(&text, SPAN("ID"), INT64_C(9007199254740993));
    etcd_wire_add_number(&text, SPAN("TTL"), 0);
    etcd_wire_add_sign_in(&text, SPAN("a\"b"), SPAN("p"));
    ck_span_eq(buf_span(&text), "{\"ID\":\"9007199254740993\"}{}"
                                "{\"name\":\"a\\\"b\",\"password\":\"p\"}");
    buf_clear(&text);
    etcd_wire_add_watch(&text, SPAN("a"), SPAN("b"), 7);
    ck_span_eq(buf_span(&text),
               "{\"create_request\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"start_revision\":"
               "\"7\",\"progress_notify\":true,\"fragment\":true}}");
    end();
}
END_TEST

#define HEADER "\"header\":{\"cluster_id\":\"1\",\"revision\":\"12\",\"raft_term\":\"2\"}"
#define ERROR(code, message)                                                                       \
    "{\"error\":\"" message "\",\"message\":\"" message "\",\"code\":" #code "}"

static const struct {
    enum etcd_call_kind kind;
    int status;
    const char *body;
    enum etcd_outcome outcome;
} answers[] = {
    {ETCD_CALL_TXN, 200, "{" HEADER ",\"succeeded\":true}", ETCD_DONE},
    {ETCD_CALL_TXN, 200, "{" HEADER "}", ETCD_REFUSED},
    {ETCD_CALL_TXN, 200, "{" HEADER ",\"succeeded\":false}", ETCD_REFUSED},
    {ETCD_CALL_TXN, 200, "{" HEADER ",\"succeeded\":\"true\"}", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "{" HEADER ",\"succeeded\":true,\"responses\":{}}", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "{" HEADER ",\"succeeded\":true,\"responses\":[{}]}", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "{\"header\":{\"revision\":\"x\"},\"succeeded\":true}", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "{\"header\":{\"revision\":\"9223372036854775808\"}}", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "{\"header\":{\"cluster_id\":\"18446744073709551616\"}}", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "[]", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "{", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 200, "<html>", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 503, "", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 502, "<html>", ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 500, ERROR(2, "context deadline exceeded"), ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 503, ERROR(14, "etcdserver: request timed out"), ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 503, ERROR(14, "etcdserver: leader changed"), ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 429, ERROR(8, "etcdserver: mvcc: database space exceeded"), ETCD_FULL},
    {ETCD_CALL_GRANT, 429, ERROR(8, "etcdserver: mvcc: database space exceeded"), ETCD_FULL},
    {ETCD_CALL_TXN, 429, ERROR(8, "grpc: received message larger than max (3 vs. 2)"),
     ETCD_TOO_LARGE},
    {ETCD_CALL_TXN, 429, ERROR(8, "etcdserver: too many requests"), ETCD_UNKNOWN},
    {ETCD_CALL_TXN, 400, ERROR(3, "etcdserver: request is too large"), ETCD_TOO_LARGE},
    {ETCD_CALL_TXN, 413, "", ETCD_TOO_LARGE},
    {ETCD_CALL_TXN, 400, ERROR(3, "etcdserver: duplicate key given in txn request"), ETCD_INVALID},
    {ETCD_CALL_TXN, 400, ERROR(3, "etcdserver: too many operations in txn request"), ETCD_INVALID},
    {ETCD_CALL_TXN, 400, ERROR(3, "etcdserver: user name is empty"), ETCD_DENIED},
    {ETCD_CALL_TXN, 401, ERROR(16, "etcdserver: invalid auth token"), ETCD_DENIED},
    {ETCD_CALL_TXN, 403, ERROR(7, "etcdserver: permission denied"), ETCD_DENIED},
    {ETCD_CALL_TXN, 404, ERROR(5, "etcdserver: requested lease not found"), ETCD_REFUSED},
    {ETCD_CALL_TXN, 404, "404 page not found", ETCD_INVALID},
    {ETCD_CALL_TXN, 405, "", ETCD_INVALID},
    {ETCD_CALL_RANGE, 200, "{" HEADER "}", ETCD_DONE},
    {ETCD_CALL_RANGE, 200, "{" HEADER ",\"kvs\":[{\"key\":\"!\"}],\"count\":\"1\"}", ETCD_UNKNOWN},
    {ETCD_CALL_RANGE, 200, "{" HEADER ",\"kvs\":[{\"key\":\"YQ\"}]}", ETCD_UNKNOWN},
    {ETCD_CALL_RANGE, 200, "{" HEADER ",\"kvs\":[{}]}", ETCD_UNKNOWN},
    {ETCD_CALL_RANGE, 200, "{" HEADER ",\"kvs\":7}", ETCD_UNKNOWN},
    {ETCD_CALL_RANGE, 400, ERROR(11, "etcdserver: mvcc: required revision has been compacted"),
     ETCD_COMPACTED},
    {ETCD_CALL_RANGE, 400, ERROR(11, "etcdserver: mvcc: required revision is a future revision"),
     ETCD_COMPACTED},
    {ETCD_CALL_COMPACT, 200, "{" HEADER "}", ETCD_DONE},
    {ETCD_CALL_COMPACT, 400, ERROR(11, "etcdserver: mvcc: required revision has been compacted"),
     ETCD_COMPACTED},
    {ETCD_CALL_GRANT, 200, "{" HEADER ",\"ID\":\"1\",\"TTL\":\"5\"}", ETCD_DONE},
    {ETCD_CALL_GRANT, 200, "{" HEADER ",\"TTL\":\"5\"}", ETCD_UNKNOWN},
    {ETCD_CALL_GRANT, 200, "{" HEADER ",\"ID\":{},\"TTL\":\"5\"}", ETCD_UNKNOWN},
    {ETCD_CALL_KEEPALIVE, 200, "{\"result\":{" HEADER ",\"ID\":\"1\",\"TTL\":\"5\"}}", ETCD_DONE},
    {ETCD_CALL_KEEPALIVE, 200, "{\"result\":{" HEADER ",\"ID\":\"1\"}}", ETCD_REFUSED},
    {ETCD_CALL_KEEPALIVE, 200, "{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}",
     ETCD_UNKNOWN},
    {ETCD_CALL_KEEPALIVE, 200, "{\"result\":{" HEADER ",\"ID\":\"1\",\"TTL\":\"-1\"}}",
     ETCD_REFUSED},
    {ETCD_CALL_REVOKE, 404, ERROR(5, "etcdserver: requested lease not found"), ETCD_REFUSED},
    {ETCD_CALL_REVOKE, 200, "{" HEADER "}", ETCD_DONE},
    {ETCD_CALL_SIGN_IN, 200, "{" HEADER ",\"token\":\"t\"}", ETCD_DONE},
    {ETCD_CALL_SIGN_IN, 200, "{" HEADER "}", ETCD_UNKNOWN},
    {ETCD_CALL_SIGN_IN, 400,
     ERROR(3, "etcdserver: authentication failed, invalid user ID or password"), ETCD_DENIED},
    {ETCD_CALL_SIGN_IN, 400, ERROR(9, "etcdserver: authentication is not enabled"), ETCD_DENIED},
};

START_TEST(each_answer_has_its_outcome)
{
    struct etcd_answer answer;
    struct span token;

    begin();
    etcd_wire_read(answers[_i].kind, answers[_i].status, span_str(answers[_i].body), &arena,
                   &answer, &token);
    ck_assert_msg(answer.outcome == answers[_i].outcome, "%d %s is %d, should be %d",
                  answers[_i].status, answers[_i].body, (int)answer.outcome,
                  (int)answers[_i].outcome);
    ck_assert_int_eq(answer.outcome == ETCD_DONE, answer.why[0] == '\0');
    end();
}
END_TEST

START_TEST(what_an_answer_holds)
{
    struct etcd_answer answer;
    struct span token;

    begin();
    etcd_wire_read(
        ETCD_CALL_TXN, 200,
        SPAN("{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_put\":{" HEADER "}},"
             "{\"response_delete_range\":{\"deleted\":\"3\"}},{\"response_delete_range\":{}},"
             "{\"response_range\":{\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":\"2\","
             "\"mod_revision\":\"3\",\"version\":\"1\",\"value\":\"AAE=\",\"lease\":"
             "\"7587894849090901234\"},{\"key\":\"Yg==\"}],\"more\":true,\"count\":\"5\"}}]}"),
        &arena, &answer, &token);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    ck_assert_int_eq(answer.revision, 12);
    ck_assert_uint_eq(answer.op_count, 4);
    ck_assert_int_eq(answer.ops[0].kind, ETCD_PUT);
    ck_assert_int_eq(answer.ops[1].deleted, 3);
    ck_assert_int_eq(answer.ops[2].deleted, 0);
    ck_assert(answer.ops[3].more);
    ck_assert_int_eq(answer.ops[3].count, 5);
    ck_assert_uint_eq(answer.ops[3].kv_count, 2);
    ck_span_eq(answer.ops[3].kvs[0].key, "a");
    ck_span_eq(answer.ops[3].kvs[0].value, "\0\1");
    ck_assert_int_eq(answer.ops[3].kvs[0].create_revision, 2);
    ck_assert_int_eq(answer.ops[3].kvs[0].mod_revision, 3);
    ck_assert_int_eq(answer.ops[3].kvs[0].lease, INT64_C(7587894849090901234));
    ck_span_eq(answer.ops[3].kvs[1].value, "");
    etcd_wire_read(ETCD_CALL_GRANT, 200, SPAN("{\"ID\":\"9007199254740993\",\"TTL\":\"5\"}"),
                   &arena, &answer, &token);
    ck_assert_int_eq(answer.lease, INT64_C(9007199254740993));
    ck_assert_int_eq(answer.ttl_s, 5);
    etcd_wire_read(ETCD_CALL_SIGN_IN, 200, SPAN("{\"token\":\"abc.7\"}"), &arena, &answer, &token);
    ck_span_eq(token, "abc.7");
    end();
}
END_TEST

START_TEST(a_bad_token_is_told_from_a_missing_right)
{
    static const struct {
        int status;
        const char *body;
        bool is_bad;
    } cases[] = {
        {401, ERROR(16, "etcdserver: invalid auth token"), true},
        {400, ERROR(3, "etcdserver: user name is empty"), false},
        {403, ERROR(7, "etcdserver: permission denied"), false},
        {400, ERROR(3, "etcdserver: revision of auth store is old"), false},
    };
    struct etcd_answer answer;
    struct span token;

    begin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        etcd_wire_read(ETCD_CALL_TXN, cases[i].status, span_str(cases[i].body), &arena, &answer,
                       &token);
        ck_assert_int_eq(etcd_wire_is_bad_token(cases[i].status, &answer), cases[i].is_bad);
    }
    end();
}
END_TEST

static const struct {
    const char *line;
    enum etcd_line_kind kind;
    size_t count;
} lines[] = {
    {"{\"result\":{" HEADER ",\"created\":true}}", ETCD_LINE_EVENTS, 0},
    {"{\"result\":{" HEADER "}}", ETCD_LINE_EVENTS, 0},
    {"{\"result\":{" HEADER ",\"events\":[{\"kv\":{\"key\":\"YQ==\",\"mod_revision\":\"3\"}},"
     "{\"type\":\"DELETE\",\"kv\":{\"key\":\"YQ==\",\"mod_revision\":\"4\"}}]}}",
     ETCD_LINE_EVENTS, 2},
    {"{\"result\":{" HEADER ",\"canceled\":true,\"compact_revision\":\"2\"}}", ETCD_LINE_COMPACTED,
     0},
    {"{\"result\":{" HEADER ",\"canceled\":true,\"cancel_reason\":\"etcdserver: permission "
     "denied\"}}",
     ETCD_LINE_DENIED, 0},
    {"{\"result\":{" HEADER ",\"canceled\":true,\"cancel_reason\":\"etcdserver: no leader\"}}",
     ETCD_LINE_LOST, 0},
    {"{\"result\":{" HEADER ",\"canceled\":true,\"cancel_reason\":\"rpc error: invalid auth "
     "token\"}}",
     ETCD_LINE_BAD_TOKEN, 0},
    {"{\"result\":{" HEADER ",\"created\":true,\"canceled\":true}}", ETCD_LINE_CANCELLED, 0},
    {"{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"etcdserver: no leader\"}}",
     ETCD_LINE_LOST, 0},
    {"{\"error\":{\"grpc_code\":16,\"message\":\"etcdserver: invalid auth token\"}}",
     ETCD_LINE_BAD_TOKEN, 0},
    {"{\"error\":{\"grpc_code\":7,\"message\":\"etcdserver: permission denied\"}}",
     ETCD_LINE_DENIED, 0},
    {"{\"error\":{\"grpc_code\":11,\"message\":\"compacted\"}}", ETCD_LINE_COMPACTED, 0},
    {"{\"error\":{\"grpc_code\":13,\"message\":\"unexpected EOF\"}}", ETCD_LINE_LOST, 0},
    {"{\"result\":{\"events\":[{\"type\":\"ELSE\",\"kv\":{\"key\":\"YQ==\"}}]}}", ETCD_LINE_LOST,
     0},
    {"{\"result\":{\"events\":[{}]}}", ETCD_LINE_LOST, 0},
    {"{\"result\":{\"events\":{}}}", ETCD_LINE_LOST, 0},
    {"{\"result\":[]}", ETCD_LINE_LOST, 0},
    {"{}", ETCD_LINE_LOST, 0},
    {"", ETCD_LINE_LOST, 0},
    {"{\"result\":{\"events\":[", ETCD_LINE_LOST, 0},
};

START_TEST(each_line_of_a_watch)
{
    struct etcd_line line;

    begin();
    etcd_wire_read_line(span_str(lines[_i].line), &arena, &line);
    ck_assert_msg(line.kind == lines[_i].kind, "%s is %d", lines[_i].line, (int)line.kind);
    ck_assert_uint_eq(line.count, lines[_i].count);
    ck_assert_int_eq(line.kind == ETCD_LINE_EVENTS, line.why[0] == '\0');
    if (line.count == 2) {
        ck_assert(!line.events[0].is_delete && line.events[1].is_delete);
        ck_assert_int_eq(line.events[1].kv.mod_revision, 4);
    }
    end();
}
END_TEST

START_TEST(a_line_that_was_cut_says_so)
{
    struct etcd_line line;

    begin();
    etcd_wire_read_line(SPAN("{\"result\":{" HEADER ",\"fragment\":true,\"events\":[{\"kv\":"
                             "{\"key\":\"YQ==\"}}]}}"),
                        &arena, &line);
    ck_assert(line.is_cut);
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_transaction_says_everything);
    tcase_add_test(tc, other_requests);
    tcase_add_loop_test(tc, each_answer_has_its_outcome, 0, ARRAY_LEN(answers));
    tcase_add_test(tc, what_an_answer_holds);
    tcase_add_test(tc, a_bad_token_is_told_from_a_missing_right);
    tcase_add_loop_test(tc, each_line_of_a_watch, 0, ARRAY_LEN(lines));
    tcase_add_test(tc, a_line_that_was_cut_says_so);
}
