/* Nodes over an etcd that the test plays: every outcome of every step, and what follows from it.
 * What etcd itself does with it is tests/cluster's. */
#include "journal/replica.h"

#include "etcd_playing.h"
#include "testing.h"

#include "base/clock.h"
#include "base/macros.h"
#include "io/loop.h"
#include "journal/replica_stats.h"

#include <stdio.h>
#include <string.h>

#define BASE "/svcd/prod/"
#define LOG BASE "log/"
#define PART BASE "part/"
#define NS_PER_MS UINT64_C(1000000)

enum { SERIALS = 4000, STEP_MS = 10 };

/* A node: its journal is the list of batches, by their first byte, and the next serial. */
struct node {
    struct replica *replica;
    struct replica_append append;
    char journal[SERIALS];
    size_t batches;
    uint64_t next;
    uint8_t id[REPLICA_UUID_BYTES], secret[REPLICA_SECRET_BYTES];
    unsigned entered, late, settled, missing, nodes_changed;
    uint64_t begins;
    enum replica_settlement settlement;
    enum replica_trouble trouble;
    char why[512];
    bool takes_nothing;
    size_t content_bytes;
};

static struct loop loop;
static struct node a, b;

static void on_entered(void *context, const uint8_t id[REPLICA_UUID_BYTES],
                       const uint8_t secret[REPLICA_SECRET_BYTES])
{
    struct node *n = context;

    n->entered++;
    memcpy(n->id, id, sizeof(n->id));
    memcpy(n->secret, secret, sizeof(n->secret));
}

static void add(struct node *n, uint64_t first, uint32_t count, struct span content)
{
    ck_assert_uint_le(first, n->next);
    n->next = first + count;
    n->journal[n->batches++] = content.n > 0 ? content.p[0] : '-';
    n->content_bytes += content.n;
}

static void on_batch(void *context, const struct replica_batch *batch)
{
    struct node *n = context;

    add(n, batch->first, batch->count, batch->content);
    if (!n->takes_nothing)
        replica_taken(n->replica, n->next);
}

static void on_missing(void *context, uint64_t next, uint64_t begins)
{
    struct node *n = context;

    ck_assert_uint_eq(next, n->next);
    n->missing++;
    n->begins = begins;
}

static void on_nodes(void *context)
{
    ((struct node *)context)->nodes_changed++;
}

static void on_trouble(void *context, enum replica_trouble trouble, const char *why)
{
    struct node *n = context;

    ck_assert_int_eq(trouble == REPLICA_NO_TROUBLE, why[0] == '\0');
    n->trouble = trouble;
    snprintf(n->why, sizeof(n->why), "%s", why);
}

static void start_with(struct node *n, struct replica_options options)
{
    const struct replica_callbacks callbacks = {.on_entered = on_entered,
                                                .on_batch = on_batch,
                                                .on_missing = on_missing,
                                                .on_nodes = on_nodes,
                                                .on_trouble = on_trouble,
                                                .context = n};

    *n = (struct node){.next = MAX(options.next, 1u)};
    options.cluster = "prod";
    options.node = options.node != NULL ? options.node : n == &a ? "a" : "b";
    options.url = "http://x";
    options.version = "1";
    options.next = n->next;
    ck_ok(replica_new(&loop, etcd_played(), &options, &callbacks, &n->replica));
    replica_start(n->replica);
}

static void start(struct node *n)
{
    start_with(n, (struct replica_options){0});
}

static void begin(void)
{
    clock_fake(0, UINT64_C(1000000000000));
    ck_ok(loop_init(&loop));
    etcd_play_begin(&loop);
    a = b = (struct node){0};
}

static void end(void)
{
    replica_free(a.replica);
    replica_free(b.replica);
    etcd_play_end();
    loop_done(&loop);
    clock_real();
}

static void turns(unsigned count)
{
    while (count-- > 0) {
        loop_wake(&loop);
        loop_run_once(&loop);
    }
}

static void pass(uint64_t ms)
{
    for (uint64_t at = 0; at < ms; at += STEP_MS) {
        turns(8);
        clock_advance(STEP_MS * NS_PER_MS);
    }
    turns(8);
}

static void lead(struct node *n)
{
    for (unsigned i = 0; replica_role(n->replica) != REPLICA_LEADING; i++) {
        ck_assert_uint_lt(i, 3000);
        pass(STEP_MS);
    }
}

static void on_settled(struct replica_append *append, enum replica_settlement settlement,
                       const char *why)
{
    struct node *n = CONTAINER_OF(append, struct node, append);

    ck_assert_int_eq(settlement == REPLICA_CONFIRMED, why[0] == '\0');
    n->settled++;
    n->settlement = settlement;
    if (settlement == REPLICA_CONFIRMED)
        add(n, append->first, append->count, append->content);
}

static void on_late(struct replica_append *append, const char *why)
{
    ck_assert(why[0] != '\0');
    CONTAINER_OF(append, struct node, append)->late++;
}

static void append_bytes(struct node *n, struct span content)
{
    ck_assert(replica_can_append(n->replica));
    n->settled = 0;
    n->append = (struct replica_append){.first = n->next,
                                        .count = 2,
                                        .content = content,
                                        .on_settled = on_settled,
                                        .on_late = on_late};
    replica_append(n->replica, &n->append);
    ck_assert(!replica_can_append(n->replica));
}

static void append(struct node *n, const char *content)
{
    append_bytes(n, span_str(content));
}

static void append_and_wait(struct node *n, const char *content)
{
    append(n, content);
    pass(1000);
    ck_assert_uint_eq(n->settled, 1);
}

/* Bytes that do not compress. */
static struct span noise(size_t n)
{
    static char bytes[100000];
    uint32_t state = 7;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (char)(state >> 24);
    }
    bytes[0] = 'n';
    return span_of(bytes, n);
}

/* Another node's, of which nothing is known here, leads from now on. */
static void depose(void)
{
    etcd_remove(BASE "leader");
    etcd_store(BASE "leader", SPAN("00000000000000000000000000000000 other"), 0);
}

/* A batch of that one's. */
static void store_batch(uint64_t first, uint32_t count, const char *content)
{
    struct replica_head head = {.epoch = 99, .first = first, .count = count, .node = SPAN("other")};
    struct buf stored, value;
    char key[64];

    buf_init(&stored, BUF_NO_CAP);
    buf_init(&value, BUF_NO_CAP);
    replica_batch_pack(span_str(content), &head, &stored);
    replica_batch_add(&value, &head, buf_span(&stored));
    snprintf(key, sizeof(key), LOG "%016llx", (unsigned long long)first);
    etcd_store(key, buf_span(&value), 0);
    buf_done(&stored);
    buf_done(&value);
}

/* Entering. */

