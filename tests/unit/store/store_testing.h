/* A store over a journal in a directory of its own, which can be closed and opened again. */
#ifndef STORE_TESTING_H
#define STORE_TESTING_H

#include "io/loop.h"
#include "journal/journal.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"
#include "testing.h"

struct store_fixture {
    char directory[TESTING_PATH_BYTES];
    struct loop loop;
    struct store *store;
    struct turn *turn;
    struct arena arena;
    uint64_t segment_bytes;
    /* Around every opening: a module that keeps objects of its own in the store. Or NULL. */
    void (*make_module)(struct store *store);
    void (*free_module)(void);
};

/* Makes the directory; nothing is open yet. */
void store_fixture_init(struct store_fixture *f);
/* Removes it. Closes first when it is open. */
void store_fixture_done(struct store_fixture *f);
void store_fixture_open(struct store_fixture *f);
void store_fixture_close(struct store_fixture *f);
/* Runs the loop until everything handed over is committed. */
void store_fixture_commit(struct store_fixture *f);
/* One turn of the loop, without waiting for anything. */
void store_fixture_turn(struct store_fixture *f);
/* Inserts `{"Id":…,<members>,"ObjectNo":…}` and returns the entity. */
struct entity *store_fixture_insert(struct store_fixture *f, const char *resource,
                                    const char *members);
void store_fixture_update(struct store_fixture *f, struct entity *e, const char *members);
void store_fixture_delete(struct store_fixture *f, struct entity *e);
/* Number and bytes of the segment files. */
size_t store_fixture_segments(const struct store_fixture *f, uint64_t *out_bytes);

#endif
