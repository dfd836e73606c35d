/* How many columns of a terminal a text takes: wide characters two, marks that combine none. The
 * text is what text_add_shown has made of it: UTF-8 without controls. */
#ifndef CLI_WIDTH_H
#define CLI_WIDTH_H

#include "base/span.h"

size_t width_of(struct span text);
/* The longest prefix of whole characters that takes at most so many columns, with the marks that
 * combine with its last. */
struct span width_cut(struct span text, size_t columns);

#endif