START_TEST(the_first_node_begins_a_cluster)
{
    begin();
    start(&a);
    lead(&a);
    ck_assert_uint_eq(a.entered, 1);
    ck_assert_uint_eq(etcd_count(BASE "id"), 1);
    ck_assert_uint_eq(etcd_count(BASE "secret"), 1);
    ck_assert_ptr_nonnull(etcd_find(LOG "0000000000000000"));
    ck_assert_ptr_nonnull(etcd_find(BASE "node/a"));
    ck_assert_int_gt(etcd_find(BASE "leader")->lease, INT64_C(1) << 53);
    ck_assert_uint_eq(replica_epoch(a.replica),
                      (uint64_t)etcd_find(BASE "leader")->create_revision);
    ck_span_eq(replica_leader(a.replica), "a");
    start(&b);
    pass(1000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_FOLLOWING);
    ck_assert_int_eq(memcmp(a.id, b.id, sizeof(a.id)), 0);
    ck_assert_int_eq(memcmp(a.secret, b.secret, sizeof(a.secret)), 0);
    ck_span_eq(replica_leader(b.replica), "a");
    end();
}
END_TEST

/* Each step's answer is lost, or it never arrives; then it is done again. */
START_TEST(steps_that_are_not_answered)
{
    static const char *const steps[] = {BASE "id", BASE "node/", BASE "leader", ""};
    static const enum fate fates[] = {FATE_LOST, FATE_UNSENT, FATE_LATER};

    begin();
    etcd_fate(steps[_i % 4], fates[_i / 4], 2);
    start(&a);
    lead(&a);
    etcd_play_late();
    pass(3000);
    lead(&a);
    append_and_wait(&a, "x");
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
    ck_assert_uint_eq(etcd_count(BASE "id"), 1);
    ck_assert_uint_eq(a.entered, 1);
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    end();
}
END_TEST

START_TEST(another_history_is_refused)
{
    static const uint8_t id[REPLICA_UUID_BYTES] = {1};

    begin();
    if (_i == 0) {
        start_with(&a, (struct replica_options){.next = 5});
        pass(500);
        ck_assert_uint_eq(etcd_count(BASE "id"), 0);
    } else {
        start(&b);
        lead(&b);
        start_with(&a, (struct replica_options){
                           .next = _i == 1 ? 1 : 5, .id = _i == 1 ? id : NULL, .adopt = true});
        pass(500);
    }
    ck_assert_int_eq(replica_role(a.replica), REPLICA_REFUSED);
    ck_assert_int_eq(a.trouble, REPLICA_OTHER_HISTORY);
    end();
}
END_TEST

START_TEST(a_journal_is_adopted)
{
    begin();
    start_with(&a, (struct replica_options){.next = 5, .adopt = true});
    lead(&a);
    append_and_wait(&a, "x");
    ck_assert_uint_eq(a.next, 7);
    start(&b); /* it has nothing of what the journal had */
    pass(1000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_JOINING);
    ck_assert_uint_eq(b.begins, 5);
    b.next = 5;
    replica_joined(b.replica, 5);
    pass(1000);
    ck_assert_str_eq(b.journal, "x");
    end();
}
END_TEST

START_TEST(etcd_that_has_lost_the_log)
{
    static const uint8_t id[REPLICA_UUID_BYTES] = {1};

    begin();
    start_with(&a, (struct replica_options){.next = 5, .id = id});
    pass(3000);
    ck_assert_int_eq(a.trouble, REPLICA_LOG_LOST);
    ck_assert_int_eq(replica_role(a.replica), REPLICA_ENTERING);
    ck_assert_uint_eq(etcd_count(BASE), 0);
    end();
}
END_TEST

/* It was set back behind the journal, or emptied: nobody appends to it. */
START_TEST(etcd_that_is_older_than_the_journal)
{
    begin();
    start(&b);
    lead(&b);
    append_and_wait(&b, "x");
    if (_i == 1)
        etcd_remove(LOG);
    start_with(&a, (struct replica_options){.next = 9, .id = b.id});
    replica_free(TAKE(b.replica));
    etcd_remove(BASE "leader");
    pass(10000);
    ck_assert_int_eq(a.trouble, REPLICA_LOG_LOST);
    ck_assert_int_eq(replica_role(a.replica), REPLICA_FOLLOWING);
    ck_assert_uint_eq(etcd_count(BASE "leader"), 0);
    end();
}
END_TEST

START_TEST(a_log_that_is_restored)
{
    static const uint8_t id[REPLICA_UUID_BYTES] = {1};

    begin();
    if (_i == 1) {
        start(&b);
        lead(&b);
        append_and_wait(&b, "x");
    }
    start_with(&a, (struct replica_options){.next = 9, .id = _i == 1 ? b.id : id});
    pass(1000);
    ck_assert_int_eq(a.trouble, REPLICA_LOG_LOST);
    if (_i == 1) {
        replica_restore(a.replica); /* but somebody leads */
        pass(1000);
        ck_assert_int_eq(a.trouble, REPLICA_LOG_LOST);
        ck_assert_uint_eq(etcd_count(LOG), 2);
        replica_free(TAKE(b.replica));
        etcd_remove(BASE "leader");
        etcd_remove(BASE "node/b");
        pass(3000);
        ck_assert_uint_eq(etcd_count(LOG), 2); /* it was told once */
    }
    replica_restore(a.replica);
    lead(&a);
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    append_and_wait(&a, "y");
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
    ck_assert_uint_eq(etcd_count(LOG), 2);
    start(&b);
    pass(1000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_JOINING);
    ck_assert_uint_eq(b.begins, 9);
    end();
}
END_TEST

/* At once it is further than it was when the nodes began to read. */
static void lose_and_store_others(void)
{
    int64_t before = etcd_revision();

    etcd_lose_all();
    while (etcd_revision() < before / 2)
        etcd_store("/other", SPAN("x"), 0);
}

/* While nodes live: its disks are gone, or somebody has deleted all. */
START_TEST(etcd_that_loses_all)
{
    enum { APPENDED = 50 };

    begin();
    start(&a);
    lead(&a);
    start(&b);
    for (unsigned i = 0; i < APPENDED; i++)
        append_and_wait(&a, "x");
    pass(1000);
    if (_i == 0)
        etcd_lose_all();
    else if (_i == 1)
        etcd_remove(BASE);
    else
        lose_and_store_others();
    pass(20000);
    for (unsigned i = 0; i < 2; i++) {
        const struct node *n = i == 0 ? &a : &b;

        ck_assert_int_eq(n->trouble, REPLICA_LOG_LOST);
        ck_assert_int_eq(replica_role(n->replica), REPLICA_FOLLOWING);
        ck_assert_uint_eq(replica_epoch(n->replica), 0);
        ck_assert_uint_eq(replica_leader(n->replica).n, 0);
    }
    ck_assert_uint_eq(etcd_count(BASE "leader"), 0);
    replica_restore(b.replica);
    lead(&b);
    append_and_wait(&b, "y");
    pass(5000);
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    ck_assert_uint_eq(strspn(a.journal, "x"), APPENDED);
    ck_assert_str_eq(a.journal + APPENDED, "y");
    ck_assert_str_eq(b.journal, a.journal);
    end();
}
END_TEST

