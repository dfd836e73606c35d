/* A node takes a copy from others that a test plays, whatever they answer, and starts with it,
 * whenever it was killed. */
#include "journal/join.h"

#include "fetch/fetch_testing.h"
#include "journal_testing.h"
#include "testing.h"

#include "base/buf.h"
#include "base/digest.h"
#include "io/fault.h"
#include "journal/backup.h"
#include "journal/cluster_file.h"
#include "journal/journal_copy.h"
#include "journal/replica.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES_MOST = 8, ASKED_MOST = 64 };

/* The nodes that live: in place of what replica_nodes.c knows. */
static struct replica_node nodes[NODES_MOST];
static size_t node_count;

size_t replica_node_count(const struct replica *r)
{
    (void)r;
    return node_count;
}

const struct replica_node *replica_node_at(const struct replica *r, size_t i)
{
    (void)r;
    return &nodes[i];
}

static struct fixture theirs, ours;
static struct buf backup, answer;
static uint64_t theirs_next;
static struct join *join;
static char urls[NODES_MOST][64];
static unsigned failed, joined;
static uint64_t joined_next, progress, progress_of;
static char whys[ASKED_MOST][200];
static char asked[ASKED_MOST + 1]; /* the first letters of the hosts, in order */
static bool heals;                 /* once it has failed, a good answer is given */
static struct uuid cluster;

/* Of a journal that has records: `theirs`. */
static void make_backup(void)
{
    struct journal_copy *copy;
    struct buf part;
    bool is_there;

    fx_init_fast(&theirs, JOURNAL_ALWAYS, DISK_AUTO);
    fx_open(&theirs);
    fx_commit_many(&theirs, 40);
    for (int i = 0; i < 12; i++) {
        fx_append(&theirs, 2, 20000);
        fx_commit(&theirs);
    }
    theirs_next = journal_next_serial(theirs.j);
    buf_init(&backup, BUF_NO_CAP);
    buf_init(&part, BUF_NO_CAP);
    ck_ok(journal_copy_open(theirs.j, &(struct journal_copy_options){.held_bytes = UINT64_MAX},
                            &copy));
    do {
        ck_ok(journal_copy_read(copy, &part, &is_there));
        buf_add(&backup, buf_span(&part));
    } while (!is_there || part.n > 0);
    journal_copy_close(copy);
    buf_done(&part);
}

/* Of a new digest, after a change. */
static void sign_again(void)
{
    uint8_t digest[DIGEST_BYTES];

    buf_truncate(&backup, backup.n - BACKUP_END_BYTES);
    digest_sha256(buf_span(&backup), digest);
    backup_file_add_end(&backup, digest);
}

/* Answers with the first n bytes of it. */
static void serve(size_t n)
{
    buf_clear(&answer);
    buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", backup.n);
    buf_add(&answer, span_of(backup.p, n));
    receiver.script = (struct receiver_script){
        .bytes = answer.p, .n = answer.n, .then = n < backup.n ? THEN_CLOSE : THEN_KEEP};
}

static void begin(void)
{
    fault_set(NULL);
    make_backup();
    buf_init(&answer, BUF_NO_CAP);
    fx_init_fast(&ours, JOURNAL_ALWAYS, DISK_AUTO);
    fx_open(&ours);
    fx_commit_many(&ours, 3);
    fx_close(&ours);
    begin_fetching_with("127.0.0.1 a.test b.test c.test d.test\n", &(struct fetch_options){0});
    node_count = 0;
    failed = joined = 0;
    joined_next = progress = progress_of = 0;
    heals = true;
    memset(asked, 0, sizeof(asked));
    cluster = uuid_new();
    serve(backup.n);
}

static void end(void)
{
    bool is_refused;

    fault_set(NULL);
    join_free(TAKE(join));
    ck_ok(join_settle(ours.directory, &is_refused));
    end_fetching();
    buf_done(&backup);
    buf_done(&answer);
    fx_done(&ours);
    fx_done(&theirs);
}

static void add_node(const char *name, enum replica_role role, uint64_t next)
{
    char url[64];

    snprintf(url, sizeof(url), "http://%s.test:%%u", name);
    with_port(urls[node_count], sizeof(urls[0]), url);
    nodes[node_count] = (struct replica_node){
        .name = span_str(name), .url = span_str(urls[node_count]), .role = role, .next = next};
    node_count++;
}

