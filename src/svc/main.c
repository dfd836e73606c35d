/* svc: a client beside the server (docs/specification.md, section 14). Reads the command line,
 * finds the command, runs it. */
#include "base/mem.h"
#include "cli/client.h"
#include "svc/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS_WITHOUT_WORD = 80 };

/* A pipe gets everything, and no colours. */
static struct look look_of_output(void)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    struct winsize size;
    struct look look = {0, false};

    if (!isatty(STDOUT_FILENO))
        return look;
    look.columns = COLUMNS_WITHOUT_WORD;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        look.columns = size.ws_col;
    look.colours = (no_color == NULL || no_color[0] == '\0') && terminal != NULL &&
                   !span_eq(span_str(terminal), SPAN("dumb"));
    return look;
}

/* A secret that was a word of the command line is one no more: the words are what ps shows. */
static void hide_secrets(struct args *args, struct arena *a)
{
    for (size_t i = 0; i < args->given_count; i++) {
        struct args_given *given = &args->given[i];
        char *word = (char *)(uintptr_t)given->value.p;
        size_t n = given->value.n;

        if ((given->option != OPTION_SECRET && given->option != OPTION_VERIFY) ||
            span_starts(given->value, SPAN("@")))
            continue;
        given->value = arena_copy(a, given->value);
        memset(word, '*', n);
    }
}

static int run(struct cli *cli, const struct command *command)
{
    struct settings settings;
    struct err *e;
    int status;

    cli->command = command;
    if (command->is_local)
        return command->run(cli);
    e = settings_read(&cli->args, cli->arena, &settings);
    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    cli->client = client_new(&settings, cli->arena);
    status = command->run(cli);
    cli_progress(cli, NULL);
    client_free(cli->client);
    return status;
}

static int parse_and_run(struct cli *cli, int argc, char **argv)
{
    const struct command *command;
    struct err *e = args_parse(argv + 1, (size_t)argc - 1, &cli->args);
    int status;

    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    hide_secrets(&cli->args, cli->arena);
    cli->json = args_has(&cli->args, OPTION_JSON);
    status = command_find(cli, &command);
    if (status != CLI_DONE || command == NULL)
        return status;
    return run(cli, command);
}

int main(int argc, char **argv)
{
    struct arena arena;
    struct cli cli = {.arena = &arena, .look = look_of_output()};
    int status;

    prctl(PR_SET_DUMPABLE,
          0); /* no core dump with a key in it; where it is refused there is none */
    signal(SIGPIPE, SIG_IGN);
    tzset();
    arena_init(&arena);
    if (argc == 2 && span_eq(span_str(argv[1]), SPAN("--version")))
        argv[1] = (char *)(uintptr_t) "version";
    status = parse_and_run(&cli, argc, argv);
    arena_done(&arena);
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        return status == CLI_DONE ? CLI_REFUSED : status;
    return status;
}
