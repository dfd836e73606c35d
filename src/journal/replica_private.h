/* What the files of the module replica share.
 *
 *   replica.c         roles, troubles, options
 *   replica_enter.c   taking part
 *   replica_lead.c    asking to lead, leading, ending
 *   replica_lease.c   the lease and what others see of the node
 *   replica_nodes.c   the nodes that live
 *   replica_read.c    the log as it comes from others
 *   replica_append.c  a batch into the log, until that is settled
 *   replica_trim.c    the log's old end
 *   replica_batch.c   what stands in it */
#ifndef JOURNAL_REPLICA_PRIVATE_H
#define JOURNAL_REPLICA_PRIVATE_H

#include "base/arena.h"
#include "base/uuid.h"
#include "fetch/etcd.h"
#include "io/loop.h"
#include "journal/replica.h"
#include "journal/replica_stats.h"

typedef void replica_done_fn(struct etcd_call *call, const struct etcd_answer *answer);

enum {
    REPLICA_TOKEN_BYTES = 32,
    REPLICA_KEY_BYTES = 192,
    REPLICA_WHY_BYTES = 480,
    REPLICA_ETCD_BYTES = 128,
    REPLICA_NODES_MOST = 1000,
};

/* A key that has numbers in it; terminated. */
struct replica_text {
    char p[REPLICA_KEY_BYTES];
    size_t n;
};

/* The others, below `/svcd/<Name>/`. Of what is a folder: where its keys begin, and what stands
 * behind all of them. */
struct replica_keys {
    struct span leader, id, secret, restored, home;
    struct span node; /* of this one */
    struct span log, log_end, parts, parts_end, nodes, nodes_end;
};

struct replica_read {
    uint8_t state;         /* enum in replica_read.c */
    uint64_t wanted;       /* serial of what is yielded next */
    struct etcd_call call; /* a page, or parts */
    struct etcd_watch watch;
    struct timer again, parts_again;
    struct list entries; /* read and not yielded */
    size_t entry_bytes;
    struct list handed;           /* yielded and not taken */
    uint64_t handed_bytes, taken; /* taken: the next serial that is not */
    int64_t watch_from;           /* revision behind the last page */
    int64_t seen;                 /* of the last page, or of what the watch told last */
    struct {
        uint64_t epoch, first, next; /* next 0: not known */
        uint8_t digest[DIGEST_BYTES];
    } last;            /* the batch that ends at `wanted`, as it was taken or confirmed */
    bool looks_back;   /* the next page has it too, to compare */
    bool is_caught_up; /* all that the log had at the last page is in `entries`, or was yielded */
    bool gap_seen;     /* and read again: a second one is damage */
    struct buf parts;  /* of the first entry */
    uint32_t parts_read;
    struct buf content;
    struct loop_task pump;
};

/* Who lives. */
struct replica_nodes {
    struct arena arena; /* of what is in the list */
    struct replica_node *list;
    size_t count;
    struct etcd_call call;
    struct timer too_old;
    int64_t seen; /* read.seen when it was asked */
    bool again;   /* once the call is answered */
};

