/* The files of src/console as they are sent, sorted by name; tools/embed makes them a source. */
#ifndef ADMIN_CONSOLE_FILES_H
#define ADMIN_CONSOLE_FILES_H

#include "base/span.h"

struct console_form {
    struct span bytes;
    struct span etag; /* with its quotes */
};

struct console_file {
    struct span name; /* app.js */
    struct span content_type;
    struct console_form plain, packed; /* packed: by gzip */
};

extern const struct console_file console_files[];
extern const size_t console_file_count;

#endif
