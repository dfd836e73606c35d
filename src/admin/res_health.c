/* Svc.Health: for load balancers. 200 as long as the service does all of its work; 503 with the
 * reasons when it does not, or is about to end (docs/specification.md, section 8). */
#include "admin/builtin.h"
#include "admin/service.h"
#include "base/mem.h"
#include "journal/journal.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "rest/cluster_view.h"
#include "rest/response.h"
#include "store/turn.h"
#include "json/json.h"
#include "json/member.h"

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

/* What changes meet on this node. */
static struct span cluster_reason(const struct service *s)
{
    const struct cluster_view *c = s->rest.cluster;

    if (c == NULL)
        return span_of(NULL, 0);
    if (cluster_look(c)->stuck.n > 0)
        return SPAN("what the cluster's log has is not taken");
    if (c->trouble != REPLICA_NO_TROUBLE)
        return span_str(replica_trouble_text(c->trouble));
    if (c->held_back.n > 0)
        return SPAN("a node does not know what the leader is to write");
    if (c->is_late)
        return SPAN("the cluster's log does not confirm changes");
    return c->leads || c->leader_url.n > 0 ? span_of(NULL, 0)
                                           : SPAN("no leader of the cluster is known");
}

static size_t find_reasons(const struct service *s, struct span reasons[REASONS_MOST])
{
    const struct span all[] = {
        s->is_draining ? SPAN("shutting down") : span_of(NULL, 0),
        journal_reason(s),
        memory_reason(s),
        cluster_reason(s),
    };
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].p != NULL)
            reasons[count++] = all[i];
    return count;
}

static struct span trouble_of(const struct cluster_view *c)
{
    if (c->stuck.n > 0)
        return c->stuck;
    return c->trouble == REPLICA_NO_TROUBLE && c->held_back.n > 0 ? c->held_back : c->trouble_why;
}

/* A server that is alone says nothing of it. */
static void add_cluster(struct buf *b, const struct cluster_view *c)
{
    const struct cluster_node *self;

    if (c == NULL)
        return;
    self = cluster_self(c);
    json_add_plain_name(b, SPAN("Cluster"));
    buf_add_char(b, '{');
    member_add_text(b, SPAN("Name"), c->name);
    member_add_text(b, SPAN("Node"), c->node);
    member_add_text(b, SPAN("Role"),
                    span_str(replica_role_text(self == NULL ? REPLICA_ENTERING : self->role)));
    member_add_text(b, SPAN("Leader"), c->leads ? c->url : c->leader_url);
    member_add_text(b, SPAN("Trouble"), trouble_of(c));
    buf_add_char(b, '}');
}

static struct err *get(struct call *call)
{
    struct response *response = call->response;
    struct buf *b = &response->body;
    struct span reasons[REASONS_MOST];
    size_t count = find_reasons(service_of(call), reasons);

    response->status = count == 0 ? 200 : 503;
    response->content_type = SPAN("application/json");
    buf_add_char(b, '{');
    member_add_text(b, SPAN("Status"), count == 0 ? SPAN("ok") : SPAN("failing"));
    if (count > 0)
        buf_add_str(b, ",\"Reasons\":[");
    for (size_t i = 0; i < count; i++) {
        json_add_comma(b);
        json_add_string(b, reasons[i]);
    }
    if (count > 0)
        buf_add_char(b, ']');
    add_cluster(b, call->rest->cluster);
    buf_add_char(b, '}');
    return NULL;
}

static const struct property answered_properties[] = {
    READ_ONLY_PROPERTY("Status", TYPE_STRING, PROPERTY_REQUIRED, "ok, or failing"),
    {.name = SPAN_INIT("Reasons"),
     .type = TYPE_ARRAY,
     .flags = PROPERTY_READ_ONLY | PROPERTY_REQUIRED,
     .elements = TYPE_STRING,
     .meaning = SPAN_INIT("Why it fails, in words; only then")},
    {.name = SPAN_INIT("Cluster"),
     .type = TYPE_OBJECT,
     .flags = PROPERTY_READ_ONLY,
     .meaning =
         SPAN_INIT("On a node of a cluster: its Name, this Node, its Role, the Leader's URL, "
                   "or empty, and the Trouble with etcd in words, or empty")},
};
static const struct shape answered = {.properties = answered_properties,
                                      .count = ARRAY_LEN(answered_properties)};

static const struct resource_ops ops = {.get = get, .answered = &answered};

const struct resource_definition res_health = {
    .name = SPAN_INIT("Svc.Health"),
    .description = SPAN_INIT("Whether the service does its work: 200, or 503 with the reasons"),
    .kind = KIND_BINARY,
    .content_type = SPAN_INIT("application/json"),
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
