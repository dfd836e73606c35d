/* A whole service on a directory of its own, whose loop stands still unless told otherwise. There
 * is one at a time. */
#ifndef SERVING_H
#define SERVING_H

#include "testing.h"

#include "admin/service.h"
#include "admin/service_options.h"
#include "base/json.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/webhook.h"
#include "journal/journal.h"
#include "query/query.h"
#include "rest/access.h"
#include "rest/call.h"
#include "rest/declaration.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/resource.h"
#include "rest/response.h"
#include "rest/schema.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/once.h"
#include "store/store.h"
#include "store/turn.h"

extern struct loop loop;
extern struct service *service;
extern struct response response; /* for requests of the test */
extern struct arena arena;       /* for anything, until tear_down */

/* The service is open, and not started. Shop.OrderPlaced, an event, and Shop.Message, an entity,
 * are declared. */
void set_up(void);
void tear_down(void);
/* Runs the loop until everything handed over is committed. */
void commit(void);

#endif