struct replica {
    struct loop *loop;
    struct etcd *etcd;
    struct replica_options options; /* texts are owned; id points to `id` */
    struct replica_callbacks callbacks;
    struct span cluster;
    struct replica_keys keys;
    struct arena texts; /* of the keys, and of the options */
    uint8_t role;       /* enum replica_role */
    uint8_t secret[REPLICA_SECRET_BYTES];
    struct uuid id;
    struct uuid restored_id; /* of the cluster that it makes when it restores */
    bool has_entered;
    uint64_t found_etcd; /* cluster id of the etcd where the log was last looked for */
    char token[REPLICA_TOKEN_BYTES + 1]; /* tells this process from others of its node's name */
    uint8_t trouble;                     /* enum replica_trouble */
    char trouble_why[REPLICA_WHY_BYTES];
    /* Entering, campaigning, letting go: one step at a time. */
    struct etcd_call step;
    struct timer retry;
    void (*on_retry)(struct replica *r);
    unsigned failures;
    uint64_t name_taken_since_ms;
    /* The lease. */
    int64_t lease; /* 0: none */
    uint64_t lease_until_ns;
    unsigned ttl_s;
    int64_t node_revision; /* create revision of the node's key; 0: not ours */
    uint64_t reported;     /* `next` as others see it */
    uint8_t reported_role;
    struct etcd_call keepalive, report, revoke;
    struct timer keepalive_due, lease_end;
    /* Who leads. */
    int64_t epoch; /* 0: nobody */
    char leader[REPLICA_NAME_BYTES];
    size_t leader_bytes;
    bool is_ours; /* this process leads in this epoch, or did */
    uint64_t no_campaign_until_ms;
    bool steps_down;
    uint64_t next;         /* of the log */
    uint64_t before_bytes; /* stored bytes of the log up to there, since it began */
    struct buf orphan_from;
    struct replica_read read;
    struct replica_nodes nodes;
    /* Appending. */
    struct replica_append *append; /* NULL: nothing is under way */
    struct replica_head head;
    struct buf stored, value;
    uint32_t part; /* the next to be put */
    unsigned append_failures;
    uint64_t append_since_ns;
    struct etcd_call append_call;
    struct timer append_again, late;
    char append_why[REPLICA_WHY_BYTES];
    /* Trimming. */
    struct timer trim_due;
    struct etcd_call trim;
    uint64_t trim_low, trim_high;                  /* serials: the cut is in between */
    uint64_t trim_bound, trim_oldest, trim_newest; /* serials */
    uint64_t trim_keep, trim_kept, trim_end_bytes; /* stored bytes */
    uint64_t trim_epoch;                           /* of the batch at trim_low */
    struct timer leave_end;
    void (*on_left)(void *context);
    void *left_context;
    struct replica_stats stats;
};

/* replica.c */

