#include "store/cursor.h"

#include "store/collection.h"
#include "store/collection_inner.h"
#include "store/entity.h"

static struct cursor *cursor_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct cursor, link);
}

static bool has_passed(const struct cursor *cursor, const struct entity *e)
{
    return cursor->next == NULL || e->object_no < cursor->next->object_no;
}

void cursor_open(struct cursor *cursor, struct collection *c)
{
    cursor->collection = c;
    cursor->next = collection_first(c);
    list_push_back(collection_cursors(c), &cursor->link);
}

void cursor_close(struct cursor *cursor)
{
    if (list_linked(&cursor->link))
        list_remove(collection_cursors(cursor->collection), &cursor->link);
}

struct entity *cursor_pass(struct cursor *cursor)
{
    struct entity *e = cursor->next;

    if (e != NULL)
        cursor->next = collection_next(cursor->collection, e);
    return e;
}

void cursors_inserted(struct list *cursors, struct entity *e)
{
    LIST_EACH(cursors, at)
        if (cursor_at(at)->next == NULL)
            cursor_at(at)->next = e;
}

void cursors_changed(struct list *cursors, struct entity *e)
{
    LIST_EACH(cursors, at)
        if (has_passed(cursor_at(at), e))
            cursor_at(at)->on_changed(cursor_at(at), e);
}

void cursors_gone(struct list *cursors, struct entity *e)
{
    LIST_EACH(cursors, at) {
        struct cursor *cursor = cursor_at(at);

        if (cursor->next == e)
            cursor_pass(cursor);
        else if (has_passed(cursor, e))
            cursor->on_gone(cursor, e);
    }
}
