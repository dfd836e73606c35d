/* cluster: which nodes there are and who leads, handing over, making sure that a node is gone, and
 * beginning the log anew once etcd has lost it. A node tells what it knows of all, by etcd. Without
 * etcd each may know of itself alone: then they are compared by asking each of them. */
#include "base/clock.h"
#include "base/datetime.h"
#include "base/text.h"
#include "cli/show.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "svc/command.h"
#include "json/member.h"

/* A lease lasts a minute at most, and begins anew when etcd elects meanwhile. */
enum { POLL_MS = 100, SHOWN_MS = 1000, AGAIN_MS = 5000, WAIT_MS = 150000, HEAD_COLUMNS = 7 };

#define S_PER_MIN INT64_C(60)
#define S_PER_HOUR INT64_C(3600)
#define S_PER_DAY INT64_C(86400)
#define NS_PER_S INT64_C(1000000000)

/* What a node says of itself and of others. */
struct sight {
    struct json_value health;
    struct span cluster, node; /* names; the node is the one that was asked */
    struct entities nodes;
};

static int look(struct cli *cli, struct sight *out)
{
    struct ask ask = {.method = "GET", .target = SPAN("/Svc.Health")};
    struct json_value cluster;
    struct answer answer;
    int status = client_send(cli, &ask, &answer);

    if (status != CLI_DONE)
        return status;
    if (client_text(cli, answer.json, "Status").p == NULL) /* it is refused */
        return client_refuse(cli, &answer);
    cluster = json_member(answer.json, SPAN("Cluster"));
    if (json_type(cluster) != JSON_OBJECT)
        return cli_fail(CLI_REFUSED, "%.*s is no node of a cluster", SPAN_FMT(client_address(cli)));
    out->health = answer.json;
    out->cluster = client_text(cli, cluster, "Name");
    out->node = client_text(cli, cluster, "Node");
    return client_get_all(cli, SPAN("/Svc.Admin.Node/_"), &out->nodes);
}

static struct span name_of(struct cli *cli, struct json_value node)
{
    return client_text(cli, node, "Name");
}

/* The absent value: there is none. */
static struct json_value find_node(struct cli *cli, const struct entities *nodes,
                                   const char *member, struct span value)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (span_eq(client_text(cli, nodes->items[i], member), value))
            return nodes->items[i];
    return (struct json_value){NULL, NULL};
}

static struct span leader_of(struct cli *cli, const struct sight *sight)
{
    return name_of(cli, find_node(cli, &sight->nodes, "Role", SPAN("Leader")));
}

/* ---- status ---- */

/* `5m ago`, as --since takes it. */
static struct span age_of(struct cli *cli, struct json_value node)
{
    static const struct {
        int64_t up_to_s, unit_s;
        char letter;
    } units[] = {{2 * S_PER_MIN, 1, 's'},
                 {2 * S_PER_HOUR, S_PER_MIN, 'm'},
                 {2 * S_PER_DAY, S_PER_HOUR, 'h'},
                 {INT64_MAX, S_PER_DAY, 'd'}};
    struct instant since;
    int64_t age_s;
    size_t i = 0;

    if (!datetime_parse(client_text(cli, node, "Since"), &since))
        return SPAN("");
    age_s = MAX(clock_unix_ns() / NS_PER_S - since.seconds, 0);
    while (age_s >= units[i].up_to_s)
        i++;
    return arena_printf(cli->arena, "%lld%c ago", (long long)(age_s / units[i].unit_s),
                        units[i].letter);
}

/* Why the node that was asked does not do all of its work; empty: it does. */
static struct span trouble_of(struct cli *cli, const struct sight *sight)
{
    struct span reasons = show_value(cli, json_member(sight->health, SPAN("Reasons")));
    struct span trouble = show_value(cli, show_member(sight->health, "Cluster.Trouble"));

    if (reasons.n == 0 || trouble.n == 0)
        return reasons.n == 0 ? trouble : reasons;
    return arena_printf(cli->arena, "%.*s: %.*s", SPAN_FMT(reasons), SPAN_FMT(trouble));
}

