/* A command line is checked whole before anything is asked of the server: misuse changes nothing.
 */
#include "command.h"

#include "base/text.h"

#include <stdio.h>

#define BIT OPTION_BIT

enum { NAMES_MOST = 64, HELP_COLUMNS = 29 };

static int run_help(struct cli *cli);
static int run_completion(struct cli *cli);
static int run_version(struct cli *cli);

static const uint64_t everywhere =
    BIT(OPTION_URL) | BIT(OPTION_KEY_FILE) | BIT(OPTION_JSON) | BIT(OPTION_HELP);

static const struct command commands[] = {
    {"listen", "", 0, 0, 0,
     BIT(OPTION_EVENTS) | BIT(OPTION_FORWARD) | BIT(OPTION_SECRET_FILE) | BIT(OPTION_AFTER), false,
     "follow events, and send each to a program of yours", run_listen},
    {"trigger", "EVENT", 1, 1, 0, BIT(OPTION_DATA), false,
     "raise an event; without --data an example", run_trigger},
    {"events tail", "", 0, 0, 0, BIT(OPTION_AFTER), false, "show events as they are raised",
     run_events_tail},
    {"events show", "ID", 1, 1, 0, 0, false, "an event, and what became of its deliveries",
     run_events_show},
    {"events resend", "ID", 1, 1, 0, BIT(OPTION_WEBHOOK), false,
     "send the deliveries of an event again", run_events_resend},
    {"webhooks list", "", 0, 0, 0, BIT(OPTION_FAILING), false, "webhooks, and how they are doing",
     run_webhooks_list},
    {"webhooks show", "ID", 1, 1, 0, 0, false, "a webhook, and its latest attempts",
     run_webhooks_show},
    {"webhooks add", "DESTINATION", 1, 1, BIT(OPTION_EVENTS), BIT(OPTION_LABEL) | BIT(OPTION_SIGN),
     false, "make a webhook", run_webhooks_add},
    {"webhooks test", "ID", 1, 1, 0, BIT(OPTION_DATA), false,
     "send it an example event, and wait for what comes of it", run_webhooks_test},
    {"webhooks pause", "ID", 1, 1, 0, 0, false, "let it skip events", run_webhooks_pause},
    {"webhooks resume", "ID", 1, 1, 0, 0, false, "let it take events again", run_webhooks_resume},
    {"webhooks rotate", "ID", 1, 1, 0, 0, false, "give it a new signing secret, shown once",
     run_webhooks_rotate},
    {"webhooks delete", "ID", 1, 1, 0, 0, false, "delete it, with what it has not sent",
     run_webhooks_delete},
    {"replay", "", 0, 0, BIT(OPTION_WEBHOOK) | BIT(OPTION_SINCE),
     BIT(OPTION_UNTIL) | BIT(OPTION_STATE) | BIT(OPTION_DRY_RUN), false,
     "send deliveries of an outage again", run_replay},
    {"explain", "EVENT-ID WEBHOOK-ID", 2, 2, 0, 0, false, "why a webhook got an event, or did not",
     run_explain},
    {"keys list", "", 0, 0, 0, 0, false, "API keys", run_keys_list},
    {"keys add", "NAME", 1, 1, BIT(OPTION_ALLOW), BIT(OPTION_TENANT) | BIT(OPTION_EXPIRES), false,
     "make an API key, shown once", run_keys_add},
    {"keys delete", "NAME", 1, 1, 0, 0, false, "withdraw an API key", run_keys_delete},
    {"sink", "", 0, 0, 0, BIT(OPTION_PORT) | BIT(OPTION_FAIL) | BIT(OPTION_VERIFY), true,
     "a receiver for trying things out: prints each request", run_sink},
    {"verify", "", 0, 0, BIT(OPTION_SECRET), BIT(OPTION_ANY_TIME), true,
     "check the signature of a request on standard input", run_verify},
    {"export", "", 0, 0, 0, 0, false, "print webhooks, resources and keys, secrets masked",
     run_export},
    {"import", "FILE", 1, 1, 0, BIT(OPTION_DRY_RUN), false,
     "make or update what export has printed", run_import},
    {"get", "URI", 1, 1, 0, 0, false, "GET, as the interface has it", run_get},
    {"report", "URI", 1, 1, 0, 0, false, "REPORT: the number of entities", run_report},
    {"delete", "URI", 1, 1, 0, 0, false, "DELETE", run_delete},
    {"post", "URI", 1, 1, BIT(OPTION_DATA), 0, false, "POST", run_post},
    {"patch", "URI", 1, 1, BIT(OPTION_DATA), 0, false, "PATCH", run_patch},
    {"put", "URI", 1, 1, BIT(OPTION_DATA), 0, false, "PUT", run_put},
    {"help", "[COMMAND]", 0, 2, 0, 0, true, "all commands, or one", run_help},
    {"completion", "", 0, 0, 0, 0, true, "print the completion for bash", run_completion},
    {"version", "", 0, 0, 0, 0, true, "print the version", run_version},
};

