/* Svc.Health: for load balancers. 200 as long as the service does all of its work; 503 with the
 * reasons when it does not, or is about to end (docs/specification.md, section 8). */
#include "admin/builtin.h"
#include "admin/service.h"
#include "base/json.h"
#include "base/mem.h"
#include "journal/journal.h"
#include "rest/response.h"
#include "rest/schema.h"
#include "store/turn.h"

enum { REASONS_MOST = 4 };

static struct span journal_reason(const struct service *s)
{
    struct journal_stats stats;

    journal_stats(turn_journal(s->turn), &stats);
    if (stats.failed)
        return SPAN("the journal has failed");
    if (stats.full)
        return SPAN("the disk is full");
    return span_of(NULL, 0);
}

static struct span memory_reason(const struct service *s)
{
    int64_t most = s->limits.memory_bytes;

    return most != 0 && mem_bytes() > (size_t)most ? SPAN("the limit MemoryBytes is reached")
                                                   : span_of(NULL, 0);
}

static size_t find_reasons(const struct service *s, struct span reasons[REASONS_MOST])
{
    const struct span all[] = {
        s->is_draining ? SPAN("shutting down") : span_of(NULL, 0),
        journal_reason(s),
        memory_reason(s),
    };
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].p != NULL)
            reasons[count++] = all[i];
    return count;
}

static struct err *get(struct call *call)
{
    struct response *response = call->response;
    struct buf *b = &response->body;
    struct span reasons[REASONS_MOST];
    size_t count = find_reasons(service_of(call), reasons);

    response->status = count == 0 ? 200 : 503;
    response->content_type = SPAN("application/json");
    if (count == 0) {
        buf_add_str(b, "{\"Status\":\"ok\"}");
        return NULL;
    }
    buf_add_str(b, "{\"Status\":\"failing\",\"Reasons\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        json_add_string(b, reasons[i]);
    }
    buf_add_str(b, "]}");
    return NULL;
}

static const struct resource_ops ops = {.get = get};

const struct resource_definition res_health = {
    .name = SPAN_INIT("Svc.Health"),
    .description = SPAN_INIT("Whether the service does its work: 200, or 503 with the reasons"),
    .kind = KIND_BINARY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
