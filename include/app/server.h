/* The running process: loop, service, listeners and signals, set up in a list and taken down in its
 * exact reverse. */
#ifndef APP_SERVER_H
#define APP_SERVER_H

#include "app/anew.h"
#include "app/config.h"

/* Exit statuses. */
enum server_exit {
    SERVER_STOPPED = 0,   /* drained after a signal */
    SERVER_FAILED = 1,    /* the journal failed, or a second signal came */
    SERVER_BAD_CONFIG = 2 /* it never ran: the configuration, an address, the data directory */
};

/* Runs until a signal ends it. With `check_only` everything is set up but nothing is opened: no
 * socket, no journal. Errors are logged. SIGHUP reads the configuration anew by the same arguments
 * and takes over its keys, rights and resources; on an error nothing changes, and it is logged.
 * SIGUSR2 ends it as SIGTERM does, and starts anew: then it does not return, unless that fails. */
enum server_exit server_run(struct config *config, const struct config_arguments *arguments,
                            const struct anew *anew, bool check_only);

#endif
