/* webhooks: what there is, making one, trying one out, pausing, and what else is done to one. */
#include "base/clock.h"
#include "base/datetime.h"
#include "cli/catalogue.h"
#include "cli/show.h"
#include "cli/signature.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "cli/webhooks.h"
#include "svc/command.h"
#include "json/member.h"

enum { TEST_POLL_MS = 200, TEST_BEYOND_MS = 5000, TIMEOUT_SECONDS = 30 };

/* ---- list, show ---- */

/* What needs somebody: nothing succeeds, the receiver asked to wait, or the server has paused it.
 */
static bool is_failing(struct cli *cli, struct json_value webhook)
{
    struct span state = client_text(cli, show_member(webhook, "Status"), "State");

    return span_eq(state, SPAN("Failing")) || span_eq(state, SPAN("HeldBack")) ||
           client_text(cli, webhook, "ErrorMessage").p != NULL;
}

int run_webhooks_list(struct cli *cli)
{
    static const char *const columns[] = {"Id!",
                                          "Label",
                                          "Status.State=State*",
                                          "EventSelector|EventSelectors=Events",
                                          "Destination",
                                          "Status.LastError=Last error",
                                          "Status.SuccessRate%=Success",
                                          "Status.Pending=Pending",
                                          "Status.Waiting=Waiting"};
    struct entities all;
    size_t kept = 0;
    int status = client_get_all(cli, SPAN("/Svc.Admin.Webhook/_/add=Status"), &all);

    if (status != CLI_DONE)
        return status;
    for (size_t i = 0; i < all.count; i++)
        if (!args_has(&cli->args, OPTION_FAILING) || is_failing(cli, all.items[i]))
            all.items[kept++] = all.items[i];
    all.count = kept;
    if (kept == 0)
        cli_note(cli, args_has(&cli->args, OPTION_FAILING) ? "no webhook fails"
                                                           : "there are no webhooks");
    return show_entities(cli, &all, columns, ARRAY_LEN(columns));
}

static int show_attempts(struct cli *cli, struct span id)
{
    static const char *const columns[] = {"Time",    "StatusCode=Status*", "EventId=Event!",
                                          "Attempt", "DurationMs=ms",      "Error"};
    struct answer answer;
    struct entities latest = {NULL, 0, 0};
    int status = client_get(
        cli,
        arena_printf(cli->arena, "/Svc.Admin.WebhookLog/WebhookId=%.*s/offset=-5", SPAN_FMT(id)),
        &answer);

    if (status != CLI_DONE || !json_exists(answer.json))
        return status;
    client_add_entities(cli, answer.json, &latest);
    return show_more(cli, &latest, columns, ARRAY_LEN(columns));
}

int run_webhooks_show(struct cli *cli)
{
    struct json_value webhook;
    int status = webhook_find(cli, cli_operand(cli, 0), &webhook);

    if (status == CLI_DONE)
        status = show_entity(cli, webhook);
    if (status != CLI_DONE || cli->json)
        return status;
    return show_attempts(cli, client_text(cli, webhook, "Id"));
}

/* ---- add ---- */

static void add_selectors(struct cli *cli, struct buf *body)
{
    const struct span *selectors = args_values(&cli->args, OPTION_EVENTS, cli->arena);
    size_t count = args_count(&cli->args, OPTION_EVENTS);

    if (count == 1) {
        member_add_text(body, SPAN("EventSelector"), selectors[0]);
        return;
    }
    buf_add_str(body, ",\"EventSelectors\":[");
    for (size_t i = 0; i < count; i++) {
        json_add_comma(body);
        json_add_string(body, selectors[i]);
    }
    buf_add_char(body, ']');
}