/* A leader and a follower at one serial, and what they have. */
static void two_nodes(void)
{
    start(&a);
    lead(&a);
    start(&b);
    append_and_wait(&a, "x");
    append_and_wait(&a, "y");
    ck_assert_str_eq(b.journal, "xy");
}

static void expect_lost(const struct node *n, const char *journal)
{
    ck_assert_int_eq(n->trouble, REPLICA_LOG_LOST);
    ck_assert_int_eq(replica_role(n->replica), REPLICA_FOLLOWING);
    ck_assert_str_eq(n->journal, journal);
}

/* Whatever revision it is at, and whatever stands in it: 0: nothing, 1: a copy of the log, 2: a
 * copy that has gone on. Watches and all that is asked tell by its cluster id; a log is begun anew
 * there as ever. */
START_TEST(another_etcd_with_higher_revisions)
{
    begin();
    two_nodes();
    if (_i == 0)
        etcd_lose_all_at(1000000);
    etcd_play_cluster(UINT64_MAX);
    if (_i == 2) {
        depose();
        store_batch(a.next, 1, "z");
    }
    pass(20000);
    expect_lost(&a, "xy");
    expect_lost(&b, "xy");
    ck_assert(strstr(b.why, "ffffffffffffffff") != NULL);
    ck_assert(strstr(b.why, "0000000000000001") != NULL);
    etcd_remove(BASE "leader");
    replica_restore(b.replica);
    pass(10000);
    append_and_wait(replica_leads(a.replica) ? &a : &b, "w");
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    ck_assert_int_eq(b.trouble, REPLICA_NO_TROUBLE);
    ck_assert_str_eq(a.journal, "xyw");
    ck_assert_str_eq(b.journal, "xyw");
    ck_assert_uint_eq(etcd_count(BASE "node/"), 2); /* both have a lease there */
    ck_span_eq(etcd_find(BASE "etcd")->value, "ffffffffffffffff");
    end();
}
END_TEST

/* So is one that has never seen the etcd that the copy was made of. */
START_TEST(a_node_that_starts_at_a_copy)
{
    begin();
    start(&b);
    lead(&b);
    append_and_wait(&b, "x");
    replica_free(TAKE(b.replica));
    etcd_remove(BASE "leader");
    etcd_remove(BASE "node/");
    etcd_play_cluster(2);
    if (_i == 0)
        start(&a);
    else
        start_with(&a, (struct replica_options){.next = b.next, .id = b.id});
    pass(10000);
    ck_assert_int_eq(a.trouble, REPLICA_LOG_LOST);
    ck_assert_int_eq(replica_role(a.replica), REPLICA_ENTERING);
    ck_assert_uint_eq(etcd_count(BASE "node/"), 0);
    etcd_play_cluster(1);
    lead(&a);
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    end();
}
END_TEST

/* An address that leads to somebody else's etcd, for a while: nothing is believed, nobody leaves.
 */
START_TEST(an_etcd_of_strangers)
{
    begin();
    two_nodes();
    etcd_play_cluster(2);
    etcd_store(BASE "etcd", SPAN("0000000000000002"), 0);
    etcd_store(BASE "id", SPAN("6f0c0f8e-7b0a-4a5e-9d55-3f6f7d1f0001"), 0);
    store_batch(a.next, 1, "z");
    pass(3000);
    ck_assert_int_eq(b.trouble, REPLICA_OTHER_ETCD);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_FOLLOWING);
    ck_assert_str_eq(b.journal, "xy");
    ck_assert(strstr(b.why, "0000000000000002") != NULL);
    ck_assert(strstr(b.why, "0000000000000001") != NULL);
    end();
}
END_TEST

/* With the same cluster id, as it has the same addresses and the same token: what a watch says
 * after its connection has ended is not taken before the log was looked at again. 0: another log,
 * 1: the same, set back, which went on differently. */
START_TEST(a_watch_that_goes_on_in_another_log)
{
    int64_t before;

    begin();
    two_nodes();
    before = etcd_revision();
    etcd_fate_of_all(FATE_UNSENT);
    etcd_cut_watches();
    if (_i == 0) { /* begun at a revision that the watch is past */
        etcd_lose_all();
        etcd_store(BASE "id", SPAN("6f0c0f8e-7b0a-4a5e-9d55-3f6f7d1f0001"), 0);
        while (etcd_revision() < before)
            etcd_store("/other", SPAN("x"), 0);
    } else {
        etcd_remove(LOG "0000000000000003");
        store_batch(3, 2, "q");
    }
    store_batch(b.next, 1, "z");
    pass(100);
    etcd_fate_of_all(FATE_DONE);
    pass(3000);
    ck_assert_str_eq(b.journal, "xy");
    ck_assert_int_eq(b.trouble, _i == 0 ? REPLICA_OTHER_HISTORY : REPLICA_LOG_LOST);
    end();
}
END_TEST

/* In the same etcd too, at once, by the watch. */
START_TEST(an_id_that_changes_is_seen)
{
    begin();
    two_nodes();
    etcd_store(BASE "id", SPAN("6f0c0f8e-7b0a-4a5e-9d55-3f6f7d1f0001"), 0);
    store_batch(b.next, 1, "z");
    pass(200);
    ck_assert_str_eq(b.journal, "xy");
    ck_assert_int_eq(b.trouble, REPLICA_OTHER_HISTORY);
    end();
}
END_TEST

/* What is under way is waited for as long as the lease lasts; then nobody can tell. */
START_TEST(an_append_and_another_etcd)
{
    begin();
    two_nodes();
    etcd_play_cluster(2);
    append(&a, "z");
    pass(1000);
    ck_assert_uint_eq(a.settled, 0);
    if (_i == 0) { /* an address of several was another's */
        etcd_play_cluster(1);
        pass(3000);
        ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
        ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
        ck_assert_int_eq(replica_role(a.replica), REPLICA_LEADING);
        ck_assert_str_eq(b.journal, "xyz");
    } else {
        pass(9000);
        ck_assert_int_eq(a.settlement, REPLICA_UNCERTAIN);
    }
    ck_assert_uint_eq(a.settled, 1);
    end();
}
END_TEST

/* Who has never taken part makes another secret; those that have go on with that one. */
START_TEST(the_secret_of_a_log_that_is_restored)
{
    begin();
    start(&a);
    lead(&a);
    append_and_wait(&a, "x");
    etcd_remove(BASE);
    pass(20000);
    start_with(&b, (struct replica_options){.next = a.next, .id = a.id});
    pass(1000);
    ck_assert_int_eq(b.trouble, REPLICA_LOG_LOST);
    replica_restore(b.replica);
    lead(&b);
    pass(10000);
    ck_assert_mem_eq(a.secret, b.secret, REPLICA_SECRET_BYTES);
    ck_assert_mem_eq(etcd_find(BASE "secret")->value.p, a.secret, REPLICA_SECRET_BYTES);
    ck_assert_mem_eq(a.id, b.id, REPLICA_UUID_BYTES);
    ck_assert_uint_eq(a.entered, 3); /* with another id, then with another secret */
    ck_assert_uint_eq(b.entered, 1);
    end();
}
END_TEST

