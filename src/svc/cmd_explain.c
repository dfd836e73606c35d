/* explain: why a webhook got an event, or did not, condition by condition. */
#include "cli/show.h"
#include "cli/webhooks.h"
#include "svc/command.h"
#include "json/member.h"

static int print_one(struct cli *cli, struct json_value explained)
{
    static const char *const headings[] = {"Condition", "Value", "Holds*"};
    struct json_value conditions = json_member(explained, SPAN("Conditions"));
    bool matches = json_is_true(json_member(explained, SPAN("Matches")));
    struct table *table = table_new(cli->arena, headings, ARRAY_LEN(headings));
    struct buf line;
    int status;

    buf_init_arena(&line, cli->arena);
    table_add_painted(&line, cli->look, matches ? PAINT_GOOD : PAINT_BAD,
                      matches ? SPAN("matches") : SPAN("does not match"));
    buf_printf(&line, "  %.*s", SPAN_FMT(client_text(cli, explained, "Reason")));
    status = cli_print_line(buf_span(&line));
    if (status == CLI_DONE)
        status = cli_print_line(client_text(cli, explained, "Selector"));
    if (status != CLI_DONE)
        return status;
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
    buf_add_char(&body, '{');
    member_add_text(&body, SPAN("EventId"), cli_operand(cli, 0));
    member_add_text(&body, SPAN("WebhookId"), id);
    buf_add_char(&body, '}');
    ask.body = buf_span(&body);
    status = client_ask(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    if (cli->json)
        return show_body(answer.body);
    for (struct json_value e = json_first(answer.json); status == CLI_DONE && json_exists(e);
         e = json_next(answer.json, e))
        status = print_one(cli, e);
    return status;
}
