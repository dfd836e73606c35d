/* Keeps stored errors, log entries, ended deliveries and events within their number and age, oldest
 * out first, in bounded slices and without scanning (protocol.md, sections 5, 7 and 8). */
#ifndef HOOKS_RETENTION_H
#define HOOKS_RETENTION_H

struct service;

/* The timer is ready; nothing is taken out before retention_wake. */
void retention_init(struct service *s);
void retention_stop(struct service *s);
/* Something was stored that may have to go one day, or the service starts. Cheap. */
void retention_wake(struct service *s);

#endif
