/* x->served is a serving, and holds a reference; when the node ends the network has given that
 * back. */
#include "serving.h"

#include "machine.h"
#include "simulated.h"
#include "visit.h"

#include "base/mem.h"
#include "rest/download.h"

struct serving {
    struct list_link link; /* in machine->servings */
    struct machine *machine;
    struct exchange *x;
    struct visit *visit;       /* NULL: it has been answered */
    struct download *download; /* NULL: none */
};

static void free_serving(struct serving *s)
{
    list_remove(&s->machine->servings, &s->link);
    mem_free(s);
}

static void finish(struct serving *s)
{
    struct exchange *x = s->x;

    free_serving(s);
    x->served = NULL;
    network_unref(x);
}

/* A download. ------------------------------------------------------------------------------- */

static void send_part(void *context, struct span bytes)
{
    network_send(((struct serving *)context)->x, bytes);
}

static bool is_free(void *context)
{
    (void)context;
    return true;
}

static void on_end(void *context, bool is_whole)
{
    struct serving *s = context;

    s->download = NULL;
    network_end_answer(s->x, is_whole);
    finish(s);
}

static const struct download_sink sink = {.write = send_part, .is_free = is_free, .end = on_end};

/* ------------------------------------------------------------------------------------------- */

static void on_done(void *context, const struct visit_answer *answer)
{
    struct serving *s = context;

    s->visit = NULL;
    if (answer == NULL) { /* the node ends: x is not ours any more */
        free_serving(s);
    } else if (answer->download != NULL) {
        network_begin_answer(s->x, answer->status);
        s->download = answer->download;
        download_start(s->download, &sink, s);
    } else {
        network_answer(s->x, answer->status, answer->headers, answer->header_count, answer->body);
        finish(s);
    }
}

static struct visit *visit_of(struct serving *s)
{
    struct exchange *x = s->x;
    struct header_field *headers = ARENA_ARRAY(&x->arena, struct header_field, x->header_count + 1);
    struct request request = {
        .method = x->method,
        .target = x->target,
        .headers = headers,
        .header_count = x->header_count,
        .body = x->body,
        .gives_way = true,
    };

    for (size_t i = 0; i < x->header_count; i++)
        headers[i] = (struct header_field){x->headers[i].name, x->headers[i].value};
    return visit_new(s->machine, &request, on_done, s);
}

void serving_take(struct exchange *x)
{
    struct machine *m = &machines[x->server];
    struct serving *s = NEW(struct serving);

    s->machine = m;
    s->x = network_ref(x);
    x->served = s;
    list_push_back(&m->servings, &s->link);
    machine_enter(m->index);
    s->visit = visit_of(s);
    visit_run(s->visit);
    machine_leave(m->index);
}

void serving_forget(struct exchange *x)
{
    struct serving *s = x->served;
    struct machine *m = s->machine;

    machine_enter(m->index);
    if (s->visit != NULL)
        visit_drop(s->visit);
    download_close(s->download);
    finish(s);
    machine_leave(m->index);
}

void servings_end(struct machine *m)
{
    while (!list_empty(&m->servings)) {
        struct serving *s = CONTAINER_OF(list_first(&m->servings), struct serving, link);

        download_close(s->download);
        free_serving(s);
    }
}
