/* The resolver against a name server of this program's own, on the same loop: names say how they
 * are answered, in the table `zone`. */
#include "fetch/resolve.h"

#include "testing.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/macros.h"
#include "io/ip.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28 };
enum { RCODE_NONE = 0, RCODE_SERVFAIL = 2, RCODE_NXDOMAIN = 3, RCODE_REFUSED = 5 };
enum { TURNS_MOST = 20000 };

/* The name server. */

struct zone_name {
    const char *suffix; /* the name, or what it ends in */
    int rcode;
    int ttl_s;
    int cname_ttl_s; /* with a CNAME in front, when not 0 */
    unsigned v4, v6; /* how many addresses: 192.0.2.1, ..., 2001:db8::1, ... */
    bool silent, garbage, truncated;
};

static const struct zone_name zone[] = {
    {"both.test", .ttl_s = 60, .v4 = 2, .v6 = 3},
    {"four.test", .ttl_s = 60, .v4 = 1},
    {"six.test", .ttl_s = 60, .v6 = 1},
    {"wide.test", .ttl_s = 60, .v4 = 12, .v6 = 12},
    {"zero.test", .ttl_s = 0, .v4 = 1},
    {"day.test", .ttl_s = 86400, .v4 = 1},
    {"alias.test", .ttl_s = 500, .cname_ttl_s = 20, .v4 = 1},
    {"none.test", .rcode = RCODE_NXDOMAIN},
    {"empty.test", .ttl_s = 60},
    {"broken.test", .rcode = RCODE_SERVFAIL},
    {"refused.test", .rcode = RCODE_REFUSED},
    {"silent.test", .silent = true},
    {"garbage.test", .garbage = true},
    {"large.test", .ttl_s = 60, .v4 = 3, .truncated = true},
    {".many.test", .ttl_s = 600, .v4 = 1},
    {"db.first.test", .ttl_s = 60, .v4 = 1},
    {"early.first.test", .ttl_s = 60, .v4 = 1},
    {"cache.other.second.test", .ttl_s = 60, .v4 = 1},
};

struct name_server {
    uv_udp_t udp;
    uv_tcp_t tcp;
    uv_tcp_t conn;
    char packet[2048];
    unsigned questions; /* for IPv4 addresses */
    unsigned tcp_questions;
    bool silent;
    char last_name[256];
};

static void add_be16(struct buf *b, unsigned v)
{
    buf_add_char(b, (char)(v >> 8));
    buf_add_char(b, (char)v);
}

/* The name of the record is the question's. */
static void add_record(struct buf *b, int type, int ttl_s, const void *data, size_t n)
{
    add_be16(b, 0xc00c);
    add_be16(b, (unsigned)type);
    add_be16(b, 1);
    add_be16(b, (unsigned)ttl_s >> 16);
    add_be16(b, (unsigned)ttl_s & 0xffff);
    add_be16(b, (unsigned)n);
    buf_add(b, span_of(data, n));
}

static void add_address(struct buf *b, int type, int ttl_s, unsigned number)
{
    struct in_addr v4 = {.s_addr = htonl(0xc0000200u + number)};
    struct in6_addr v6 = {.s6_addr = {0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)number}};

    if (type == TYPE_A)
        add_record(b, type, ttl_s, &v4, sizeof(v4));
    else
        add_record(b, type, ttl_s, &v6, sizeof(v6));
}

static const struct zone_name *zone_find(struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(zone); i++)
        if (span_ends(name, span_str(zone[i].suffix)))
            return &zone[i];
    return NULL;
}

/* The name and the type; returns where the question ends. */
static size_t read_question(struct span packet, char name[256], int *out_type)
{
    size_t at = 12, n = 0;

    while (packet.p[at] != 0) {
        size_t label = (size_t)packet.p[at];

        if (n > 0)
            name[n++] = '.';
        memcpy(name + n, packet.p + at + 1, label);
        n += label;
        at += label + 1;
    }
    name[n] = '\0';
    *out_type = packet.p[at + 2];
    return at + 5;
}

