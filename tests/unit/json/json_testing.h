/* What the test programs of the json module share: an arena for each test, and values parsed from
 * literals. */
#ifndef JSON_TESTING_H
#define JSON_TESTING_H

#include "json/json.h"

extern struct arena arena;

/* The fixture of each test. */
void json_set_up(void);
void json_tear_down(void);
/* The text must stay in place; the document is in the arena. */
struct json_value parsed(struct span text);
struct json_value value_of(const char *text);

#endif
