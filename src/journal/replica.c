/* Roles: see the drawing in the header. Here is what the files of the module share: moving
 * from role to role, saying what is wrong, one step of a role after another, each a transaction. */
#include "replica_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/sm.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LEASE_S = 5,
    COMMIT_MS = 10000,
    VALUE_BYTES = 262144,
    VALUE_LEAST = 1024,
    VALUE_MOST = 1048576, /* etcd takes requests of 1.5 MiB */
    TRIM_MS = 10000,
    RETRY_LEAST_MS = 100,
    RETRY_MOST_MS = 2000,
    STEP_MS = 2000,
};

#define TAIL_BYTES ((uint64_t)256 << 20)
#define BATCH_BYTES ((uint64_t)256 << 20)
#define WINDOW_BYTES ((uint64_t)8 << 20)
#define MS_PER_S 1000u

#define LOSES SM_TO(REPLICA_ENDING)
#define ENDS (SM_TO(REPLICA_OFF) | SM_TO(REPLICA_REFUSED))

static const struct sm_state states[] = {
    [REPLICA_OFF] = {"off", SM_TO(REPLICA_ENTERING)},
    [REPLICA_ENTERING] = {"entering", SM_TO(REPLICA_FOLLOWING) | ENDS},
    [REPLICA_FOLLOWING] = {"following", SM_TO(REPLICA_JOINING) | SM_TO(REPLICA_CANDIDATE) |
                                            SM_TO(REPLICA_TAKING_OVER) | ENDS},
    [REPLICA_JOINING] = {"joining", SM_TO(REPLICA_FOLLOWING) | ENDS},
    [REPLICA_CANDIDATE] = {"candidate",
                           SM_TO(REPLICA_FOLLOWING) | SM_TO(REPLICA_TAKING_OVER) | ENDS},
    [REPLICA_TAKING_OVER] = {"taking over", SM_TO(REPLICA_LEADING) | LOSES | ENDS},
    [REPLICA_LEADING] = {"leading", LOSES | ENDS},
    [REPLICA_ENDING] = {"ending", SM_TO(REPLICA_FOLLOWING) | ENDS},
    [REPLICA_REFUSED] = {"refused", SM_TO(REPLICA_OFF)},
};

static const struct sm_table machine = {"replica", states, REPLICA_ROLE_COUNT};

const char *replica_role_text(enum replica_role role)
{
    static const char *const texts[] = {REPLICA_ROLES(AS_TEXT)};

    return texts[role];
}

const char *replica_trouble_text(enum replica_trouble trouble)
{
    static const char *const texts[] = {REPLICA_TROUBLES(AS_TEXT)};

    return texts[trouble];
}

/* Small things. */

struct span replica_span(const struct replica_text *text)
{
    return span_of(text->p, text->n);
}

struct replica_text replica_log_text(struct replica *r, uint64_t serial)
{
    struct replica_text text;

    text.n =
        (size_t)snprintf(text.p, sizeof(text.p), "%.*s%016" PRIx64, SPAN_FMT(r->keys.log), serial);
    MUST(text.n < sizeof(text.p));
    return text;
}

struct replica_text replica_part_text(struct replica *r, uint64_t epoch, uint64_t serial,
                                      uint32_t n)
{
    struct replica_text text;

    text.n =
        (size_t)snprintf(text.p, sizeof(text.p), "%.*s%016" PRIx64 "/%016" PRIx64 "/%08" PRIx32,
                         SPAN_FMT(r->keys.parts), epoch, serial, n);
    MUST(text.n < sizeof(text.p));
    return text;
}

struct replica_text replica_parts_text(struct replica *r, uint64_t epoch, uint64_t serial)
{
    struct replica_text text = replica_part_text(r, epoch, serial, 0);

    text.n -= strlen("00000000");
    return text;
}

