/* Paths that browsers and orchestrators ask every server for, whatever else it serves: /livez,
 * /readyz, /favicon.ico, /robots.txt, and the pages for people, if there are any
 * (docs/specification.md, sections 11 and 12). They come before resources, take no key, tell no
 * detail and store no error. So does /openapi.json, but that it is answered as the resource
 * Svc.OpenApi is, to the same keys. */
#ifndef DISPATCH_PROBE_H
#define DISPATCH_PROBE_H

#include <stdbool.h>

struct call;

/* Of a request from outside. Answers when the target is one of them, below the base path and
 * spelled exactly (pages in any case); what follows a `?` is passed over. /favicon.ico and
 * /robots.txt are answered at the root too: that is where browsers and robots look for a host's,
 * whatever the base path is. A method other than GET and HEAD is 405. Of GET and HEAD of
 * /openapi.json it only notes, in call->asks_for_openapi, what they mean. */
bool probe_answer(struct call *call);

#endif