/* Its next records would not be those of the log. 0: while it lives, 1: when it comes back. */
START_TEST(a_journal_with_more_than_a_restored_log)
{
    uint8_t id[REPLICA_UUID_BYTES];
    uint64_t next;

    begin();
    start(&b);
    lead(&b);
    append_and_wait(&b, "x");
    next = b.next;
    append_and_wait(&b, "y");
    memcpy(id, b.id, sizeof(id));
    if (_i == 1) {
        replica_free(TAKE(b.replica));
        etcd_remove(BASE);
    } else {
        etcd_lose_all();
        pass(20000);
        ck_assert_int_eq(b.trouble, REPLICA_LOG_LOST);
    }
    start_with(&a, (struct replica_options){.next = next, .id = id});
    pass(1000);
    replica_restore(a.replica);
    lead(&a);
    for (unsigned i = 0; i < 5; i++)
        append_and_wait(&a, "z");
    if (_i == 1)
        start_with(&b, (struct replica_options){.next = b.next, .id = id});
    pass(5000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_REFUSED);
    ck_assert_int_eq(b.trouble, REPLICA_OTHER_HISTORY);
    ck_assert_int_eq(replica_role(a.replica), REPLICA_LEADING);
    end();
}
END_TEST

/* What ends where the log was restored, or before, is a part of it; later too. */
START_TEST(a_journal_that_is_part_of_a_restored_log)
{
    uint8_t id[REPLICA_UUID_BYTES];
    uint64_t next;

    begin();
    start(&a);
    lead(&a);
    append_and_wait(&a, "x");
    memcpy(id, a.id, sizeof(id));
    next = a.next;
    etcd_remove(BASE);
    pass(20000);
    replica_restore(a.replica);
    lead(&a);
    ck_assert_mem_ne(a.id, id, sizeof(id));
    append_and_wait(&a, "z");
    start_with(&b, (struct replica_options){.next = _i == 0 ? next : 1, .id = id});
    pass(2000);
    ck_assert_int_eq(replica_role(b.replica), _i == 0 ? REPLICA_FOLLOWING : REPLICA_JOINING);
    ck_assert_mem_eq(a.id, b.id, sizeof(id));
    end();
}
END_TEST

START_TEST(a_name_that_is_taken)
{
    bool stays = _i == 1;

    begin();
    start(&a);
    lead(&a);
    start_with(&b, (struct replica_options){.node = "a"});
    pass(6000);
    ck_assert_int_eq(b.trouble, REPLICA_NAME_TAKEN);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_ENTERING);
    if (!stays) {
        replica_free(TAKE(a.replica));
        etcd_end_lease(etcd_find(BASE "node/a")->lease);
    }
    pass(15000);
    ck_assert_int_eq(replica_role(b.replica), stays ? REPLICA_REFUSED : REPLICA_LEADING);
    ck_assert_int_eq(b.trouble, stays ? REPLICA_NAME_TAKEN : REPLICA_NO_TROUBLE);
    end();
}
END_TEST

/* No lease ends while etcd does not answer, however long that is. */
START_TEST(a_name_that_cannot_be_free_yet)
{
    int64_t lease;

    begin();
    start(&a);
    lead(&a);
    lease = etcd_find(BASE "node/a")->lease;
    replica_free(TAKE(a.replica));
    start_with(&b, (struct replica_options){.node = "a"});
    pass(6000);
    ck_assert_int_eq(b.trouble, REPLICA_NAME_TAKEN);
    etcd_fate_of_all(FATE_UNSENT);
    pass(20000);
    etcd_fate_of_all(FATE_DONE);
    pass(6000); /* the lease, which has begun anew */
    ck_assert_int_eq(replica_role(b.replica), REPLICA_ENTERING);
    etcd_end_lease(lease);
    pass(15000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_LEADING);
    end();
}
END_TEST

/* Appending. */

/* One append meets these fates, one after another; it is in the log once, and said to be done. */
static const struct {
    enum fate fates[4];
    unsigned count;
} ways[] = {
    {{FATE_DONE}, 1},
    {{FATE_LOST}, 1},
    {{FATE_UNSENT}, 1},
    {{FATE_LATER}, 1},
    {{FATE_UNSENT, FATE_LOST}, 2},
    {{FATE_LATER, FATE_LATER, FATE_LOST}, 3},
    {{FATE_FULL, FATE_FULL}, 2},
    {{FATE_LOST, FATE_FULL}, 2},
    {{FATE_DENIED, FATE_LOST, FATE_DENIED, FATE_FULL}, 4},
};

START_TEST(an_append_is_done_once)
{
    begin();
    start(&a);
    lead(&a);
    for (unsigned i = 0; i < ways[_i].count; i++)
        etcd_fate(LOG, ways[_i].fates[i], 1);
    append(&a, "x");
    pass(4000);
    etcd_play_late();
    ck_assert_uint_eq(a.settled, 1);
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
    append_and_wait(&a, "y");
    start(&b);
    pass(1000);
    ck_assert_str_eq(b.journal, "xy");
    ck_assert_uint_eq(b.next, 5);
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    end();
}
END_TEST

/* The epoch ends while it is under way: what it was told depends on what the log holds alone. */
START_TEST(an_append_when_the_epoch_ends)
{
    static const struct {
        enum fate fate;
        enum replica_settlement settlement;
    } cases[] = {
        {FATE_UNSENT, REPLICA_DECLINED}, {FATE_LOST, REPLICA_CONFIRMED},
        {FATE_LATER, REPLICA_DECLINED},  {FATE_FULL, REPLICA_DECLINED},
        {FATE_DENIED, REPLICA_DECLINED},
    };
    bool is_full = cases[_i].fate == FATE_FULL || cases[_i].fate == FATE_DENIED;

    begin();
    start(&a);
    lead(&a);
    etcd_fate(LOG, cases[_i].fate, is_full ? 1000 : 1);
    append(&a, "x");
    turns(4);
    ck_assert_uint_eq(a.settled, 0);
    depose();
    pass(3000);
    ck_assert_uint_eq(a.settled, 1);
    ck_assert_int_eq(a.settlement, cases[_i].settlement);
    etcd_play_late(); /* too late */
    ck_assert_uint_eq(etcd_count(LOG), cases[_i].settlement == REPLICA_CONFIRMED ? 2 : 1);
    ck_assert_int_eq(replica_role(a.replica), REPLICA_FOLLOWING);
    end();
}
END_TEST

/* Somebody else's at the key is not ours, whatever it is. */
START_TEST(another_batch_in_its_place)
{
    begin();
    start(&a);
    lead(&a);
    etcd_fate(LOG, FATE_UNSENT, 1);
    append(&a, "x");
    turns(4);
    depose();
    store_batch(1, 2, "x");
    pass(3000);
    ck_assert_int_eq(a.settlement, REPLICA_DECLINED);
    pass(1000);
    ck_assert_str_eq(a.journal, "x"); /* as a follower */
    ck_assert_uint_eq(a.next, 3);
    end();
}
END_TEST

