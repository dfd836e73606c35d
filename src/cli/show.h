/* Entities as people read them. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/client.h"

/* A value on one line: texts without quotes, null as nothing, a list of these with commas,
 * everything else as JSON. */
struct span show_value(struct cli *cli, struct json_value value);
/* The member at a path of names with dots between them. */
struct json_value show_member(struct json_value entity, const char *path);

/* A table of these members: `path`, `path=heading`, or `path|path=heading` for the first that is
 * not null; the marks of table_new go behind. A path that ends with '%' is a part of 1, shown as a
 * percentage. With --json the entities themselves, as an array. */
int show_entities(struct cli *cli, const struct entities *entities, const char *const *columns,
                  size_t count);
/* The same behind an empty line. */
int show_more(struct cli *cli, const struct entities *entities, const char *const *columns,
              size_t count);
/* The entities, as the server said them. */
void show_add_array(const struct entities *entities, struct buf *b);
/* A table of whatever members the entities have; one alone as a list of names and values. */
int show_any(struct cli *cli, struct json_value array);
/* Names and values of one entity, objects inside it as `Outer.Inner`. With --json an array of it.
 */
int show_entity(struct cli *cli, struct json_value entity);
/* Prints a table. */
int show_table(struct cli *cli, const struct table *table);
/* With --json the body of the answer, else Svc-info. */
int show_done(struct cli *cli, const struct answer *answer);
/* Asks, and shows what was done. */
int show_asked(struct cli *cli, const struct ask *ask);
/* The body as it is, `[]` for 204 to a GET, with a line feed at its end. */
int show_body(struct span body);
/* `12:00:05  Shop.OrderPlaced  <Id>`, as a line about an event begins. */
void show_add_event(struct cli *cli, struct json_value event, struct buf *line);
/* Local time of a datetime, `2026-01-31 12:00:00`; as it is when it is none. */
struct span show_time(struct cli *cli, struct span datetime);

#endif