static void authorize(void *context, struct span method, struct span target, struct buf *out_value)
{
    (void)context;
    buf_printf(out_value, "%.*s of %.*s", SPAN_FMT(method), SPAN_FMT(target));
}

static void note_asked(void)
{
    size_t at = span_find(buf_span(&receiver.last), SPAN("Host: "));

    if (at != SIZE_MAX && strlen(asked) < ASKED_MOST)
        asked[strlen(asked)] = receiver.last.p[at + 6];
    buf_clear(&receiver.last);
}

static void on_progress(void *context, uint64_t bytes, uint64_t of_bytes)
{
    (void)context;
    progress = bytes;
    progress_of = of_bytes;
}

static void on_failed(void *context, const char *why)
{
    (void)context;
    note_asked();
    if (failed < ASKED_MOST)
        snprintf(whys[failed], sizeof(whys[0]), "%s", why);
    failed++;
    fault_set(NULL);
    receiver.reset_at_accept = false;
    if (heals)
        serve(backup.n);
}

static void on_joined(void *context, uint64_t next)
{
    (void)context;
    joined++;
    joined_next = next;
    join_free(TAKE(join));
}

static void start(uint64_t begins)
{
    const struct join_options options = {
        .directory = ours.directory,
        .fetcher = fetcher,
        .node = "x",
        .base_path = "/api",
        .cluster = cluster,
        .begins = begins,
        .authorize = authorize,
        .on_progress = on_progress,
        .on_failed = on_failed,
        .on_joined = on_joined,
    };

    join = join_start(&loop, &options);
}