static int print_head(struct cli *cli, const struct sight *sight)
{
    struct span leader = leader_of(cli, sight), trouble = trouble_of(cli, sight);
    struct buf b;

    buf_init_arena(&b, cli->arena);
    table_print_painted_pair(&b, cli->look, HEAD_COLUMNS, SPAN("Cluster"), sight->cluster,
                             PAINT_STRONG);
    table_print_painted_pair(&b, cli->look, HEAD_COLUMNS, SPAN("Leader"),
                             leader.n > 0 ? leader : SPAN("none"),
                             leader.n > 0 ? PAINT_GOOD : PAINT_BAD);
    table_print_painted_pair(&b, cli->look, HEAD_COLUMNS, SPAN("Health"),
                             trouble.n > 0 ? trouble : SPAN("ok"),
                             trouble.n > 0 ? PAINT_BAD : PAINT_GOOD);
    buf_add_char(&b, '\n');
    return cli_print(buf_span(&b));
}

/* `*` at the node that answered. */
static struct span mark_of(struct cli *cli, const struct sight *sight, struct json_value node)
{
    return span_eq(name_of(cli, node), sight->node) ? SPAN("*") : SPAN("");
}

static int print_nodes(struct cli *cli, const struct sight *sight)
{
    static const char *const headings[] = {"",    "Node",  "Role*",   "Applied",
                                           "Lag", "Since", "Version", "Url"};
    struct table *table = table_new(cli->arena, headings, ARRAY_LEN(headings));

    for (size_t i = 0; i < sight->nodes.count; i++) {
        struct json_value node = sight->nodes.items[i];

        table_add(table, mark_of(cli, sight, node));
        table_add(table, name_of(cli, node));
        table_add(table, client_text(cli, node, "Role"));
        table_add(table, show_value(cli, json_member(node, SPAN("Applied"))));
        table_add(table, show_value(cli, json_member(node, SPAN("Lag"))));
        table_add(table, age_of(cli, node));
        table_add(table, client_text(cli, node, "Version"));
        table_add(table, client_text(cli, node, "Url"));
    }
    return show_table(cli, table);
}

static int print_json(struct cli *cli, const struct sight *sight)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_char(&b, '{');
    member_add_json(&b, SPAN("Health"), json_text(sight->health));
    buf_add_str(&b, ",\"Nodes\":");
    show_add_array(&sight->nodes, &b);
    buf_add_char(&b, '}');
    return cli_print_line(buf_span(&b));
}

int run_cluster_status(struct cli *cli)
{
    struct sight sight;
    int status = look(cli, &sight);

    if (status == CLI_DONE)
        status = cli->json ? print_json(cli, &sight) : print_head(cli, &sight);
    if (status == CLI_DONE && !cli->json)
        status = print_nodes(cli, &sight);
    if (status == CLI_DONE && leader_of(cli, &sight).n == 0)
        return cli_fail(CLI_REFUSED, "no node leads");
    return status;
}

/* ---- what changes the cluster ---- */

static struct ask change_of(struct cli *cli, struct span node, struct span body)
{
    return (struct ask){.method = "PATCH",
                        .target = target_named(cli->arena, "Svc.Admin.Node", "Name", node),
                        .body = body};
}

/* What is waited for: the nodes at the target are as `is_so` says, with the name. */
struct wait {
    struct span target;
    const char *what;
    bool (*is_so)(struct cli *, struct json_value nodes, struct span name);
    struct span name;
    uint64_t began_ms;
    const struct ask *again; /* a change that is asked for every AGAIN_MS; NULL: none */
};

static bool look_once(struct cli *cli, const struct wait *wait, struct answer *out)
{
    const struct ask ask = {.method = "GET", .target = wait->target};
    struct span why;

    return client_try(cli, &ask, out, &why) && out->status == 200 &&
           wait->is_so(cli, out->json, wait->name);
}

/* What is refused now has been done, or can be no more: whoever waits sees what comes of it. */
static void ask_again(struct cli *cli, const struct ask *change)
{
    struct answer answer;
    struct span why;

    client_try(cli, change, &answer, &why);
}