static void add_answers(struct buf *b, const struct zone_name *z, int type)
{
    unsigned count = type == TYPE_A ? z->v4 : z->v6;

    if (z->cname_ttl_s != 0)
        add_record(b, TYPE_CNAME, z->cname_ttl_s, "\xc0\x0c", 2);
    for (unsigned i = 1; i <= count; i++)
        add_address(b, type, z->ttl_s, i);
}

/* False: nothing is sent back. */
static bool answer(struct name_server *server, struct span packet, bool over_tcp, struct buf *b)
{
    int type;
    size_t end = read_question(packet, server->last_name, &type);
    const struct zone_name *z = zone_find(span_str(server->last_name));
    unsigned count;
    bool cut;

    server->questions += type == TYPE_A;
    server->tcp_questions += over_tcp;
    if (server->silent || (z != NULL && z->silent))
        return false;
    buf_add(b, span_sub(packet, 0, 2));
    if (z != NULL && z->garbage) {
        buf_add_str(b, "\x81\x80 this is not an answer");
        return true;
    }
    cut = z != NULL && z->truncated && !over_tcp;
    count = z == NULL || cut ? 0 : (type == TYPE_A ? z->v4 : z->v6) + (z->cname_ttl_s != 0);
    add_be16(b, (cut ? 0x8380u : 0x8180u) | (unsigned)(z != NULL ? z->rcode : RCODE_NXDOMAIN));
    add_be16(b, 1);
    add_be16(b, count);
    add_be16(b, 0);
    add_be16(b, 0);
    buf_add(b, span_sub(packet, 12, end));
    if (count > 0)
        add_answers(b, z, type);
    return true;
}

static void give_packet(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buf)
{
    struct name_server *server = handle->data;

    (void)suggested;
    *out_buf = uv_buf_init(server->packet, sizeof(server->packet));
}

static void on_udp(uv_udp_t *udp, ssize_t n, const uv_buf_t *bytes, const struct sockaddr *from,
                   unsigned flags)
{
    struct name_server *server = udp->data;
    struct buf b = {.max = 4096};
    uv_buf_t out;

    (void)flags;
    if (n <= 0)
        return;
    if (answer(server, span_of(bytes->base, (size_t)n), false, &b)) {
        out = uv_buf_init(b.p, (unsigned)b.n);
        ck_assert_int_ge(uv_udp_try_send(udp, &out, 1, from), 0);
    }
    buf_done(&b);
}

/* A question over TCP is taken to come in one piece. */
static void on_tcp(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct name_server *server = stream->data;
    struct buf b = {.max = 4096};
    char length[2];
    uv_buf_t out[2];

    if (n < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    for (size_t at = 0; at < (size_t)n;) {
        size_t size = (size_t)(uint8_t)bytes->base[at] << 8 | (uint8_t)bytes->base[at + 1];

        buf_clear(&b);
        ck_assert(answer(server, span_of(bytes->base + at + 2, size), true, &b));
        length[0] = (char)(b.n >> 8);
        length[1] = (char)b.n;
        out[0] = uv_buf_init(length, 2);
        out[1] = uv_buf_init(b.p, (unsigned)b.n);
        ck_assert_int_eq(uv_try_write(stream, out, 2), (int)b.n + 2);
        at += 2 + size;
    }
    buf_done(&b);
}

static void on_conn(uv_stream_t *listener, int status)
{
    struct name_server *server = listener->data;

    ck_assert_int_eq(status, 0);
    uv_tcp_init(listener->loop, &server->conn);
    server->conn.data = server;
    ck_assert_int_eq(uv_accept(listener, (uv_stream_t *)&server->conn), 0);
    uv_read_start((uv_stream_t *)&server->conn, give_packet, on_tcp);
}

/* Two sockets on one port that is free for both. */
static uint16_t open_pair(int *tcp, int *udp)
{
    for (int tries = 0; tries < 100; tries++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof(address);

        *tcp = socket(AF_INET, SOCK_STREAM, 0);
        *udp = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(*tcp, (struct sockaddr *)&address, n) == 0 && listen(*tcp, 8) == 0 &&
            getsockname(*tcp, (struct sockaddr *)&address, &n) == 0 &&
            bind(*udp, (struct sockaddr *)&address, n) == 0)
            return ntohs(address.sin_port);
        close(*tcp);
        close(*udp);
    }
    ck_abort_msg("no port is free for both TCP and UDP");
}

