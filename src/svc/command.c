/* A command line is checked whole before anything is asked of the server: misuse changes nothing.
 */
#include "svc/command.h"

#include "base/text.h"

#include <stdio.h>

#define BIT OPTION_BIT

enum { NAMES_MOST = 64, NODES_MOST = 15, HELP_WIDTH = 29 /* of the longest command */ };

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
    {"webhooks pause", "ID", 1, 1, 0, 0, false, "let it skip events", run_webhooks_change, "PATCH",
     "{\"IsPaused\":true}"},
    {"webhooks resume", "ID", 1, 1, 0, 0, false, "let it take events again", run_webhooks_change,
     "PATCH", "{\"IsPaused\":false}"},
    {"webhooks rotate", "ID", 1, 1, 0, 0, false, "give it a new signing secret, shown once",
     run_webhooks_rotate, "PATCH", "{\"Signing\":{\"Rotate\":true}}"},
    {"webhooks delete", "ID", 1, 1, 0, 0, false, "delete it, with what it has not sent",
     run_webhooks_change, "DELETE"},
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
    {"cluster status", "", 0, 0, 0, 0, false, "nodes of a cluster, how far each is, and who leads",
     run_cluster_status},
    {"cluster step-down", "[NODE]", 0, 1, 0, BIT(OPTION_WAIT), false,
     "let another node lead; with NODE only if that one leads", run_cluster_step_down},
    {"cluster remove", "NODE", 1, 1, 0, 0, false, "wait until a node that has ended is forgotten",
     run_cluster_remove},
    {"cluster restore", "[URL...]", 0, NODES_MOST, 0, BIT(OPTION_YES), false,
     "begin the log anew with what this node has, when etcd has lost it", run_cluster_restore},
    {"get", "URI", 1, 1, 0, 0, false, "GET, as the interface has it", run_get},
    {"report", "URI", 1, 1, 0, 0, false, "REPORT: the number of entities", run_report},
    {"delete", "URI", 1, 1, 0, 0, false, "DELETE", run_change, "DELETE"},
    {"post", "URI", 1, 1, BIT(OPTION_DATA), 0, false, "POST", run_change, "POST"},
    {"patch", "URI", 1, 1, BIT(OPTION_DATA), 0, false, "PATCH", run_change, "PATCH"},
    {"put", "URI", 1, 1, BIT(OPTION_DATA), 0, false, "PUT", run_change, "PUT"},
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
            b, look, HELP_WIDTH,
            arena_printf(&a, "  --%s%s%s%s", info->name, info->value != NULL ? " " : "",
                         info->value != NULL ? info->value : "", info->repeats ? "..." : ""),
            span_str(info->about));
    }
    arena_done(&a);
}

static void add_command_help(struct cli *cli, const struct command *command, struct buf *b)
{
    const char *blank = command->operands[0] != '\0' ? " " : "";

    table_print_pair(b, cli->look, HELP_WIDTH,
                     arena_printf(cli->arena, "  %s%s%s", command->name, blank, command->operands),
                     span_str(command->about));
}

static int help_of_all(struct cli *cli)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_str(&b, "svc, the command line of svcd\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        add_command_help(cli, &commands[i], &b);
    buf_add_str(&b, "\nWith each command:\n");
    add_options_help(&b, cli->look, everywhere);
    buf_add_str(&b, "\n`svc help COMMAND` tells more. Exit status: 0 done, 1 refused or a failed "
                    "test, 2 misuse, 3 the server is not reached.\n");
    return cli_print(buf_span(&b));
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
    if (!command->is_local)
        buf_add_str(&b,
                    "\nWith each command: --url, --key-file, --json; `svc help` explains them.\n");
    return cli_print(buf_span(&b));
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

/* `webhooks` of `webhooks list`. */
static bool is_in_group(const struct command *command, struct span word)
{
    struct span name = span_str(command->name);

    return word.n > 0 && name.n > word.n && span_starts(name, word) && name.p[word.n] == ' ';
}

static bool begins_group(struct span word)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (is_in_group(&commands[i], word))
            return true;
    return false;
}

static int help_of_group(struct cli *cli, struct span word)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (is_in_group(&commands[i], word))
            add_command_help(cli, &commands[i], &b);
    buf_printf(&b, "\n`svc help %.*s COMMAND` tells more.\n", SPAN_FMT(word));
    return cli_print(buf_span(&b));
}

