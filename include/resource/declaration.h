/* Declarations of resources (docs/specification.md, section 7): the entities of Svc.Admin.Resource,
 * whether they came from the configuration or at run time. The collection is the truth; the
 * registry follows it, live and after a replay alike. */
#ifndef RESOURCE_DECLARATION_H
#define RESOURCE_DECLARATION_H

#include "resource/resource.h"

#include <stdbool.h>
#include <stdint.h>

struct draft;

/* The table of a declaration's properties, and the resource that declarations are entities of. */
extern const struct shape declaration_shape;
extern const struct span declaration_resource;

/* Brings what a declaration may write in several ways into one: Methods in capitals. What is none
 * of them stays, to be refused by resource_make. */
void declaration_normalise(struct draft *draft, struct arena *a);
/* Lets the registry follow the collection. */
void declarations_observe(struct resources *r);

/* What one declaration is about to become, as far as others may refer to it. */
struct declared {
    struct declared *next;
    enum method verb; /* POST: new; PATCH: changed; DELETE: gone */
    struct span name, folded;
    enum resource_kind kind;
    struct span events[3];
    struct span payload_resource, cloudevents_type;
    bool is_binary_event;
};

/* Declarations that change together: they may refer to one another in any order. */
struct declaration_set {
    const struct resources *resources;
    struct arena *arena;
    struct declared *first, *last;
};

void declaration_set_init(struct declaration_set *set, const struct resources *resources,
                          struct arena *a);
/* Notes one, which is checked by itself: errors of resource_make. `json` is the entity's text, for
 * DELETE the one that goes. */
struct err *declaration_set_add(struct declaration_set *set, enum method verb,
                                struct span json) MUST_USE;
/* Checks that names are unique and that all references hold afterwards: ERR_CONFLICT for a name
 * that is taken and for what would leave another resource's reference without its end,
 * ERR_INVALID_ENTITY for a reference that leads nowhere. */
struct err *declaration_set_check(const struct declaration_set *set) MUST_USE;

/* Makes the configuration's `Resources` (may be absent) what is declared there: new ones are added,
 * changed ones replaced, others of the configuration removed, in one change; nothing happens on an
 * error, whose message begins with the place. `directory` is where File names are looked up. With
 * `only_check` nothing is changed, and the store need not be open. */
struct err *declarations_configure(struct resources *r, struct json_value declarations,
                                   const char *directory, bool only_check) MUST_USE;
/* Is that what is declared there, on a node that follows another one's declarations? ERR_CONFLICT
 * names the first difference. Without one the contents of files are taken from the directory. */
struct err *declarations_compare(struct resources *r, struct json_value declarations,
                                 const char *directory) MUST_USE;
/* To be called when changes of declarations have been applied: tells the observer. *out_serial is
 * what an answer must wait for. Errors are the observer's. */
struct err *declarations_changed(struct resources *r, struct arena *a,
                                 uint64_t *out_serial) MUST_USE;

/* The bytes of a binary resource's File. ERR_INVALID_ENTITY names the file. */
struct err *declaration_read_file(const char *directory, struct span name, struct arena *a,
                                  struct blob **out_content) MUST_USE;

#endif