bool replica_head_of(const struct etcd_kv *kv, struct replica_head *out_head)
{
    struct span stored;
    struct err *e = replica_batch_parse(kv->value, out_head, &stored);

    err_free(e);
    return e == NULL;
}

const struct etcd_kv *replica_first(const struct etcd_op_answer *page)
{
    return page->kv_count > 0 ? page->kvs : NULL;
}

struct span replica_value(const struct etcd_op_answer *page)
{
    return page->kv_count > 0 ? page->kvs->value : SPAN("");
}

void replica_move(struct replica *r, enum replica_role role)
{
    sm_move(&machine, &r->role, role);
    log_info("replica", "node %s is %s, epoch %lld, next serial %llu", r->options.node,
             replica_role_text(role), (long long)r->epoch, (unsigned long long)replica_next(r));
    if (r->callbacks.on_role != NULL)
        r->callbacks.on_role(r->callbacks.context, role);
}

void replica_say(struct replica *r, enum replica_trouble trouble, const char *fmt, ...)
{
    va_list args;

    if (trouble == r->trouble)
        return;
    r->trouble = (uint8_t)trouble;
    va_start(args, fmt);
    vsnprintf(r->trouble_why, sizeof(r->trouble_why), fmt, args);
    va_end(args);
    if (trouble != REPLICA_NO_TROUBLE)
        log_warn("replica", "%s: %s", replica_trouble_text(trouble), r->trouble_why);
    if (r->callbacks.on_trouble != NULL)
        r->callbacks.on_trouble(r->callbacks.context, trouble, r->trouble_why);
}

void replica_say_over(struct replica *r, enum replica_trouble either, enum replica_trouble other)
{
    if (r->trouble == either || r->trouble == other)
        replica_say(r, REPLICA_NO_TROUBLE, "%s", "");
}

void replica_say_outcome(struct replica *r, const struct etcd_answer *answer)
{
    static const uint8_t troubles[] = {
        [ETCD_UNKNOWN] = REPLICA_UNREACHABLE, [ETCD_DENIED] = REPLICA_DENIED,
        [ETCD_FULL] = REPLICA_FULL,           [ETCD_TOO_LARGE] = REPLICA_MISUSED,
        [ETCD_COMPACTED] = REPLICA_MISUSED,   [ETCD_INVALID] = REPLICA_MISUSED,
    };

    if (answer->outcome == ETCD_DONE || answer->outcome == ETCD_REFUSED)
        return;
    if (!answer->is_other)
        replica_say(r, troubles[answer->outcome], "%s", answer->why);
    else if (r->trouble != REPLICA_LOG_LOST) /* what was found there says more */
        replica_say(r, REPLICA_OTHER_ETCD, "%s", answer->why);
}

const char *replica_etcd_words(const struct replica *r, uint64_t cluster_id,
                               char room[REPLICA_ETCD_BYTES])
{
    uint64_t kept = etcd_kept_to(r->etcd);

    if (kept == 0 || kept == cluster_id)
        snprintf(room, REPLICA_ETCD_BYTES, "etcd's cluster id is %016" PRIx64, cluster_id);
    else
        snprintf(room, REPLICA_ETCD_BYTES,
                 "etcd's cluster id is %016" PRIx64 ", and was %016" PRIx64, cluster_id, kept);
    return room;
}

void replica_say_well(struct replica *r, bool was_written)
{
    replica_say_over(r, REPLICA_UNREACHABLE, REPLICA_DENIED);
    replica_say_over(r, REPLICA_MISUSED, REPLICA_MISUSED);
    if (!was_written)
        return;
    r->failures = 0;
    replica_say_over(r, REPLICA_FULL, REPLICA_OTHER_ETCD);
}

static void on_retry(struct timer *timer)
{
    struct replica *r = CONTAINER_OF(timer, struct replica, retry);

    r->on_retry(r);
}

