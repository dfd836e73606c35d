/* The life of fetches: connections, limits, names, addresses, time, cancelling. */
#include "fetch_testing.h"

#include "testing.h"

#include "base/blob.h"
#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MANY = 500 };

static struct job *jobs; /* MANY of them */

static void make_jobs(const char *url)
{
    jobs = mem_zero(MANY * sizeof(*jobs));
    for (size_t i = 0; i < MANY; i++)
        job_init(&jobs[i], url);
}

static void start_jobs(size_t count)
{
    for (size_t i = 0; i < count; i++)
        job_start(&jobs[i]);
}

static void free_jobs(void)
{
    mem_free(TAKE(jobs));
}

/* Connections. */

START_TEST(one_connection_for_many)
{
    struct job job;

    begin_fetching();
    receiver.script.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for (size_t i = 0; i < 50; i++) {
        job_run(&job, i % 2 == 0 ? "http://127.0.0.1:%u/a" : "http://127.0.0.1:%u/b");
        expect_ok(&job, 200);
        ck_assert_int_eq(job.result.reused, i > 0);
        ck_assert_uint_eq(fetch_active(fetcher), 0);
    }
    ck_assert_uint_eq(receiver.connections, 1);
    ck_assert_uint_eq(receiver.requests, 50);
    end_fetching();
}
END_TEST

START_TEST(connection_closed_by_the_receiver)
{
    struct job job;

    begin_fetching();
    receiver.script.bytes = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    for (unsigned i = 0; i < 3; i++) {
        job_run(&job, "http://127.0.0.1:%u/");
        expect_ok(&job, 204);
        ck_assert(!job.result.reused);
    }
    ck_assert_uint_eq(receiver.connections, 3);
    end_fetching();
}
END_TEST

/* Closed between two requests: the loop does not spin on it, and the next takes a new one. */
START_TEST(kept_connection_that_ends)
{
    struct job job;

    begin_fetching();
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    receiver_drop_all(&receiver);
    ck_assert_uint_lt(pass_ms(100), 50);
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    ck_assert(!job.result.reused);
    ck_assert_uint_eq(receiver.requests, 2);
    end_fetching();
}
END_TEST

