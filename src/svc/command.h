/* The commands, each a row of one table: what it is called, what it takes, what it does. Help,
 * completion and the checks of a command line come from it; the manual is compared with it. */
#ifndef SVC_COMMAND_H
#define SVC_COMMAND_H

#include "cli/cli.h"

struct command {
    const char *name;     /* `get`, or `webhooks list` */
    const char *operands; /* as usage shows them; "" for none */
    size_t least, most;   /* how many */
    uint64_t needed;      /* options that it cannot do without */
    uint64_t allowed;     /* others, but --url, --key-file, --json, --help */
    bool is_local;        /* it needs no server */
    const char *about;    /* one line */
    int (*run)(struct cli *cli);
    const char *method, *body; /* of what `run` sends, where commands differ in that; or NULL */
};

/* Finds the command that the operands begin with, takes its words off them, and checks options and
 * operands. Misuse has been told. NULL in *out_command: it was help, which is done. */
int command_find(struct cli *cli, const struct command **out_command);

int run_listen(struct cli *cli);
int run_trigger(struct cli *cli);
int run_events_tail(struct cli *cli);
int run_events_show(struct cli *cli);
int run_events_resend(struct cli *cli);
int run_webhooks_list(struct cli *cli);
int run_webhooks_show(struct cli *cli);
int run_webhooks_add(struct cli *cli);
int run_webhooks_test(struct cli *cli);
int run_webhooks_change(struct cli *cli);
int run_webhooks_rotate(struct cli *cli);
int run_replay(struct cli *cli);
int run_explain(struct cli *cli);
int run_keys_list(struct cli *cli);
int run_keys_add(struct cli *cli);
int run_keys_delete(struct cli *cli);
int run_sink(struct cli *cli);
int run_verify(struct cli *cli);
int run_export(struct cli *cli);
int run_import(struct cli *cli);
int run_cluster_status(struct cli *cli);
int run_cluster_step_down(struct cli *cli);
int run_cluster_remove(struct cli *cli);
int run_cluster_restore(struct cli *cli);
int run_get(struct cli *cli);
int run_report(struct cli *cli);
int run_change(struct cli *cli);

#endif
