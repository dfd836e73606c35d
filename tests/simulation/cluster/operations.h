/* What clients have asked for, what they were answered, and what the log says of it. Every
 * operation has a number of its own, which stands in the entities and events that it makes; so the
 * log tells which have been done, and when. */
#ifndef SIMULATION_CLUSTER_OPERATIONS_H
#define SIMULATION_CLUSTER_OPERATIONS_H

#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPERATIONS_SOME = 3, OPERATIONS_MANY = 520, OPERATIONS_SLOTS = 16 };

enum operation_kind {
    OPERATION_INSERT,
    OPERATION_INSERT_SOME, /* OPERATIONS_SOME entities at once */
    OPERATION_INSERT_LARGE,
    OPERATION_CHANGE,
    OPERATION_DELETE,
    OPERATION_RAISE,
    OPERATION_INSERT_MANY, /* OPERATIONS_MANY at once, more than are changed in one turn */
    OPERATION_CHANGE_MANY  /* all of those */
};

enum operation_state {
    OPERATION_UNDER_WAY,
    OPERATION_ACKNOWLEDGED,
    OPERATION_REFUSED, /* nothing was done */
    OPERATION_UNKNOWN  /* it may have been done */
};

/* An entity. One client at a time changes it, and none any more once it is not known what the last
 * change has come to. */
struct item {
    struct uuid id;
    bool has_id;           /* answered, or in the log */
    bool is_busy, is_lost; /* a change is under way; it is not known what there is */
    bool is_there;         /* as far as was answered */
    uint64_t acknowledged; /* serial of the last change that was */
    /* As the log has it. */
    bool is_logged, is_gone;
    uint64_t n;      /* of the last operation */
    uint64_t serial; /* and the record's */
};

struct operation {
    enum operation_kind kind;
    enum operation_state state;
    size_t item; /* SIZE_MAX: none */
    unsigned node;
    uint64_t began_ns;
    uint64_t serial; /* in the log; 0: it is not there */
    size_t found;    /* of its entities in the change that is read */
    struct uuid event;
    bool is_delivered;
};

void operations_open(void);
void operations_close(void);

/* Its number. */
uint64_t operations_begin(enum operation_kind kind, size_t item, unsigned node);
/* `serial`: what an acknowledgement has waited for. `id`: of what was inserted, or NULL. */
void operations_end(uint64_t n, enum operation_state state, uint64_t serial, const struct uuid *id);
size_t operations_count(enum operation_state state);
const struct operation *operations_at(uint64_t n);

/* A new item; one that may be changed, by chance, SIZE_MAX: there is none. */
size_t operations_add_item(void);
size_t operations_any_item(void);
struct item *operations_item(size_t place);
size_t operations_item_count(void);

/* What the log says. */
void operations_note_entity(const struct uuid *id, uint64_t n, uint64_t serial);
/* Of the many that are changed together. */
void operations_note_one_of_many(uint64_t n, bool is_new, uint64_t serial);
void operations_note_gone(const struct uuid *id, uint64_t serial);
void operations_note_event(const struct uuid *id, uint64_t n, uint64_t serial);
void operations_end_change(uint64_t serial);

/* How many there are of those that are changed together, as the log has it. */
size_t operations_many(void);

/* What a receiver is about to be sent, and was sent. */
void operations_check_confirmed(uint64_t n);
void operations_note_delivery(const struct uuid *event, uint64_t n, bool is_accepted);
/* At the end: all events of the log from this serial on were delivered. */
void operations_check_delivered(uint64_t from);
bool operations_are_delivered(uint64_t from);

#endif
