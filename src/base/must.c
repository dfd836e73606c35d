/* A broken expectation ends the process: the state can no longer be trusted, and what was
 * acknowledged is in the journal, from where the next start recovers it. */
#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

void must_fail(const char *what, const char *function, const char *file, int line)
{
    fprintf(stderr, "svcd: %s:%d: %s: broken expectation: %s\n", file, line, function, what);
    abort();
}
