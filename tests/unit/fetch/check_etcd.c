/* The client against a receiver that answers as a script says: what goes out, what comes of each
 * answer, the next endpoint, signing in, watches. What the gateway says is check_etcd_wire.c's. */
#include "fetch/etcd.h"

#include "fetch_testing.h"
#include "testing.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define STREAM HEAD "Transfer-Encoding: chunked\r\n\r\n"
#define GOOD "{\"header\":{\"revision\":\"9\"},\"succeeded\":true,\"token\":\"t.1\"}"
#define EVENT(revision)                                                                            \
    "{\"result\":{\"events\":[{\"kv\":{\"key\":\"YQ==\",\"mod_revision\":\"" #revision "\"}}]}}\n"
#define CREATED "{\"result\":{\"header\":{\"revision\":\"1\"},\"created\":true}}\n"

static struct etcd *etcd;
static char urls[3][64], said[2048], password_path[80];
static const char *endpoints[3];
static struct etcd_call call;
static struct etcd_answer answer;
static unsigned answers;

static void script(const char *bytes, enum receiver_then then)
{
    receiver.script = (struct receiver_script){.bytes = bytes, .then = then};
}

static const char *with_length(const char *status, const char *body)
{
    snprintf(said, sizeof(said), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
             strlen(body), body);
    return said;
}

static const char *in_chunks(const char *first, const char *second)
{
    int n = snprintf(said, sizeof(said), STREAM "%zx\r\n%s\r\n", strlen(first), first);

    if (second != NULL)
        snprintf(said + n, sizeof(said) - (size_t)n, "%zx\r\n%s\r\n", strlen(second), second);
    return said;
}

static void begin_with(struct etcd_options options)
{
    begin_fetching();
    snprintf(urls[0], sizeof(urls[0]), "http://127.0.0.1:%u/", receiver.port);
    snprintf(urls[1], sizeof(urls[1]), "http://127.0.0.1:1");
    endpoints[0] = options.endpoint_count == 2 ? urls[1] : urls[0];
    endpoints[1] = urls[0];
    options.endpoints = endpoints;
    options.endpoint_count = MAX(options.endpoint_count, 1u);
    options.pause_least_ms = options.pause_most_ms = 2;
    ck_ok(etcd_new(&loop, resolver, &options, &etcd));
    answers = 0;
    call = (struct etcd_call){0};
}

static void begin(void)
{
    begin_with((struct etcd_options){.attempt_ms = 200});
}

static void end(void)
{
    etcd_free(etcd);
    end_fetching();
}

static void on_done(struct etcd_call *c, const struct etcd_answer *a)
{
    ck_assert_ptr_eq(c, &call);
    ck_assert(!etcd_is_started(c));
    answer = *a;
    answers++;
}

static void start(bool repeats)
{
    const struct etcd_op put = {.key = SPAN("a"), .value = SPAN("b")};

    call = (struct etcd_call){.on_done = on_done, .repeats = repeats};
    etcd_txn(etcd, &call, &(struct etcd_txn){.then = &put, .then_count = 1});
    ck_assert_uint_eq(answers, 0);
}

