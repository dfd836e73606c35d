/* A change that takes several turns of the loop. Its records are handed to the journal in one
 * moment, as those of any change: so they are on disk together or not at all, and a replay applies
 * them one after the other with nothing in between. To apply them here takes longer than others
 * should wait, so that runs on a fiber, which gives way by the clock. As nobody else changes
 * anything meanwhile, a snapshot that was opened before the first record is what everybody sees
 * until the last one has been applied. */
#include "base/fiber.h"
#include "base/mem.h"
#include "base/must.h"
#include "journal/place.h"
#include "store/change.h"
#include "store/turn_inner.h"

/* A change of fewer serials and bytes is applied in two or three milliseconds, whatever its records
 * are: an event or an entity with its indexes takes five microseconds or six. */
enum { LONG_SERIALS = 500, LONG_BYTES = 1 << 20 };

/* What it costs to hand over a record, besides its bytes. */
enum { RECORD_UNITS = 64 };

bool turn_is_held(const struct turn *t)
{
    return t->held.is_held;
}

void turn_hold(struct turn *t)
{
    MUST(!t->held.is_held);
    t->held.is_held = true;
}

void turn_release(struct turn *t)
{
    MUST(t->held.is_held && t->held.fiber == NULL);
    t->held.is_held = false;
    t->held.left_waiting = list_count(&t->held.line);
    if (!list_empty(&t->held.line))
        loop_post(t->loop, &t->held.next);
}

size_t turn_left_waiting(const struct turn *t)
{
    return t->held.left_waiting;
}

/* Somebody may hold it again by now: then they stay in the line. */
static void on_next(struct loop_task *task)
{
    struct turn *t = CONTAINER_OF(task, struct turn, held.next);
    struct turn_line *at;
    struct list line;

    if (t->held.is_held)
        return;
    list_init(&line);
    list_take_all(&line, &t->held.line);
    while ((at = LIST_OBJECT(list_pop_front(&line), struct turn_line, link)) != NULL)
        at->on_free(at);
}

void turn_line_up(struct turn *t, struct turn_line *line)
{
    if (!list_linked(&line->link))
        list_push_back(&t->held.line, &line->link);
}

void turn_line_leave(struct turn *t, struct turn_line *line)
{
    if (list_linked(&line->link))
        list_remove(&t->held.line, &line->link);
}

bool turn_is_long(const struct change *c)
{
    return c->is_long || c->next_serial - c->first_serial > LONG_SERIALS ||
           c->bodies.n > LONG_BYTES;
}

/* ---- applying ---- */

bool turn_is_applying(const struct turn *t)
{
    return t->held.seen != NULL;
}

bool turn_is_applying_to(const struct turn *t, uint64_t serial)
{
    return turn_is_applying(t) && t->held.applying.last == serial;
}

bool turn_is_seen(const struct turn *t, uint64_t serial)
{
    return turn_is_committed(t, serial) &&
           !(turn_is_applying(t) && serial >= t->held.applying.first);
}

uint64_t turn_longest_ns(const struct turn *t)
{
    return t->held.longest_ns;
}

/* What was kept may be as much as what was changed. */
static void apply(void *turn)
{
    struct turn *t = turn;

    turn_apply_records(&t->held.applying);
    t->held.seen = NULL;
    snapshot_close(&t->held.before);
}

static void forget_arrays(struct applying *a)
{
    mem_free(TAKE(a->records));
    mem_free(TAKE(a->places));
}

static void end(struct turn *t)
{
    buf_done(&t->held.bodies);
    forget_arrays(&t->held.applying);
    t->held.longest_ns = MAX(t->held.longest_ns, t->held.budget.longest_ns);
    loop_unpost(t->loop, &t->held.more);
    turn_release(t);
}

/* True: all is applied. */
static bool apply_more(struct turn *t)
{
    struct budget_now outer = budget_now;

    budget_enter(&t->held.budget);
    if (!fiber_resume(t->held.fiber))
        t->held.fiber = NULL;
    budget_leave(&t->held.budget);
    budget_now = outer;
    return t->held.fiber == NULL;
}

static void on_more(struct loop_task *more)
{
    struct turn *t = CONTAINER_OF(more, struct turn, held.more);

    if (apply_more(t))
        end(t);
    else
        loop_post(t->loop, more);
}

void turn_settle(struct turn *t)
{
    if (t->held.fiber == NULL)
        return;
    t->held.budget.holds++;
    MUST(apply_more(t));
    end(t);
}

/* ---- handing over ---- */

void turn_drop_draft(struct turn *t)
{
    t->held.is_drafting = false;
    journal_draft_drop(t->journal);
}

/* False: it is not to be gone on with, or others have come before it. */
static bool draft(struct turn *t, const struct change *c, struct applying *a)
{
    t->held.is_drafting = true;
    journal_draft_begin(t->journal, a->bytes);
    for (size_t i = 0; i < a->count; i++) {
        a->records[i] = turn_record(c, i);
        a->places[i] = journal_draft_add(t->journal, &a->records[i], i + 1 < a->count);
        if (t->log != NULL)
            turn_log_draft(t, c, i);
        if (!budget_ask(RECORD_UNITS + a->records[i].body.n) || !t->held.is_drafting)
            break;
    }
    if (!t->held.is_drafting || budget_stopped())
        return false;
    if (t->log != NULL && !turn_log_still_admits(t, c))
        return false;
    t->held.is_drafting = false;
    if (t->log != NULL)
        turn_log_cut(t);
    a->first = journal_draft_end(t->journal);
    if (t->log != NULL)
        turn_log_gather_draft(t, c, a->first);
    return true;
}

/* The records point to the bodies. */
static void take_bodies(struct turn *t, struct change *c)
{
    t->held.bodies = c->bodies;
    buf_init(&c->bodies, BUF_NO_CAP);
    c->count = c->journal_bytes = 0;
}

static void start(struct turn *t)
{
    snapshot_open(&t->held.before, t->store, t->held.applying.first - 1);
    budget_init(&t->held.budget, 0);
    t->held.budget.is_on_fiber = true;
    t->held.seen = &t->held.before;
    t->held.fiber = fiber_new(apply, t);
    loop_post(t->loop, &t->held.more);
}

struct err *turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct applying a = {.turn = t};

    MUST(t->held.is_held && t->held.fiber == NULL && c->count > 0);
    if (t->log != NULL)
        TRY(turn_log_admit(t, c));
    TRY(turn_prepare(t, c, &a));
    a.records = mem_alloc(c->count * sizeof(*a.records));
    a.places = mem_alloc(c->count * sizeof(*a.places));
    if (!draft(t, c, &a)) {
        if (t->held.is_drafting)
            turn_drop_draft(t);
        forget_arrays(&a);
        *out_serial = 0;
        return NULL;
    }
    take_bodies(t, c);
    t->held.applying = a;
    start(t);
    *out_serial = a.last;
    return NULL;
}

void turn_long_init(struct turn *t)
{
    list_init(&t->held.line);
    t->held.more.run = on_more;
    t->held.next.run = on_next;
}
