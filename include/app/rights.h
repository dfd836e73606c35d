/* What the rights of the configuration's keys are on: names that lead nowhere are most often
 * misspelled. */
#ifndef APP_RIGHTS_H
#define APP_RIGHTS_H

#include "json/json.h"

struct access;
struct resources;

/* Errors of key_rights_check; the message begins with the key's place. */
struct err *rights_check(const struct access *access, const struct resources *resources) MUST_USE;
/* A warning in the log for each other name that `declared`, the configuration's Resources, does not
 * have: it may be one that is declared at run time. */
void rights_warn(const struct access *access, struct json_value declared);

#endif