void replica_try_again(struct replica *r, void (*again)(struct replica *r))
{
    uint64_t most_ms = MIN((uint64_t)RETRY_LEAST_MS << MIN(r->failures, 8u), RETRY_MOST_MS);

    r->failures++;
    r->on_retry = again;
    timer_start(r->loop, &r->retry, most_ms - rng_below(most_ms / 2));
}

void replica_try_again_after(struct replica *r, const struct etcd_answer *answer,
                             void (*again)(struct replica *r))
{
    replica_say_outcome(r, answer);
    replica_try_again(r, again);
}

void replica_stop_step(struct replica *r)
{
    etcd_cancel(r->etcd, &r->step);
    timer_stop(r->loop, &r->retry);
}

void replica_refuse(struct replica *r, enum replica_trouble trouble, const char *why)
{
    replica_stop_step(r);
    replica_read_stop(r);
    replica_lease_give_back(r);
    replica_say(r, trouble, "%s", why);
    replica_move(r, REPLICA_REFUSED);
}

static void step(struct replica *r, const struct etcd_txn *txn, struct etcd_call call)
{
    replica_stop_step(r);
    r->step = call;
    etcd_txn(r->etcd, &r->step, txn);
}

void replica_step(struct replica *r, const struct etcd_txn *txn, replica_done_fn *on_done)
{
    step(r, txn, (struct etcd_call){.on_done = on_done, .attempt_ms = STEP_MS});
}

void replica_step_anywhere(struct replica *r, const struct etcd_txn *txn, replica_done_fn *on_done)
{
    step(r, txn,
         (struct etcd_call){.on_done = on_done, .attempt_ms = STEP_MS, .any_cluster = true});
}

/* What is asked of it. */

enum replica_role replica_role(const struct replica *r)
{
    return r->role;
}

bool replica_leads(const struct replica *r)
{
    return r->role == REPLICA_LEADING && replica_lease_lasts(r);
}

uint64_t replica_epoch(const struct replica *r)
{
    return (uint64_t)r->epoch;
}

struct span replica_leader(const struct replica *r)
{
    return span_of(r->leader, r->leader_bytes);
}

uint64_t replica_next(const struct replica *r)
{
    return MAX(r->next, r->read.wanted);
}

void replica_stats(const struct replica *r, struct replica_stats *out_stats)
{
    *out_stats = r->stats;
}

/* Made and freed. */

static bool is_name(const char *text)
{
    size_t n = text != NULL ? strlen(text) : 0;

    for (size_t i = 0; i < n; i++)
        if (strchr("_-.", text[i]) == NULL && !(text[i] >= '0' && text[i] <= '9') &&
            !(span_fold_char(text[i]) >= 'a' && span_fold_char(text[i]) <= 'z'))
            return false;
    return n > 0 && n <= REPLICA_NAME_BYTES;
}

static struct err *check_options(const struct replica_options *o)
{
    if (!is_name(o->cluster) || !is_name(o->node))
        return ERR(ERR_UNKNOWN, "Cluster: %s should be 1 to %d letters, digits, '_', '-', '.'",
                   is_name(o->cluster) ? "Node" : "Name", REPLICA_NAME_BYTES);
    if (o->value_bytes != 0 && (o->value_bytes < VALUE_LEAST || o->value_bytes > VALUE_MOST))
        return ERR(ERR_UNKNOWN, "Cluster: a value should be of %d to %d bytes", VALUE_LEAST,
                   VALUE_MOST);
    if (o->next == 0)
        return ERR(ERR_UNKNOWN, "Cluster: serials begin with 1");
    return NULL;
}

