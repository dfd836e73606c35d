/* Records are written straight into one buffer and only their places are noted: turn_apply hands
 * the journal what is there, without a copy in between. The buffer is not the arena's, as a large
 * change would leave half its size behind each time it grows. */
#include "store/change.h"

#include "base/must.h"
#include "journal/segment.h"
#include "store/change_record.h"
#include "store/record.h"
#include "store/turn_inner.h"

#include <string.h>

/* Room for what most changes hold, made at once instead of by doubling. One buffer goes from change
 * to change, while it is not large. */
enum { USUAL_BYTES = 1023, SPARE_BYTES = 16383 };

void change_init(struct change *c, struct turn *turn, struct arena *a)
{
    memset(c, 0, sizeof(*c));
    c->turn = turn;
    c->arena = a;
    buf_init(&c->bodies, BUF_NO_CAP);
    c->first_serial = journal_next_serial(turn->journal);
    c->next_serial = c->first_serial;
    c->no = ++turn->changes;
}

static void swap_with_spare(struct change *c)
{
    struct buf own = c->bodies;

    c->bodies = c->turn->spare;
    c->turn->spare = own;
}

void change_done(struct change *c)
{
    c->count = c->journal_bytes = 0;
    if (c->bodies.p == NULL)
        return;
    buf_shrink(&c->bodies, SPARE_BYTES);
    swap_with_spare(c);
    buf_done(&c->bodies);
}

uint64_t change_next_serial(const struct change *c)
{
    return c->next_serial;
}

struct buf *change_begin(struct change *c)
{
    if (c->count == c->size) {
        size_t size = MAX(4, c->size * 2);

        c->records = arena_grow(c->arena, c->records, c->size * sizeof(*c->records),
                                size * sizeof(*c->records));
        c->size = size;
    }
    if (c->bodies.p == NULL) {
        swap_with_spare(c);
        buf_reserve(&c->bodies, USUAL_BYTES);
    }
    c->records[c->count].offset = c->bodies.n;
    return &c->bodies;
}

void change_end(struct change *c, unsigned kind, uint32_t serials)
{
    struct change_record *record = &c->records[c->count];

    MUST(serials > 0);
    record->kind = kind;
    record->serials = c->is_move ? 0 : serials;
    record->n = c->bodies.n - record->offset;
    record->read = (struct json_value){NULL, NULL};
    c->journal_bytes += segment_record_bytes(record->n);
    c->next_serial += record->serials;
    c->count++;
}

void change_put_entity(struct change *c, struct span resource, const struct uuid *id,
                       uint64_t object_no, struct span json)
{
    const struct record_entity record = {
        .resource = resource,
        .id = *id,
        .object_no = object_no,
        .version = c->next_serial,
        .json = json,
    };

    record_add_entity(change_begin(c), &record);
    change_end(c, RECORD_ENTITY, 1);
}

void change_entity_read(struct change *c, struct json_value read)
{
    MUST(c->count > 0 && c->records[c->count - 1].kind == RECORD_ENTITY);
    c->records[c->count - 1].read = read;
}

void change_delete_entity(struct change *c, struct span resource, const struct uuid *id)
{
    const struct record_entity_gone record = {.resource = resource, .id = *id};

    record_add_entity_gone(change_begin(c), &record);
    change_end(c, RECORD_ENTITY_GONE, 1);
}