static void await(const unsigned *what, unsigned count)
{
    for (unsigned turn = 0; *what < count; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
}

static bool exists(const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", ours.directory, name);
    return access(path, F_OK) == 0;
}

/* What a start finds: their records, or what was there before. */
static void check_start(bool is_theirs)
{
    const struct fx_list *expected = is_theirs ? &theirs.appended : &ours.appended;
    struct uuid id;
    bool is_found;

    ck_assert(!exists("joining"));
    ck_assert(!exists("joined"));
    ck_assert(!exists("replacing"));
    ck_assert(!exists("replaced"));
    fx_open(&ours);
    ck_assert_uint_eq(ours.replayed.count, expected->count);
    for (size_t i = 0; i < expected->count; i++) {
        ck_assert_uint_eq(ours.replayed.records[i].serial, expected->records[i].serial);
        ck_assert_uint_eq(ours.replayed.records[i].n, expected->records[i].n);
        ck_assert(ours.replayed.records[i].body_holds);
    }
    ck_ok(cluster_file_read(ours.directory, &id, &is_found));
    ck_assert_int_eq(is_found, is_theirs);
    ck_assert(!is_theirs || uuid_eq(&id, &cluster));
    if (is_theirs) {
        ck_assert_uint_eq(journal_next_serial(ours.j), theirs_next);
        fx_append_blindly(&ours, 1, 100); /* and it goes on */
        journal_commit(ours.j);
        while (!journal_idle(ours.j))
            loop_run_once(&ours.loop);
    }
    fx_close(&ours);
}

static void settle(void)
{
    bool is_refused;

    ck_ok(join_settle(ours.directory, &is_refused));
    ck_assert(!is_refused);
}

/* Taking one. ------------------------------------------------------------------------------- */

START_TEST(a_copy_takes_the_journals_place)
{
    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    start(1);
    await(&joined, 1);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_eq(joined_next, theirs_next);
    ck_assert_uint_le(progress, backup.n);
    ck_assert_uint_eq(progress_of, backup.n);
    ck_assert_uint_ne(
        span_find(buf_span(&receiver.last), SPAN("GET /api/Svc.Admin.Backup HTTP/1.1\r\n")),
        SIZE_MAX);
    ck_assert_uint_ne(
        span_find(buf_span(&receiver.last), SPAN("Svc-cluster: GET of /api/Svc.Admin.Backup\r\n")),
        SIZE_MAX);
    ck_assert(exists("joined"));
    ck_assert(!exists("joining"));
    settle();
    check_start(true);
    settle(); /* nothing is left to do */
    end();
}
END_TEST

static const struct {
    const char *answer; /* NULL: the copy, damaged or cut */
    double part;        /* of it that comes; 0: the whole, damaged there */
    double at;
    const char *fault;
    const char *says;
} ways[] = {
    {"HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", .says = "it answers 503"},
    {"HTTP/1.1 403 x\r\nContent-Length: 4\r\n\r\nnono", .says = "it answers 403"},
    {"HTTP/1.1 204 x\r\n\r\n", .says = "it answers 204"},
    {"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n", .says = "cut off after 0 bytes"},
    {"HTTP/1.1 200 x\r\nContent-Length: 65\r\n\r\n"
     "01234567890123456789012345678901234567890123456789012345678901234",
     .says = "no backup file"},
    {"no HTTP at all\r\n\r\n", .says = "HTTP"},
    {.part = 0.0001, .says = "remaining to read"},
    {.part = 0.5, .says = "remaining to read"},
    {.part = 0.9999, .says = "remaining to read"},
    {.at = 0.5, .says = "its SHA-256"},
    {.at = 0.9999, .says = "its SHA-256"},
    {.part = 1, .fault = "copy.room:1", .says = "the disk has room for 0 bytes"},
    {.part = 1, .fault = "disk.allocate:3", .says = "No space left"},
    {.part = 1, .fault = "disk.write:4", .says = "Input/output error"},
    {.part = 1, .fault = "disk.sync:2", .says = "Input/output error"},
    {.part = 1, .fault = "disk.open:4", .says = "cannot open"},
    {.part = 1, .fault = "cluster.write:1", .says = "cluster: "},
    {.part = 1, .fault = "join.step:1", .says = "Input/output error"},
};

START_TEST(one_that_fails_is_taken_from_another)
{
    size_t at;

    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    add_node("b", REPLICA_FOLLOWING, theirs_next);
    at = (size_t)(ways[_i].at * (double)backup.n);
    backup.p[at] ^= at > 0 ? 1 : 0;
    serve(ways[_i].part > 0 ? (size_t)(ways[_i].part * (double)backup.n) : backup.n);
    backup.p[at] ^= at > 0 ? 1 : 0;
    if (ways[_i].answer != NULL)
        receiver.script = (struct receiver_script){.bytes = ways[_i].answer, .then = THEN_CLOSE};
    start(1);
    if (ways[_i].fault != NULL) {
        loop_run_once(&loop);
#ifdef SVCD_FAULTS
        fault_set(ways[_i].fault);
#endif
    }
    await(&joined, 1);
    note_asked();
#ifdef SVCD_FAULTS
    ck_assert_uint_eq(failed, 1);
    ck_assert_msg(strstr(whys[0], ways[_i].says) != NULL, "%s", whys[0]);
    ck_assert_str_eq(asked + strlen(asked) - 1, "b");
#endif
    settle();
    check_start(true);
    end();
}
END_TEST

START_TEST(a_connection_that_is_reset)
{
    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    receiver.reset_at_accept = true;
    start(1);
    await(&joined, 1);
    ck_assert_uint_eq(failed, 1);
    ck_assert_uint_eq(joined_next, theirs_next);
    end();
}
END_TEST

/* Followers first, whoever is furthest; the leader when they have failed; then again. */
START_TEST(who_is_asked)
{
    begin();
    add_node("a", REPLICA_LEADING, theirs_next + 5);
    add_node("b", REPLICA_FOLLOWING, theirs_next);
    add_node("c", REPLICA_FOLLOWING, theirs_next + 1);
    add_node("d", REPLICA_JOINING, theirs_next + 9);
    add_node("d", REPLICA_FOLLOWING, 3);               /* it would be of no use */
    add_node("x", REPLICA_FOLLOWING, theirs_next + 9); /* itself */
    heals = false;
    receiver.script =
        (struct receiver_script){.bytes = "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n"};
    start(4);
    await(&failed, 6);
    ck_assert_str_eq(asked, "cbacba");
    end();
}
END_TEST

START_TEST(it_waits_for_a_node)
{
    begin();
    add_node("d", REPLICA_JOINING, theirs_next);
    start(1);
    pass_ms(1200);
    ck_assert_uint_eq(receiver.requests, 0);
    add_node("a", REPLICA_LEADING, theirs_next);
    await(&joined, 1);
    ck_assert_uint_eq(failed, 0);
    end();
}
END_TEST

/* The node says of itself more than its copy has: nothing but the head of it is read. */
START_TEST(a_copy_that_ends_too_early)
{
    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next + 1);
    heals = false;
    start(theirs_next + 1);
    await(&failed, 1);
    ck_assert_ptr_nonnull(strstr(whys[0], "where the log begins"));
    end();
}
END_TEST