static uint16_t name_server_start(struct name_server *server, struct loop *loop)
{
    int tcp = -1, udp = -1;
    uint16_t port = open_pair(&tcp, &udp);

    uv_udp_init(&loop->uv, &server->udp);
    uv_tcp_init(&loop->uv, &server->tcp);
    server->udp.data = server->tcp.data = server;
    ck_assert_int_eq(uv_udp_open(&server->udp, udp), 0);
    ck_assert_int_eq(uv_tcp_open(&server->tcp, tcp), 0);
    ck_assert_int_eq(uv_listen((uv_stream_t *)&server->tcp, 8, on_conn), 0);
    uv_udp_recv_start(&server->udp, give_packet, on_udp);
    return port;
}

/* The fixture. */

static struct loop loop;
static struct name_server server;
static struct resolver *resolver;
static char directory[64], hosts_path[80], settings_path[80];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static unsigned tasks(void)
{
    DIR *dir = opendir("/proc/self/task");
    unsigned n = 0;

    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

/* The name server is given `copies` times. */
static void begin_with(const char *hosts, unsigned copies, unsigned timeout_ms)
{
    struct resolve_options options = {
        .hosts_file = hosts_path, .resolv_file = settings_path, .timeout_ms = timeout_ms};
    struct buf servers = {.max = 4096};
    unsigned port;

    server = (struct name_server){0};
    snprintf(directory, sizeof(directory), "/tmp/check_resolve_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(hosts_path, sizeof(hosts_path), "%s/hosts", directory);
    snprintf(settings_path, sizeof(settings_path), "%s/resolv.conf", directory);
    write_file(hosts_path, hosts);
    write_file(settings_path, "search first.test\n");
    ck_ok(loop_init(&loop));
    port = name_server_start(&server, &loop);
    for (unsigned i = 0; i < copies; i++)
        buf_printf(&servers, "127.0.0.1:%u,", port);
    options.servers = buf_text(&servers);
    ck_ok(resolver_new(&loop, &options, &resolver));
    buf_done(&servers);
}

static void begin(const char *hosts)
{
    begin_with(hosts, 1, 2000);
}

static void end(void)
{
    resolver_free(resolver);
    uv_close((uv_handle_t *)&server.udp, NULL);
    uv_close((uv_handle_t *)&server.tcp, NULL);
    if (server.conn.data != NULL && !uv_is_closing((uv_handle_t *)&server.conn))
        uv_close((uv_handle_t *)&server.conn, NULL);
    loop_done(&loop);
    unlink(hosts_path);
    unlink(settings_path);
    rmdir(directory);
    ck_assert_uint_eq(tasks(), 1);
}

struct asker {
    struct resolve_query query;
    struct resolve_result result;
    unsigned calls;
    void (*then)(struct asker *asker);
};

static void on_done(struct resolve_query *query, const struct resolve_result *result)
{
    struct asker *asker = CONTAINER_OF(query, struct asker, query);

    asker->result = *result;
    asker->calls++;
    if (asker->then != NULL)
        asker->then(asker);
}

/* True: answered at once. */
static bool start(struct asker *asker, const char *name)
{
    unsigned calls = asker->calls;
    bool at_once;

    asker->query.on_done = on_done;
    at_once = resolve_start(resolver, &asker->query, span_str(name), &asker->result);
    ck_assert_uint_eq(asker->calls, calls);
    return at_once;
}

static void await(const struct asker *asker)
{
    unsigned calls = asker->calls;

    for (unsigned turn = 0; asker->calls == calls; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(asker->calls, calls + 1);
}

static void resolve(struct asker *asker, const char *name)
{
    if (!start(asker, name))
        await(asker);
}

static const char *address_text(const struct resolve_result *result, unsigned i)
{
    static char text[INET6_ADDRSTRLEN];

    ck_assert_ptr_nonnull(ip_text(&result->addresses[i], text));
    return text;
}

/* `expected`: addresses in their order, separated by spaces, or "-" and the error. */
static void expect(const struct resolve_result *result, const char *expected)
{
    struct buf b = {.max = 4096};

    if (result->count == 0)
        buf_printf(&b, "-%s", result->error);
    for (unsigned i = 0; i < result->count; i++)
        buf_printf(&b, i == 0 ? "%s" : " %s", address_text(result, i));
    ck_assert_str_eq(buf_text(&b), expected);
    ck_assert_int_eq(result->error == NULL, result->count > 0);
    buf_done(&b);
}

static void expect_at_once(const char *name, const char *expected)
{
    struct asker asker = {0};

    ck_assert_msg(start(&asker, name), "'%s' is asked for", name);
    expect(&asker.result, expected);
    ck_assert_uint_eq(server.questions, 0);
}

static void pass_s(uint64_t seconds)
{
    clock_advance(seconds * 1000000000u);
}

/* Without a name server. */

START_TEST(literal_addresses)
{
    static const char *const cases[][2] = {
        {"127.0.0.1", "127.0.0.1"},
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"::1", "::1"},
        {"2001:DB8::A", "2001:db8::a"},
        {"::ffff:1.2.3.4", "1.2.3.4"},
    };

    begin("127.0.0.9 127.0.0.1\n");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_at_once(cases[i][0], cases[i][1]);
    ck_assert_uint_eq(resolve_cached(resolver), 0);
    end();
}
END_TEST

START_TEST(names_that_are_none)
{
    static const char *const cases[] = {"",         ".",    "a b",   "a/b", "a%62", "\xc3\xbc.test",
                                        "[a.test]", "[::1", "[::1]", "1:2", "a\nb", "fe80::1%lo"};
    struct asker asker = {0};
    char name[256];

    begin("");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_at_once(cases[i], "-it is not a host name");
    memset(name, 'a', sizeof(name));
    name[63] = name[127] = name[191] = '.';
    name[254] = '\0';
    expect_at_once(name, "-it is not a host name");
    name[253] = '.'; /* is not counted */
    ck_assert(!start(&asker, name));
    end();
}
END_TEST

START_TEST(localhost)
{
    static const char *const names[] = {"localhost", "LocalHost", "localhost.", "a.b.localhost",
                                        "a.LOCALHOST."};

    begin("192.0.2.9 localhost a.localhost\n");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        expect_at_once(names[i], "127.0.0.1 ::1");
    end();
}
END_TEST

static void expect_at_last(const char *name, const char *expected)
{
    struct asker asker = {0};

    resolve(&asker, name);
    expect(&asker.result, expected);
    ck_assert_uint_eq(server.questions, 0);
}

START_TEST(hosts_file)
{
    static const char text[] = "# 192.0.2.1 comment.test\n"
                               "192.0.2.2\tone.test  One-Alias.TEST\t\n"
                               "  2001:db8::2 one.test#192.0.2.7 none\r\n"
                               "192.0.2.3 crlf.test\r\n"
                               "nonsense bad.test\n"
                               "192.0.2.4\n"
                               "\n"
                               "192.0.2.5 one.test last.test";
    static const char *const cases[][2] = {
        {"one.test", "2001:db8::2 192.0.2.2 192.0.2.5"},
        {"ONE.test.", "2001:db8::2 192.0.2.2 192.0.2.5"},
        {"one-alias.test", "192.0.2.2"},
        {"crlf.test", "192.0.2.3"},
        {"last.test", "192.0.2.5"},
    };
    struct asker asker = {0};

    begin(text);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_at_last(cases[i][0], cases[i][1]);
    resolve(&asker, "bad.test");
    expect(&asker.result, "-the name does not exist");
    resolve(&asker, "comment.test");
    expect(&asker.result, "-the name does not exist");
    end();
}
END_TEST

START_TEST(hosts_file_of_many_addresses)
{
    struct asker asker = {0};
    struct buf b = {.max = BUF_NO_CAP};

    for (unsigned i = 0; i < 300; i++)
        buf_printf(&b, "192.0.2.%u many other-%u\n", i % 256, i);
    begin(buf_text(&b));
    buf_done(&b);
    resolve(&asker, "many");
    ck_assert_uint_eq(asker.result.count, RESOLVE_MAX_ADDRESSES);
    ck_assert_str_eq(address_text(&asker.result, 15), "192.0.2.15");
    expect_at_last("other-299", "192.0.2.43");
    end();
}
END_TEST

START_TEST(hosts_file_is_read_again)
{
    struct asker asker = {0};

    clock_fake(0, 1000000000);
    begin("192.0.2.1 one.test\n");
    expect_at_last("one.test", "192.0.2.1");
    write_file(hosts_path, "192.0.2.22 one.test two.test\n");
    expect_at_once("one.test", "192.0.2.1");
    pass_s(1);
    expect_at_last("one.test", "192.0.2.22");
    expect_at_last("two.test", "192.0.2.22");
    unlink(hosts_path);
    pass_s(1);
    resolve(&asker, "one.test");
    expect(&asker.result, "-the name does not exist");
    end();
}
END_TEST

/* With one. */

START_TEST(answers)
{
    static const char *const cases[][2] = {
        {"a.both.test", "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2 2001:db8::3"},
        {"four.test", "192.0.2.1"},
        {"six.test", "2001:db8::1"},
        {"alias.test", "192.0.2.1"},
        {"large.test", "192.0.2.1 192.0.2.2 192.0.2.3"}, /* asked for again over TCP */
        {"none.test", "-the name does not exist"},
        {"empty.test", "-the name has no address"},
        {"broken.test", "-no name server gave an answer"},
        {"refused.test", "-no name server gave an answer"},
        {"a..test", "-it is not a host name"},
    };

    begin("");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct asker asker = {0};

        ck_assert_msg(!start(&asker, cases[i][0]), "%s", cases[i][0]);
        await(&asker);
        expect(&asker.result, cases[i][1]);
        ck_assert(start(&asker, cases[i][0]));
        expect(&asker.result, cases[i][1]);
    }
    ck_assert_uint_gt(server.tcp_questions, 0);
    ck_assert_uint_eq(resolve_cached(resolver), ARRAY_LEN(cases));
    end();
}
END_TEST

START_TEST(both_families_share_the_room)
{
    struct asker asker = {0};

    begin("");
    resolve(&asker, "wide.test");
    ck_assert_uint_eq(asker.result.count, RESOLVE_MAX_ADDRESSES);
    for (unsigned i = 0; i < RESOLVE_MAX_ADDRESSES; i++)
        ck_assert_int_eq(IN6_IS_ADDR_V4MAPPED(&asker.result.addresses[i]), i % 2);
    end();
}
END_TEST

START_TEST(answers_are_kept_for_their_time)
{
    static const struct {
        const char *name;
        uint64_t seconds;
    } cases[] = {
        {"four.test", 60},  {"zero.test", 1},
        {"day.test", 3600}, {"alias.test", 20}, /* the alias's, which is less than the address's */
        {"x.none.test", 5}, {"x.broken.test", 5},
    };

    clock_fake(0, 1000000000);
    begin("");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct asker asker = {0};

        ck_assert(!start(&asker, cases[i].name));
        await(&asker);
        pass_s(cases[i].seconds);
        clock_advance((uint64_t)-1000000); /* a millisecond less */
        ck_assert_msg(start(&asker, cases[i].name), "%s", cases[i].name);
        clock_advance(1000000);
        ck_assert_msg(!start(&asker, cases[i].name), "%s", cases[i].name);
        await(&asker);
    }
    end();
}
END_TEST