/* The log has been trimmed past it: it may have been there. */
START_TEST(an_append_that_nobody_can_tell_of)
{
    begin();
    start(&a);
    lead(&a);
    etcd_fate(LOG, FATE_LOST, 1);
    append(&a, "x");
    turns(4);
    depose();
    etcd_remove(LOG);
    store_batch(9, 1, "y");
    pass(3000);
    ck_assert_uint_eq(a.settled, 1);
    ck_assert_int_eq(a.settlement, REPLICA_UNCERTAIN);
    pass(1000);
    ck_assert_int_eq(replica_role(a.replica), REPLICA_JOINING);
    ck_assert_uint_eq(a.begins, 9);
    end();
}
END_TEST

START_TEST(an_append_that_is_late)
{
    begin();
    start_with(&a, (struct replica_options){.commit_ms = 2000});
    lead(&a);
    etcd_fate(LOG, FATE_UNSENT, 3);
    append(&a, "x");
    pass(100);
    ck_assert_uint_eq(a.late, 0);
    etcd_fate(LOG, FATE_HELD, 1);
    pass(4000);
    ck_assert_uint_eq(a.late, 1);
    ck_assert_uint_eq(a.settled, 0);
    etcd_let_go();
    pass(100);
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
    end();
}
END_TEST

START_TEST(a_large_batch_is_in_parts)
{
    static const enum fate fates[] = {FATE_DONE, FATE_LOST, FATE_LATER};

    begin();
    start_with(&a, (struct replica_options){.value_bytes = 1024});
    lead(&a);
    etcd_fate(PART, fates[_i], 3);
    append_bytes(&a, noise(12000));
    pass(5000);
    etcd_play_late();
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
    ck_assert_uint_eq(etcd_count(PART), 12);
    ck_assert_uint_lt(etcd_find(LOG "0000000000000001")->value.n, 100);
    start(&b);
    pass(1000);
    ck_assert_str_eq(b.journal, "n");
    ck_assert_uint_eq(b.content_bytes, 12000);
    end();
}
END_TEST

START_TEST(parts_without_a_mark_are_removed)
{
    begin();
    start_with(&a, (struct replica_options){.value_bytes = 1024});
    lead(&a);
    append_bytes(&a, noise(3000));
    pass(1000);
    ck_assert_uint_eq(etcd_count(PART), 3);
    etcd_fate(LOG, FATE_UNSENT, 1000);
    append_bytes(&a, noise(4000));
    pass(500);
    ck_assert_uint_eq(etcd_count(PART), 3 + 4);
    replica_free(TAKE(a.replica));
    start(&b);
    pass(500);
    etcd_end_lease(etcd_find(BASE "leader")->lease);
    lead(&b);
    ck_assert_uint_eq(etcd_count(PART), 3);
    ck_assert_str_eq(b.journal, "n");
    end();
}
END_TEST

/* Reading. */

START_TEST(followers_read_in_order)
{
    char expected[31] = "";

    begin();
    start(&a);
    lead(&a);
    for (unsigned i = 0; i < 30; i++) {
        char text[2] = {(char)('A' + i % 26), '\0'};

        expected[i] = text[0];
        append(&a, text);
        while (a.settled == 0)
            turns(1);
        if (i == 15)
            start(&b); /* pages first, then what comes */
    }
    pass(1000);
    ck_assert_str_eq(b.journal, expected);
    ck_assert_uint_eq(b.next, 61);
    end();
}
END_TEST

/* The journal ends inside a batch: that one comes whole. */
START_TEST(a_place_inside_a_batch)
{
    begin();
    start(&a);
    lead(&a);
    append_and_wait(&a, "x");
    append_and_wait(&a, "y");
    start_with(&b, (struct replica_options){.next = 4, .id = a.id});
    pass(1000);
    ck_assert_str_eq(b.journal, "y");
    end();
}
END_TEST

START_TEST(what_is_trimmed_is_missing)
{
    begin();
    start(&a);
    lead(&a);
    append_and_wait(&a, "x");
    append_and_wait(&a, "y");
    etcd_remove(LOG "0000000000000000");
    etcd_remove(LOG "0000000000000001");
    start(&b);
    pass(1000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_JOINING);
    ck_assert_uint_eq(b.missing, 1);
    ck_assert_uint_eq(b.begins, 3);
    b.next = 3;
    replica_joined(b.replica, 3);
    pass(1000);
    ck_assert_str_eq(b.journal, "y");
    end();
}
END_TEST

START_TEST(a_hole_is_damage)
{
    begin();
    start(&a);
    lead(&a);
    append_and_wait(&a, "x");
    append_and_wait(&a, "y");
    append_and_wait(&a, "z");
    if (_i == 0)
        etcd_remove(LOG "0000000000000003");
    else
        etcd_store(LOG "0000000000000003", SPAN("nothing"), 0);
    start(&b);
    pass(1000);
    ck_assert_int_eq(b.trouble, REPLICA_DAMAGED);
    ck_assert_str_eq(b.journal, "x");
    etcd_remove(BASE "leader");
    replica_free(TAKE(a.replica));
    pass(3000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_FOLLOWING);
    end();
}
END_TEST

START_TEST(a_compacted_watch_reads_anew)
{
    begin();
    start(&a);
    lead(&a);
    start(&b);
    pass(1000);
    etcd_fate_of_all(FATE_UNSENT); /* for b's watch too */
    pass(100);
    etcd_fate_of_all(FATE_DONE);
    append(&a, "x");
    turns(1);
    pass(1000);
    ck_assert_str_eq(b.journal, "x");
    end();
}
END_TEST

/* A node that does not take what it is handed is not handed everything. */
START_TEST(what_is_not_taken_is_bounded)
{
    begin();
    start(&a);
    lead(&a);
    start_with(&b, (struct replica_options){.window_bytes = 1000});
    b.takes_nothing = true;
    pass(500);
    for (unsigned i = 0; i < 20; i++) {
        append_bytes(&a, noise(300));
        pass(100);
    }
    ck_assert_uint_ge(b.batches, 4);
    ck_assert_uint_le(b.batches, 5);
    ck_assert_uint_gt(replica_lag_ms(b.replica), 1500);
    ck_assert_uint_eq(replica_lag_ms(a.replica), 0);
    b.takes_nothing = false;
    replica_taken(b.replica, b.next);
    pass(1000);
    ck_assert_uint_eq(replica_lag_ms(b.replica), 0);
    ck_assert_uint_eq(b.batches, 20);
    end();
}
END_TEST

/* The lease. */

START_TEST(the_lease_counts_from_the_sending)
{
    begin();
    start(&a);
    lead(&a);
    ck_assert(replica_leads(a.replica));
    ck_assert_uint_gt(replica_lease_ns(a.replica), UINT64_C(3000) * NS_PER_MS);
    ck_assert_uint_le(replica_lease_ns(a.replica), UINT64_C(5000) * NS_PER_MS);
    etcd_fate_of_all(FATE_UNSENT);
    clock_advance(UINT64_C(5001) * NS_PER_MS); /* the loop slept */
    ck_assert(!replica_leads(a.replica));
    ck_assert_uint_eq(replica_lease_ns(a.replica), 0);
    turns(8);
    ck_assert_int_ne(replica_role(a.replica), REPLICA_LEADING);
    end();
}
END_TEST

