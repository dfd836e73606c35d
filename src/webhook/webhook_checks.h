/* Checks of a written webhook that are in files of their own. */
#ifndef WEBHOOK_WEBHOOK_CHECKS_H
#define WEBHOOK_WEBHOOK_CHECKS_H

#include "base/err.h"
#include "protocol/method.h"

struct call;
struct draft;
struct entity;
struct json_value;
struct webhook_selection;

/* webhook_check_local.c */
/* A target that the service itself will be asked for: it must make sense now. `headers`: what is
 * sent with it, the key among them. ERR_INVALID_ENTITY, errors of webhook_find_target and
 * call_sign_in. */
struct err *webhook_check_local(struct call *call, struct span target, enum method method,
                                struct json_value headers, struct span *out_normal) MUST_USE;

/* webhook_check_owner.c */
/* Sets Owner and OwnerKey when the one who writes answers for the webhook from now on.
 * ERR_NOT_AUTHORIZED: it may not have what is selected. */
struct err *webhook_check_owner(struct call *call, struct draft *draft, const struct entity *old,
                                const struct webhook_selection *selection) MUST_USE;
/* webhook_check_kept, of this write. */
struct err *webhook_check_secrets(const struct call *call, const struct draft *draft,
                                  const struct entity *old) MUST_USE;
/* Sets WriterKey: the key that has written all secrets, as far as none are kept of another. */
void webhook_note_writer(struct call *call, struct draft *draft, const struct entity *old);

#endif