/* Bytes that nobody asked for are not the answer to the next request. */
START_TEST(kept_connection_that_talks)
{
    struct job job;

    begin_fetching();
    job_run(&job, "http://127.0.0.1:%u/");
    receiver_write(receiver.conns[0], SPAN("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    ck_assert_uint_lt(pass_ms(100), 50);
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    ck_assert(!job.result.reused);
    end_fetching();
}
END_TEST

/* Closed as the next request arrives: that is sent once more, within the same fetch. */
START_TEST(kept_connection_that_ends_at_a_request)
{
    struct blob *body = blob_new(SPAN("[1,2,3]"));
    struct job job;

    begin_fetching();
    receiver.close_at_second = true;
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.method = SPAN("POST");
    job.fetch.body = body;
    job_start(&job);
    job_await(&job);
    expect_ok(&job, 204);
    ck_assert_uint_eq(receiver.connections, 2);
    ck_assert_uint_eq(receiver.requests, 3);
    ck_assert(span_ends(buf_span(&receiver.last), SPAN("\r\n\r\n[1,2,3]")));
    blob_unref(body);
    end_fetching();
}
END_TEST

/* What must not be done twice fails then, and says that it was sent. */
START_TEST(kept_connection_that_ends_at_what_is_done_once)
{
    struct job job;

    begin_fetching();
    receiver.close_at_second = true;
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.is_once = true;
    job_start(&job);
    job_await(&job);
    expect_error(&job, FETCH_CLOSED, "");
    ck_assert(job.result.was_sent);
    ck_assert_uint_eq(receiver.connections, 1);
    ck_assert_uint_eq(receiver.requests, 2);
    end_fetching();
}
END_TEST

static struct buf fields;

static void note_field(struct fetch *f, struct span name, struct span value)
{
    (void)f;
    buf_printf(&fields, "%.*s=%.*s;", SPAN_FMT(name), SPAN_FMT(value));
}

/* Of the final answer, and of nothing else. */
START_TEST(fields_of_an_answer)
{
    struct job job;

    begin_fetching();
    buf_init(&fields, BUF_NO_CAP);
    receiver.script.bytes = "HTTP/1.1 103 Early Hints\r\nA: 0\r\n\r\n"
                            "HTTP/1.1 200 OK\r\nA: 1 \r\nB:\r\nTransfer-Encoding: chunked\r\n"
                            "\r\n0\r\nC: 3\r\n\r\n";
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.on_field = note_field;
    job_start(&job);
    job_await(&job);
    expect_ok(&job, 200);
    ck_span_eq(buf_span(&fields), "A=1;B=;Transfer-Encoding=chunked;");
    buf_done(&fields);
    end_fetching();
}
END_TEST

START_TEST(nobody_listens)
{
    struct job job;

    begin_fetching();
    uv_close((uv_handle_t *)&receiver.tcp, NULL);
    loop_run_once(&loop);
    job_run(&job, "http://127.0.0.1:%u/");
    ck_assert(!job.result.was_sent);
    expect_error(&job, FETCH_CONNECT, "127.0.0.1");
    job_run(&job, "http://name.test:%u/");
    expect_error(&job, FETCH_CONNECT, "name.test");
    uv_tcp_init(&loop.uv, &receiver.tcp);
    end_fetching();
}
END_TEST

START_TEST(no_tls_there)
{
    struct job job;

    begin_fetching();
    receiver.script.bytes = "HTTP/1.1 400 Bad\r\n\r\n";
    receiver.speaks_first = true;
    job_run(&job, "https://127.0.0.1:%u/");
    expect_error(&job, FETCH_TLS, "127.0.0.1:");
    end_fetching();
}
END_TEST

/* The receiver takes the connection and is silent: the handshake does not end. */
START_TEST(connecting_takes_too_long)
{
    struct fetch_options options = {.connect_timeout_ms = 100};
    struct job job;

    begin_fetching_with("", &options);
    job_run(&job, "https://127.0.0.1:%u/");
    expect_error(&job, FETCH_TIMEOUT, "127.0.0.1:");
    job_init(&job, "https://127.0.0.1:%u/");
    job.fetch.timeout_ms = 50;
    job_start(&job);
    job_await(&job);
    expect_error(&job, FETCH_TIMEOUT, "50 ms were over while connecting");
    end_fetching();
}
END_TEST

/* Names and addresses. */

START_TEST(names)
{
    static const char *const urls[] = {"http://name.test:%u/", "http://NAME.test:%u/",
                                       "http://localhost:%u/", "http://a.localhost:%u/"};

    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct job job;

        job_run(&job, urls[i]);
        expect_ok(&job, 204);
    }
    end_fetching();
}
END_TEST

START_TEST(name_not_resolved)
{
    struct job job;

    begin_fetching();
    job_init(&job, "http://silent.test:%u/");
    job.fetch.timeout_ms = 100;
    job_start(&job);
    job_await(&job);
    expect_error(&job, FETCH_TIMEOUT, "100 ms were over while resolving the name");
    job_run(&job, "http://a.onion:%u/");
    expect_error(&job, FETCH_NAME, "the name does not exist");
    end_fetching();
}
END_TEST

START_TEST(address_refused)
{
    static const char *const urls[] = {"http://127.0.0.1:%u/", "http://name.test:%u/",
                                       "http://localhost:%u/", "http://[::ffff:127.0.0.1]:%u/",
                                       "https://127.0.0.1:%u/"};

    begin_fetching();
    ck_ok(ip_ranges_add(&rules.deny, SPAN("127.0.0.0/8")));
    ck_ok(ip_ranges_add(&rules.deny, SPAN("::1")));
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct job job;

        job_run(&job, urls[i]);
        expect_error(&job, FETCH_REFUSED_ADDRESS, i == 2 ? "" : "127.0.0.1");
    }
    ck_assert_uint_eq(receiver.connections, 0);
    end_fetching();
}
END_TEST

/* Of several addresses the refused and the dead ones are passed over, at once: before libcurl would
 * try the next beside one that is silent, 200 ms. The machine may be slow, but not each time. */
