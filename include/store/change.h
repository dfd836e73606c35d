/* A change: records that take effect together or not at all. It is filled while a request is
 * evaluated, when nothing has been changed yet, and carried out by turn_apply. Lives in the
 * request's arena.
 *
 * Serials are known while it is filled, because nothing else can be appended in between: between
 * change_init and turn_apply no other change is begun. */
#ifndef STORE_CHANGE_H
#define STORE_CHANGE_H

#include "base/buf.h"

struct change_record; /* change_record.h */
struct json_value;
struct turn;
struct uuid;

struct change {
    struct turn *turn;
    struct arena *arena;
    struct buf bodies;
    struct change_record *records; /* in the arena */
    size_t count, size;
    size_t journal_bytes; /* that the records will take in the journal */
    uint64_t first_serial, next_serial;
    uint64_t no;        /* no other change of the process has it: what is counted for one, is */
    size_t deliveries;  /* that it adds to those that have not ended: deliveries_check_room */
    size_t notices;     /* events that the server raises by itself: notice.h */
    size_t descendants; /* events that it raises because of another event: event_chain */
    bool frees_space;   /* deletions: may use the space that is kept back for them */
    bool is_outcome;    /* likewise, but leaves half of it for what frees more than it takes */
    bool is_long;       /* though it has few records: see turn_is_long */
    bool is_move;       /* the cleaner's, which has asked for room itself; takes no serials */
    bool is_followed;   /* from the log of the cluster: turn_log_take */
};

void change_init(struct change *c, struct turn *turn, struct arena *a);
/* Frees what is not in the arena; applied or not. */
void change_done(struct change *c);
/* Serial that the next record will get: an inserted entity's object_no, every record's version. */
uint64_t change_next_serial(const struct change *c);
/* Bodies are written straight into the change: fill *change_begin, then change_end. */
struct buf *change_begin(struct change *c);
void change_end(struct change *c, unsigned kind, uint32_t serials);
/* The two records of the store itself. `json` already holds Id and ObjectNo. */
void change_put_entity(struct change *c, struct span resource, const struct uuid *id,
                       uint64_t object_no, struct span json);
/* The entity that was put last, as far as its text has been read: at least the members that are
 * indexed, which are not read again. In place until the change is applied. */
void change_entity_read(struct change *c, struct json_value read);
void change_delete_entity(struct change *c, struct span resource, const struct uuid *id);

#endif
