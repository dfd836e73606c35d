/* Printing, and reading what a command is given. Messages quote what others wrote, which a terminal
 * is not to obey: controls are escaped. */
#include "cli/cli.h"

#include "base/text.h"
#include "cli/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_BYTES_MOST = 64 << 20, MESSAGE_BYTES = 1 << 16, ANSWER_BYTES = 64 };

static void say(const char *before, const char *fmt, va_list arguments)
{
    char text[MESSAGE_BYTES];
    int n = vsnprintf(text, sizeof(text), fmt, arguments);
    struct buf b;

    if (n < 0)
        return;
    buf_init(&b, BUF_NO_CAP);
    buf_add_str(&b, before);
    text_add_shown(&b, span_of(text, MIN((size_t)n, sizeof(text) - 1)));
    fprintf(stderr, "%.*s\n", SPAN_FMT(buf_span(&b)));
    buf_done(&b);
}

int cli_fail(int status, const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    say("svc: ", fmt, arguments);
    va_end(arguments);
    return status;
}

int cli_fail_err(int status, struct err *e)
{
    (void)cli_fail(status, "%.*s", SPAN_FMT(err_message(e)));
    err_free(e);
    return status;
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
    va_list arguments;

    if (cli->json)
        return;
    va_start(arguments, fmt);
    say("", fmt, arguments);
    va_end(arguments);
}

void cli_progress(struct cli *cli, const char *fmt, ...)
{
    va_list arguments;

    if (!isatty(STDERR_FILENO))
        return;
    if (cli->has_progress)
        fputs("\r\x1b[K", stderr);
    cli->has_progress = fmt != NULL;
    if (fmt == NULL)
        return;
    va_start(arguments, fmt);
    vfprintf(stderr, fmt, arguments);
    va_end(arguments);
}

int cli_check_asking(const struct cli *cli)
{
    if (args_has(&cli->args, OPTION_YES) || isatty(STDIN_FILENO))
        return CLI_DONE;
    return cli_fail(CLI_MISUSE, "nobody can be asked here; --yes does it without asking");
}

int cli_confirm(const struct cli *cli, const char *question)
{
    char line[ANSWER_BYTES];
    struct span rest, answer;

    if (args_has(&cli->args, OPTION_YES))
        return CLI_DONE;
    fprintf(stderr, "%s (yes or no) ", question);
    rest = span_str(fgets(line, sizeof(line), stdin) != NULL ? line : "");
    answer = span_trim(span_split(&rest, '\n'));
    if (span_ieq(answer, SPAN("yes")) || span_ieq(answer, SPAN("y")))
        return CLI_DONE;
    return cli_fail(CLI_REFUSED, "nothing was done");
}

/* Who has closed a pipe knows it. */
static int fail_to_print(void)
{
    static bool is_told;

    if (errno != EPIPE && !is_told)
        (void)cli_fail(CLI_REFUSED, "what is printed cannot be written: %s", strerror(errno));
    is_told = true;
    return CLI_REFUSED;
}

int cli_print(struct span text)
{
    if (text.n > 0 && fwrite(text.p, 1, text.n, stdout) != text.n)
        return fail_to_print();
    return fflush(stdout) == 0 ? CLI_DONE : fail_to_print();
}

int cli_print_line(struct span text)
{
    int status = cli_print(text);

    return status == CLI_DONE ? cli_print(SPAN("\n")) : status;
}

struct span cli_operand(const struct cli *cli, size_t i)
{
    return i < cli->args.operand_count ? cli->args.operands[i] : span_of(NULL, 0);
}

static struct err *read_all(int fd, struct buf *out)
{
    if (!buf_read_all(out, fd))
        return ERR(ERR_UNKNOWN, "%s", strerror(errno));
    if (buf_over(out))
        return ERR(ERR_UNKNOWN, "it has more than %zu bytes", out->max);
    return NULL;
}

struct err *cli_read_file(struct span path, size_t max_bytes, struct arena *a,
                          struct span *out_bytes)
{
    struct span name = arena_copy(a, path);
    bool is_standard = span_eq(path, SPAN("-"));
    int fd = is_standard ? STDIN_FILENO : open(name.p, O_RDONLY | O_CLOEXEC);
    struct err *e;
    struct buf b;

    if (fd < 0)
        return ERR(ERR_UNKNOWN, "%s: %s", name.p, strerror(errno));
    buf_init_arena(&b, a);
    b.max = max_bytes;
    e = read_all(fd, &b);
    if (!is_standard)
        close(fd);
    if (e != NULL)
        return err_prefix(e, "%s: ", is_standard ? "standard input" : name.p);
    *out_bytes = buf_span(&b);
    return NULL;
}

int cli_read_value(struct cli *cli, struct span value, struct span *out_bytes)
{
    struct err *e;

    if (!span_starts(value, SPAN("@"))) {
        *out_bytes = value;
        return CLI_DONE;
    }
    e = cli_read_file(span_sub(value, 1, value.n), VALUE_BYTES_MOST, cli->arena, out_bytes);
    return e != NULL ? cli_fail_err(CLI_MISUSE, e) : CLI_DONE;
}

int cli_read_secret(struct cli *cli, enum option option, struct span *out_secret)
{
    int status = cli_read_value(cli, args_value(&cli->args, option), out_secret);
    struct err *e;

    if (status != CLI_DONE)
        return status;
    *out_secret = span_trim(span_split(out_secret, '\n'));
    e = signature_check_secret(*out_secret);
    return e != NULL ? cli_fail_err(CLI_MISUSE, e) : CLI_DONE;
}