START_TEST(addresses_in_turn)
{
    static const struct {
        const char *hosts;
        enum fetch_error error;
    } cases[] = {
        {"127.0.0.2 many.test\n127.0.0.1 many.test\n", FETCH_OK},
        {"127.0.0.3 many.test\n127.0.0.1 many.test\n", FETCH_OK},
        {"127.0.0.2 many.test\n127.0.0.3 many.test\n127.0.0.1 many.test\n", FETCH_OK},
        {"fd00::1 many.test\n127.0.0.1 many.test\n", FETCH_OK},
        {"fd00::1 many.test\n127.0.0.2 many.test\n", FETCH_REFUSED_ADDRESS},
        {"127.0.0.2 many.test\n127.0.0.3 many.test\n", FETCH_CONNECT},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t fastest_ms = UINT64_MAX;

        for (int tries = 0; tries < 10 && fastest_ms >= 190; tries++) {
            struct job job;

            begin_fetching_with(cases[i].hosts, &(struct fetch_options){0});
            ck_ok(ip_ranges_add(&rules.deny, SPAN("127.0.0.2")));
            ck_ok(ip_ranges_add(&rules.deny, SPAN("fd00::/8")));
            job_run(&job, "http://many.test:%u/");
            ck_assert_msg(job.result.error == cases[i].error, "%s: %s", cases[i].hosts,
                          job.result.why);
            fastest_ms = MIN(fastest_ms, job.result.total_ms);
            end_fetching();
        }
        ck_assert_uint_lt(fastest_ms, 190);
    }
}
END_TEST

/* Listens at the receiver's port, but its queue is full: whoever connects is not answered. */
static void listen_mute(int fds[4])
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    address.sin6_port = htons((uint16_t)receiver.port);
    for (size_t i = 0; i < 4; i++)
        fds[i] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)!bind(fds[0], (struct sockaddr *)&address, sizeof(address));
    (void)!listen(fds[0], 0);
    for (size_t i = 1; i < 4; i++)
        (void)!connect(fds[i], (struct sockaddr *)&address, sizeof(address));
}

/* It loses the race, and libcurl closes its socket itself. (Without IPv6 there is no race.) */
START_TEST(a_silent_address_beside_another)
{
    int fds[4];

    begin_fetching_with("::1 both.test\n127.0.0.1 both.test\n", &(struct fetch_options){0});
    listen_mute(fds);
    for (unsigned i = 0; i < 3; i++) {
        struct job job;

        job_run(&job, "http://both.test:%u/");
        expect_ok(&job, 204);
        receiver_drop_all(&receiver);
        loop_run_once(&loop);
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    end_fetching();
}
END_TEST

/* The hosts file is looked at again after a second: the test moves the clock. */
static void move_name(const char *hosts)
{
    write_file(hosts_path, hosts);
    clock_advance(2000000000);
}

START_TEST(a_name_that_moves)
{
    static struct receiver other;
    struct job job;

    clock_fake(0, 1000000000);
    begin_fetching();
    receiver_listen(&other, &loop, "127.0.0.2", receiver.port);
    receiver.script.bytes = other.script.bytes =
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    job_run(&job, "http://name.test:%u/");
    expect_ok(&job, 204);
    ck_assert_uint_eq(receiver.requests, 1);
    move_name("127.0.0.2 name.test x\n");
    job_run(&job, "http://name.test:%u/");
    expect_ok(&job, 204);
    ck_assert_uint_eq(other.requests, 1);
    receiver_close(&other);
    end_fetching();
}
END_TEST

START_TEST(a_name_that_moves_to_a_refused_address)
{
    struct job job;

    clock_fake(0, 1000000000);
    begin_fetching();
    ck_ok(ip_ranges_add(&rules.deny, SPAN("127.0.0.2")));
    job_run(&job, "http://name.test:%u/");
    expect_ok(&job, 204);
    move_name("127.0.0.2 name.test x\n");
    job_run(&job, "http://name.test:%u/"); /* on the connection that was checked */
    expect_ok(&job, 204);
    ck_assert(job.result.reused);
    receiver_drop_all(&receiver);
    loop_run_once(&loop);
    job_run(&job, "http://name.test:%u/");
    expect_error(&job, FETCH_REFUSED_ADDRESS, "127.0.0.2");
    end_fetching();
}
END_TEST

/* libcurl's own cache of names must not grow with them; what it drops is not missed. */
START_TEST(many_names)
{
    clock_fake(0, 1000000000);
    begin_fetching_with(
        "127.0.0.1 a0.test a1.test a2.test a3.test a4.test a5.test a6.test a7.test\n",
        &(struct fetch_options){0});
    for (unsigned i = 0; i < 200; i++) {
        char url[64];
        struct job job;

        snprintf(url, sizeof(url), "http://a%u.test:%%u/", i * 7 % 8);
        job_run(&job, url);
        expect_ok(&job, 204);
        clock_advance(i % 3 * 61000000000u);
    }
    end_fetching();
}
END_TEST

/* Limits. */

static size_t finished(void)
{
    size_t n = 0;

    for (size_t i = 0; i < MANY; i++)
        n += jobs[i].calls;
    return n;
}

static void await_jobs(size_t count)
{
    for (unsigned turn = 0; finished() < count; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
        ck_assert_uint_eq(count_threads(), 1);
    }
}

/* As many as are started are under way: how many those may be is for the caller to say. */
START_TEST(many_at_once)
{
    begin_fetching();
    receiver.delay_ms = 2;
    make_jobs("http://name.test:%u/");
    start_jobs(MANY);
    ck_assert_uint_eq(fetch_active(fetcher), MANY);
    await_jobs(MANY);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(jobs[i].calls, 1);
        expect_ok(&jobs[i], 204);
    }
    ck_assert_uint_eq(receiver.requests, MANY);
    ck_assert_uint_eq(fetch_active(fetcher), 0);
    free_jobs();
    end_fetching();
}
END_TEST

