/* It answers from the loop or inside visit_run. What it copies is in its own arena, since the
 * machine has one response for all. */
#include "visit.h"

#include "machine.h"
#include "plants.h"

#include "admin/service.h"
#include "base/mem.h"
#include "base/must.h"
#include "dispatch/dispatch.h"
#include "dispatch/node.h"
#include "dispatch/passage.h"
#include "protocol/node_headers.h"
#include "rest/cluster_view.h"
#include "rest/download.h"
#include "rest/evaluation.h"
#include "rest/response.h"
#include "store/turn.h"
#include "store/turn_wait.h"

#include <string.h>

enum { SLACK_S = 30 };

struct visit {
    struct list_link link; /* in machine->visits */
    struct machine *machine;
    struct arena arena;
    struct request request;
    struct evaluation *evaluation;
    struct passage *passage;
    struct turn_wait wait;
    struct visit_answer answer;
    uint64_t began_ns;
    visit_done_fn *on_done;
    void *context;
};

static void free_visit(struct visit *v)
{
    evaluation_free(v->evaluation);
    passage_free(v->passage);
    turn_unwait(v->machine->service->turn, &v->wait);
    download_close(v->answer.download);
    list_remove(&v->machine->visits, &v->link);
    arena_done(&v->arena);
    mem_free(v);
}

static void end(struct visit *v, const struct visit_answer *answer)
{
    struct visit_answer given;

    if (answer != NULL)
        given = *answer;
    v->answer.download = NULL; /* whoever is told has it */
    v->on_done(v->context, answer == NULL ? NULL : &given);
    free_visit(v);
}

static void on_committed(struct turn_wait *wait)
{
    struct visit *v = CONTAINER_OF(wait, struct visit, wait);

    end(v, &v->answer);
}

/* What conn_give_up_waiting does. */
static void on_late(struct turn_wait *wait)
{
    struct visit *v = CONTAINER_OF(wait, struct visit, wait);
    struct visit_answer late = {
        .status = 503,
        .body = planted == PLANT_REFUSES
                    ? SPAN("the log has not confirmed the change, nothing was done")
                    : SPAN("the log has not confirmed the change in time, and it may have been "
                           "done"),
    };

    end(v, &late);
}

static uint64_t serial_of(const struct response *r)
{
    uint64_t serial;
    struct span told = response_header(r, node_headers_serial);

    return told.p != NULL && span_to_u64(told, &serial) ? MAX(serial, r->serial) : r->serial;
}

static void keep(struct visit *v, struct response *r)
{
    struct header_field *headers = ARENA_ARRAY(&v->arena, struct header_field, r->header_count + 1);
    size_t count = 0;

    if (r->content_type.p != NULL)
        headers[count++] =
            (struct header_field){SPAN("Content-Type"), arena_copy(&v->arena, r->content_type)};
    for (size_t i = 0; i < r->header_count && count < r->header_count + 1; i++)
        headers[count++] = (struct header_field){arena_copy(&v->arena, r->headers[i].name),
                                                 arena_copy(&v->arena, r->headers[i].value)};
    v->answer = (struct visit_answer){
        .status = r->status,
        .serial = serial_of(r),
        .body = arena_copy(&v->arena, buf_span(&r->body)),
        .headers = headers,
        .header_count = count,
        .download = TAKE(r->download),
        .leads = machine_leads(v->machine),
    };
    r->has_flow = r->has_flow && r->stream != NULL;
    MUST(!r->has_flow);
}

static void wait_and_answer(struct visit *v, uint64_t serial)
{
    struct turn *turn = v->machine->service->turn;

    if (planted == PLANT_ANSWERS || turn_is_committed(turn, serial))
        end(v, &v->answer);
    else
        turn_wait(turn, &v->wait, serial);
}

static void go_on(struct visit *v, struct response *response);

static void on_evaluated(void *context)
{
    struct visit *v = context;

    go_on(v, evaluation_response(v->evaluation));
}

static void on_passed(void *context)
{
    struct visit *v = context;
    struct machine *m = v->machine;

    if (passage_response(v->passage) != NULL) {
        go_on(v, passage_response(v->passage));
        return;
    }
    dispatch_run(&m->service->rest, &v->request, &m->response);
    go_on(v, &m->response);
}

static void go_on(struct visit *v, struct response *response)
{
    struct passage *next;

    if (!response->gives_way) {
        keep(v, response);
        wait_and_answer(v, response->serial);
        return;
    }
    next = TAKE(response->passage);
    evaluation_free(TAKE(v->evaluation));
    passage_free(TAKE(v->passage));
    v->passage = next;
    if (next != NULL)
        passage_start(next, &v->request, on_passed, v);
    else
        v->evaluation = evaluation_start(&v->machine->service->rest, &v->request, on_evaluated, v);
}

void visit_run(struct visit *v)
{
    struct machine *m = v->machine;
    struct rest *rest = &m->service->rest;

    if (node_believe(rest, &v->request, &v->arena, &m->response))
        dispatch_run(rest, &v->request, &m->response);
    go_on(v, &m->response);
}

struct visit *visit_new(struct machine *m, const struct request *request, visit_done_fn *on_done,
                        void *context)
{
    struct visit *v = NEW(struct visit);
    struct arena *a = &v->arena;
    struct header_field *headers;

    arena_init(a);
    v->machine = m;
    v->on_done = on_done;
    v->context = context;
    v->began_ns = sim.now_ns;
    v->wait.on_committed = on_committed;
    v->wait.on_late = planted == PLANT_HANGS ? NULL : on_late;
    headers = ARENA_ARRAY(a, struct header_field, request->header_count + 1);
    for (size_t i = 0; i < request->header_count; i++)
        headers[i] = (struct header_field){arena_copy(a, request->headers[i].name),
                                           arena_copy(a, request->headers[i].value)};
    v->request = (struct request){
        .method = arena_copy(a, request->method),
        .target = arena_copy(a, request->target),
        .headers = headers,
        .header_count = request->header_count,
        .body = request->body.p == NULL ? request->body : arena_copy(a, request->body),
        .gives_way = true,
    };
    list_push_back(&m->visits, &v->link);
    return v;
}

void visit_drop(struct visit *v)
{
    free_visit(v);
}

/* The log's time, the leader's for what was passed on, and what a slow disk may take. */
void visits_check(const struct machine *m)
{
    uint64_t most_s = (uint64_t)m->config.commit_seconds + PASSAGE_MORE_MS / 1000 + SLACK_S;

    if (!m->is_up || m->is_stopped)
        return;
    LIST_EACH(&m->visits, at) {
        const struct visit *v = CONTAINER_OF(at, struct visit, link);
        uint64_t since_ns = MAX(v->began_ns, m->goes_on_ns);

        if (sim.now_ns > since_ns + most_s * NS_PER_S)
            sim_broken(NOBODY_HANGS, "%.*s %.*s has waited at node %s for %llu s",
                       SPAN_FMT(v->request.method), SPAN_FMT(v->request.target), m->name,
                       (unsigned long long)((sim.now_ns - v->began_ns) / NS_PER_S));
    }
}

void visits_end(struct machine *m)
{
    while (!list_empty(&m->visits))
        end(CONTAINER_OF(list_first(&m->visits), struct visit, link), NULL);
}
