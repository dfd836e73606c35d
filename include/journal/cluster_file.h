/* The file `cluster` in a data directory: which cluster the journal there belongs to. It holds the
 * cluster's UUID in canonical form and a line feed; a log that is restored makes it another. */
#ifndef JOURNAL_CLUSTER_FILE_H
#define JOURNAL_CLUSTER_FILE_H

#include "base/err.h"
#include "base/uuid.h"

#include <stdbool.h>

#define CLUSTER_FILE_NAME "cluster"

/* *out_found is false where there is no such file, or no such directory. ERR_STORAGE_FAILURE, which
 * names the file: it cannot be read, or is damaged. */
struct err *cluster_file_read(const char *directory, struct uuid *out_id, bool *out_found) MUST_USE;
/* On stable storage when it returns; a kill leaves what was there before, or this. The directory is
 * there. ERR_STORAGE_FAILURE, naming the file. Blocking. */
struct err *cluster_file_write(const char *directory, const struct uuid *id) MUST_USE;

#endif