START_TEST(one_question_for_many)
{
    static struct asker askers[100];

    begin("");
    memset(askers, 0, sizeof(askers));
    for (size_t i = 0; i < ARRAY_LEN(askers); i++)
        ck_assert(!start(&askers[i], i % 3 == 0   ? "FOUR.test"
                                     : i % 3 == 1 ? "four.Test."
                                                  : "four.test"));
    await(&askers[99]);
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        ck_assert_uint_eq(askers[i].calls, 1);
        expect(&askers[i].result, "192.0.2.1");
    }
    ck_assert_uint_eq(server.questions, 1);
    ck_assert_uint_eq(resolve_cached(resolver), 1);
    end();
}
END_TEST

START_TEST(cancelled_queries_stay_silent)
{
    struct asker a = {0}, b = {0}, c = {0}, d = {0};

    begin("");
    ck_assert(!start(&a, "four.test"));
    ck_assert(!start(&b, "four.test"));
    ck_assert(!start(&c, "six.test"));
    resolve_cancel(resolver, &a.query);
    resolve_cancel(resolver, &a.query);
    resolve_cancel(resolver, &c.query);
    ck_assert(start(&d, "127.0.0.1"));
    resolve_cancel(resolver, &d.query);
    resolve(&d, "both.test");
    ck_assert_uint_eq(a.calls + c.calls, 0);
    ck_assert_uint_eq(b.calls, 1);
    ck_assert(start(&c, "six.test")); /* the answer was kept */
    end();
}
END_TEST

