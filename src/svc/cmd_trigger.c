/* trigger: raises an event. Data goes as the body, so that bytes stay what they are. */
#include "cli/catalogue.h"
#include "cli/show.h"
#include "cli/target.h"
#include "svc/command.h"

static int find_body(struct cli *cli, struct span event, struct ask *ask)
{
    struct payload payload;
    int status;

    if (!args_has(&cli->args, OPTION_DATA))
        return catalogue_example(cli, event, span_of(NULL, 0), &ask->body);
    status = catalogue_payload(cli, event, &payload);
    if (status != CLI_DONE)
        return status;
    ask->content_type = payload.content_type;
    return cli_read_value(cli, args_value(&cli->args, OPTION_DATA), &ask->body);
}

static int print_raised(struct cli *cli, const struct answer *answer)
{
    struct json_value event = json_first(answer->json);
    struct span count = show_value(cli, json_member(event, SPAN("Webhooks")));

    if (cli->json || !json_exists(event))
        return show_done(cli, answer);
    return cli_print_line(arena_printf(cli->arena, "%.*s  %.*s  matched %.*s webhook%s",
                                       SPAN_FMT(client_text(cli, event, "Id")),
                                       SPAN_FMT(client_text(cli, event, "Resource")),
                                       SPAN_FMT(count), span_eq(count, SPAN("1")) ? "" : "s"));
}

int run_trigger(struct cli *cli)
{
    struct ask ask = {.method = "POST"};
    struct answer answer;
    struct span event;
    int status = catalogue_find(cli, cli_operand(cli, 0), &event);

    if (status == CLI_DONE)
        status = find_body(cli, event, &ask);
    if (status != CLI_DONE)
        return status;
    if (!args_has(&cli->args, OPTION_DATA))
        cli_note(cli, "an example: %.*s", SPAN_FMT(ask.body));
    ask.target = target_with(cli->arena, "/Svc.Event/Resource=", event);
    status = client_ask(cli, &ask, &answer);
    return status == CLI_DONE ? print_raised(cli, &answer) : status;
}
