/* keys: who may do what. A new key is shown once, on standard output, so that it can go into a
 * file: `svc keys add shop --allow ... >shop.key`. */
#include "base/clock.h"
#include "cli/show.h"
#include "cli/target.h"
#include "svc/command.h"
#include "json/member.h"

/* `Shop.*,Svc.Event:GET,POST  Svc.Metrics:GET`, as --allow takes it. */
static struct span rights_of(struct cli *cli, struct json_value key)
{
    struct json_value entries = json_member(key, SPAN("AllowAccess"));
    static const char *const lists[] = {"Resources", "Methods"};
    struct buf b;

    buf_init_arena(&b, cli->arena);
    for (struct json_value e = json_first(entries); json_exists(e); e = json_next(entries, e)) {
        if (b.n > 0)
            buf_add_str(&b, "  ");
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
            struct json_value list = json_member(e, span_str(lists[i]));

            if (i > 0)
                buf_add_char(&b, ':');
            for (struct json_value n = json_first(list); json_exists(n); n = json_next(list, n)) {
                if (n.node != json_first(list).node)
                    buf_add_char(&b, ',');
                buf_add(&b, json_string(n, cli->arena));
            }
        }
    }
    return buf_span(&b);
}

int run_keys_list(struct cli *cli)
{
    static const char *const headings[] = {"Name",      "Tenant",  "Rights",
                                           "Last used", "Expires", "Made by"};
    struct entities all;
    struct table *table = table_new(cli->arena, headings, ARRAY_LEN(headings));
    int status = client_get_all(cli, SPAN("/Svc.Admin.ApiKey/_"), &all);

    if (status != CLI_DONE)
        return status;
    if (cli->json)
        return show_entities(cli, &all, NULL, 0);
    if (all.count == 0)
        cli_note(cli, "there are no keys");
    for (size_t i = 0; i < all.count; i++) {
        struct json_value key = all.items[i];

        table_add(table, client_text(cli, key, "Name"));
        table_add(table, client_text(cli, key, "Tenant"));
        table_add(table, rights_of(cli, key));
        table_add(table, show_value(cli, json_member(key, SPAN("LastUsedTime"))));
        table_add(table, show_value(cli, json_member(key, SPAN("ExpiresAt"))));
        table_add(table, client_text(cli, key, "CreatedBy"));
    }
    return show_table(cli, table);
}

static void add_names(struct buf *body, const char *member, struct span names)
{
    buf_printf(body, "\"%s\":[", member);
    while (names.n > 0) {
        struct span name = span_trim(span_split(&names, ','));

        json_add_comma(body);
        json_add_string(body, name);
    }
    buf_add_char(body, ']');
}

static int add_rights(struct cli *cli, struct buf *body)
{
    const struct span *rights = args_values(&cli->args, OPTION_ALLOW, cli->arena);
    size_t count = args_count(&cli->args, OPTION_ALLOW);

    buf_add_str(body, ",\"AllowAccess\":[");
    for (size_t i = 0; i < count; i++) {
        struct span methods = rights[i], resources = span_split(&methods, ':');

        if (resources.n == 0 || methods.n == 0)
            return cli_fail(CLI_MISUSE,
                            "--allow: '%.*s' is not RESOURCES:METHODS, as in "
                            "Shop.*,Svc.Event:GET,POST",
                            SPAN_FMT(rights[i]));
        buf_add_str(body, i > 0 ? ",{" : "{");
        add_names(body, "Resources", resources);
        buf_add_char(body, ',');
        add_names(body, "Methods", methods);
        buf_add_char(body, '}');
    }
    buf_add_char(body, ']');
    return CLI_DONE;
}

static int add_expiry(struct cli *cli, struct buf *body)
{
    struct buf time;
    struct err *e;

    if (!args_has(&cli->args, OPTION_EXPIRES))
        return CLI_DONE;
    buf_init_arena(&time, cli->arena);
    e = target_add_time(&time, "--expires", args_value(&cli->args, OPTION_EXPIRES), clock_unix_ns(),
                        true);
    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    member_add_text(body, SPAN("ExpiresAt"), buf_span(&time));
    return CLI_DONE;
}

int run_keys_add(struct cli *cli)
{
    struct ask ask = {.method = "POST", .target = SPAN("/Svc.Admin.ApiKey")};
    struct answer answer;
    struct span key;
    struct buf body;
    int status;

    buf_init_arena(&body, cli->arena);
    buf_add_char(&body, '{');
    member_add_text(&body, SPAN("Name"), cli_operand(cli, 0));
    status = add_rights(cli, &body);
    if (status == CLI_DONE)
        status = add_expiry(cli, &body);
    if (status != CLI_DONE)
        return status;
    if (args_has(&cli->args, OPTION_TENANT))
        member_add_text(&body, SPAN("Tenant"), args_value(&cli->args, OPTION_TENANT));
    buf_add_char(&body, '}');
    ask.body = buf_span(&body);
    status = client_ask(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    key = client_text(cli, json_first(answer.json), "Key");
    if (cli->json || key.p == NULL)
        return show_done(cli, &answer);
    cli_note(cli, "the key of '%.*s', which is not shown again:", SPAN_FMT(cli_operand(cli, 0)));
    return cli_print_line(key);
}

int run_keys_delete(struct cli *cli)
{
    struct ask ask = {.method = "DELETE"};

    ask.target = target_named(cli->arena, "Svc.Admin.ApiKey", "Name", cli_operand(cli, 0));
    return show_asked(cli, &ask);
}