START_TEST(past_the_lease_no_keepalive_is_sent)
{
    unsigned before;
    int64_t lease;

    begin();
    start(&a);
    lead(&a);
    pass(10000);
    ck_assert(replica_leads(a.replica));
    before = etcd_keepalives();
    ck_assert_uint_ge(before, 5);
    lease = etcd_find(BASE "leader")->lease;
    etcd_fate_of_all(FATE_UNSENT);
    clock_advance(UINT64_C(6000) * NS_PER_MS);
    etcd_fate_of_all(FATE_DONE);
    turns(8);
    ck_assert_uint_eq(etcd_keepalives(), before);
    pass(1000);
    ck_assert(etcd_find(BASE "leader") == NULL || etcd_find(BASE "leader")->lease != lease);
    lead(&a); /* with another one */
    append_and_wait(&a, "x");
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED);
    end();
}
END_TEST

START_TEST(a_lease_that_is_gone)
{
    begin();
    start(&a);
    lead(&a);
    start(&b);
    pass(1000);
    etcd_fate("", FATE_UNSENT, 0);
    etcd_end_lease(etcd_find(BASE "leader")->lease);
    pass(3000);
    ck_assert(replica_leads(a.replica) != replica_leads(b.replica));
    ck_assert_int_eq(replica_role(a.replica) == REPLICA_LEADING, replica_leads(a.replica));
    end();
}
END_TEST

START_TEST(troubles_are_told)
{
    static const struct {
        enum fate fate;
        enum replica_trouble trouble;
    } cases[] = {{FATE_UNSENT, REPLICA_UNREACHABLE},
                 {FATE_DENIED, REPLICA_DENIED},
                 {FATE_FULL, REPLICA_FULL}};

    begin();
    etcd_fate_of_all(cases[_i].fate);
    start(&a);
    pass(2000);
    ck_assert_int_eq(a.trouble, cases[_i].trouble);
    etcd_fate_of_all(FATE_DONE);
    lead(&a);
    ck_assert_int_eq(a.trouble, REPLICA_NO_TROUBLE);
    end();
}
END_TEST

START_TEST(stepping_down)
{
    begin();
    start(&a);
    lead(&a);
    start(&b);
    pass(1000);
    append(&a, "x");
    replica_step_down(a.replica);
    pass(1000);
    ck_assert_int_eq(a.settlement, REPLICA_CONFIRMED); /* what is under way comes first */
    ck_assert_int_eq(replica_role(a.replica), REPLICA_FOLLOWING);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_LEADING);
    append_and_wait(&b, "y");
    ck_assert_str_eq(a.journal, "xy");
    end();
}
END_TEST

static void on_left(void *context)
{
    ++*(unsigned *)context;
}

START_TEST(leaving)
{
    unsigned left = 0;

    begin();
    start(&a);
    lead(&a);
    if (_i == 1)
        etcd_fate_of_all(FATE_UNSENT);
    replica_leave(a.replica, on_left, &left);
    ck_assert_uint_eq(left, 0);
    pass(6000);
    ck_assert_uint_eq(left, 1);
    ck_assert_uint_eq(etcd_count(BASE "leader"), _i);
    end();
}
END_TEST

/* Trimming. */

static uint64_t oldest(void)
{
    for (uint64_t serial = 0; serial < SERIALS; serial++) {
        char key[64];

        snprintf(key, sizeof(key), LOG "%016llx", (unsigned long long)serial);
        if (etcd_find(key) != NULL)
            return serial;
    }
    return SERIALS;
}

static void append_many(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        append_bytes(&a, noise(1000));
        while (a.settled == 0)
            turns(1);
    }
}

START_TEST(the_tail_is_kept)
{
    struct replica_stats stats;

    begin();
    start_with(&a,
               (struct replica_options){.tail_bytes = 10000, .value_bytes = 1024, .trim_ms = 1000});
    lead(&a);
    append_many(100);
    pass(3000);
    /* 10 batches, and an eighth more at most; a batch of two serials is of 1000 bytes */
    ck_assert_uint_ge(oldest(), a.next - 2 * 12);
    ck_assert_uint_le(oldest(), a.next - 2 * 10);
    ck_assert_int_gt(etcd_compacted(), 0);
    replica_stats(a.replica, &stats);
    ck_assert_uint_eq(stats.log_keys, etcd_count(LOG));
    ck_assert_uint_ge(stats.log_bytes, 10000);
    ck_assert_uint_le(stats.log_bytes, 10000 + 10000 / 8 + 1024);
    ck_assert_uint_eq(stats.append_time.counts[METRIC_EDGE_COUNT], 0);
    end();
}
END_TEST

START_TEST(parts_are_trimmed_with_their_marks)
{
    begin();
    start_with(&a,
               (struct replica_options){.tail_bytes = 10000, .value_bytes = 1024, .trim_ms = 1000});
    lead(&a);
    for (unsigned i = 0; i < 20; i++) {
        append_bytes(&a, noise(3000));
        pass(100);
    }
    pass(3000);
    ck_assert_uint_eq(etcd_count(PART), 3 * etcd_count(LOG));
    ck_assert_uint_le(etcd_count(LOG), 5);
    end();
}
END_TEST

/* For a live node that is behind four times as much is kept, and no more. */
START_TEST(a_node_that_is_behind)
{
    begin();
    start_with(&a,
               (struct replica_options){.tail_bytes = 10000, .value_bytes = 1024, .trim_ms = 1000});
    lead(&a);
    start_with(&b, (struct replica_options){.window_bytes = 1000});
    b.takes_nothing = true;
    append_many(30);
    pass(3000);
    ck_assert_uint_le(oldest(), 5); /* where the other one is */
    append_many(70);
    while (oldest() <= 5) /* then it is left behind, and what it lacks is of no use to it */
        pass(STEP_MS);
    ck_assert_uint_ge(oldest(), a.next - 2 * 46);
    ck_assert_uint_le(oldest(), a.next - 2 * 40);
    end();
}
END_TEST

START_TEST(a_full_etcd_without_a_leader_is_trimmed)
{
    begin();
    start_with(
        &a, (struct replica_options){.tail_bytes = 10000, .value_bytes = 1024, .trim_ms = 60000});
    lead(&a);
    start_with(&b, (struct replica_options){.tail_bytes = 10000, .trim_ms = 1000});
    pass(500);
    append_many(30);
    pass(1000);
    etcd_fate_of_all(FATE_FULL);
    replica_free(TAKE(a.replica));
    etcd_remove(BASE "leader");
    etcd_remove(BASE "node/a");
    pass(8000);
    ck_assert_int_eq(b.trouble, REPLICA_FULL);
    ck_assert_uint_ge(oldest(), b.next - 2 * 12);
    etcd_fate_of_all(FATE_DONE);
    lead(&b);
    ck_assert_int_eq(b.trouble, REPLICA_NO_TROUBLE);
    end();
}
END_TEST