void replica_move(struct replica *r, enum replica_role role);
/* Said once. */
void replica_say(struct replica *r, enum replica_trouble trouble, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* If it is one of the two, it is over. */
void replica_say_over(struct replica *r, enum replica_trouble either, enum replica_trouble other);
/* Of an outcome that is neither DONE nor REFUSED; nothing otherwise. */
void replica_say_outcome(struct replica *r, const struct etcd_answer *answer);
/* It answers: what kept it from going on is over; FULL only once something was written. */
void replica_say_well(struct replica *r, bool was_written);
/* Final. */
void replica_refuse(struct replica *r, enum replica_trouble trouble, const char *why);
/* The step is done again after a pause. */
void replica_try_again(struct replica *r, void (*again)(struct replica *r));
/* The same, once the outcome has been said. */
void replica_try_again_after(struct replica *r, const struct etcd_answer *answer,
                             void (*again)(struct replica *r));
void replica_stop_step(struct replica *r);
struct replica_text replica_log_text(struct replica *r, uint64_t serial);
struct replica_text replica_part_text(struct replica *r, uint64_t epoch, uint64_t serial,
                                      uint32_t n);
/* What the keys of all parts of a batch begin with, up to a slash. */
struct replica_text replica_parts_text(struct replica *r, uint64_t epoch, uint64_t serial);
struct span replica_span(const struct replica_text *text);
/* Of a log key's value. False: it is no batch, which whoever reads it says. */
bool replica_head_of(const struct etcd_kv *kv, struct replica_head *out_head);
/* Of an answer: the first key and its value; NULL, and empty, when there is none. */
const struct etcd_kv *replica_first(const struct etcd_op_answer *page);
struct span replica_value(const struct etcd_op_answer *page);
/* Begins a step, instead of the one that is under way. */
void replica_step(struct replica *r, const struct etcd_txn *txn, replica_done_fn *on_done);
/* The same, whatever etcd answers: who asks looks at what it says of itself. */
void replica_step_anywhere(struct replica *r, const struct etcd_txn *txn, replica_done_fn *on_done);

/* What etcd's cluster id is there, and, if it is another, was before. */
const char *replica_etcd_words(const struct replica *r, uint64_t cluster_id,
                               char room[REPLICA_ETCD_BYTES]);

/* replica_enter.c */

void replica_enter(struct replica *r);
/* Is the cluster in etcd the journal's own? One that was restored from what the journal is a part
 * of becomes so. `restored` is the value of that key, or empty. False: it is another; *out_why says
 * so, and *out_stranger whether it has nothing to do with ours. */
bool replica_settle_id(struct replica *r, const struct uuid *id, struct span restored,
                       char out_why[REPLICA_WHY_BYTES], bool *out_stranger);
/* Of the key `id`: is it the one that is followed? */
bool replica_is_id(const struct replica *r, const struct etcd_op_answer *page);
/* Is the log where it was begun? `home` is the key `etcd`. False, and said: it is a copy, which
 * somebody has made by a snapshot; what others have written since is not in it. */
bool replica_is_at_home(struct replica *r, const struct etcd_answer *answer,
                        const struct etcd_op_answer *home);
/* The lease and the name are there. */
void replica_on_named(struct replica *r);

/* replica_lead.c */

/* The leader's key as it is now; NULL: there is none. */
void replica_note_leader(struct replica *r, const struct etcd_kv *kv);
/* What this process led is over, or not for sure its any more: no append begins. */
void replica_end_leading(struct replica *r, const char *why);
/* Nothing is under way any more. */
void replica_on_settled(struct replica *r);
/* All that the log has was yielded, or taken: is it this node's turn? */
void replica_look_around(struct replica *r);

/* replica_lease.c */

void replica_lease_init(struct replica *r);
void replica_lease_done(struct replica *r);
/* Grants one, then takes the node's name; then replica_on_named. */
void replica_lease_begin(struct replica *r);
void replica_lease_give_back(struct replica *r);
/* Its key is not there any more, or another's: another lease, and the name again. */
void replica_lease_lose_name(struct replica *r);
bool replica_lease_lasts(const struct replica *r);
/* Others are told at once what it is; else with the next keepalive. */
void replica_lease_report(struct replica *r);

/* replica_nodes.c */

void replica_nodes_init(struct replica *r);
void replica_nodes_done(struct replica *r);
/* Of the key `secret`; it is another one when the log was restored. */
void replica_take_secret(struct replica *r, const struct etcd_op_answer *page);
/* Asks etcd. */
void replica_nodes_read(struct replica *r);
/* What is known stays until it is too old. */
void replica_nodes_stop(struct replica *r);

/* replica_read.c */

void replica_read_init(struct replica *r);
void replica_read_done(struct replica *r);
/* From `wanted` on: what is there, then what comes. */
void replica_read_begin(struct replica *r);
/* Who watches begins with pages again if this says that it may be another log: etcd is of another
 * cluster, or before `seen`, what it was at when it was asked (a watch would wait for what may
 * never come), or `id` is not the one that is followed. */
void replica_read_check(struct replica *r, const struct etcd_answer *answer, int64_t seen,
                        const struct etcd_op_answer *id);
/* What ends at `wanted`, for when it is read again. */
void replica_read_note_last(struct replica *r, const struct replica_head *head);
/* Nothing is read; what is yielded and not taken stays known. */
void replica_read_stop(struct replica *r);
/* What is there was yielded and taken. */
bool replica_read_is_level(const struct replica *r);

/* replica_append.c */

void replica_append_init(struct replica *r);
void replica_append_done(struct replica *r);

/* replica_trim.c */

void replica_trim_init(struct replica *r);
void replica_trim_done(struct replica *r);

#endif