/* ---- help ---- */

static void add_option(struct buf *b, enum option option, bool is_needed)
{
    const struct option_info *info = args_option(option);

    buf_printf(b, is_needed ? " --%s" : " [--%s", info->name);
    if (info->value != NULL)
        buf_printf(b, " %s", info->value);
    if (info->repeats)
        buf_add_str(b, "...");
    if (!is_needed)
        buf_add_char(b, ']');
}

static void add_usage(struct buf *b, const struct command *command)
{
    buf_printf(b, "svc %s", command->name);
    if (command->operands[0] != '\0')
        buf_printf(b, " %s", command->operands);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((command->needed & BIT(i)) != 0)
            add_option(b, (enum option)i, true);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((command->allowed & BIT(i)) != 0)
            add_option(b, (enum option)i, false);
}

static void add_options_help(struct buf *b, struct look look, uint64_t options)
{
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_info *info = args_option((enum option)i);

        if ((options & BIT(i)) == 0)
            continue;
        table_print_pair(
            b, look, 26,
            arena_printf(&a, "  --%s %s", info->name, info->value != NULL ? info->value : ""),
            span_str(info->about));
    }
    arena_done(&a);
}

static int help_of_all(struct cli *cli)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_str(&b, "svc, the command line of svcd\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        table_print_pair(
            &b, cli->look, 26,
            arena_printf(cli->arena, "  %s %s", commands[i].name, commands[i].operands),
            span_str(commands[i].about));
    buf_add_str(&b, "\nWith each command:\n");
    add_options_help(&b, cli->look, everywhere);
    buf_add_str(&b, "\n`svc help COMMAND` tells more. Exit status: 0 done, 1 refused or a failed "
                    "test, 2 misuse, 3 the server is not reached.\n");
    return cli_print(buf_span(&b)) ? CLI_DONE : CLI_REFUSED;
}

static int help_of(struct cli *cli, const struct command *command)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_str(&b, "usage: ");
    add_usage(&b, command);
    buf_printf(&b, "\n\n%s\n", command->about);
    if ((command->needed | command->allowed) != 0)
        buf_add_char(&b, '\n');
    add_options_help(&b, cli->look, command->needed | command->allowed);
    return cli_print(buf_span(&b)) ? CLI_DONE : CLI_REFUSED;
}

/* ---- finding ---- */

/* How many operands the command's name takes; 0: they are another's. */
static size_t words_of(const struct command *command, const struct args *args)
{
    struct span rest = span_str(command->name);
    size_t words = 0;

    while (rest.n > 0)
        if (words == args->operand_count ||
            !span_eq(args->operands[words++], span_split(&rest, ' ')))
            return 0;
    return words;
}

static bool begins_group(struct span word)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct span name = span_str(commands[i].name);

        if (name.n > word.n && span_starts(name, word) && name.p[word.n] == ' ')
            return true;
    }
    return false;
}

static int unknown_command(const struct cli *cli)
{
    struct span names[NAMES_MOST], word = cli_operand(cli, 0), nearest;

    if (begins_group(word)) {
        struct span verb = cli_operand(cli, 1);

        word = verb.p == NULL
                   ? word
                   : arena_printf(cli->arena, "%.*s %.*s", SPAN_FMT(word), SPAN_FMT(verb));
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = span_str(commands[i].name);
    nearest = text_nearest(word, names, ARRAY_LEN(commands));
    if (nearest.p != NULL)
        return cli_fail(CLI_MISUSE, "there is no command '%.*s'; is '%.*s' meant?", SPAN_FMT(word),
                        SPAN_FMT(nearest));
    return cli_fail(CLI_MISUSE, "there is no command '%.*s'; `svc help` lists them",
                    SPAN_FMT(word));
}

static const struct command *look_up(struct args *args)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        size_t words = words_of(&commands[i], args);

        if (words == 0)
            continue;
        args->operand_count -= words;
        memmove(args->operands, args->operands + words, args->operand_count * sizeof(struct span));
        return &commands[i];
    }
    return NULL;
}

static int misuse(struct cli *cli, const struct command *command, const char *why, struct span what)
{
    struct buf usage;

    buf_init_arena(&usage, cli->arena);
    add_usage(&usage, command);
    return cli_fail(CLI_MISUSE, "%s%.*s; usage: %.*s", why, SPAN_FMT(what),
                    SPAN_FMT(buf_span(&usage)));
}

