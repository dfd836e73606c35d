/* events: what was raised, and what became of it. */
#include "base/text.h"
#include "cli/follow.h"
#include "cli/show.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "cli/webhooks.h"
#include "cli/width.h"
#include "svc/command.h"

/* What follows the event's Id: how many webhooks it matched, and of the payload what is left of the
 * line. */
static struct span line_of(struct cli *cli, struct json_value event)
{
    struct span webhooks = show_value(cli, json_member(event, SPAN("Webhooks")));
    struct span resource = client_text(cli, event, "Resource"), rest;
    size_t before = 8 + 2 + width_of(resource) + 2 + 36;
    struct buf line, tail;

    buf_init_arena(&line, cli->arena);
    buf_init_arena(&tail, cli->arena);
    show_add_event(cli, event, &line);
    buf_printf(&tail, "  webhooks: %.*s  ", SPAN_FMT(webhooks));
    text_add_shown(&tail, show_value(cli, json_member(event, SPAN("Payload"))));
    rest = buf_span(&tail);
    if (cli->look.columns > 0)
        rest = width_cut(rest, cli->look.columns > before ? cli->look.columns - before : 0);
    buf_add(&line, rest);
    return buf_span(&line);
}

static int on_event(void *arg, struct json_value event)
{
    struct cli whole = *(struct cli *)arg;
    struct arena a;
    bool printed;

    arena_init(&a);
    whole.arena = &a;
    if (whole.json)
        printed = cli_print_line(json_text(event));
    else
        printed = cli_print_line(line_of(&whole, event));
    arena_done(&a);
    return printed ? CLI_DONE : CLI_REFUSED;
}

int run_events_tail(struct cli *cli)
{
    struct follow follow = {
        .target = SPAN("/Svc.Event"),
        .after = args_value(&cli->args, OPTION_AFTER),
        .on_event = on_event,
        .arg = cli,
    };

    stop_watch();
    if (cli->look.columns > 0)
        cli_note(cli, "waiting for events; Ctrl-C ends it");
    return follow_run(cli, &follow);
}

static bool show_deliveries(struct cli *cli, const struct entities *deliveries)
{
    static const char *const columns[] = {
        "WebhookId=Webhook!",   "State*",      "Attempts", "LastStatus=Status*",
        "LastError=Last error", "Id=Delivery!"};

    return cli_print(SPAN("\n")) && show_entities(cli, deliveries, columns, ARRAY_LEN(columns));
}

int run_events_show(struct cli *cli)
{
    struct span id = cli_operand(cli, 0);
    struct json_value event;
    struct entities deliveries;
    struct buf target;
    int status;

    buf_init_arena(&target, cli->arena);
    target_add_named(&target, SPAN("Svc.Event"), SPAN("Id"), id);
    status = client_get_one(cli, buf_span(&target), "event", id, &event);
    if (status != CLI_DONE)
        return status;
    if (cli->json) {
        struct entities one = {&event, 1};

        return show_entities(cli, &one, NULL, 0) ? CLI_DONE : CLI_REFUSED;
    }
    if (!show_entity(cli, event))
        return CLI_REFUSED;
    buf_clear(&target);
    buf_add_str(&target, "/Svc.Admin.Delivery/EventId=");
    target_add_value(&target, id);
    status = client_get_all(cli, buf_span(&target), &deliveries);
    if (status == CLI_DONE && deliveries.count > 0 && !show_deliveries(cli, &deliveries))
        status = CLI_REFUSED;
    return status;
}

int run_events_resend(struct cli *cli)
{
    struct ask ask = {.method = "PATCH", .body = SPAN("{\"State\":\"Pending\"}")};
    struct answer answer;
    struct span id;
    struct buf target;
    int status;

    buf_init_arena(&target, cli->arena);
    buf_add_str(&target, "/Svc.Admin.Delivery/EventId=");
    target_add_value(&target, cli_operand(cli, 0));
    if (args_has(&cli->args, OPTION_WEBHOOK)) {
        status = webhook_id(cli, args_value(&cli->args, OPTION_WEBHOOK), &id);
        if (status != CLI_DONE)
            return status;
        buf_add_str(&target, "&WebhookId=");
        target_add_value(&target, id);
    }
    buf_add_str(&target, "/unsafe=true");
    ask.target = buf_span(&target);
    status = client_ask(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    return show_done(cli, &answer) ? CLI_DONE : CLI_REFUSED;
}