/* Idle connections make room for new ones; those in use do not. */
START_TEST(limit_of_connections)
{
    static const char *const urls[] = {"http://127.0.0.1:%u/", "http://name.test:%u/",
                                       "http://localhost:%u/"};
    struct fetch_options options = {.max_connections = 5};

    begin_fetching_with("127.0.0.1 name.test\n", &options);
    make_jobs(urls[0]);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        for (size_t k = 0; k < 4; k++) {
            job_init(&jobs[i * 4 + k], urls[i]);
            job_start(&jobs[i * 4 + k]);
        }
        await_jobs(i * 4 + 4);
    }
    ck_assert_uint_eq(receiver.connections, 12);
    /* The receiver learns of a close in a later turn. */
    for (unsigned turn = 0; receiver.open > 5; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    free_jobs();
    end_fetching();
}
END_TEST

/* Where connections lead to is known from the first on, before the request is sent. */
static struct in6_addr led_to;

static void note_address(struct fetch *fetch)
{
    ck_assert(fetch_origin_address(fetch->origin, &led_to));
    ck_assert_uint_eq(receiver.requests, 0);
}

START_TEST(address_of_an_origin)
{
    struct fetch_origin *origin, *same;
    char url[64], text[INET6_ADDRSTRLEN];
    struct job job;

    begin_fetching();
    with_port(url, sizeof(url), "http://name.test:%u/a");
    origin = fetch_origin_get(fetcher, span_str(url));
    ck_assert(!fetch_origin_address(origin, &led_to));
    job_init(&job, url);
    job.fetch.on_connected = note_address;
    job_start(&job);
    job_await(&job);
    expect_ok(&job, 204);
    ck_assert_str_eq(ip_text(&led_to, text), "127.0.0.1");
    with_port(url, sizeof(url), "http://name.test:%u/b");
    same = fetch_origin_get(fetcher, span_str(url));
    ck_assert_ptr_eq(origin, same);
    *fetch_origin_user(origin) = &job;
    ck_assert_ptr_eq(*fetch_origin_user(same), &job);
    *fetch_origin_user(origin) = NULL;
    fetch_origin_put(same);
    fetch_origin_put(origin);
    end_fetching();
}
END_TEST