/* Asks until the answer is as it is waited for; false: it is not within WAIT_MS. */
static bool wait_until(struct cli *cli, const struct wait *wait, struct answer *out)
{
    uint64_t waited_ms, again_ms = AGAIN_MS;
    bool done = false;

    while (!done && (waited_ms = clock_mono_ms() - wait->began_ms) < WAIT_MS) {
        done = look_once(cli, wait, out);
        if (done)
            break;
        if (waited_ms >= SHOWN_MS)
            cli_progress(cli, "waiting for %s, %llu s", wait->what,
                         (unsigned long long)waited_ms / 1000);
        if (wait->again != NULL && waited_ms >= again_ms) {
            ask_again(cli, wait->again);
            again_ms = waited_ms + AGAIN_MS;
        }
        stop_wait_ms(POLL_MS);
    }
    cli_progress(cli, NULL);
    return done;
}

static bool another_leads(struct cli *cli, struct json_value leaders, struct span but)
{
    struct span name = name_of(cli, json_first(leaders));

    return name.n > 0 && !span_eq(name, but);
}

/* Until the server says that a node leads, another one than `but`; the absent span: any. A node
 * that has led starts anew, and cannot be asked meanwhile. */
static int wait_for_leader(struct cli *cli, struct span but, const struct ask *again,
                           struct answer *out)
{
    const struct wait wait = {SPAN("/Svc.Admin.Node/Role=Leader"),
                              "a leader",
                              another_leads,
                              but,
                              clock_mono_ms(),
                              again};

    if (wait_until(cli, &wait, out))
        return CLI_DONE;
    return cli_fail(CLI_REFUSED, "no other node leads after %d s; `svc cluster status` tells more",
                    WAIT_MS / 1000);
}

/* `node a leads, after 1.20 s`. */
static struct span outcome_of(struct cli *cli, struct span node, const char *what,
                              uint64_t began_ms)
{
    uint64_t took_ms = clock_mono_ms() - began_ms;

    return arena_printf(cli->arena, "node %.*s %s, after %llu.%02llu s", SPAN_FMT(node), what,
                        (unsigned long long)took_ms / 1000,
                        (unsigned long long)took_ms % 1000 / 10);
}

static int print_leader(struct cli *cli, const struct answer *answer, uint64_t began_ms)
{
    if (cli->json)
        return show_body(answer->body);
    return cli_print_line(
        outcome_of(cli, name_of(cli, json_first(answer->json)), "leads", began_ms));
}

/* ---- step-down ---- */

/* Who is meant, by name: who leads next is not. */
static int find_who(struct cli *cli, struct span *out_name)
{
    struct sight sight;
    int status = look(cli, &sight);

    if (status != CLI_DONE)
        return status;
    *out_name = cli->args.operand_count > 0 ? cli_operand(cli, 0) : leader_of(cli, &sight);
    return out_name->n > 0 ? CLI_DONE : cli_fail(CLI_REFUSED, "no node leads");
}

int run_cluster_step_down(struct cli *cli)
{
    bool waits = args_has(&cli->args, OPTION_WAIT);
    struct span name;
    uint64_t began_ms = clock_mono_ms();
    struct answer answer;
    struct ask ask;
    int status = find_who(cli, &name);

    if (status != CLI_DONE)
        return status;
    ask = change_of(cli, name, SPAN("{\"Role\":\"Follower\"}"));
    status = client_send(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    /* What was passed on to the leader may be answered 503: it ends its connections. */
    if (answer.status >= 300 && !(waits && answer.status == 503))
        return client_refuse(cli, &answer);
    if (!waits)
        return show_done(cli, &answer);
    cli_note(cli, "%.*s", SPAN_FMT(answer.info));
    status = wait_for_leader(cli, name, NULL, &answer);
    return status == CLI_DONE ? print_leader(cli, &answer, began_ms) : status;
}

/* ---- remove ---- */

/* Whose server answers at its address. It is sent no key: nothing is known of who answers there. */
static bool lives(struct cli *cli, struct json_value node)
{
    const struct ask ask = {.method = "GET", .target = SPAN("/livez")};
    struct span url = client_text(cli, node, "Url"), why;
    struct err *e = settings_check_url(url);
    struct cli other = *cli;
    struct answer answer;
    bool answers;

    if (e != NULL) {
        err_free(e);
        return false;
    }
    other.client = client_new(&(struct settings){.url = url}, cli->arena);
    answers = client_try(&other, &ask, &answer, &why);
    client_free(other.client);
    return answers && answer.status == 200;
}

static int refuse_living(struct span name)
{
    return cli_fail(CLI_REFUSED, "node %.*s lives: stop its svcd first", SPAN_FMT(name));
}

/* It may be a node that has lost etcd, and with it sight of the others, that says so: only where
 * one leads is a node that is not in the list forgotten. */
static bool is_forgotten(struct cli *cli, struct json_value nodes, struct span name)
{
    bool one_leads = false;

    for (struct json_value node = json_first(nodes); json_exists(node);
         node = json_next(nodes, node)) {
        if (span_eq(name_of(cli, node), name))
            return false;
        one_leads = one_leads || span_eq(client_text(cli, node, "Role"), SPAN("Leader"));
    }
    return one_leads;
}

/* The node that is asked may be one that starts anew meanwhile, to follow or to lead. */
static bool wait_until_forgotten(struct cli *cli, struct span name, uint64_t began_ms)
{
    const struct wait wait = {SPAN("/Svc.Admin.Node/_/limit=-1"),
                              "the lease of a node to end",
                              is_forgotten,
                              name,
                              began_ms,
                              NULL};
    struct answer answer;

    return wait_until(cli, &wait, &answer);
}

static int print_removed(struct cli *cli, struct span name, struct span words)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    if (cli->json) {
        buf_add_char(&b, '{');
        member_add_text(&b, SPAN("Node"), name);
        member_add_bool(&b, SPAN("Removed"), true);
        buf_add_char(&b, '}');
    } else {
        text_add_shown(&b, words);
    }
    return cli_print_line(buf_span(&b));
}

