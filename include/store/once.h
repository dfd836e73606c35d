/* What is remembered so that nothing is done twice: for each key that a client gave, a digest of
 * what was sent with it, and what it was answered (docs/specification.md, section 7, "Svc.Event").
 * Keys are digests too, made above: see service/repeat.h.
 *
 * An entry is a record in the journal like any other object: written in the change that it belongs
 * to, moved by cleaning, gone with a record of its own. In the order of raising they are a queue,
 * out of whose front retention takes those that are too old or too many. */
#ifndef STORE_ONCE_H
#define STORE_ONCE_H

#include "store/record.h"
#include "store/stored.h"

struct change;
struct store;

struct once;

struct once_entry {
    struct stored stored;
    struct list_link order;    /* of all entries, by event_no once loaded */
    struct record_once record; /* its `resource` points to `name` */
    char name[];
};

/* Entries older than keep_seconds are not found, whether they have been taken out yet or not. */
struct once *once_new(struct store *store, int64_t keep_seconds);
/* NULL is allowed. */
void once_free(struct once *o);

/* NULL when nothing is remembered under this key. An answer that shows the entry waits for
 * entry->stored.serial: while the change that made it is on its way to the disk, so does the
 * repetition. */
const struct once_entry *once_find(const struct once *o, const uint8_t key[RECORD_ONCE_KEY_BYTES]);
/* Adds the record to a change; it takes the place of an entry with this key. */
void once_remember(struct change *change, const struct record_once *record);
void once_forget(struct change *change, const struct once_entry *entry);

size_t once_count(const struct once *o);
/* In the order of raising; NULL at the end. */
const struct once_entry *once_first(const struct once *o);
const struct once_entry *once_next(const struct once *o, const struct once_entry *entry);

#endif
