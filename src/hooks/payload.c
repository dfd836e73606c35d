#include "hooks/payload.h"

#include "access/account.h"
#include "base/blob.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/room.h"
#include "hooks/hooks.h"
#include "hooks/payload_inner.h"
#include "hooks/share.h"
#include "journal/journal.h"
#include "store/record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "store/turn.h"
#include "store/turn_wait.h"

struct payloads {
    struct hooks *hooks;
    struct list idle;   /* no delivery waits for these */
    struct list needed; /* roughly in the order in which they will be: the last one last */
    size_t bytes, sent_bytes;
    struct turn_wait commit; /* what is not on disk cannot be let go */
    struct buf scratch;
};

static struct event *event_of(struct list_link *link)
{
    return &CONTAINER_OF(link, struct event_whole, payload.link)->event;
}

static const struct payload_slot *slot_in(const struct event *event)
{
    return &CONTAINER_OF_CONST(event, struct event_whole, event)->payload;
}

static struct list *list_of(struct payloads *p, const struct event *event)
{
    return slot_in(event)->pending > 0 ? &p->needed : &p->idle;
}

static size_t most(const struct payloads *p)
{
    return (size_t)room_most(p->hooks->limits, p->bytes, p->hooks->limits->payload_bytes);
}

/* Takes the blob. */
static void keep(struct payloads *p, struct event *event, struct blob *blob)
{
    payload_slot_of(event)->blob = blob;
    p->bytes += blob_span(blob).n;
}

static void let_go(struct payloads *p, struct event *event)
{
    list_remove(list_of(p, event), &payload_slot_of(event)->link);
    p->bytes -= blob_span(payload_slot_of(event)->blob).n;
    blob_unref(payload_slot_of(event)->blob);
    payload_slot_of(event)->blob = NULL;
}

/* What is replayed is on disk. */
static bool is_on_disk(const struct payloads *p, const struct event *event)
{
    return !store_is_loaded(p->hooks->store) ||
           journal_has_committed(turn_journal(p->hooks->turn), slot_in(event)->place);
}

/* From the front or from the back, down to the limit. */
static void shrink(struct payloads *p, struct list *list, bool from_back,
                   const struct event *except)
{
    struct list_link *at = from_back ? list_last(list) : list_first(list);

    while (at != NULL && p->bytes > most(p)) {
        struct list_link *next = from_back ? list_prev(list, at) : list_next(list, at);

        if (event_of(at) != except && is_on_disk(p, event_of(at)))
            let_go(p, event_of(at));
        at = next;
    }
}

static void evict(struct payloads *p, const struct event *except)
{
    shrink(p, &p->idle, false, except);
    shrink(p, &p->needed, true, except);
}

static void on_committed(struct turn_wait *wait)
{
    evict(CONTAINER_OF(wait, struct payloads, commit), NULL);
}

struct payloads *payloads_new(struct hooks *hooks)
{
    struct payloads *p = NEW(struct payloads);

    p->hooks = hooks;
    list_init(&p->idle);
    list_init(&p->needed);
    p->commit.on_committed = on_committed;
    buf_init(&p->scratch, BUF_NO_CAP);
    return p;
}

void payloads_free(struct payloads *p)
{
    MUST(p->bytes == 0 && list_empty(&p->idle) && list_empty(&p->needed));
    turn_unwait(p->hooks->turn, &p->commit);
    buf_done(&p->scratch);
    mem_free(p);
}

/* Its record was just appended, or replayed. */
static void keep_new(struct payloads *p, struct event *event, struct blob *blob)
{
    keep(p, event, blob);
    list_push_back(list_of(p, event), &payload_slot_of(event)->link);
    if (p->bytes <= most(p))
        return;
    if (is_on_disk(p, event))
        evict(p, NULL);
    else if (!heap_contains(&p->commit.node))
        turn_wait_for_all(p->hooks->turn, &p->commit);
}

void payload_add(struct payloads *p, struct event *event, struct span payload,
                 const struct store_origin *origin)
{
    payload_slot_of(event)->place = origin->place;
    keep_new(p, event, blob_new(payload));
}

