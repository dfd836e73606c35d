/* Two sums: that of payloads, which `payload` keeps, and that of made bodies, which are in a map by
 * what their content begins with, so that a thousand webhooks with one custom payload hold it once,
 * and none is read whole to be found. Those that begin alike are compared one after the other:
 * together they are no longer than what may be under way.
 *
 * A body counts for the account that was the first to send it; a quarter of the bytes is not for
 * one account alone. As with slots, a part is not for receivers that are slow or not known yet
 * either: however much hangs, the others go on. What is given back is offered to some of the lanes
 * that wait, in turns; each that still finds no room goes to the end of their list. */
#include "hooks/body.h"

#include "access/account.h"
#include "base/blob.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/room.h"
#include "hooks/attempt_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_inner.h"
#include "hooks/payload.h"
#include "hooks/share.h"
#include "io/loop.h"

enum {
    OFFERS_PER_TURN = 16,
    OTHERS_PARTS = 4,
    BEGIN_BYTES = 65536,       /* by which they are found */
    COPIED_BYTES_MOST = 262144 /* longer ones keep the memory they were made in */
};

struct body {
    struct blob *blob;
    struct share *share; /* of the one that had it made first */
    unsigned attempts;
    struct body *next; /* that begins alike; NULL: none */
};

struct bodies {
    struct deliveries *deliveries;
    struct map by_content; /* struct body */
    uint64_t bytes;        /* of these */
    struct loop_task offer;
};

static struct span begin_of(struct span content)
{
    return span_sub(content, 0, MIN(content.n, BEGIN_BYTES));
}

static struct span key_of(const void *item)
{
    return begin_of(blob_span(((const struct body *)item)->blob));
}

uint64_t deliveries_body_bytes(const struct deliveries *d)
{
    return d->bodies->bytes + payloads_sent_bytes(events_payloads(d->hooks->events));
}

static bool has_room_for(const struct lane *lane, uint64_t bytes)
{
    const struct hooks *hooks = lane->deliveries->hooks;
    uint64_t held = deliveries_body_bytes(lane->deliveries), own = lane->share->account->bytes;
    uint64_t most;

    if (held == 0)
        return true;
    most = room_most(hooks->limits, held, (int64_t)hooks->body_bytes_most);
    if (own > 0 && own + bytes > most - most / OTHERS_PARTS)
        return false;
    if (lane->origin != NULL)
        most = MIN(most, pacing_slots(lane->pacing.pace, (size_t)most));
    return held < most && bytes <= most - held;
}

bool body_has_room(const struct lane *lane, const struct delivery *next)
{
    uint64_t as_it_is = next->event->is_binary ? next->event->payload_bytes : 0;

    if (lane->makes_bodies)
        return has_room_for(lane, MAX(lane->made_bytes, as_it_is));
    return payload_is_sent(next->event) || has_room_for(lane, next->event->payload_bytes);
}

struct err *body_take_payload(struct attempt *attempt)
{
    struct delivery *delivery = attempt->delivery;

    TRY(payload_send(events_payloads(attempt->deliveries->hooks->events), delivery->event,
                     delivery->lane->share, &attempt->body));
    attempt->sends_payload = true;
    return NULL;
}

static struct body *body_find(const struct deliveries *d, struct span made)
{
    struct body *body = map_find(&d->bodies->by_content, begin_of(made));

    while (body != NULL && !span_eq(blob_span(body->blob), made))
        body = body->next;
    return body;
}

/* Takes the blob. */
static struct body *body_new(struct deliveries *d, struct share *share, struct blob *blob)
{
    struct body *body = NEW(struct body);

    body->blob = blob;
    body->share = share_ref(share);
    share->account->bytes += blob->n;
    d->bodies->bytes += blob->n;
    body->next = map_put(&d->bodies->by_content, body);
    return body;
}

/* Returns whether it is there. */
static bool use(struct attempt *attempt, struct body *body)
{
    if (body == NULL)
        return false;
    body->attempts++;
    attempt->made = body;
    attempt->body = blob_ref(body->blob);
    return true;
}

/* There is a body of this content, which the attempt has now, or there is no room for one. */
static bool is_settled(struct attempt *attempt, struct span made)
{
    struct lane *lane = attempt->delivery->lane;

    MUST(attempt->body == NULL);
    lane->made_bytes = made.n;
    if (use(attempt, body_find(attempt->deliveries, made)))
        return true;
    attempt->has_no_room = !has_room_for(lane, made.n);
    return attempt->has_no_room;
}

static void hold(struct attempt *attempt, struct blob *blob)
{
    use(attempt, body_new(attempt->deliveries, attempt->delivery->lane->share, blob));
}

void body_take_made(struct attempt *attempt, struct span made)
{
    if (!is_settled(attempt, made))
        hold(attempt, blob_new(made));
}

void body_take_answer(struct attempt *attempt, struct buf *answer)
{
    if (!is_settled(attempt, buf_span(answer)))
        hold(attempt,
             answer->n > COPIED_BYTES_MOST ? blob_take(answer) : blob_new(buf_span(answer)));
}

/* The next that begins alike is found in its place. */
static void take_out(struct deliveries *d, struct body *body)
{
    struct body *before = map_find(&d->bodies->by_content, key_of(body));

    if (before == body) {
        map_remove(&d->bodies->by_content, key_of(body));
        if (body->next != NULL)
            map_add(&d->bodies->by_content, body->next);
        return;
    }
    while (before->next != body)
        before = before->next;
    before->next = body->next;
}

static void made_put(struct deliveries *d, struct body *body)
{
    if (--body->attempts > 0)
        return;
    take_out(d, body);
    d->bodies->bytes -= body->blob->n;
    body->share->account->bytes -= body->blob->n;
    share_unref(body->share);
    blob_unref(body->blob);
    mem_free(body);
}

void body_leave(struct attempt *attempt)
{
    struct deliveries *d = attempt->deliveries;

    if (attempt->body == NULL)
        return;
    blob_unref(TAKE(attempt->body));
    if (attempt->made != NULL)
        made_put(d, TAKE(attempt->made));
    else if (attempt->sends_payload)
        payload_sent(events_payloads(d->hooks->events), attempt->delivery->event);
    attempt->sends_payload = false;
    if (!list_empty(&d->lanes_in[LANE_CROWDED]) && !loop_posted(&d->bodies->offer))
        loop_post(d->hooks->loop, &d->bodies->offer);
}

/* Those that find room stand in line, and look once more when their turn comes. */
static void on_offer(struct loop_task *task)
{
    struct deliveries *d = CONTAINER_OF(task, struct bodies, offer)->deliveries;
    struct list *crowded = &d->lanes_in[LANE_CROWDED];
    size_t most = MIN(list_count(crowded), OFFERS_PER_TURN);

    while (d->is_started && most-- > 0 && !list_empty(crowded)) {
        struct lane *lane = CONTAINER_OF(list_first(crowded), struct lane, state_link);

        list_remove(crowded, &lane->state_link);
        list_push_back(crowded, &lane->state_link);
        lane_settle(lane);
    }
}

void bodies_init(struct deliveries *d)
{
    d->bodies = NEW(struct bodies);
    d->bodies->deliveries = d;
    d->bodies->offer.run = on_offer;
    map_init(&d->bodies->by_content, key_of);
}

void bodies_done(struct deliveries *d)
{
    loop_unpost(d->hooks->loop, &d->bodies->offer);
    MUST(map_count(&d->bodies->by_content) == 0);
    map_done(&d->bodies->by_content);
    mem_free(d->bodies);
}