START_TEST(what_was_left_is_in_nobodys_way)
{
    char path[128];

    begin();
    snprintf(path, sizeof(path), "%s/joining", ours.directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/joining/journal-0000000000000001.seg", ours.directory);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    start(1);
    await(&joined, 1);
    ck_assert_uint_eq(failed, 0);
    settle();
    check_start(true);
    end();
}
END_TEST

/* Kills. ------------------------------------------------------------------------------------ */

/* While the copy comes, at any turn: the journal is as it was. */
START_TEST(killed_while_it_comes)
{
    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    for (int turns = 0; turns < 12; turns++) {
        start(1);
        for (int i = 0; i < turns && joined == 0; i++)
            loop_run_once(&loop);
        if (joined > 0)
            break;
        join_free(TAKE(join));
        settle();
        check_start(false);
    }
    end();
}
END_TEST

#ifdef SVCD_FAULTS
/* At each step of putting it in place: the next start goes on with it. */
START_TEST(killed_while_it_is_put_in_place)
{
    char fault[32];
    bool is_refused, is_done = false;
    unsigned step = 1;

    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    for (; !is_done; step++) {
        struct err *e;

        ck_assert_uint_lt(step, 100);
        start(1);
        joined = 0;
        await(&joined, 1);
        snprintf(fault, sizeof(fault), "join.step:%u", step);
        ck_assert(fault_set(fault));
        e = join_settle(ours.directory, &is_refused);
        fault_set(NULL);
        is_done = e == NULL;
        err_free(e);
        settle();
        check_start(true);
    }
    ck_assert_uint_gt(step, 20);
    end();
}
END_TEST

/* Killed again and again. Some steps are done anew each time: a sync, for one. */
START_TEST(killed_at_each_start)
{
    bool is_refused, is_done = false;
    unsigned kills = 0;

    begin();
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    start(1);
    await(&joined, 1);
    for (; !is_done; kills++) {
        struct err *e;

        ck_assert_uint_lt(kills, 100);
        ck_assert(fault_set("join.step:4"));
        e = join_settle(ours.directory, &is_refused);
        is_done = e == NULL;
        err_free(e);
    }
    ck_assert_uint_gt(kills, 4);
    check_start(true);
    end();
}
END_TEST
#endif

/* What their disk has damaged comes as it is: a start could not read it. */
START_TEST(a_copy_that_cannot_be_read)
{
    bool is_refused;

    begin();
    memset(backup.p + backup.n / 2, 'x', 5000);
    sign_again();
    serve(backup.n);
    add_node("a", REPLICA_FOLLOWING, theirs_next);
    start(1);
    await(&joined, 1);
    ck_ok(join_settle(ours.directory, &is_refused));
    ck_assert(is_refused);
    check_start(false);
    end();
}
END_TEST

START_TEST(there_is_nothing_to_settle)
{
    bool is_refused = true;

    begin();
    settle();
    check_start(false);
    ck_ok(join_settle("/nowhere/at/all", &is_refused));
    ck_assert(!is_refused);
    end();
}
END_TEST

/* Its journal is in use. */
START_TEST(another_server_is_at_work)
{
    char path[128];
    bool is_refused;

    begin();
    fx_open(&ours);
    snprintf(path, sizeof(path), "%s/joined", ours.directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_fails(join_settle(ours.directory, &is_refused), ERR_STORAGE_FAILURE, "in use");
    ck_assert(exists("joined"));
    fx_close(&ours);
    ck_assert_int_eq(rmdir(path), 0);
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_copy_takes_the_journals_place);
    tcase_add_loop_test(tc, one_that_fails_is_taken_from_another, 0, ARRAY_LEN(ways));
    tcase_add_test(tc, a_connection_that_is_reset);
    tcase_add_test(tc, who_is_asked);
    tcase_add_test(tc, it_waits_for_a_node);
    tcase_add_test(tc, a_copy_that_ends_too_early);
    tcase_add_test(tc, what_was_left_is_in_nobodys_way);
    tcase_add_test(tc, killed_while_it_comes);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, killed_while_it_is_put_in_place);
    tcase_add_test(tc, killed_at_each_start);
#endif
    tcase_add_test(tc, a_copy_that_cannot_be_read);
    tcase_add_test(tc, there_is_nothing_to_settle);
    tcase_add_test(tc, another_server_is_at_work);
}
