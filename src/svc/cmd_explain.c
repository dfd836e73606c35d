/* explain: why a webhook got an event, or did not, condition by condition. */
#include "cli/show.h"
#include "cli/webhooks.h"
#include "svc/command.h"

static bool print_one(struct cli *cli, struct json_value explained)
{
    static const char *const headings[] = {"Condition", "Value", "Holds*"};
    struct json_value conditions = json_member(explained, SPAN("Conditions"));
    bool matches = json_is_true(json_member(explained, SPAN("Matches")));
    struct table *table = table_new(cli->arena, headings, ARRAY_LEN(headings));
    struct buf line;

    buf_init_arena(&line, cli->arena);
    table_add_painted(&line, cli->look, matches ? PAINT_GOOD : PAINT_BAD,
                      matches ? SPAN("matches") : SPAN("does not match"));
    buf_printf(&line, "  %.*s", SPAN_FMT(client_text(cli, explained, "Reason")));
    if (!cli_print_line(buf_span(&line)) ||
        !cli_print_line(client_text(cli, explained, "Selector")))
        return false;
    for (struct json_value c = json_first(conditions); json_exists(c);
         c = json_next(conditions, c)) {
        table_add(table, show_value(cli, json_member(c, SPAN("Condition"))));
        table_add(table, json_text(json_member(c, SPAN("Value"))));
        table_add(table, show_value(cli, json_member(c, SPAN("Holds"))));
    }
    return show_table(cli, table);
}

int run_explain(struct cli *cli)
{
    struct ask ask = {.method = "POST", .target = SPAN("/Svc.Explain")};
    struct answer answer;
    struct span id;
    struct buf body;
    int status = webhook_id(cli, cli_operand(cli, 1), &id);

    if (status != CLI_DONE)
        return status;
    buf_init_arena(&body, cli->arena);
    buf_add_str(&body, "{\"EventId\":");
    json_add_string(&body, cli_operand(cli, 0));
    buf_add_str(&body, ",\"WebhookId\":");
    json_add_string(&body, id);
    buf_add_char(&body, '}');
    ask.body = buf_span(&body);
    status = client_ask(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    if (cli->json)
        return show_body(answer.body) ? CLI_DONE : CLI_REFUSED;
    for (struct json_value e = json_first(answer.json); json_exists(e);
         e = json_next(answer.json, e))
        if (!print_one(cli, e))
            return CLI_REFUSED;
    return CLI_DONE;
}
