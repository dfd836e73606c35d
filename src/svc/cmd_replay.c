/* replay: sends again what an outage has killed. In batches, so that each is a short request and
 * one sees how far it is. A batch is a range of ObjectNo, which a delivery keeps: what dies again
 * while the replay goes on is not sent twice. */
#include "base/clock.h"
#include "cli/show.h"
#include "cli/target.h"
#include "cli/webhooks.h"
#include "svc/command.h"

enum { BATCH = 1000 };

/* `/Svc.Admin.Delivery/WebhookId=...&State=...&Time>=...&Time<...` */
static int make_target(struct cli *cli, struct buf *target)
{
    struct span id, state = args_value(&cli->args, OPTION_STATE);
    struct buf since, until;
    struct err *e;
    int status = webhook_id(cli, args_value(&cli->args, OPTION_WEBHOOK), &id);

    if (status != CLI_DONE)
        return status;
    buf_init_arena(&since, cli->arena);
    buf_init_arena(&until, cli->arena);
    e = target_add_time(&since, "--since", args_value(&cli->args, OPTION_SINCE), clock_unix_ns(),
                        false);
    if (e == NULL && args_has(&cli->args, OPTION_UNTIL))
        e = target_add_time(&until, "--until", args_value(&cli->args, OPTION_UNTIL),
                            clock_unix_ns(), false);
    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    buf_add_str(target, "/Svc.Admin.Delivery/WebhookId=");
    target_add_value(target, id);
    buf_add_str(target, "&State=");
    target_add_value(target, state.p != NULL ? state : SPAN("Dead"));
    buf_add_str(target, "&Time>=");
    target_add_value(target, buf_span(&since));
    if (until.n > 0) {
        buf_add_str(target, "&Time<");
        target_add_value(target, buf_span(&until));
    }
    return CLI_DONE;
}

static int count_all(struct cli *cli, struct span target, uint64_t *out_count)
{
    struct ask ask = {.method = "REPORT", .target = target};
    struct answer answer;
    int status = client_ask(cli, &ask, &answer);

    if (status == CLI_DONE &&
        !span_to_u64(json_text(json_member(json_first(answer.json), SPAN("Count"))), out_count))
        return cli_fail(CLI_REFUSED, "the server does not say how many there are");
    return status;
}

/* The ObjectNo that the batch behind `after` ends with; *out_count is 0 when there is none. */
static int find_batch(struct cli *cli, struct span target, uint64_t after, uint64_t *out_last,
                      uint64_t *out_count)
{
    struct answer answer;
    int status = client_get(
        cli,
        arena_printf(cli->arena, "%.*s&ObjectNo>%llu/order_asc=ObjectNo&limit=%d&select=ObjectNo",
                     SPAN_FMT(target), (unsigned long long)after, BATCH),
        &answer);

    *out_count = 0;
    for (struct json_value e = json_first(answer.json); status == CLI_DONE && json_exists(e);
         e = json_next(answer.json, e)) {
        if (!span_to_u64(json_text(json_member(e, SPAN("ObjectNo"))), out_last))
            return cli_fail(CLI_REFUSED, "a delivery has no ObjectNo");
        ++*out_count;
    }
    return status;
}

static int send_batch(struct cli *cli, struct span target, uint64_t after, uint64_t last)
{
    struct ask ask = {.method = "PATCH", .body = SPAN("{\"State\":\"Pending\"}"), .minimal = true};
    struct answer answer;

    ask.target =
        arena_printf(cli->arena, "%.*s&ObjectNo>%llu&ObjectNo<=%llu/unsafe=true", SPAN_FMT(target),
                     (unsigned long long)after, (unsigned long long)last);
    return client_ask(cli, &ask, &answer);
}

static int print_result(struct cli *cli, uint64_t count)
{
    bool is_dry = args_has(&cli->args, OPTION_DRY_RUN);
    const char *plural = count == 1 ? "delivery" : "deliveries";
    struct span line;

    if (cli->json)
        line = arena_printf(cli->arena, "[{\"Count\":%llu}]", (unsigned long long)count);
    else
        line = arena_printf(cli->arena, "%llu %s %s", (unsigned long long)count, plural,
                            is_dry ? "would be sent again" : "sent again");
    return cli_print_line(line);
}

int run_replay(struct cli *cli)
{
    struct buf target;
    uint64_t all = 0, done = 0, after = 0, last = 0, count = 1;
    int status;

    buf_init_arena(&target, cli->arena);
    status = make_target(cli, &target);
    if (status == CLI_DONE)
        status = count_all(cli, buf_span(&target), &all);
    if (status != CLI_DONE)
        return status;
    if (args_has(&cli->args, OPTION_DRY_RUN))
        return print_result(cli, all);
    while (done < all) {
        cli_progress(cli, "%llu of %llu", (unsigned long long)done, (unsigned long long)all);
        status = find_batch(cli, buf_span(&target), after, &last, &count);
        if (status == CLI_DONE && count > 0)
            status = send_batch(cli, buf_span(&target), after, last);
        if (status != CLI_DONE)
            return cli_fail(status, "%llu of %llu were sent again", (unsigned long long)done,
                            (unsigned long long)all);
        if (count == 0)
            break;
        done += count;
        after = last;
    }
    cli_progress(cli, NULL);
    return print_result(cli, done);
}
