/* Svc.Admin.Node: the nodes of the cluster that live, as the one that is asked knows them, and what
 * an administrator asks of a node: to let another one lead, or to be the one that a lost log goes
 * on from (docs/specification.md, section 15). There only on a node of a cluster.
 *
 * Both are begun here and end later: the node starts anew, or enters anew. So the answer leaves
 * first, and says 202. */
#include "admin/builtin.h"
#include "base/budget.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "query/shape.h"
#include "rest/cluster_view.h"
#include "rest/crud.h"
#include "rest/rendered.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "json/json.h"
#include "json/member.h"

enum { RETRY_AFTER_S = 2 }; /* a node tells its role each third of its lease, of 5 s */

static const struct span written_roles[] = {SPAN_INIT("Follower")};
static const struct enumeration written_role_names = {"Role", written_roles,
                                                      ARRAY_LEN(written_roles)};

static const struct property properties[] = {
    READ_ONLY_PROPERTY("Name", TYPE_STRING, 0, "Its name, Cluster.Node in its configuration"),
    READ_ONLY_PROPERTY("Url", TYPE_STRING, 0, "Where other nodes reach it"),
    {.name = SPAN_INIT("Role"),
     .type = TYPE_STRING,
     .values = &cluster_role_names,
     .written = &written_role_names,
     .meaning = SPAN_INIT("What it does; written as Follower it lets another node lead")},
    READ_ONLY_PROPERTY("Applied", TYPE_INTEGER, 0, "Serial of the last record that it has taken"),
    READ_ONLY_PROPERTY("Lag", TYPE_INTEGER, 0, "Records of the log that it has not taken"),
    READ_ONLY_PROPERTY("Since", TYPE_DATETIME, 0, "When it took its role, or was first seen in it"),
    READ_ONLY_PROPERTY("Version", TYPE_STRING, 0, "Of its program"),
    {.name = SPAN_INIT("RestoreFrom"),
     .type = TYPE_INTEGER,
     .flags = PROPERTY_SENT,
     .meaning = SPAN_INIT("Sent when etcd has lost the log, which then goes on from this node: "
                          "what Applied is")},
};

static const struct shape shape = {
    .properties = properties, .count = ARRAY_LEN(properties), .name = SPAN_INIT("Svc.Admin.Node")};

/* ---- what is shown ---- */

static struct span role_text(const struct cluster_node *node)
{
    return cluster_role_names.values[cluster_role_of(node)];
}

static void add_node(struct buf *b, const struct cluster_node *node, uint64_t end)
{
    buf_add_char(b, '{');
    member_add_text(b, SPAN("Name"), node->name);
    member_add_text(b, SPAN("Url"), node->url);
    member_add_text(b, SPAN("Role"), role_text(node));
    member_add_u64(b, SPAN("Applied"), node->applied);
    member_add_u64(b, SPAN("Lag"), end > node->applied ? end - node->applied : 0);
    member_add_time(b, SPAN("Since"), node->since_unix_ns);
    member_add_text(b, SPAN("Version"), node->version);
    buf_add_char(b, '}');
}

/* The log's end, as it was when the request looked. */
static void add_json(struct rendered *r, void *object, struct buf *b)
{
    const uint64_t *end = r->call->own;

    add_node(b, object, *end);
}

/* The view's own are gone when the loop goes on, and the request may take longer. */
static struct err *open_source(struct call *call)
{
    const struct cluster_view *view = cluster_look(call->rest->cluster);
    struct cluster_node *nodes = ARENA_ARRAY(call->arena, struct cluster_node, view->node_count);
    uint64_t *end = ARENA_NEW(call->arena, uint64_t);

    *end = view->end;
    call->own = end;
    for (size_t i = 0; i < view->node_count; i++) {
        nodes[i] = view->nodes[i];
        nodes[i].name = arena_copy(call->arena, nodes[i].name);
        nodes[i].url = arena_copy(call->arena, nodes[i].url);
        nodes[i].version = arena_copy(call->arena, nodes[i].version);
    }
    rendered_open_array(call, nodes, view->node_count, sizeof(*nodes), add_json);
    return NULL;
}

/* ---- what is asked of a node ---- */

struct wish {
    bool steps_down; /* else it restores */
    uint64_t from;
};

static struct err *read_role(struct json_value role, struct arena *a)
{
    if (json_type(role) == JSON_STRING && span_ieq(json_string(role, a), written_roles[0]))
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "Role can only be written as \"Follower\": another node is to lead");
}

static struct err *read_wish(struct json_value input, struct arena *a, struct wish *out_wish)
{
    struct json_value role = json_member_fold(input, SPAN("Role"));
    struct json_value from = json_member_fold(input, SPAN("RestoreFrom"));

    TRY(json_check_unique(input, true, a));
    TRY(schema_check_input(&shape, input, a));
    if (json_exists(role) == json_exists(from))
        return ERR(ERR_INVALID_ENTITY,
                   "a node is sent either Role or RestoreFrom, and %s of the two is there",
                   json_exists(role) ? "each" : "none");
    *out_wish = (struct wish){.steps_down = json_exists(role)};
    if (json_exists(role))
        return read_role(role, a);
    if (!span_to_u64(json_text(from), &out_wish->from))
        return ERR(ERR_INVALID_ENTITY, "RestoreFrom: should be the node's Applied, a serial");
    return NULL;
}

/* Of the others. */
static bool one_follows(const struct call *call, const struct cluster_node *but)
{
    const struct cluster_view *view = call->rest->cluster;

    for (size_t i = 0; i < view->node_count; i++)
        if (cluster_role_of(&view->nodes[i]) == CLUSTER_FOLLOWER &&
            !span_eq(view->nodes[i].name, but->name))
            return true;
    return false;
}