static int check(struct cli *cli, const struct command *command)
{
    enum option beyond =
        args_first_beyond(&cli->args, command->needed | command->allowed | everywhere);

    if (beyond != OPTION_COUNT)
        return misuse(cli, command, "it takes no --", span_str(args_option(beyond)->name));
    if (cli->args.operand_count < command->least)
        return misuse(cli, command, "something is missing", SPAN(""));
    if (cli->args.operand_count > command->most)
        return misuse(cli, command, "unexpected ", cli_operand(cli, command->most));
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((command->needed & BIT(i)) != 0 && !args_has(&cli->args, (enum option)i))
            return misuse(cli, command, "it needs --", span_str(args_option((enum option)i)->name));
    return CLI_DONE;
}

static int run_help(struct cli *cli)
{
    const struct command *command;

    if (cli->args.operand_count == 0)
        return help_of_all(cli);
    command = look_up(&cli->args);
    return command == NULL ? unknown_command(cli) : help_of(cli, command);
}

int command_find(struct cli *cli, const struct command **out_command)
{
    const struct command *command;
    bool asks_help = args_has(&cli->args, OPTION_HELP);

    *out_command = NULL;
    if (cli->args.operand_count == 0) {
        int status = help_of_all(cli);

        return asks_help ? status : CLI_MISUSE;
    }
    command = look_up(&cli->args);
    if (command == NULL)
        return unknown_command(cli);
    if (asks_help)
        return help_of(cli, command);
    *out_command = command;
    return check(cli, command);
}

/* ---- completion, version ---- */

static void add_words(struct buf *b, uint64_t options)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options & BIT(i)) != 0)
            buf_printf(b, "%s--%s", b->p[b->n - 1] == '\'' ? "" : " ",
                       args_option((enum option)i)->name);
}

/* `webhooks` of `webhooks list`; the absent span of a command that is one word. */
static struct span group_of(size_t i)
{
    struct span rest = span_str(commands[i].name), word = span_split(&rest, ' ');

    return rest.p != NULL ? word : span_of(NULL, 0);
}

static bool begins_new_word(size_t i)
{
    return group_of(i).p == NULL || i == 0 || !span_eq(group_of(i), group_of(i - 1));
}

static void add_first_words(struct buf *b)
{
    buf_add_str(b, "    '') words='");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct span rest = span_str(commands[i].name), word = span_split(&rest, ' ');

        if (begins_new_word(i))
            buf_printf(b, "%s%.*s", i > 0 ? " " : "", SPAN_FMT(word));
    }
    buf_add_str(b, "' ;;\n");
}

static void add_groups(struct buf *b)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct span group = group_of(i);

        if (group.p == NULL || !begins_new_word(i))
            continue;
        buf_printf(b, "    %.*s) words='", SPAN_FMT(group));
        for (size_t j = i; j < ARRAY_LEN(commands) && span_eq(group_of(j), group); j++)
            buf_printf(b, "%s%s", j > i ? " " : "", commands[j].name + group.n + 1);
        buf_add_str(b, "' ;;\n");
    }
}

/* Of commands of one word, or of two. */
static void add_option_cases(struct buf *b, bool of_two)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if ((group_of(i).p != NULL) != of_two)
            continue;
        buf_printf(b, "    '%s') words='", commands[i].name);
        add_words(b, commands[i].needed | commands[i].allowed | everywhere);
        buf_add_str(b, "' ;;\n");
    }
}

/* The words for the first place, the verbs of each group, the options of each command. */
static int run_completion(struct cli *cli)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_str(&b, "# bash completion of svc, printed by `svc completion`\n"
                    "_svc()\n{\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "    local first=${COMP_WORDS[1]} second= words=\n"
                    "    COMPREPLY=()\n"
                    "    if [[ $word != -* ]]; then\n"
                    "        case $before in\n"
                    "        --key-file | --secret-file | import)\n"
                    "            mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                    "            return ;;\n"
                    "        esac\n"
                    "    fi\n"
                    "    if [ \"$COMP_CWORD\" -eq 1 ]; then first=; fi\n"
                    "    if [ \"$COMP_CWORD\" -gt 2 ]; then second=${COMP_WORDS[2]}; fi\n"
                    "    case $first in\n");
    add_first_words(&b);
    add_groups(&b);
    add_option_cases(&b, false);
    buf_add_str(&b, "    esac\n"
                    "    case \"$first $second\" in\n");
    add_option_cases(&b, true);
    buf_add_str(&b, "    esac\n"
                    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                    "}\n"
                    "complete -F _svc svc\n");
    return cli_print(buf_span(&b)) ? CLI_DONE : CLI_REFUSED;
}

static int run_version(struct cli *cli)
{
    (void)cli;
    return cli_print(SPAN("svc " SVCD_VERSION "\n")) ? CLI_DONE : CLI_REFUSED;
}
