/* get, report, delete, post, patch, put: the interface as it is, for what has no command of its
 * own. */
#include "cli/client.h"
#include "cli/show.h"
#include "cli/target.h"
#include "svc/command.h"

#include <string.h>

static int request(struct cli *cli, const char *method, struct answer *out)
{
    struct ask ask = {.method = method};
    struct buf target;
    int status;

    if (span_find(cli_operand(cli, 0), SPAN("://")) != SIZE_MAX)
        return cli_fail(CLI_MISUSE,
                        "'%.*s' is a URL; name the server by --url, and the resource "
                        "here: /Svc.Event",
                        SPAN_FMT(cli_operand(cli, 0)));
    buf_init_arena(&target, cli->arena);
    target_add_typed(&target, cli_operand(cli, 0));
    ask.target = buf_span(&target);
    if (args_has(&cli->args, OPTION_DATA)) {
        status = cli_read_value(cli, args_value(&cli->args, OPTION_DATA), &ask.body);
        if (status != CLI_DONE)
            return status;
        ask.body = arena_copy(cli->arena, ask.body);
    }
    return client_ask(cli, &ask, out);
}

/* What the query form of a URI is answered where there is nothing. */
static bool is_empty(struct json_value array)
{
    return json_type(array) == JSON_ARRAY && json_count(array) == 0;
}

int run_get(struct cli *cli)
{
    struct answer answer;
    int status = request(cli, "GET", &answer);

    if (status != CLI_DONE)
        return status;
    if (!cli->json && (answer.status == 204 || is_empty(answer.json))) {
        cli_note(cli, "nothing was found");
        return CLI_DONE;
    }
    if (cli->json || !json_exists(answer.json))
        status = show_body(answer.body);
    else
        status = show_any(cli, answer.json);
    if (answer.pager.p != NULL)
        cli_note(cli, "there are more: svc get '%.*s'", SPAN_FMT(answer.pager));
    return status;
}

int run_report(struct cli *cli)
{
    struct answer answer;
    int status = request(cli, "REPORT", &answer);
    struct json_value count;

    if (status != CLI_DONE)
        return status;
    count = json_member(json_first(answer.json), SPAN("Count"));
    if (cli->json || !json_exists(count))
        return show_body(answer.body);
    return cli_print_line(json_text(count));
}

int run_change(struct cli *cli)
{
    const char *method = cli->command->method;
    struct answer answer;
    int status = request(cli, method, &answer);

    if (status == CLI_DONE && !cli->json && json_type(answer.json) == JSON_ARRAY &&
        strcmp(method, "DELETE") != 0)
        status = show_any(cli, answer.json);
    return status == CLI_DONE ? show_done(cli, &answer) : status;
}