/* Those that live may follow soon: what they are is told with their leases. */
static struct err *nobody_follows(const struct call *call, const struct cluster_node *leader)
{
    const struct cluster_view *view = call->rest->cluster;
    struct err *e;
    struct buf b;

    buf_init_arena(&b, call->arena);
    for (size_t i = 0; i < view->node_count; i++)
        if (!span_eq(view->nodes[i].name, leader->name))
            buf_printf(&b, "%s '%.*s' is %.*s", b.n > 0 ? "," : "", SPAN_FMT(view->nodes[i].name),
                       SPAN_FMT(role_text(&view->nodes[i])));
    e = ERR(ERR_CONFLICT, "no other node follows '%.*s' that could lead then:%.*s",
            SPAN_FMT(leader->name), SPAN_FMT(b.n > 0 ? buf_span(&b) : SPAN(" no other one lives")));
    if (b.n > 0)
        err_set_retry_after(e, RETRY_AFTER_S);
    return e;
}

/* *out_begins: there is something to do. */
static struct err *check_step_down(const struct call *call, const struct cluster_node *node,
                                   bool *out_begins)
{
    enum cluster_role role = cluster_role_of(node);

    *out_begins = role == CLUSTER_LEADER;
    if (role == CLUSTER_FOLLOWER)
        return NULL;
    if (role != CLUSTER_LEADER)
        return ERR(ERR_CONFLICT, "node '%.*s' is %.*s: it does not lead", SPAN_FMT(node->name),
                   SPAN_FMT(role_text(node)));
    if (!node->is_self || call->rest->cluster->step_down == NULL)
        return ERR(ERR_CONFLICT, "node '%.*s' begins or ceases to lead just now",
                   SPAN_FMT(node->name));
    if (!one_follows(call, node))
        return nobody_follows(call, node);
    return NULL;
}

/* What it has beyond this one would be lost. As far as that is known: etcd has lost much. */
static const struct cluster_node *further_than(const struct cluster_view *view,
                                               const struct cluster_node *node)
{
    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].applied > node->applied)
            return &view->nodes[i];
    return NULL;
}

static struct err *check_restore(const struct call *call, const struct cluster_node *node,
                                 uint64_t from)
{
    const struct cluster_view *view = call->rest->cluster;
    const struct cluster_node *further = further_than(view, node);

    if (view->trouble != REPLICA_LOG_LOST || view->restore == NULL)
        return ERR(ERR_CONFLICT, "the log in etcd is not lost: there is nothing to restore");
    if (!node->is_self)
        return ERR(ERR_CONFLICT,
                   "this is node '%.*s': who is to restore the log is asked itself, '%.*s' at %.*s",
                   SPAN_FMT(view->node), SPAN_FMT(node->name), SPAN_FMT(node->url));
    if (from != node->applied)
        return ERR(ERR_CONFLICT, "node '%.*s' is at %llu, and RestoreFrom is %llu",
                   SPAN_FMT(node->name), (unsigned long long)node->applied,
                   (unsigned long long)from);
    if (further != NULL)
        return ERR(ERR_CONFLICT, "node '%.*s' lives and is at %llu, which is further",
                   SPAN_FMT(further->name), (unsigned long long)further->applied);
    return NULL;
}

static void answer(struct call *call, const struct cluster_node *node, int status, const char *info)
{
    struct span text;
    struct buf b;

    buf_init_arena(&b, call->arena);
    add_node(&b, node, call->rest->cluster->end);
    text = buf_span(&b);
    response_add_header(call->response, SPAN("Svc-info"),
                        arena_printf(call->arena, "node '%.*s' %s", SPAN_FMT(node->name), info));
    crud_add_text_tag(call, text, 0);
    crud_answer_changed(call, status, NULL, &text, 1);
}

static struct err *step_down(struct call *call, const struct cluster_node *node)
{
    const struct cluster_view *view = call->rest->cluster;
    bool begins;

    TRY(check_step_down(call, node, &begins));
    answer(call, node, begins ? 202 : 200,
           begins ? "lets another node lead" : "does not lead: nothing was done");
    TRY(budget_check());
    if (begins)
        view->step_down(view->context);
    return NULL;
}

static struct err *restore(struct call *call, const struct cluster_node *node, uint64_t from)
{
    const struct cluster_view *view = call->rest->cluster;

    TRY(check_restore(call, node, from));
    answer(call, node, 202, "begins the cluster's log anew behind its journal");
    TRY(budget_check());
    view->restore(view->context);
    return NULL;
}

static struct err *patch(struct call *call)
{
    const struct cluster_node *node;
    struct query_result found;
    struct json_value input;
    struct wish wish;

    TRY(crud_select(call, true, &found));
    TRY(crud_body_object(call, &input));
    TRY(read_wish(input, call->arena, &wish));
    if (found.count == 0)
        return ERR(ERR_UNKNOWN_ENTITY, "no node that lives matches");
    if (found.count > 1)
        return ERR(ERR_AMBIGUOUS_MATCH, "%zu nodes match, and one alone is asked", found.count);
    TRY(crud_check_preconditions(call, &found.items[0]));
    node = found.items[0].object;
    return wish.steps_down ? step_down(call, node) : restore(call, node, wish.from);
}

static const struct resource_ops ops = {
    .open = open_source,
    .patch = patch,
    .begins = true,
    .unled_methods = METHOD_BIT(METHOD_PATCH),
};

const struct resource_definition res_node = {
    .name = SPAN_INIT("Svc.Admin.Node"),
    .description = SPAN_INIT("The nodes of the cluster that live; on a node of a cluster alone"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_PATCH),
    .shape = &shape,
    .ops = &ops,
};