static struct asker sibling, follower;

static void cancel_and_start(struct asker *asker)
{
    resolve_cancel(resolver, &sibling.query);
    ck_assert(start(&follower, "four.test"));
    ck_assert(!start(&follower, "six.test"));
    (void)asker;
}

START_TEST(callbacks_may_start_and_cancel)
{
    struct asker asker = {.then = cancel_and_start};

    begin("");
    sibling = follower = (struct asker){0};
    ck_assert(!start(&asker, "four.test"));
    ck_assert(!start(&sibling, "four.test"));
    await(&follower);
    ck_assert_uint_eq(asker.calls, 1);
    ck_assert_uint_eq(sibling.calls, 0);
    expect(&follower.result, "2001:db8::1");
    end();
}
END_TEST

START_TEST(silence_ends)
{
    struct asker asker = {0};
    uint64_t before_ms, took_ms;

    begin_with("", 1, 800);
    server.silent = true;
    before_ms = clock_mono_ms();
    ck_assert(!start(&asker, "four.test"));
    await(&asker);
    took_ms = clock_mono_ms() - before_ms;
    expect(&asker.result, "-the name servers did not answer in time");
    ck_assert_uint_ge(took_ms, 600);
    ck_assert_uint_lt(took_ms, 5000);
    ck_assert_uint_eq(server.questions, 3);
    ck_assert(start(&asker, "four.test"));
    end();
}
END_TEST