static void await(const unsigned *count, unsigned least)
{
    for (unsigned turn = 0; *count < least; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
}

static void run(bool repeats)
{
    start(repeats);
    await(&answers, 1);
    ck_assert_uint_eq(answers, 1);
}

static bool was_sent(const char *text)
{
    return span_find(buf_span(&receiver.last), span_str(text)) != SIZE_MAX;
}

START_TEST(what_goes_out)
{
    begin();
    script(with_length("200 OK", GOOD), THEN_KEEP);
    run(false);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    ck_assert_int_eq(answer.revision, 9);
    ck_assert_uint_eq(answer.attempts, 1);
    ck_assert(was_sent("POST /v3/kv/txn HTTP/1.1\r\n"));
    ck_assert(was_sent("Content-Type: application/json\r\n"));
    ck_assert(was_sent("Content-Length: "));
    ck_assert(!was_sent("Expect"));
    ck_assert(!was_sent("Authorization"));
    end();
}
END_TEST

/* A large one too goes out at once: libcurl would ask first (Expect: 100-continue). */
START_TEST(a_large_one_goes_out_whole)
{
    static char bytes[1500000];
    const struct etcd_op put = {.key = SPAN("a"), .value = span_of(bytes, sizeof(bytes))};

    begin_with((struct etcd_options){0});
    script(with_length("200 OK", GOOD), THEN_KEEP);
    call = (struct etcd_call){.on_done = on_done};
    etcd_txn(etcd, &call, &(struct etcd_txn){.then = &put, .then_count = 1});
    await(&answers, 1);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    ck_assert(!was_sent("Expect"));
    ck_assert_uint_gt(receiver.last.n, sizeof(bytes) / 3 * 4);
    end();
}
END_TEST

static void grant(void)
{
    etcd_lease_grant(etcd, &call, 5);
}

static void keep_alive(void)
{
    etcd_lease_keepalive(etcd, &call, INT64_C(9007199254740993));
}

static void give_back(void)
{
    etcd_lease_revoke(etcd, &call, 7);
}

static void range(void)
{
    etcd_range(etcd, &call, &(struct etcd_op){.kind = ETCD_GET, .key = SPAN("a")});
}

static void compact(void)
{
    etcd_compact(etcd, &call, 7);
}

static const struct {
    void (*start)(void);
    const char *path, *body;
} calls[] = {
    {grant, "/v3/lease/grant", "{\"TTL\":\"5\"}"},
    {keep_alive, "/v3/lease/keepalive", "{\"ID\":\"9007199254740993\"}"},
    {give_back, "/v3/lease/revoke", "{\"ID\":\"7\"}"},
    {range, "/v3/kv/range", "{\"key\":\"YQ==\""},
    {compact, "/v3/kv/compaction", "{\"revision\":\"7\"}"},
};

START_TEST(each_call)
{
    char line[64];

    begin();
    script(with_length("200 OK", "{\"ID\":\"7\",\"TTL\":\"5\",\"result\":{\"ID\":\"7\",\"TTL\":"
                                 "\"5\"},\"version\":\"3.4.23\"}"),
           THEN_KEEP);
    call = (struct etcd_call){.on_done = on_done};
    calls[_i].start();
    await(&answers, 1);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    snprintf(line, sizeof(line), "POST %s HTTP/1.1\r\n", calls[_i].path);
    ck_assert(was_sent(line));
    snprintf(line, sizeof(line), "\r\n\r\n%s", calls[_i].body);
    ck_assert(was_sent(line));
    end();
}
END_TEST

static const struct {
    const char *bytes;
    enum receiver_then then;
} silent[] = {
    {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", THEN_KEEP},
    {"HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\n{}", THEN_KEEP},
    {HEAD "Content-Length: 100\r\n\r\n{\"succeeded\":true", THEN_CLOSE},
    {HEAD "Content-Length: 100\r\n\r\n{\"succeeded\":true", THEN_HANG},
    {HEAD "Content-Length: 2\r\n\r\n[]", THEN_KEEP},
    {HEAD, THEN_RESET},
    {HEAD, THEN_HANG},
    {"no HTTP", THEN_CLOSE},
};

START_TEST(what_says_nothing)
{
    begin();
    script(silent[_i].bytes, silent[_i].then);
    run(false);
    ck_assert_int_eq(answer.outcome, ETCD_UNKNOWN);
    ck_assert(answer.why[0] != '\0');
    end();
}
END_TEST

START_TEST(the_next_endpoint)
{
    begin_with((struct etcd_options){.endpoint_count = 2});
    script(with_length("200 OK", GOOD), THEN_KEEP);
    run(true);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    ck_assert_uint_eq(answer.attempts, 2);
    answers = 0;
    run(false); /* which is used from then on */
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    end();
}
END_TEST

START_TEST(it_repeats_until_there_is_an_answer)
{
    begin();
    script(with_length("503 x", ""), THEN_KEEP);
    start(true);
    for (unsigned turn = 0; receiver.requests < 5; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(answers, 0);
    script(with_length("400 x", "{\"code\":3,\"message\":\"etcdserver: request is too large\"}"),
           THEN_KEEP);
    await(&answers, 1);
    ck_assert_int_eq(answer.outcome, ETCD_TOO_LARGE);
    ck_assert_uint_ge(answer.attempts, 5);
    end();
}
END_TEST

START_TEST(cancelled_or_freed_it_says_nothing)
{
    begin();
    script("", THEN_HANG);
    start(true);
    pass_ms(5);
    etcd_cancel(etcd, &call);
    etcd_cancel(etcd, &call);
    ck_assert(!etcd_is_started(&call));
    start(true);
    pass_ms(5);
    end();
    ck_assert_uint_eq(answers, 0);
}
END_TEST

/* Signing in. */

static void begin_as_user(void)
{
    snprintf(password_path, sizeof(password_path), "/tmp/check_etcd_password_%d", (int)getpid());
    write_file(password_path, "secret \r\nnot this\n");
    begin_with((struct etcd_options){
        .user = "u", .password_file = password_path, .attempt_ms = 500, .silence_ms = 500});
}

static void end_as_user(void)
{
    end();
    unlink(password_path);
}

START_TEST(it_signs_in_first)
{
    begin_as_user();
    script(with_length("200 OK", GOOD), THEN_KEEP);
    run(false);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    ck_assert_uint_eq(receiver.requests, 2);
    ck_assert(was_sent("\r\nAuthorization: t.1\r\n"));
    answers = 0;
    run(false);
    ck_assert_uint_eq(receiver.requests, 3);
    end_as_user();
}
END_TEST

START_TEST(a_bad_token_means_signing_in_again)
{
    begin_as_user();
    script(with_length("200 OK", GOOD), THEN_KEEP);
    run(false);
    answers = 0;
    script(with_length("401 x", "{\"code\":16,\"message\":\"etcdserver: invalid auth token\"}"),
           THEN_KEEP);
    start(false);
    for (unsigned turn = 0; !was_sent("/v3/auth/authenticate"); turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert(was_sent("{\"name\":\"u\",\"password\":\"secret \"}"));
    await(&answers, 1); /* which is refused as well */
    ck_assert_int_eq(answer.outcome, ETCD_DENIED);
    ck_assert(strstr(answer.why, "signing in as 'u'") != NULL);
    end_as_user();
}
END_TEST

#define GOOD_OF(id) "{\"header\":{\"cluster_id\":\"" id "\",\"revision\":\"9\"},\"succeeded\":true}"

/* Past 2^63 too: they are hashes. */
START_TEST(an_answer_of_another_cluster)
{
    begin();
    script(with_length("200 OK", GOOD_OF("14841639068965178418")), THEN_KEEP);
    run(false);
    ck_assert_uint_eq(answer.cluster_id, UINT64_C(14841639068965178418));
    etcd_keep_to(etcd, answer.cluster_id);
    ck_assert_uint_eq(etcd_kept_to(etcd), UINT64_C(14841639068965178418));
    answers = 0;
    run(false);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    answers = 0;
    script(with_length("200 OK", GOOD_OF("7")), THEN_KEEP);
    run(false);
    ck_assert_int_eq(answer.outcome, ETCD_UNKNOWN);
    ck_assert(answer.is_other);
    ck_assert_uint_eq(answer.cluster_id, 7);
    ck_assert(strstr(answer.why, "0000000000000007") != NULL);
    ck_assert(strstr(answer.why, "cdf818194e3a8c32") != NULL);
    answers = 0;
    call = (struct etcd_call){.on_done = on_done, .any_cluster = true};
    range();
    await(&answers, 1);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    ck_assert_uint_eq(answer.cluster_id, 7);
    answers = 0;
    script(with_length("200 OK", GOOD), THEN_KEEP); /* which says nothing of that */
    run(false);
    ck_assert_int_eq(answer.outcome, ETCD_DONE);
    end();
}
END_TEST

START_TEST(options_that_cannot_be)
{
    static const char *const one[] = {"http://127.0.0.1:1"}, *const bad[] = {"ftp://x"};
    struct etcd *none;

    begin();
    ck_fails(etcd_new(&loop, resolver, &(struct etcd_options){0}, &none), ERR_UNKNOWN,
             "1 to 16 addresses");
    ck_fails(etcd_new(&loop, resolver,
                      &(struct etcd_options){.endpoints = bad, .endpoint_count = 1}, &none),
             ERR_INVALID_ENTITY, "Etcd 'ftp://x'");
    ck_fails(etcd_new(&loop, resolver,
                      &(struct etcd_options){
                          .endpoints = one, .endpoint_count = 1, .cert_file = "/dev/null"},
                      &none),
             ERR_UNKNOWN, "one needs the other");
    ck_fails(etcd_new(&loop, resolver,
                      &(struct etcd_options){.endpoints = one,
                                             .endpoint_count = 1,
                                             .user = "u",
                                             .password_file = "/nowhere"},
                      &none),
             ERR_UNKNOWN, "PasswordFile '/nowhere'");
    ck_fails(etcd_new(&loop, resolver,
                      &(struct etcd_options){.endpoints = one,
                                             .endpoint_count = 1,
                                             .user = "u",
                                             .password_file = "/dev/null"},
                      &none),
             ERR_UNKNOWN, "is empty");
    ck_fails(etcd_new(&loop, resolver,
                      &(struct etcd_options){.endpoints = one,
                                             .endpoint_count = 1,
                                             .cert_file = "/nowhere",
                                             .key_file = "/nowhere"},
                      &none),
             ERR_UNKNOWN, "CertFile: '/nowhere'");
    end();
}
END_TEST

/* Watches. */

static struct etcd_watch watch;
static unsigned events, ends;
static int64_t last_revision;
static enum etcd_watch_end why_ended;

static void on_events(struct etcd_watch *w, const struct etcd_event *list, size_t count)
{
    ck_assert_ptr_eq(w, &watch);
    for (size_t i = 0; i < count; i++)
        last_revision = list[i].kv.mod_revision;
    events += (unsigned)count;
}

static void on_end(struct etcd_watch *w, enum etcd_watch_end reason, const char *why)
{
    ck_assert_ptr_eq(w, &watch);
    ck_assert(why[0] != '\0');
    why_ended = reason;
    ends++;
}

static void start_watch(void)
{
    events = ends = 0;
    last_revision = 0;
    watch = (struct etcd_watch){.on_events = on_events, .on_end = on_end};
    etcd_watch_start(etcd, &watch, SPAN("a"), SPAN("b"), 5);
}

static void await_requests(unsigned count)
{
    for (unsigned turn = 0; receiver.requests < count; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
}

START_TEST(a_watch_yields_and_goes_on)
{
    begin();
    script(in_chunks(CREATED EVENT(5), EVENT(8)), _i == 0 ? THEN_CLOSE : THEN_RESET);
    start_watch();
    await(&events, 2);
    ck_assert_int_eq(last_revision, 8);
    ck_assert(was_sent("\r\nGrpc-Metadata-hasleader: true\r\n"));
    ck_assert(was_sent("\"start_revision\":\"5\""));
    script(in_chunks(CREATED EVENT(9), NULL), THEN_HANG);
    await(&events, 3);
    ck_assert(was_sent("\"start_revision\":\"9\""));
    ck_assert_uint_eq(ends, 0);
    end();
}
END_TEST

/* Before anything of it is yielded. */
START_TEST(a_watch_of_another_cluster)
{
    begin();
    etcd_keep_to(etcd, 8);
    script(in_chunks("{\"result\":{\"header\":{\"cluster_id\":\"7\"},\"events\":[{\"kv\":{\"key\":"
                     "\"YQ==\",\"mod_revision\":\"5\"}}]}}\n",
                     NULL),
           THEN_HANG);
    start_watch();
    await(&ends, 1);
    ck_assert_int_eq(why_ended, ETCD_WATCH_OTHER);
    ck_assert_uint_eq(events, 0);
    end();
}
END_TEST

START_TEST(a_line_in_pieces_is_one)
{
    begin();
    script(in_chunks("{\"result\":{\"events\":[{\"kv\":{\"key\":\"YQ",
                     "==\",\"mod_revision\":\"5\"}}]}}\n"),
           THEN_HANG);
    start_watch();
    await(&events, 1);
    ck_assert_int_eq(last_revision, 5);
    end();
}
END_TEST

/* Of a revision that was cut, what has come is passed over when it comes again. */
START_TEST(a_cut_revision_comes_once)
{
    begin();
    script(in_chunks("{\"result\":{\"fragment\":true,\"events\":[{\"kv\":{\"key\":\"YQ==\","
                     "\"mod_revision\":\"6\"}}]}}\n",
                     NULL),
           THEN_CLOSE);
    start_watch();
    await(&events, 1);
    script(in_chunks("{\"result\":{\"events\":[{\"kv\":{\"key\":\"YQ==\",\"mod_revision\":\"6\"}},"
                     "{\"kv\":{\"key\":\"YWI=\",\"mod_revision\":\"6\"}}]}}\n",
                     EVENT(7)),
           THEN_HANG);
    await(&events, 3);
    ck_assert(was_sent("\"start_revision\":\"6\""));
    ck_assert_int_eq(last_revision, 7);
    pass_ms(5);
    ck_assert_uint_eq(events, 3);
    end();
}
END_TEST

/* A connection that has frozen looks like one where nothing happens. */
START_TEST(silence_is_asked_again)
{
    begin_with((struct etcd_options){.silence_ms = 30, .attempt_ms = 30});
    script(_i == 0 ? in_chunks(CREATED, NULL) : "", THEN_HANG);
    start_watch();
    await_requests(3);
    ck_assert_uint_ge(watch.attempts, 3);
    script(in_chunks(EVENT(5), NULL), THEN_HANG);
    await(&events, 1);
    end();
}
END_TEST

static const struct {
    const char *line;
    enum etcd_watch_end end;
} endings[] = {
    {"{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n", ETCD_WATCH_COMPACTED},
    {"{\"result\":{\"canceled\":true,\"cancel_reason\":\"x\"}}\n", ETCD_WATCH_CANCELLED},
    {"{\"result\":{\"canceled\":true,\"cancel_reason\":\"etcdserver: permission denied\"}}\n",
     ETCD_WATCH_DENIED},
};

START_TEST(what_ends_a_watch)
{
    begin();
    script(in_chunks(endings[_i].line, NULL), THEN_HANG);
    start_watch();
    await(&ends, 1);
    ck_assert_int_eq(why_ended, endings[_i].end);
    pass_ms(5);
    ck_assert_uint_eq(receiver.requests, 1);
    end();
}
END_TEST

START_TEST(a_member_without_a_leader_is_left)
{
    begin();
    script(
        in_chunks("{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n", NULL),
        THEN_HANG);
    start_watch();
    await_requests(3);
    ck_assert_uint_eq(ends, 0);
    end();
}
END_TEST

START_TEST(too_much_at_once_ends_it)
{
    static char line[1500];

    begin_with((struct etcd_options){.answer_bytes = 1000});
    memset(line, ' ', sizeof(line) - 1);
    script(in_chunks(line, NULL), THEN_HANG);
    start_watch();
    await(&ends, 1);
    ck_assert_int_eq(why_ended, ETCD_WATCH_TOO_LARGE);
    end();
}
END_TEST

START_TEST(a_watch_whose_user_is_denied)
{
    begin_as_user();
    script(with_length("400 x", "{\"code\":3,\"message\":\"etcdserver: authentication failed\"}"),
           THEN_KEEP);
    start_watch();
    await(&ends, 1);
    ck_assert_int_eq(why_ended, ETCD_WATCH_DENIED);
    end_as_user();
}
END_TEST

START_TEST(stopped_it_is_silent)
{
    begin();
    script(in_chunks(EVENT(5), NULL), THEN_HANG);
    start_watch();
    await(&events, 1);
    etcd_watch_stop(etcd, &watch);
    etcd_watch_stop(etcd, &watch);
    pass_ms(5);
    start_watch(); /* again, and left to etcd_free */
    await(&events, 1);
    end();
    ck_assert_uint_eq(ends, 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, what_goes_out);
    tcase_add_test(tc, a_large_one_goes_out_whole);
    tcase_add_loop_test(tc, each_call, 0, ARRAY_LEN(calls));
    tcase_add_loop_test(tc, what_says_nothing, 0, ARRAY_LEN(silent));
    tcase_add_test(tc, the_next_endpoint);
    tcase_add_test(tc, it_repeats_until_there_is_an_answer);
    tcase_add_test(tc, cancelled_or_freed_it_says_nothing);
    tcase_add_test(tc, it_signs_in_first);
    tcase_add_test(tc, a_bad_token_means_signing_in_again);
    tcase_add_test(tc, an_answer_of_another_cluster);
    tcase_add_test(tc, a_watch_of_another_cluster);
    tcase_add_test(tc, options_that_cannot_be);
    tcase_add_loop_test(tc, a_watch_yields_and_goes_on, 0, 2);
    tcase_add_test(tc, a_line_in_pieces_is_one);
    tcase_add_test(tc, a_cut_revision_comes_once);
    tcase_add_loop_test(tc, silence_is_asked_again, 0, 2);
    tcase_add_loop_test(tc, what_ends_a_watch, 0, ARRAY_LEN(endings));
    tcase_add_test(tc, a_member_without_a_leader_is_left);
    tcase_add_test(tc, too_much_at_once_ends_it);
    tcase_add_test(tc, a_watch_whose_user_is_denied);
    tcase_add_test(tc, stopped_it_is_silent);
}
