#include "clustering.h"

#include "testing.h"

#include "base/clock.h"
#include "store/record.h"
#include "store/turn_batch.h"
#include "store/turn_log.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

enum { STEP_MS = 10, LEADS_WITHIN = 3000, SEGMENT_BYTES = 4 << 20 };

struct clustering clustering;

static void on_batch(void *context, const struct replica_batch *batch)
{
    (void)context;
    turn_log_take(clustering.f.turn, batch);
}

static void on_other_batch(void *context, const struct replica_batch *batch)
{
    (void)context;
    if (!clustering.takes_nothing)
        replica_taken(clustering.other, batch->first + batch->count);
}

static void on_entered(void *context, const uint8_t id[REPLICA_UUID_BYTES],
                       const uint8_t secret[REPLICA_SECRET_BYTES])
{
    (void)context;
    (void)secret;
    memcpy(clustering.id, id, REPLICA_UUID_BYTES);
}

static void on_lost(void *context, const char *why)
{
    (void)context;
    ck_assert(why[0] != '\0');
    clustering.lost++;
}

static void on_followed(void *context)
{
    (void)context;
    clustering.followed++;
}

static void on_stuck(void *context, const char *why)
{
    (void)context;
    clustering.is_stuck = why != NULL;
}

void clustering_begin(void)
{
    clock_fake(0, UINT64_C(1000000000000));
    clustering = (struct clustering){.lost = 0};
    store_fixture_init(&clustering.f);
    clustering.f.segment_bytes = SEGMENT_BYTES;
    store_fixture_open(&clustering.f);
    etcd_play_begin(&clustering.f.loop);
    buf_init(&clustering.content, BUF_NO_CAP);
}

void clustering_end(void)
{
    turn_log_end(clustering.f.turn);
    replica_free(clustering.replica);
    replica_free(clustering.other);
    etcd_play_end();
    clock_real();
    store_fixture_done(&clustering.f);
    buf_done(&clustering.content);
}

void clustering_start(void)
{
    uint64_t next = journal_next_serial(turn_journal(clustering.f.turn));
    const struct replica_options options = {
        .cluster = "prod",
        .node = "a",
        .url = "http://a",
        .version = "1",
        .records = RECORD_KIND_END + 1,
        .next = next,
        .id = next > 1 ? clustering.id : NULL, /* of an empty journal none */
    };
    const struct replica_callbacks callbacks = {.on_entered = on_entered, .on_batch = on_batch};
    const struct turn_log_callbacks of_turn = {on_lost, on_followed, on_stuck, NULL};

    ck_ok(
        replica_new(&clustering.f.loop, etcd_played(), &options, &callbacks, &clustering.replica));
    turn_log_begin(clustering.f.turn, clustering.replica, &of_turn);
    replica_start(clustering.replica);
}

void clustering_start_other(void)
{
    const struct replica_options options = {
        .cluster = "prod", .node = "b", .url = "http://b", .version = "1", .next = 1};
    const struct replica_callbacks callbacks = {.on_batch = on_other_batch,
                                                .on_entered = on_entered};

    ck_ok(replica_new(&clustering.f.loop, etcd_played(), &options, &callbacks, &clustering.other));
    replica_start(clustering.other);
}

/* The disk is a real one: its completions are waited for as well. */
void clustering_pass(uint64_t ms)
{
    for (uint64_t at = 0; at < ms; at += STEP_MS) {
        for (unsigned i = 0; i < 8; i++)
            store_fixture_turn(&clustering.f);
        clock_advance(STEP_MS * NS_PER_MS);
    }
    for (unsigned i = 0; i < 8; i++)
        store_fixture_turn(&clustering.f);
}

void clustering_lead(struct replica *r)
{
    for (unsigned i = 0; replica_role(r) != REPLICA_LEADING; i++) {
        ck_assert_uint_lt(i, LEADS_WITHIN);
        clustering_pass(STEP_MS);
    }
}

static void on_settled(struct replica_append *append, enum replica_settlement settlement,
                       const char *why)
{
    (void)append;
    (void)why;
    ck_assert_int_eq(settlement, REPLICA_CONFIRMED);
    clustering.settled++;
}

void clustering_append(uint64_t first, uint32_t count)
{
    unsigned before = clustering.settled;

    clustering.append = (struct replica_append){.first = first,
                                                .count = count,
                                                .content = buf_span(&clustering.content),
                                                .on_settled = on_settled};
    replica_append(clustering.other, &clustering.append);
    while (clustering.settled == before)
        clustering_pass(STEP_MS);
    buf_clear(&clustering.content);
}

void clustering_add_entity(uint64_t serial, const char *name, bool more)
{
    struct record_entity record = {
        .resource = SPAN("Shop.Person"),
        .id = uuid_new(),
        .object_no = serial,
        .version = serial,
    };
    char id[UUID_TEXT_BYTES + 1], json[256];
    struct buf body;

    uuid_text(&record.id, id);
    snprintf(json, sizeof(json), "{\"Id\":\"%s\",\"Name\":\"%s\",\"ObjectNo\":%llu}", id, name,
             (unsigned long long)serial);
    record.json = span_str(json);
    buf_init(&body, BUF_NO_CAP);
    record_add_entity(&body, &record);
    turn_batch_add(&clustering.content,
                   &(struct turn_batch_record){RECORD_ENTITY, 1, more, buf_span(&body)});
    buf_done(&body);
}