/* With two servers c-ares goes on asking after our deadline. */
START_TEST(a_late_answer_serves)
{
    struct asker asker = {0};

    begin_with("", 2, 800);
    server.silent = true;
    ck_assert(!start(&asker, "four.test"));
    await(&asker);
    expect(&asker.result, "-the name servers did not answer in time");
    server.silent = false;
    for (unsigned turn = 0; asker.result.count == 0; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
        ck_assert(start(&asker, "four.test"));
    }
    expect(&asker.result, "192.0.2.1");
    ck_assert_uint_eq(asker.calls, 1);
    end();
}
END_TEST

START_TEST(garbage_is_no_answer)
{
    struct asker asker = {0};

    begin("");
    resolve(&asker, "garbage.test");
    ck_assert_uint_eq(asker.result.count, 0);
    end();
}
END_TEST

/* Not every kernel says so. */
START_TEST(nobody_listens)
{
    struct resolve_options options = {.hosts_file = hosts_path,
                                      .resolv_file = settings_path,
                                      .servers = "127.0.0.1:1",
                                      .timeout_ms = 500};
    struct asker asker = {0};

    begin("");
    resolver_free(resolver);
    ck_ok(resolver_new(&loop, &options, &resolver));
    ck_assert(!start(&asker, "four.test"));
    await(&asker);
    ck_assert_uint_eq(asker.result.count, 0);
    if (strcmp(asker.result.error, "the name servers did not answer in time") != 0)
        expect(&asker.result, "-no name server gave an answer");
    end();
}
END_TEST

START_TEST(bad_servers)
{
    struct resolve_options options = {
        .hosts_file = hosts_path, .resolv_file = settings_path, .servers = "name.test:53"};
    struct resolver *other;

    begin("");
    ck_fails(resolver_new(&loop, &options, &other), ERR_UNKNOWN, "name.test:53");
    end();
}
END_TEST