static void set_options(struct replica *r, const struct replica_options *given)
{
    struct replica_options *o = &r->options;

    *o = *given;
    arena_init(&r->texts);
    o->cluster = arena_copy(&r->texts, span_str(given->cluster)).p;
    o->node = arena_copy(&r->texts, span_str(given->node)).p;
    o->url = arena_copy(&r->texts, span_str(given->url)).p;
    o->version = arena_copy(&r->texts, span_str(given->version)).p;
    o->lease_s = given->lease_s != 0 ? given->lease_s : LEASE_S;
    o->commit_ms = given->commit_ms != 0 ? given->commit_ms : COMMIT_MS;
    o->tail_bytes = given->tail_bytes != 0 ? given->tail_bytes : TAIL_BYTES;
    o->value_bytes = given->value_bytes != 0 ? given->value_bytes : VALUE_BYTES;
    o->batch_bytes = given->batch_bytes != 0 ? given->batch_bytes : BATCH_BYTES;
    o->window_bytes = given->window_bytes != 0 ? given->window_bytes : WINDOW_BYTES;
    o->trim_ms = given->trim_ms != 0 ? given->trim_ms : TRIM_MS;
    if (given->id == NULL) {
        r->id = uuid_new();
    } else {
        memcpy(r->id.b, given->id, REPLICA_UUID_BYTES);
        o->id = r->id.b;
    }
    r->restored_id = uuid_new();
}

static struct span key(struct replica *r, const char *folder, const char *name)
{
    return arena_printf(&r->texts, "/svcd/%s/%s%s", r->options.cluster, folder, name);
}

/* `0` is what follows a slash. */
static void make_keys(struct replica *r)
{
    r->keys.leader = key(r, "", "leader");
    r->keys.id = key(r, "", "id");
    r->keys.secret = key(r, "", "secret");
    r->keys.restored = key(r, "", "restored");
    r->keys.home = key(r, "", "etcd");
    r->keys.node = key(r, "node/", r->options.node);
    r->keys.log = key(r, "log/", "");
    r->keys.log_end = key(r, "log0", "");
    r->keys.parts = key(r, "part/", "");
    r->keys.parts_end = key(r, "part0", "");
    r->keys.nodes = key(r, "node/", "");
    r->keys.nodes_end = key(r, "node0", "");
}

struct err *replica_new(struct loop *loop, struct etcd *etcd, const struct replica_options *options,
                        const struct replica_callbacks *callbacks, struct replica **out_replica)
{
    uint8_t token[REPLICA_TOKEN_BYTES / 2];
    struct replica *r;

    TRY(check_options(options));
    r = NEW(struct replica);
    r->loop = loop;
    r->etcd = etcd;
    r->callbacks = *callbacks;
    set_options(r, options);
    r->cluster = span_str(r->options.cluster);
    make_keys(r);
    rng_secret(r->secret, sizeof(r->secret));
    rng_secret(token, sizeof(token));
    for (size_t i = 0; i < sizeof(token); i++)
        snprintf(r->token + 2 * i, 3, "%02x", token[i]);
    timer_init(&r->retry, on_retry);
    buf_init(&r->orphan_from, BUF_NO_CAP);
    replica_lease_init(r);
    replica_read_init(r);
    replica_append_init(r);
    replica_trim_init(r);
    replica_nodes_init(r);
    *out_replica = r;
    return NULL;
}

void replica_start(struct replica *r)
{
    replica_move(r, REPLICA_ENTERING);
    replica_enter(r);
}

void replica_free(struct replica *r)
{
    if (r == NULL)
        return;
    replica_stop_step(r);
    replica_nodes_done(r);
    replica_trim_done(r);
    replica_append_done(r);
    replica_read_done(r);
    replica_lease_done(r);
    buf_done(&r->orphan_from);
    arena_done(&r->texts);
    mem_wipe(r->secret, sizeof(r->secret));
    mem_free(r);
}

void replica_leave(struct replica *r, void (*on_left)(void *context), void *context)
{
    MUST(r->append == NULL);
    r->on_left = on_left;
    r->left_context = context;
    replica_stop_step(r);
    replica_read_stop(r);
    replica_nodes_stop(r);
    timer_start(r->loop, &r->leave_end, (uint64_t)r->options.lease_s * MS_PER_S);
    replica_lease_give_back(r);
    replica_move(r, REPLICA_OFF);
}
