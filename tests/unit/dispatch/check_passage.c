/* Requests that wait for a record, or for the leader, who is a socket that nobody reads. What the
 * leader answers: ../http/check_conn_hold.c. */
#include "serving.h"

#include "access/account.h"
#include "base/clock.h"
#include "dispatch/dispatch.h"
#include "dispatch/passage.h"
#include "rest/cluster_view.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define SECRET "0123456789abcdef0123456789abcdef"

static struct cluster_view view;
static int silent; /* the leader's socket */
static const struct request request = {
    .method = SPAN_INIT("POST"), .target = SPAN_INIT("/Shop.Message"), .body = SPAN_INIT("{}")};

static void open_leader(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);

    silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(silent, 0);
    ck_assert_int_eq(bind(silent, (struct sockaddr *)&address, n), 0);
    ck_assert_int_eq(listen(silent, 64), 0);
    ck_assert_int_eq(getsockname(silent, (struct sockaddr *)&address, &n), 0);
    view.leader_url = arena_printf(&arena, "http://127.0.0.1:%u", ntohs(address.sin_port));
}

static void begin(void)
{
    set_up();
    commit();
    view = (struct cluster_view){
        .node = SPAN("b"), .secret = SPAN(SECRET), .commit_ms = 1000, .fetcher = service->fetcher};
    service->rest.cluster = &view;
    open_leader();
}

static void end(void)
{
    ck_assert_uint_eq(passages_under_way(service->rest.passages), 0);
    ck_assert_uint_eq(passages_in_line(service->rest.passages), 0);
    close(silent);
    tear_down();
}

static void on_done(void *context)
{
    ++*(unsigned *)context;
}

static void turns(void)
{
    for (int i = 0; i < 12; i++) {
        loop_wake(&loop);
        loop_run_once(&loop);
    }
}

static struct passage *to_leader_for(struct account *account, unsigned *done)
{
    const struct call call = {.rest = &service->rest, .account = account};
    struct passage *p = passage_to_leader(&call);

    passage_start(p, &request, on_done, done);
    return p;
}

static struct passage *to_leader(unsigned *done)
{
    return to_leader_for(service->rest.everybody, done);
}

START_TEST(a_record_that_is_there)
{
    unsigned done = 0;
    struct passage *p;

    begin();
    p = passage_to_serial(&service->rest, journal_committed_serial(turn_journal(service->turn)));
    passage_start(p, &request, on_done, &done);
    ck_assert_uint_eq(done, 0); /* never from there */
    turns();
    ck_assert_uint_eq(done, 1);
    ck_assert_ptr_null(passage_response(p));
    passage_free(p);
    end();
}
END_TEST

START_TEST(a_record_that_comes)
{
    unsigned done = 0;
    struct passage *p, *freed;

    begin();
    p = passage_to_serial(&service->rest, journal_next_serial(turn_journal(service->turn)));
    freed = passage_to_serial(&service->rest, journal_next_serial(turn_journal(service->turn)));
    passage_start(p, &request, on_done, &done);
    passage_start(freed, &request, on_done, &done);
    passage_free(freed);
    turns();
    ck_assert_uint_eq(done, 0);
    view.leads = true;
    dispatch_run(&service->rest,
                 &(struct request){.method = SPAN("GET"), .target = SPAN("/No.Such")},
                 &response); /* stores an error */
    commit();
    turns();
    ck_assert_uint_eq(done, 1);
    ck_assert_ptr_null(passage_response(p));
    passage_free(p);
    end();
}
END_TEST