/* All nodes were started again meanwhile: one trims what its journal has, and no more, since nobody
 * else may have it. */
START_TEST(a_full_etcd_is_trimmed_by_who_enters)
{
    bool has_all = _i == 1;
    uint64_t next, began;
    uint8_t id[REPLICA_UUID_BYTES];

    begin();
    start_with(
        &a, (struct replica_options){.tail_bytes = 10000, .value_bytes = 1024, .trim_ms = 60000});
    lead(&a);
    append_many(30);
    pass(1000);
    next = a.next;
    began = oldest();
    memcpy(id, a.id, sizeof(id));
    etcd_fate_of_all(FATE_FULL);
    replica_free(TAKE(a.replica));
    etcd_remove(BASE "leader");
    etcd_remove(BASE "node/a");
    start_with(&b, (struct replica_options){.next = has_all ? next : began + 2,
                                            .id = id,
                                            .tail_bytes = 10000,
                                            .trim_ms = 1000});
    pass(8000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_ENTERING);
    if (has_all)
        ck_assert_uint_ge(oldest(), next - 2 * 12);
    else
        ck_assert_uint_le(oldest(), began + 2);
    etcd_fate_of_all(FATE_DONE);
    lead(&b);
    ck_assert_int_eq(b.trouble, REPLICA_NO_TROUBLE);
    ck_assert_uint_eq(b.next, next);
    end();
}
END_TEST

/* Who lives. */

static const struct replica_node *known(const struct node *n, const char *name)
{
    for (size_t i = 0; i < replica_node_count(n->replica); i++)
        if (span_eq(replica_node_at(n->replica, i)->name, span_str(name)))
            return replica_node_at(n->replica, i);
    return NULL;
}

START_TEST(nodes_know_each_other)
{
    begin();
    start(&b);
    lead(&b);
    start(&a);
    pass(4000);
    append_and_wait(&b, "x");
    pass(4000);
    ck_assert_uint_eq(replica_node_count(a.replica), 2);
    ck_assert_ptr_null(replica_node_at(a.replica, 2));
    ck_span_eq(replica_node_at(a.replica, 0)->name, "a"); /* by name */
    ck_span_eq(replica_node_at(a.replica, 1)->name, "b");
    ck_span_eq(known(&a, "b")->url, "http://x");
    ck_span_eq(known(&a, "b")->version, "1");
    ck_assert_int_eq(known(&a, "b")->role, REPLICA_LEADING);
    ck_assert_int_eq(known(&b, "a")->role, REPLICA_FOLLOWING);
    ck_assert_uint_eq(known(&b, "a")->next, b.next);
    ck_assert_uint_eq(known(&b, "b")->next, b.next);
    b.nodes_changed = 0;
    pass(4000);
    ck_assert_uint_eq(b.nodes_changed, 0); /* nothing has */
    replica_free(TAKE(a.replica));
    etcd_end_lease(etcd_find(BASE "node/a")->lease);
    pass(4000);
    ck_assert_uint_eq(b.nodes_changed, 1);
    ck_assert_ptr_null(known(&b, "a"));
    end();
}
END_TEST

/* At once, not at the next keepalive. */
/* Before its next keepalive: whoever leads may be asked to let another do so. */
START_TEST(who_follows_says_so_at_once)
{
    begin();
    start(&a);
    lead(&a);
    start(&b);
    pass(200);
    ck_assert_uint_eq(etcd_keepalives(), 0);
    ck_assert(span_find(etcd_find(BASE "node/b")->value, SPAN("\"Follower\"")) != SIZE_MAX);
    end();
}
END_TEST

/* Nobody can tell whether it arrived. */
START_TEST(what_it_says_is_said_again_when_it_is_not_answered)
{
    begin();
    start(&a);
    lead(&a);
    etcd_fate(BASE "node/b", FATE_DONE, 1); /* its name */
    etcd_fate(BASE "node/b", FATE_UNSENT, 1);
    start(&b);
    pass(200);
    ck_assert(span_find(etcd_find(BASE "node/b")->value, SPAN("\"Follower\"")) == SIZE_MAX);
    pass(10000);
    ck_assert(span_find(etcd_find(BASE "node/b")->value, SPAN("\"Follower\"")) != SIZE_MAX);
    end();
}
END_TEST

START_TEST(a_new_leader_is_known_as_one)
{
    begin();
    start(&a);
    lead(&a);
    start(&b);
    pass(4000);
    ck_assert_int_eq(known(&b, "a")->role, REPLICA_LEADING);
    b.nodes_changed = 0;
    replica_step_down(a.replica);
    for (unsigned i = 0; replica_role(b.replica) != REPLICA_LEADING; i++) {
        ck_assert_uint_lt(i, 100);
        pass(STEP_MS);
    }
    pass(STEP_MS);
    ck_assert_uint_gt(b.nodes_changed, 0);
    ck_assert_int_eq(known(&b, "b")->role, REPLICA_LEADING);
    ck_assert_int_ne(known(&b, "a")->role, REPLICA_LEADING);
    end();
}
END_TEST

/* One that takes a copy reads no log. */
START_TEST(a_node_that_joins_knows_who_leads)
{
    begin();
    start_with(&a, (struct replica_options){.next = 5, .adopt = true});
    lead(&a);
    start(&b);
    pass(4000);
    ck_assert_int_eq(replica_role(b.replica), REPLICA_JOINING);
    ck_assert_int_eq(known(&a, "b")->role, REPLICA_JOINING);
    ck_span_eq(replica_leader(b.replica), "a");
    replica_free(TAKE(a.replica));
    etcd_remove(BASE "node/a");
    depose();
    pass(4000);
    ck_span_eq(replica_leader(b.replica), "other");
    ck_assert_ptr_null(known(&b, "a"));
    end();
}
END_TEST

START_TEST(what_is_too_old_is_forgotten)
{
    begin();
    start(&a);
    lead(&a);
    start(&b);
    pass(4000);
    ck_assert_uint_eq(replica_node_count(b.replica), 2);
    b.nodes_changed = 0;
    etcd_fate_of_all(FATE_UNSENT);
    pass(6000); /* past the lease: a is there, for all that b knows */
    ck_assert_uint_eq(replica_node_count(b.replica), 2);
    ck_assert_uint_eq(b.nodes_changed, 0);
    pass(6000);
    ck_assert_uint_eq(replica_node_count(b.replica), 0);
    ck_assert_uint_eq(b.nodes_changed, 1);
    etcd_fate_of_all(FATE_DONE);
    pass(6000);
    ck_assert_ptr_nonnull(known(&b, "b"));
    end();
}
END_TEST