int run_webhooks_add(struct cli *cli)
{
    struct ask ask = {.method = "POST", .target = SPAN("/Svc.Admin.Webhook")};
    struct answer answer;
    struct buf body, secret;
    int status;

    buf_init_arena(&body, cli->arena);
    buf_init_arena(&secret, cli->arena);
    buf_add_char(&body, '{');
    member_add_text(&body, SPAN("Destination"), cli_operand(cli, 0));
    add_selectors(cli, &body);
    if (args_has(&cli->args, OPTION_LABEL))
        member_add_text(&body, SPAN("Label"), args_value(&cli->args, OPTION_LABEL));
    if (args_has(&cli->args, OPTION_SIGN)) {
        signature_add_secret(&secret);
        buf_printf(&body, ",\"Signing\":{\"Secrets\":[\"%.*s\"]}", SPAN_FMT(buf_span(&secret)));
    }
    buf_add_char(&body, '}');
    ask.body = buf_span(&body);
    status = client_ask(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    if (!cli->json && json_exists(answer.json))
        status = show_any(cli, answer.json);
    if (status == CLI_DONE)
        status = show_done(cli, &answer);
    if (status == CLI_DONE && secret.n > 0)
        (void)cli_fail(CLI_DONE, "the signing secret, which is not shown again: %.*s",
                       SPAN_FMT(buf_span(&secret)));
    return status;
}

/* ---- test ---- */

static int find_event(struct cli *cli, struct json_value webhook, struct span *out_event,
                      struct span *out_conditions)
{
    struct span selector = client_text(cli, webhook, "EventSelector");

    if (selector.p == NULL)
        selector =
            json_string(json_first(json_member(webhook, SPAN("EventSelectors"))), cli->arena);
    target_split_selector(selector, out_event, out_conditions);
    if (span_ends(*out_event, SPAN("*")))
        return catalogue_first(cli, *out_event, out_event);
    return CLI_DONE;
}

/* Raises the event for the webhook alone. */
static int raise_for(struct cli *cli, struct json_value webhook, struct json_value *out_event)
{
    struct ask ask = {.method = "POST", .target = SPAN("/Svc.Event")};
    struct answer answer;
    struct span event, conditions, payload;
    struct buf body;
    int status = find_event(cli, webhook, &event, &conditions);

    if (status == CLI_DONE && args_has(&cli->args, OPTION_DATA))
        status = cli_read_value(cli, args_value(&cli->args, OPTION_DATA), &payload);
    else if (status == CLI_DONE)
        status = catalogue_example(cli, event, conditions, &payload);
    if (status != CLI_DONE)
        return status;
    buf_init_arena(&body, cli->arena);
    buf_add_char(&body, '{');
    member_add_text(&body, SPAN("Resource"), event);
    member_add_text(&body, SPAN("WebhookId"), client_text(cli, webhook, "Id"));
    member_add_json(&body, SPAN("Payload"), payload);
    buf_add_char(&body, '}');
    ask.body = buf_span(&body);
    status = client_ask(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    *out_event = json_first(answer.json);
    if (span_eq(json_text(json_member(*out_event, SPAN("Webhooks"))), SPAN("0")))
        return cli_fail(CLI_REFUSED, "its selector does not find %.*s; give --data that it finds",
                        SPAN_FMT(payload));
    cli_note(cli, "%.*s %.*s", SPAN_FMT(event), SPAN_FMT(payload));
    return CLI_DONE;
}

static int64_t timeout_ms_of(struct json_value webhook)
{
    struct json_value seconds = show_member(webhook, "Delivery.TimeoutSeconds");
    int64_t number;

    if (!span_to_i64(span_sub(json_text(seconds), 0, span_find_char(json_text(seconds), '.', 0)),
                     &number))
        number = TIMEOUT_SECONDS;
    return (number + 1) * 1000 + TEST_BEYOND_MS;
}

/* Waits for the entry of the first attempt. */
static int wait_for_attempt(struct cli *cli, struct json_value webhook, struct span event_id,
                            struct json_value *out_entry)
{
    uint64_t end = clock_mono_ms() + (uint64_t)timeout_ms_of(webhook);
    struct span target =
        arena_printf(cli->arena, "/Svc.Admin.WebhookLog/EventId=%.*s/limit=1", SPAN_FMT(event_id));

    while (clock_mono_ms() < end && !stop_is_asked()) {
        struct answer answer;
        int status = client_get(cli, target, &answer);

        if (status != CLI_DONE)
            return status;
        *out_entry = json_first(answer.json);
        if (json_exists(*out_entry))
            return CLI_DONE;
        stop_wait_ms(TEST_POLL_MS);
    }
    return cli_fail(CLI_REFUSED, "nothing was attempted yet; `svc events show %.*s` tells more",
                    SPAN_FMT(event_id));
}

int run_webhooks_test(struct cli *cli)
{
    struct json_value webhook, event, entry;
    struct span status_code, error;
    bool is_success;
    int status = webhook_find(cli, cli_operand(cli, 0), &webhook);

    stop_watch();
    if (status == CLI_DONE)
        status = raise_for(cli, webhook, &event);
    if (status == CLI_DONE)
        status = wait_for_attempt(cli, webhook, client_text(cli, event, "Id"), &entry);
    if (status != CLI_DONE)
        return status;
    is_success = json_is_true(json_member(entry, SPAN("IsSuccess")));
    status_code = show_value(cli, json_member(entry, SPAN("StatusCode")));
    error = client_text(cli, entry, "Error");
    if (cli->json) {
        status = show_entity(cli, entry);
    } else if (is_success) {
        struct buf line;

        buf_init_arena(&line, cli->arena);
        table_add_painted(&line, cli->look, PAINT_GOOD, status_code);
        buf_printf(&line, "  %.*s ms", SPAN_FMT(json_text(json_member(entry, SPAN("DurationMs")))));
        status = cli_print_line(buf_span(&line));
    }
    if (status != CLI_DONE || is_success)
        return status;
    return cli_fail(CLI_REFUSED, "the test failed: %.*s",
                    SPAN_FMT(error.n > 0 ? error : status_code));
}

/* ---- changing one ---- */

static int change(struct cli *cli, struct answer *out)
{
    struct ask ask = {.method = cli->command->method, .body = span_str(cli->command->body)};
    int status = webhook_target(cli, cli_operand(cli, 0), &ask.target);

    return status == CLI_DONE ? client_ask(cli, &ask, out) : status;
}

int run_webhooks_change(struct cli *cli)
{
    struct answer answer;
    int status = change(cli, &answer);

    return status == CLI_DONE ? show_done(cli, &answer) : status;
}

/* The new secret is the last that is not masked: the server shows what it has made, once. */
static struct span find_new_secret(struct cli *cli, struct json_value webhook)
{
    struct json_value secrets = show_member(webhook, "Signing.Secrets");
    struct span found = {NULL, 0};

    for (struct json_value s = json_first(secrets); json_exists(s); s = json_next(secrets, s))
        if (!span_eq(json_string(s, cli->arena), SPAN("*******")))
            found = json_string(s, cli->arena);
    return found;
}

int run_webhooks_rotate(struct cli *cli)
{
    struct answer answer;
    struct span secret;
    int status = change(cli, &answer);

    if (status == CLI_DONE)
        status = show_done(cli, &answer);
    if (status != CLI_DONE || cli->json)
        return status;
    secret = find_new_secret(cli, json_first(answer.json));
    return secret.p != NULL ? cli_print_line(secret) : CLI_DONE;
}
