/* The member Signing of a webhook: secrets that are written, made, rotated, and expire. */
#ifndef WEBHOOK_WEBHOOK_SIGNING_H
#define WEBHOOK_WEBHOOK_SIGNING_H

#include "base/err.h"

struct call;
struct draft;
struct entity;

/* Checks a draft's Signing and puts it into the form that is stored, `{"Secrets":[...]}`, with
 * `"Expires":[...]` when any expires. Secrets that are asked for are made, and noted for the
 * answer. ERR_INVALID_ENTITY. */
struct err *webhook_check_signing(struct call *call, struct draft *draft,
                                  const struct entity *old) MUST_USE;

#endif