START_TEST(what_nodes_know_of_records)
{
    struct span node;

    begin();
    start_with(&a, (struct replica_options){.records = 12});
    ck_assert_uint_eq(replica_records(a.replica, &node), 0);
    ck_assert_uint_eq(node.n, 0);
    lead(&a);
    pass(4000);
    ck_assert_uint_eq(replica_records(a.replica, &node), 12);
    ck_span_eq(node, "a");
    start_with(&b, (struct replica_options){.records = 11});
    pass(4000);
    ck_assert_uint_eq(replica_records(a.replica, &node), 11);
    ck_span_eq(node, "b");
    etcd_store(BASE "node/c", SPAN("00000000000000000000000000000000 {\"Next\":7}"), 0);
    pass(4000);
    ck_assert_uint_eq(replica_records(a.replica, &node), 0);
    ck_span_eq(node, "c");
    end();
}
END_TEST

/* A stranger's value says nothing; a node of an older version says no role. */
START_TEST(values_of_all_kinds)
{
#define TOKEN "00000000000000000000000000000000 "
    static const struct {
        const char *key, *value;
        bool is_node;
    } cases[] = {
        {BASE "node/c", TOKEN "{\"Url\":\"http://c\",\"Version\":\"0\",\"Next\":7}", true},
        {BASE "node/c", TOKEN "{\"Url\":4,\"Next\":7,\"Role\":\"Leader\"}", true},
        {BASE "node/c", TOKEN "{\"Next\":7,\"Role\":\"Emperor\"}", true},
        {BASE "node/c", TOKEN "{\"Url\":\"http://c\"}", false},
        {BASE "node/c", TOKEN "{\"Next\":7", false},
        {BASE "node/c", TOKEN "[7]", false},
        {BASE "node/c", "", false},
        {BASE "node/c", "x", false},
        {BASE "node/", TOKEN "{\"Next\":7}", false},
    };

    begin();
    start(&a);
    etcd_store(cases[_i].key, span_str(cases[_i].value), 0);
    lead(&a);
    pass(2000);
    ck_assert_uint_eq(replica_node_count(a.replica), cases[_i].is_node ? 2 : 1);
    if (cases[_i].is_node) {
        ck_assert_uint_eq(known(&a, "c")->next, 7);
        ck_assert_int_eq(known(&a, "c")->role, REPLICA_FOLLOWING);
    }
    end();
#undef TOKEN
}
END_TEST

START_TEST(options_that_cannot_be)
{
    const struct replica_callbacks none = {.on_batch = on_batch};
    struct replica *r;

    begin();
    ck_fails(replica_new(&loop, etcd_played(),
                         &(struct replica_options){.cluster = "a/b", .node = "a", .next = 1}, &none,
                         &r),
             ERR_UNKNOWN, "Name should be");
    ck_fails(replica_new(&loop, etcd_played(),
                         &(struct replica_options){.cluster = "a", .node = "", .next = 1}, &none,
                         &r),
             ERR_UNKNOWN, "Node should be");
    ck_fails(replica_new(&loop, etcd_played(),
                         &(struct replica_options){
                             .cluster = "a", .node = "a", .next = 1, .value_bytes = 2000000},
                         &none, &r),
             ERR_UNKNOWN, "1024 to 1048576");
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, the_first_node_begins_a_cluster);
    tcase_add_loop_test(tc, steps_that_are_not_answered, 0, 12);
    tcase_add_loop_test(tc, another_history_is_refused, 0, 3);
    tcase_add_test(tc, a_journal_is_adopted);
    tcase_add_test(tc, etcd_that_has_lost_the_log);
    tcase_add_loop_test(tc, etcd_that_is_older_than_the_journal, 0, 2);
    tcase_add_loop_test(tc, a_log_that_is_restored, 0, 2);
    tcase_add_loop_test(tc, etcd_that_loses_all, 0, 3);
    tcase_add_loop_test(tc, another_etcd_with_higher_revisions, 0, 3);
    tcase_add_loop_test(tc, a_node_that_starts_at_a_copy, 0, 2);
    tcase_add_test(tc, an_etcd_of_strangers);
    tcase_add_loop_test(tc, a_watch_that_goes_on_in_another_log, 0, 2);
    tcase_add_test(tc, an_id_that_changes_is_seen);
    tcase_add_loop_test(tc, an_append_and_another_etcd, 0, 2);
    tcase_add_test(tc, the_secret_of_a_log_that_is_restored);
    tcase_add_loop_test(tc, a_journal_with_more_than_a_restored_log, 0, 2);
    tcase_add_loop_test(tc, a_journal_that_is_part_of_a_restored_log, 0, 2);
    tcase_add_loop_test(tc, a_name_that_is_taken, 0, 2);
    tcase_add_test(tc, a_name_that_cannot_be_free_yet);
    tcase_add_loop_test(tc, an_append_is_done_once, 0, ARRAY_LEN(ways));
    tcase_add_loop_test(tc, an_append_when_the_epoch_ends, 0, 5);
    tcase_add_test(tc, another_batch_in_its_place);
    tcase_add_test(tc, an_append_that_nobody_can_tell_of);
    tcase_add_test(tc, an_append_that_is_late);
    tcase_add_loop_test(tc, a_large_batch_is_in_parts, 0, 3);
    tcase_add_test(tc, parts_without_a_mark_are_removed);
    tcase_add_test(tc, followers_read_in_order);
    tcase_add_test(tc, a_place_inside_a_batch);
    tcase_add_test(tc, what_is_trimmed_is_missing);
    tcase_add_loop_test(tc, a_hole_is_damage, 0, 2);
    tcase_add_test(tc, a_compacted_watch_reads_anew);
    tcase_add_test(tc, what_is_not_taken_is_bounded);
    tcase_add_test(tc, the_lease_counts_from_the_sending);
    tcase_add_test(tc, past_the_lease_no_keepalive_is_sent);
    tcase_add_test(tc, a_lease_that_is_gone);
    tcase_add_loop_test(tc, troubles_are_told, 0, 3);
    tcase_add_test(tc, stepping_down);
    tcase_add_loop_test(tc, leaving, 0, 2);
    tcase_add_test(tc, the_tail_is_kept);
    tcase_add_test(tc, parts_are_trimmed_with_their_marks);
    tcase_add_test(tc, a_node_that_is_behind);
    tcase_add_test(tc, a_full_etcd_without_a_leader_is_trimmed);
    tcase_add_loop_test(tc, a_full_etcd_is_trimmed_by_who_enters, 0, 2);
    tcase_add_test(tc, nodes_know_each_other);
    tcase_add_test(tc, who_follows_says_so_at_once);
    tcase_add_test(tc, what_it_says_is_said_again_when_it_is_not_answered);
    tcase_add_test(tc, a_new_leader_is_known_as_one);
    tcase_add_test(tc, a_node_that_joins_knows_who_leads);
    tcase_add_test(tc, what_is_too_old_is_forgotten);
    tcase_add_loop_test(tc, values_of_all_kinds, 0, 9);
    tcase_add_test(tc, what_nodes_know_of_records);
    tcase_add_test(tc, options_that_cannot_be);
}