START_TEST(freed_while_asking)
{
    static struct asker askers[50];

    begin("");
    memset(askers, 0, sizeof(askers));
    for (size_t i = 0; i < ARRAY_LEN(askers); i++)
        ck_assert(!start(&askers[i], i % 2 == 0 ? "silent.test" : "a.silent.test"));
    loop_run_once(&loop);
    end();
    for (size_t i = 0; i < ARRAY_LEN(askers); i++)
        ck_assert_uint_eq(askers[i].calls, 0);
}
END_TEST

START_TEST(settings_are_read_again)
{
    struct asker asker = {0};

    clock_fake(0, 1000000000);
    begin("");
    resolve(&asker, "db");
    ck_assert_str_eq(server.last_name, "db.first.test");
    write_file(settings_path, "search other.second.test\n");
    resolve(&asker, "early");
    ck_assert_str_eq(server.last_name, "early.first.test");
    pass_s(1);
    resolve(&asker, "cache");
    ck_assert_str_eq(server.last_name, "cache.other.second.test");
    end();
}
END_TEST

static void resolve_numbered(unsigned from, unsigned to)
{
    static struct asker askers[100];

    for (unsigned first = from; first < to; first += ARRAY_LEN(askers)) {
        memset(askers, 0, sizeof(askers));
        for (unsigned i = 0; i < ARRAY_LEN(askers); i++) {
            char name[64];

            snprintf(name, sizeof(name), "n%u.many.test", first + i);
            ck_assert(!start(&askers[i], name));
        }
        for (unsigned i = 0; i < ARRAY_LEN(askers); i++)
            if (askers[i].calls == 0)
                await(&askers[i]);
    }
}

START_TEST(the_cache_is_bounded)
{
    struct asker asker = {0};

    clock_fake(0, 1000000000);
    begin("");
    resolve_numbered(0, 10000);
    ck_assert_uint_eq(resolve_cached(resolver), 10000);
    ck_assert(start(&asker, "n0.many.test")); /* used: not the oldest any more */
    resolve_numbered(10000, 10100);
    ck_assert_uint_eq(resolve_cached(resolver), 10000);
    ck_assert(start(&asker, "n0.many.test"));
    ck_assert(start(&asker, "n101.many.test"));
    ck_assert(!start(&asker, "n100.many.test"));
    await(&asker);
    end();
}
END_TEST

START_TEST(too_many_wait)
{
    struct asker *askers = mem_zero(10000 * sizeof(*askers));
    struct asker asker = {0};

    begin("");
    server.silent = true;
    for (unsigned i = 0; i < 10000; i++) {
        char name[64];

        snprintf(name, sizeof(name), "n%u.many.test", i);
        ck_assert(!start(&askers[i], name));
    }
    ck_assert(start(&asker, "one-more.test"));
    expect(&asker.result, "-too many names are being resolved");
    end();
    mem_free(askers);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, literal_addresses);
    tcase_add_test(tc, names_that_are_none);
    tcase_add_test(tc, localhost);
    tcase_add_test(tc, hosts_file);
    tcase_add_test(tc, hosts_file_of_many_addresses);
    tcase_add_test(tc, hosts_file_is_read_again);
    tcase_add_test(tc, answers);
    tcase_add_test(tc, both_families_share_the_room);
    tcase_add_test(tc, answers_are_kept_for_their_time);
    tcase_add_test(tc, one_question_for_many);
    tcase_add_test(tc, cancelled_queries_stay_silent);
    tcase_add_test(tc, callbacks_may_start_and_cancel);
    tcase_add_test(tc, silence_ends);
    tcase_add_test(tc, a_late_answer_serves);
    tcase_add_test(tc, garbage_is_no_answer);
    tcase_add_test(tc, nobody_listens);
    tcase_add_test(tc, bad_servers);
    tcase_add_test(tc, freed_while_asking);
    tcase_add_test(tc, settings_are_read_again);
    tcase_add_test(tc, the_cache_is_bounded);
    tcase_add_test(tc, too_many_wait);
}