/* Of origins that nobody refers to a bounded number is kept. */
START_TEST(origins_are_forgotten)
{
    size_t before = 0;

    begin_fetching();
    for (unsigned i = 0; i < 5000; i++) {
        char url[64];

        snprintf(url, sizeof(url), "http://host%u.test/", i);
        fetch_origin_put(fetch_origin_get(fetcher, span_str(url)));
        if (i == 2000)
            before = mem_blocks();
    }
    ck_assert_uint_eq(mem_blocks(), before);
    end_fetching();
}
END_TEST

static void start_next(struct job *job)
{
    if (job < &jobs[MANY - 1])
        job_start(job + 1);
}

/* Fetches that are started by the completion of others. */
START_TEST(chain)
{
    begin_fetching();
    make_jobs("http://127.0.0.1:%u/");
    for (size_t i = 0; i < MANY; i++)
        jobs[i].then = start_next;
    start_jobs(1);
    await_jobs(MANY);
    ck_assert_uint_eq(receiver.connections, 1);
    free_jobs();
    end_fetching();
}
END_TEST

/* The same memory again, from inside its own completion. */
static void start_again(struct job *job)
{
    if (receiver.requests < 10)
        job_start(job);
}

START_TEST(again_from_its_completion)
{
    struct job job;

    begin_fetching();
    job_init(&job, "http://127.0.0.1:%u/");
    job.then = start_again;
    job_start(&job);
    for (unsigned turn = 0; job.calls < 10; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(fetch_active(fetcher), 0);
    end_fetching();
}
END_TEST

/* A receiver that ends each connection behind its answer without a word gets each request once,
 * also those that are sent in the turn in which the answer before was read. */
START_TEST(ended_with_its_answer)
{
    struct job job;

    begin_fetching();
    receiver.script.then = THEN_SHUT;
    job_init(&job, "http://127.0.0.1:%u/");
    job.then = start_again;
    job_start(&job);
    for (unsigned turn = 0; fetch_active(fetcher) > 0; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    expect_ok(&job, 204);
    ck_assert(!job.result.reused);
    ck_assert_uint_eq(receiver.requests, 10);
    ck_assert_uint_eq(receiver.connections, 10);
    end_fetching();
}
END_TEST

START_TEST(no_descriptors_left)
{
    struct rlimit before, none;
    struct job job;

    begin_fetching();
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    job_run(&job, "http://127.0.0.1:%u/");
    setrlimit(RLIMIT_NOFILE, &before);
    expect_error(&job, FETCH_CONNECT, "too many open files");
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    end_fetching();
}
END_TEST

/* Cancelling. */

enum stage { QUEUED, RESOLVING, CONNECTING, WAITING, READING, DONE, STAGE_COUNT };

/* Brings the job to the stage. */
static void bring(struct job *job, enum stage stage)
{
    static const char *const urls[] = {
        [QUEUED] = "http://127.0.0.1:%u/",      [RESOLVING] = "http://silent.test:%u/",
        [CONNECTING] = "https://127.0.0.1:%u/", [WAITING] = "http://127.0.0.1:%u/",
        [READING] = "http://127.0.0.1:%u/",     [DONE] = "http://127.0.0.1:%u/",
    };

    receiver.script = (struct receiver_script){.bytes = ""};
    if (stage == READING)
        receiver.script.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    if (stage == DONE)
        receiver.script.bytes = "HTTP/1.1 204 No Content\r\n\r\n";
    job_init(job, urls[stage]);
    job->fetch.body = blob_new(SPAN("a body"));
    job_start(job);
    blob_unref(job->fetch.body);
    if (stage == DONE)
        job_await(job);
    else if (stage != QUEUED)
        pass_ms(20);
}

START_TEST(cancel)
{
    struct job job, next;

    begin_fetching();
    bring(&job, (enum stage)_i);
    ck_assert_uint_eq(fetch_active(fetcher), _i != DONE);
    fetch_cancel(fetcher, &job.fetch);
    ck_assert_uint_eq(fetch_active(fetcher), 0);
    fetch_cancel(fetcher, &job.fetch);
    ck_assert_uint_lt(pass_ms(20), 20);
    ck_assert_uint_eq(job.calls, _i == DONE);
    receiver.script.bytes = "HTTP/1.1 204 No Content\r\n\r\n";
    job_run(&next, "http://127.0.0.1:%u/");
    expect_ok(&next, 204);
    if (_i == WAITING || _i == READING || _i == CONNECTING)
        ck_assert_uint_eq(receiver.open, 1); /* the other was closed */
    end_fetching();
}
END_TEST

START_TEST(free_in_every_stage)
{
    static struct job staged[STAGE_COUNT];

    begin_fetching();
    for (int stage = STAGE_COUNT - 1; stage >= 0; stage--)
        bring(&staged[stage], (enum stage)stage);
    end_fetching();
    for (int stage = 0; stage < DONE; stage++)
        ck_assert_uint_eq(staged[stage].calls, 0);
}
END_TEST

static void cancel_others(struct job *job)
{
    (void)job;
    for (size_t i = 0; i < 100; i++)
        if (jobs[i].calls == 0)
            fetch_cancel(fetcher, &jobs[i].fetch);
}

/* Some are queued, some with libcurl, some complete in the same turn. */
START_TEST(cancel_from_a_completion)
{
    struct job job;
    size_t done;

    begin_fetching();
    make_jobs("http://127.0.0.1:%u/");
    jobs[40].then = cancel_others;
    start_jobs(100);
    await_jobs(1);
    for (unsigned turn = 0; jobs[40].calls == 0; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(fetch_active(fetcher), 0);
    done = finished();
    pass_ms(20);
    ck_assert_uint_eq(finished(), done);
    job_run(&job, "http://127.0.0.1:%u/");
    expect_ok(&job, 204);
    free_jobs();
    end_fetching();
}
END_TEST

/* A healthy host beside one that answers nothing. */
START_TEST(a_dead_host_beside_a_healthy_one)
{
    static struct receiver dead;
    size_t i;

    begin_fetching();
    receiver_listen(&dead, &loop, "127.0.0.2", receiver.port);
    dead.script.bytes = "";
    make_jobs("http://127.0.0.2:%u/");
    for (i = 0; i < 200; i++)
        jobs[i].fetch.timeout_ms = 60000;
    for (; i < 400; i++)
        job_init(&jobs[i], "http://127.0.0.1:%u/");
    start_jobs(400);
    await_jobs(200);
    for (i = 200; i < 400; i++)
        expect_ok(&jobs[i], 204);
    ck_assert_uint_eq(fetch_active(fetcher), 200);
    for (i = 0; i < 200; i++)
        fetch_cancel(fetcher, &jobs[i].fetch);
    receiver_close(&dead);
    free_jobs();
    end_fetching();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, one_connection_for_many);
    tcase_add_test(tc, connection_closed_by_the_receiver);
    tcase_add_test(tc, kept_connection_that_ends);
    tcase_add_test(tc, kept_connection_that_talks);
    tcase_add_test(tc, kept_connection_that_ends_at_a_request);
    tcase_add_test(tc, kept_connection_that_ends_at_what_is_done_once);
    tcase_add_test(tc, fields_of_an_answer);
    tcase_add_test(tc, nobody_listens);
    tcase_add_test(tc, no_tls_there);
    tcase_add_test(tc, connecting_takes_too_long);
    tcase_add_test(tc, names);
    tcase_add_test(tc, name_not_resolved);
    tcase_add_test(tc, address_refused);
    tcase_add_test(tc, addresses_in_turn);
    tcase_add_test(tc, a_silent_address_beside_another);
    tcase_add_test(tc, a_name_that_moves);
    tcase_add_test(tc, a_name_that_moves_to_a_refused_address);
    tcase_add_test(tc, many_names);
    tcase_add_test(tc, many_at_once);
    tcase_add_test(tc, limit_of_connections);
    tcase_add_test(tc, address_of_an_origin);
    tcase_add_test(tc, origins_are_forgotten);
    tcase_add_test(tc, chain);
    tcase_add_test(tc, again_from_its_completion);
    tcase_add_test(tc, ended_with_its_answer);
    tcase_add_test(tc, no_descriptors_left);
    tcase_add_loop_test(tc, cancel, 0, STAGE_COUNT);
    tcase_add_test(tc, free_in_every_stage);
    tcase_add_test(tc, cancel_from_a_completion);
    tcase_add_test(tc, a_dead_host_beside_a_healthy_one);
}
