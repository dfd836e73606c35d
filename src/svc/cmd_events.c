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
    int status;

    arena_init(&a);
    whole.arena = &a;
    status = cli_print_line(whole.json ? json_text(event) : line_of(&whole, event));
    arena_done(&a);
    return status;
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

static struct span deliveries_of(struct cli *cli, struct span event_id)
{
    return target_with(cli->arena, "/Svc.Admin.Delivery/EventId=", event_id);
}

int run_events_show(struct cli *cli)
{
    static const char *const columns[] = {
        "WebhookId=Webhook!",   "State*",      "Attempts", "LastStatus=Status*",
        "LastError=Last error", "Id=Delivery!"};
    struct span id = cli_operand(cli, 0), target = target_named(cli->arena, "Svc.Event", "Id", id);
    struct json_value event;
    struct entities deliveries;
    int status = client_get_one(cli, target, "event", id, &event);

    if (status == CLI_DONE)
        status = show_entity(cli, event);
    if (status != CLI_DONE || cli->json)
        return status;
    status = client_get_all(cli, deliveries_of(cli, id), &deliveries);
    if (status != CLI_DONE || deliveries.count == 0)
        return status;
    return show_more(cli, &deliveries, columns, ARRAY_LEN(columns));
}

int run_events_resend(struct cli *cli)
{
    struct ask ask = {.method = "PATCH", .body = SPAN("{\"State\":\"Pending\"}")};
    struct span target = deliveries_of(cli, cli_operand(cli, 0)), id;

    if (args_has(&cli->args, OPTION_WEBHOOK)) {
        int status = webhook_id(cli, args_value(&cli->args, OPTION_WEBHOOK), &id);

        if (status != CLI_DONE)
            return status;
        target = target_with(cli->arena,
                             arena_printf(cli->arena, "%.*s&WebhookId=", SPAN_FMT(target)).p, id);
    }
    ask.target = arena_printf(cli->arena, "%.*s/unsafe=true", SPAN_FMT(target));
    return show_asked(cli, &ask);
}
