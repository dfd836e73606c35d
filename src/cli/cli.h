/* What every command gets: the words it was given, the server, and how to print. A command returns
 * its exit status, and has said what was wrong. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/args.h"
#include "cli/table.h"
#include "json/json.h"

enum { CLI_DONE, CLI_REFUSED, CLI_MISUSE, CLI_NOT_REACHED };

struct client;
struct command;

struct cli {
    struct args args;
    const struct command *command; /* that runs */
    struct arena *arena;           /* of the command, to its end */
    struct client *client;
    struct look look; /* of standard output */
    bool json;
    bool has_progress; /* such a line stands there */
};

/* Prints `svc: <message>`, controls escaped, to standard error; returns the status. */
int cli_fail(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for an error, which it frees. */
int cli_fail_err(int status, struct err *e);
/* A note for people on standard error; nothing with --json. */
void cli_note(const struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* How far a long work is: one line that is written over, only where standard error is a terminal.
 * With NULL the line is taken away. */
void cli_progress(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* CLI_DONE: there is somebody to ask, or --yes makes it needless. Else a misuse has been told. */
int cli_check_asking(const struct cli *cli);
/* The question, on standard error. CLI_DONE: the person at the terminal says yes, or --yes has said
 * so before. CLI_REFUSED: they do not, which has been told. */
int cli_confirm(const struct cli *cli, const char *question);

/* To standard output; CLI_REFUSED once it is closed or full: the command ends then. */
int cli_print(struct span text);
/* With a line feed behind it. */
int cli_print_line(struct span text);

/* Operand i; the absent span when there is none. */
struct span cli_operand(const struct cli *cli, size_t i);
/* The value of --data or a secret: what stands there, of @FILE the file's bytes, of @- those of
 * standard input. A misuse has been told. */
int cli_read_value(struct cli *cli, struct span value, struct span *out_bytes);
/* The same for an option's secret that checks signatures, the first line of a file. */
int cli_read_secret(struct cli *cli, enum option option, struct span *out_secret);
/* A whole file, at most max_bytes; the path `-` is standard input. The error names it. */
struct err *cli_read_file(struct span path, size_t max_bytes, struct arena *a,
                          struct span *out_bytes) MUST_USE;

#endif