/* Accounts take turns, and have half of the places at most. */
START_TEST(accounts_take_turns)
{
    enum { EACH = 6 };
    struct account *a, *b;
    struct passage *of_a[EACH], *of_b[EACH];
    unsigned done = 0;

    begin();
    service->limits.passed_on_requests = 4;
    a = account_ref(service->rest.accounts, SPAN("a"), span_of(NULL, 0));
    b = account_ref(service->rest.accounts, SPAN("b"), span_of(NULL, 0));
    for (size_t i = 0; i < EACH; i++)
        of_a[i] = to_leader_for(a, &done);
    turns();
    ck_assert_uint_eq(a->passing_count, 2);
    for (size_t i = 0; i < EACH; i++)
        of_b[i] = to_leader_for(b, &done);
    turns();
    ck_assert_uint_eq(b->passing_count, 2);
    ck_assert_uint_eq(passages_in_line(service->rest.passages), 2 * EACH - 4);
    service->limits.passed_on_requests = 3; /* one each */
    passage_free(of_a[0]);
    passage_free(of_b[0]);
    turns();
    ck_assert_uint_eq(passages_under_way(service->rest.passages), 2);
    passage_free(of_a[1]);
    passage_free(of_b[1]);
    turns();
    ck_assert_uint_eq(a->passing_count, 1);
    ck_assert_uint_eq(b->passing_count, 1);
    for (size_t i = 2; i < EACH; i++) {
        passage_free(of_a[i]);
        passage_free(of_b[i]);
        turns();
    }
    ck_assert_uint_eq(done, 0);
    account_unref(service->rest.accounts, a);
    account_unref(service->rest.accounts, b);
    end();
}
END_TEST

START_TEST(freed_in_every_stage)
{
    unsigned done = 0;
    struct passage *p;

    begin();
    passage_free(passage_to_serial(&service->rest, 1));
    passage_free(passage_to_leader(
        &(struct call){.rest = &service->rest, .account = service->rest.everybody}));
    passage_free(to_leader(&done)); /* in line */
    for (unsigned i = 1; i < 8; i++) {
        p = to_leader(&done);
        for (unsigned turn = 0; turn < i; turn++) {
            loop_wake(&loop);
            loop_run_once(&loop);
        }
        passage_free(p);
    }
    passage_free(NULL);
    ck_assert_uint_eq(done, 0);
    end();
}
END_TEST

/* It is looked at when there is a place. */
START_TEST(who_leads_meanwhile)
{
    unsigned done = 0;
    struct passage *p;

    begin();
    p = to_leader(&done);
    view.leads = true;
    turns();
    ck_assert_uint_eq(done, 1);
    ck_assert_ptr_null(passage_response(p)); /* this node: it is evaluated */
    passage_free(p);
    view.leads = false;
    view.leader_url = span_of(NULL, 0);
    p = to_leader(&done);
    turns();
    ck_assert_uint_eq(done, 2);
    ck_assert_int_eq(passage_response(p)->error, ERR_NO_LEADER);
    passage_free(p);
    end();
}
END_TEST

/* It was sent to a leader that is silent: once that leads no more it is not waited for much longer,
 * while what is sent to the next one is. */
START_TEST(who_led_is_waited_for_shortly)
{
    unsigned done = 0, done_later = 0;
    struct passage *p, *later;

    clock_fake(0, UINT64_C(1000000000000));
    begin();
    p = to_leader(&done);
    turns();
    passages_led(service->rest.passages);
    later = to_leader(&done_later);
    turns();
    clock_advance((PASSAGE_LAST_MS - 1) * NS_PER_MS);
    turns();
    passages_led(service->rest.passages); /* which gives the first one no more time */
    ck_assert_uint_eq(done, 0);
    clock_advance(2 * NS_PER_MS);
    turns();
    ck_assert_uint_eq(done, 1);
    ck_assert_uint_eq(done_later, 0);
    ck_assert_int_eq(passage_response(p)->error, ERR_NO_LEADER);
    ck_assert_uint_eq(passages_under_way(service->rest.passages), 1);
    passage_free(p);
    passage_free(later);
    end();
    clock_real();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_record_that_is_there);
    tcase_add_test(tc, a_record_that_comes);
    tcase_add_test(tc, accounts_take_turns);
    tcase_add_test(tc, freed_in_every_stage);
    tcase_add_test(tc, who_leads_meanwhile);
    tcase_add_test(tc, who_led_is_waited_for_shortly);
}
