/* A whole service on a directory of its own, whose loop stands still unless told otherwise. There
 * is one at a time. */
#ifndef SERVING_H
#define SERVING_H

#include "testing.h"

#include "access/access.h"
#include "admin/service.h"
#include "admin/service_options.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "journal/journal.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "resource/declaration.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/once.h"
#include "store/store.h"
#include "store/turn.h"
#include "webhook/webhook.h"
#include "json/json.h"

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