/* `node` is absent where nobody led, and it was not in the list. */
static int refuse_remaining(struct cli *cli, struct json_value node, struct span name)
{
    if (!json_exists(node))
        return cli_fail(CLI_REFUSED,
                        "no node leads after %d s, and without one it is not known whether node "
                        "%.*s is gone; `svc cluster status` tells more",
                        WAIT_MS / 1000, SPAN_FMT(name));
    if (lives(cli, node)) /* it has been started again */
        return refuse_living(name);
    return cli_fail(CLI_REFUSED,
                    "node %.*s is still known after %d s: it may live where this cannot reach it; "
                    "`svc cluster status` tells more",
                    SPAN_FMT(name), WAIT_MS / 1000);
}

/* Nothing is deleted by force: what a node is known by ends with its lease, and not before, so that
 * one that lives is never taken for gone. */
int run_cluster_remove(struct cli *cli)
{
    struct span name = cli_operand(cli, 0);
    uint64_t began_ms = clock_mono_ms();
    struct json_value node;
    struct sight sight;
    int status = look(cli, &sight);

    if (status != CLI_DONE)
        return status;
    node = find_node(cli, &sight.nodes, "Name", name);
    if (!json_exists(node) && leader_of(cli, &sight).n > 0)
        return print_removed(cli, name,
                             arena_printf(cli->arena, "node %.*s is not in cluster %.*s",
                                          SPAN_FMT(name), SPAN_FMT(sight.cluster)));
    if (span_eq(name, sight.node) || (json_exists(node) && lives(cli, node)))
        return refuse_living(name);
    if (!wait_until_forgotten(cli, name, began_ms))
        return refuse_remaining(cli, node, name);
    return print_removed(cli, name, outcome_of(cli, name, "is forgotten", began_ms));
}

/* ---- restore ---- */

/* What a node at another address says of itself. */
static int ask_other(struct cli *cli, struct span url, struct json_value *out_node)
{
    struct cli other = *cli;
    struct sight sight;
    struct err *e = settings_check_url(url);
    int status;

    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    other.client = client_beside(cli, url);
    status = look(&other, &sight);
    client_free(other.client);
    if (status == CLI_DONE)
        *out_node = find_node(cli, &sight.nodes, "Name", sight.node);
    return status;
}

/* It is newer than what another node knows of it. */
static void put_node(struct cli *cli, struct entities *nodes, struct json_value node)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (span_eq(name_of(cli, nodes->items[i]), name_of(cli, node))) {
            nodes->items[i] = node;
            return;
        }
    nodes->items[nodes->count++] = node;
}

/* Without etcd nodes may not know of each other: those whose addresses were given are asked. */
static int ask_others(struct cli *cli, struct entities *nodes)
{
    size_t others = cli->args.operand_count;

    nodes->items = arena_grow(cli->arena, nodes->items, nodes->count * sizeof(*nodes->items),
                              (nodes->count + others) * sizeof(*nodes->items));
    for (size_t i = 0; i < others; i++) {
        struct json_value node;
        int status = ask_other(cli, cli_operand(cli, i), &node);

        if (status != CLI_DONE)
            return status;
        put_node(cli, nodes, node);
    }
    return CLI_DONE;
}

