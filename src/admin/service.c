/* What the service does as a whole once it is made, and the exact reverse of its set-up. */
#include "admin/service.h"

#include "admin/builtin.h"
#include "base/mem.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "hooks/delivery.h"
#include "journal/journal.h"
#include "rest/metrics.h"
#include "rest/stream.h"
#include "store/store.h"
#include "store/turn.h"

static void on_journal_failed(void *context, const char *why)
{
    struct service *s = context;

    mem_free(s->failed);
    s->failed = mem_string(span_str(why));
    deliveries_stop(s->hooks.deliveries);
    if (s->on_failed != NULL)
        s->on_failed(s->on_failed_context);
}

void service_join_cluster(struct service *s)
{
    resources_add_builtin(s->rest.resources, &res_node, s);
}

struct err *service_replay(struct service *s, const struct turn_options *options)
{
    turn_on_failed(s->turn, on_journal_failed, s);
    TRY(turn_open(s->turn, options));
    journal_time_commits(turn_journal(s->turn), &s->metrics->journal_sync);
    return NULL;
}

void service_start(struct service *s)
{
    hooks_start(&s->hooks);
}

void service_drain(struct service *s)
{
    s->is_draining = true;
    api_keys_write_uses(s->rest.api_keys);
    streams_drain(s->rest.streams);
    deliveries_stop(s->hooks.deliveries);
}

void service_free(struct service *s)
{
    if (s == NULL)
        return;
    turn_settle(s->turn);
    hooks_stop(&s->hooks);
    fetcher_free(s->fetcher);
    resolver_free(s->resolver);
    hooks_done(&s->hooks);
    dispatch_done(&s->rest);
    rest_done(&s->rest);
    turn_free(s->turn);
    store_free(s->store);
    mem_free(s->metrics);
    egress_done(s->egress);
    mem_free(s->egress);
    mem_free(s->failed);
    mem_free(s);
}