static int group_alone(const struct cli *cli, struct span word)
{
    struct buf verbs;

    buf_init_arena(&verbs, cli->arena);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (is_in_group(&commands[i], word))
            buf_printf(&verbs, "%s%s", verbs.n > 0 ? ", " : "", commands[i].name + word.n + 1);
    return cli_fail(CLI_MISUSE, "svc %.*s: one of these has to follow: %.*s", SPAN_FMT(word),
                    SPAN_FMT(buf_span(&verbs)));
}

static int unknown_command(const struct cli *cli)
{
    struct span names[NAMES_MOST], word = cli_operand(cli, 0), nearest;

    if (begins_group(word)) {
        struct span verb = cli_operand(cli, 1);

        if (verb.p == NULL)
            return group_alone(cli, word);
        word = arena_printf(cli->arena, "%.*s %.*s", SPAN_FMT(word), SPAN_FMT(verb));
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

/* Its name, as usage has it. */
static struct span missing_operand(const struct cli *cli, const struct command *command)
{
    struct span rest = span_str(command->operands), name = span_split(&rest, ' ');

    for (size_t i = 0; i < cli->args.operand_count; i++)
        name = span_split(&rest, ' ');
    return name;
}

static int check(struct cli *cli, const struct command *command)
{
    enum option beyond =
        args_first_beyond(&cli->args, command->needed | command->allowed | everywhere);

    if (beyond != OPTION_COUNT)
        return misuse(cli, command, "it takes no --", span_str(args_option(beyond)->name));
    if (cli->args.operand_count < command->least)
        return misuse(cli, command, "there is no ", missing_operand(cli, command));
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
    if (cli->args.operand_count == 1 && begins_group(cli_operand(cli, 0)))
        return help_of_group(cli, cli_operand(cli, 0));
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
    if (asks_help && cli->args.operand_count == 1 && begins_group(cli_operand(cli, 0)))
        return help_of_group(cli, cli_operand(cli, 0));
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

/* Those that have a value, but for some, as a pattern. */
static void add_value_options(struct buf *b, uint64_t but)
{
    bool is_first = true;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (args_option((enum option)i)->value == NULL || (but & BIT(i)) != 0)
            continue;
        buf_printf(b, "%s--%s", is_first ? "" : " | ", args_option((enum option)i)->name);
        is_first = false;
    }
}

/* What stands at a place where an option has its value. */
static void add_values(struct buf *b)
{
    buf_add_str(b, "    if [[ $word != -* ]]; then\n"
                   "        case $before in\n"
                   "        --key-file | --secret-file | import)\n"
                   "            mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                   "            return ;;\n"
                   "        --state)\n"
                   "            mapfile -t COMPREPLY < <(compgen -W 'Dead Aborted Delivered' -- "
                   "\"$word\")\n"
                   "            return ;;\n"
                   "        ");
    add_value_options(b, BIT(OPTION_KEY_FILE) | BIT(OPTION_SECRET_FILE) | BIT(OPTION_STATE));
    buf_add_str(b, ")\n"
                   "            return ;;\n"
                   "        esac\n"
                   "    fi\n");
}

/* Options may stand before the command, and `help` before what it is asked about. */
static void add_search_for_command(struct buf *b)
{
    buf_add_str(b, "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                   "        case ${COMP_WORDS[i]} in\n"
                   "        ");
    add_value_options(b, 0);
    buf_add_str(b, ") i=$((i + 1)) ;;\n"
                   "        -*) ;;\n"
                   "        *) if [ -z \"$first\" ]; then first=${COMP_WORDS[i]}; else "
                   "second=${second:-${COMP_WORDS[i]}}; fi ;;\n"
                   "        esac\n"
                   "    done\n"
                   "    if [[ $first == help && $word != -* ]]; then\n"
                   "        first=$second second=''\n"
                   "    fi\n");
}

/* The words for the first place, the verbs of each group, the options of each command. */
static int run_completion(struct cli *cli)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_str(&b, "# bash completion of svc, printed by `svc completion`\n"
                    "_svc()\n{\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "    local first='' second='' words='' i\n"
                    "    COMPREPLY=()\n");
    add_values(&b);
    add_search_for_command(&b);
    buf_add_str(&b, "    case $first in\n");
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
    return cli_print(buf_span(&b));
}

static int run_version(struct cli *cli)
{
    (void)cli;
    return cli_print(SPAN("svc " SVCD_VERSION "\n"));
}