static int print_what_each_has(struct cli *cli, const struct sight *sight)
{
    static const char *const headings[] = {"", "Node", "Applied", "Url"};
    struct table *table = table_new(cli->arena, headings, ARRAY_LEN(headings));

    for (size_t i = 0; i < sight->nodes.count; i++) {
        struct json_value node = sight->nodes.items[i];

        table_add(table, mark_of(cli, sight, node));
        table_add(table, name_of(cli, node));
        table_add(table, show_value(cli, json_member(node, SPAN("Applied"))));
        table_add(table, client_text(cli, node, "Url"));
    }
    return show_table(cli, table);
}

static uint64_t applied_of(struct json_value node)
{
    uint64_t applied;

    return span_to_u64(json_text(json_member(node, SPAN("Applied"))), &applied) ? applied : 0;
}

/* From another than the furthest is not for a command that is given in a hurry. */
static int check_furthest(struct cli *cli, const struct sight *sight, uint64_t applied)
{
    for (size_t i = 0; i < sight->nodes.count; i++) {
        struct json_value node = sight->nodes.items[i];
        struct span name = name_of(cli, node), url = client_text(cli, node, "Url");

        if (applied_of(node) > applied)
            return cli_fail(CLI_REFUSED,
                            "node %.*s has %llu records that node %.*s lacks; restore from it: "
                            "svc --url %.*s cluster restore",
                            SPAN_FMT(name), (unsigned long long)(applied_of(node) - applied),
                            SPAN_FMT(sight->node), SPAN_FMT(url));
    }
    return CLI_DONE;
}

/* What is begun anew is said before it is asked for. */
static int confirm(struct cli *cli, const struct sight *sight, uint64_t applied)
{
    struct span leader = leader_of(cli, sight), question;
    int status = check_furthest(cli, sight, applied), printed;

    if (leader.n > 0)
        return cli_fail(CLI_REFUSED, "node %.*s leads: there is nothing to restore",
                        SPAN_FMT(leader));
    printed = cli->json ? CLI_DONE : print_what_each_has(cli, sight);
    if (printed != CLI_DONE || status != CLI_DONE)
        return printed != CLI_DONE ? printed : status;
    question =
        arena_printf(cli->arena,
                     "\nThe log of cluster %.*s begins anew behind what node %.*s has, up to "
                     "%llu. What another node has beyond it, seen above or not, is lost. "
                     "Begin it?",
                     SPAN_FMT(sight->cluster), SPAN_FMT(sight->node), (unsigned long long)applied);
    return cli_confirm(cli, question.p);
}

/* The node does it at once or not at all, as it does while a leader stands in etcd whose lease has
 * not ended. So it is told again, while nobody leads, of who has just said that it is wanted. */
int run_cluster_restore(struct cli *cli)
{
    struct sight sight;
    struct answer answer;
    struct ask ask;
    uint64_t applied, began_ms;
    int status = cli_check_asking(cli);

    if (status == CLI_DONE)
        status = look(cli, &sight);
    if (status == CLI_DONE)
        status = ask_others(cli, &sight.nodes);
    if (status != CLI_DONE)
        return status;
    applied = applied_of(find_node(cli, &sight.nodes, "Name", sight.node));
    status = confirm(cli, &sight, applied);
    if (status != CLI_DONE)
        return status;
    began_ms = clock_mono_ms();
    ask =
        change_of(cli, sight.node,
                  arena_printf(cli->arena, "{\"RestoreFrom\":%llu}", (unsigned long long)applied));
    status = client_send(cli, &ask, &answer);
    if (status == CLI_DONE && answer.status >= 300)
        return client_refuse(cli, &answer);
    if (status == CLI_DONE)
        status = wait_for_leader(cli, span_of(NULL, 0), &ask, &answer);
    if (status != CLI_DONE)
        return status;
    status = print_leader(cli, &answer, began_ms);
    cli_note(cli, "the others follow, or take a copy; `svc cluster status` shows how far they are");
    return status;
}
