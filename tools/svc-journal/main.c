/* svc-journal: looks at a journal, copies it, and saves what it can (docs/design/journal.md). */
#include "tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: svc-journal verify DIR|FILE\n"
    "       svc-journal dump [--from SERIAL] [--kind KIND] DIR\n"
    "       svc-journal backup DIR TARGET\n"
    "       svc-journal restore FILE DIR\n"
    "       svc-journal repair [--cut] DIR\n"
    "\n"
    "  verify   checks every record; exit status 0 good, 1 damaged, 2 it cannot be read;\n"
    "           or whether the backup FILE is whole\n"
    "  dump     writes every record as a line of JSON, without secrets\n"
    "  backup   copies the journal, of a running server too, to the new directory TARGET;\n"
    "           to restore it, copy it back\n"
    "  restore  makes the new directory DIR of FILE, which came from Svc.Admin.Backup\n"
    "  repair   says what can be kept of a damaged journal; with --cut keeps it, and sets the\n"
    "           rest aside in DIR/damaged-<time>\n";

struct command_line {
    struct dump_options dump;
    bool cut;
    char **operands;
    int count;
};

static bool parse(int argc, char **argv, struct command_line *out)
{
    static const struct option options[] = {
        {"from", required_argument, NULL, 'f'},
        {"kind", required_argument, NULL, 'k'},
        {"cut", no_argument, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    int option;

    *out = (struct command_line){.cut = false};
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c')
            out->cut = true;
        else if (option == 'k')
            out->dump.kind = optarg;
        else if (option != 'f' || !span_to_u64(span_str(optarg), &out->dump.from))
            return false;
    }
    out->operands = argv + optind;
    out->count = argc - optind;
    return true;
}

static int run(const struct command_line *c)
{
    const char *command = c->count == 0 ? "" : c->operands[0];
    bool has_dump_options = c->dump.kind != NULL || c->dump.from > 0;

    if (strcmp(command, "verify") == 0 && c->count == 2 && !c->cut && !has_dump_options)
        return tool_verify(c->operands[1]);
    if (strcmp(command, "dump") == 0 && c->count == 2 && !c->cut)
        return tool_dump(c->operands[1], &c->dump);
    if (strcmp(command, "backup") == 0 && c->count == 3 && !c->cut && !has_dump_options)
        return tool_backup(c->operands[1], c->operands[2]);
    if (strcmp(command, "restore") == 0 && c->count == 3 && !c->cut && !has_dump_options)
        return tool_restore(c->operands[1], c->operands[2]);
    if (strcmp(command, "repair") == 0 && c->count == 2 && !has_dump_options)
        return tool_repair(c->operands[1], c->cut);
    fputs(usage, stderr);
    return TOOL_FAILED;
}

int main(int argc, char **argv)
{
    struct command_line line;
    int status;

    if (!parse(argc, argv, &line)) {
        fputs(usage, stderr);
        return TOOL_FAILED;
    }
    status = run(&line);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("svc-journal: standard output cannot be written\n", stderr);
        status = TOOL_FAILED;
    }
    return status;
}
