#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

void must_fail(const char *what, const char *function, const char *file, int line)
{
    fprintf(stderr, "svcd: %s:%d: %s: broken expectation: %s\n", file, line, function, what);
    abort();
}
