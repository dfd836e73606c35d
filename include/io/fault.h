/* Faults for tests, by name and countdown: `journal.sync:3` makes the third pass through that
 * place fail. Set from the SVCD_FAULT environment variable in builds with -Dfaults=true only; in
 * others there is none to be set, and fault_hit is a constant false. */
#ifndef IO_FAULT_H
#define IO_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef SVCD_FAULTS
/* Comma-separated `name:count` pairs; with `name:count+` that pass and every later one fails.
 * NULL or "" clears. False when malformed. */
bool fault_set(const char *list);
/* True when this pass must fail. */
bool fault_hit(const char *name);
#else
static inline bool fault_set(const char *list)
{
    return list == NULL || list[0] == '\0';
}
static inline bool fault_hit(const char *name)
{
    (void)name;
    return false;
}
#endif

#endif
