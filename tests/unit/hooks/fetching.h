/* A fetcher that connects and answers when a test says so. It stands in for src/fetch/fetch.c at
 * link time. Names lead where the test says. There is one at a time.
 *
 * An origin is written as in `http://a.test`; NULL means any. */
#ifndef FETCHING_H
#define FETCHING_H

#include "serving.h"

struct fetch_origin {
    struct list_link link;
    unsigned refs;
    void *user;
    uint8_t address; /* that its last connection led to; 0: none was made */
    char text[64];
};

extern size_t starts; /* of fetches so far */

/* To an origin. */
size_t under_way(const char *origin);
/* The first of these that was started; there must be one. */
struct fetch *oldest(const char *origin);
/* Its connection is made, and led to an address that begins with this byte. */
void connect_one(const char *origin, uint8_t address);
/* It ends with this answer. retry_after_s: -1: none. */
void answer_with(const char *origin, int status, int64_t retry_after_s, uint32_t took_ms);
void answer(const char *origin, int status);

#endif
