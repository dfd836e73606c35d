/* The header fields that a webhook sends, or sends with its custom payload request. */
#ifndef WEBHOOK_WEBHOOK_HEADERS_H
#define WEBHOOK_WEBHOOK_HEADERS_H

#include "json/json.h"

/* Checks them, and drops those that are set to null: *out_json is an object in the arena.
 * ERR_INVALID_ENTITY names the field. */
struct err *webhook_check_headers(struct json_value headers, struct arena *a,
                                  struct span *out_json) MUST_USE;

#endif
