/* Ctrl-C and SIGTERM end what goes on for ever (listen, tail, sink) in good order: it is done. */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include <stdbool.h>

/* From now on the signals are noted instead of ending the process. */
void stop_watch(void);
bool stop_is_asked(void);
/* Readable once it is asked, for poll. */
int stop_fd(void);
/* Waits so long, or until it is asked. */
void stop_wait_ms(int ms);

#endif
