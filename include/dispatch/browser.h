/* Where no key is required, any web page that a browser of this machine shows could act here: by a
 * form or a script of its own, or under a name of its own that it lets lead to this machine. What
 * browsers say of themselves tells (docs/specification.md, section 6, "Browsers"; the Fetch
 * standard, `Origin`; Fetch Metadata, `Sec-Fetch-Site`). */
#ifndef DISPATCH_BROWSER_H
#define DISPATCH_BROWSER_H

#include "base/err.h"

struct call;

/* Of a request from outside without a key: ERR_NOT_AUTHORIZED when another site's page has made it,
 * or when it was sent to a host of another name than rest.hosts and the loopback ones. */
struct err *browser_check(const struct call *call) MUST_USE;
/* Adds what keeps a browser from running the bytes of the call's binary resource as a page of this
 * server, unless the resource has said itself what its page may do. */
void browser_confine(struct call *call);

#endif