/* Until its new record is on disk it must not be read back: attempts may end before. */
void payload_moved(struct payloads *p, struct event *event, const struct store_origin *origin)
{
    struct payload_slot *slot = payload_slot_of(event);

    slot->place = origin->place;
    if (slot->blob == NULL && slot->sent != NULL)
        keep_new(p, event, blob_ref(slot->sent));
}

void payload_remove(struct payloads *p, struct event *event)
{
    if (payload_slot_of(event)->blob != NULL)
        let_go(p, event);
}

void payload_needed(struct payloads *p, struct event *event)
{
    if (payload_slot_of(event)->pending++ > 0 || payload_slot_of(event)->blob == NULL)
        return;
    list_remove(&p->idle, &payload_slot_of(event)->link);
    list_push_back(&p->needed, &payload_slot_of(event)->link);
}

void payload_unneeded(struct payloads *p, struct event *event)
{
    MUST(payload_slot_of(event)->pending > 0);
    if (--payload_slot_of(event)->pending > 0 || payload_slot_of(event)->blob == NULL)
        return;
    list_remove(&p->needed, &payload_slot_of(event)->link);
    list_push_back(&p->idle, &payload_slot_of(event)->link);
}

/* Reads it back. *out_there false: only the disk has it, which `may_wait` would wait for. */
static struct err *load(struct payloads *p, struct event *event, bool may_wait, bool *out_there)
{
    struct record_event r;

    TRY(journal_read(turn_journal(p->hooks->turn), payload_slot_of(event)->place, may_wait,
                     &p->scratch, out_there));
    if (!*out_there)
        return NULL;
    TRY(record_read_event(buf_span(&p->scratch), &r));
    keep(p, event, blob_new(r.payload));
    /* Backlogs are worked off oldest first: what is read back is needed sooner than the rest. */
    list_push_front(list_of(p, event), &payload_slot_of(event)->link);
    evict(p, event);
    return NULL;
}

void payloads_shrink(struct payloads *p)
{
    evict(p, NULL);
}

uint64_t payloads_bytes(const struct payloads *p)
{
    return p->bytes;
}

bool payload_is_loaded(const struct event *event)
{
    return slot_in(event)->blob != NULL || slot_in(event)->sent != NULL;
}

bool payload_ready(struct payloads *p, struct event *event)
{
    bool is_there = true;

    if (!payload_is_loaded(event))
        err_free(load(p, event, false, &is_there)); /* payload_get will tell */
    return is_there;
}

struct err *payload_get(struct payloads *p, struct event *event, struct blob **out_blob)
{
    bool is_there;

    if (!payload_is_loaded(event))
        TRY(load(p, event, true, &is_there));
    *out_blob = blob_ref(payload_slot_of(event)->sent != NULL ? payload_slot_of(event)->sent
                                                              : payload_slot_of(event)->blob);
    return NULL;
}

struct blob *payload_or_null(struct payloads *p, struct event *event)
{
    struct blob *payload = NULL;
    struct err *error = payload_get(p, event, &payload);

    if (error != NULL)
        log_error("event", "%.*s", SPAN_FMT(err_message(error)));
    err_free(error);
    return payload;
}

struct err *payload_send(struct payloads *p, struct event *event, struct share *share,
                         struct blob **out_blob)
{
    TRY(payload_get(p, event, out_blob));
    if (payload_slot_of(event)->attempts++ == 0) {
        payload_slot_of(event)->sent = blob_ref(*out_blob);
        payload_slot_of(event)->share = share_ref(share);
        share->account->bytes += (*out_blob)->n;
        p->sent_bytes += (*out_blob)->n;
    }
    return NULL;
}

void payload_sent(struct payloads *p, struct event *event)
{
    MUST(payload_slot_of(event)->attempts > 0);
    if (--payload_slot_of(event)->attempts > 0)
        return;
    p->sent_bytes -= payload_slot_of(event)->sent->n;
    payload_slot_of(event)->share->account->bytes -= payload_slot_of(event)->sent->n;
    share_unref(TAKE(payload_slot_of(event)->share));
    blob_unref(TAKE(payload_slot_of(event)->sent));
}

bool payload_is_sent(const struct event *event)
{
    return slot_in(event)->sent != NULL;
}

uint64_t payloads_sent_bytes(const struct payloads *p)
{
    return p->sent_bytes;
}
