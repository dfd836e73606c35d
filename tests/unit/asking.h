/* Requests to a whole service on a directory of its own, and what is to be seen of it afterwards.
 * The loop stands still unless told otherwise. There is one at a time. */
#ifndef ASKING_H
#define ASKING_H

#include "testing.h"

#include "admin/service.h"
#include "io/loop.h"
#include "rest/response.h"
#include "store/store.h"

struct asking {
    struct loop loop;
    struct service *service;
    struct response answer; /* to the last request */
    struct arena arena;     /* for anything, until asking_close */
    const char *resources;  /* the configuration's, an array */
};
extern struct asking asking;

/* Opens a service that is not started. `resources` may be NULL; they must stay. */
void asking_open(const char *resources);
/* Ends it. What it has stored is read back first, and must be the same. */
void asking_close(void);
/* Closes it and opens it again over the same files, with the same `resources`, of which nothing is
 * written then: the digest and the next serial are the same. */
void asking_reload(void);
/* What a service of its own knows when it has read these records, in this order. `look` is called
 * with it, or NULL. */
struct asking_record {
    unsigned kind;
    struct span body;
};
struct store_digest asking_replay(const struct asking_record *records, size_t count,
                                  void (*look)(struct service *service));
/* Runs the loop until everything handed over is committed. */
void asking_commit(void);
/* One turn of the loop, without waiting for anything. */
void asking_turn(void);
/* Keys are required from now on. The first one has all rights; others those of `allow`, the value
 * of AllowAccess. Until the next reload. */
void asking_add_key(const char *key, const char *allow);
/* The service is asked for below this path, not `/`, until the next reload. */
void asking_below(const char *base_path);
/* Withdraws one of them. */
void asking_remove_key(const char *key);

/* `headers`: `Name: value` in each line; it and `body` may be NULL. */
void ask(const char *method, const char *target, const char *body);
void ask_with(const char *headers, const char *method, const char *target, const char *body);
void ask_request(const struct request *request);

/* Of the last answer: a header or the absent span; the body; a value in it by its path, `0.Name`,
 * as JSON, or the absent span; one that must be a string, as it reads. */
struct span answered_header(const char *name);
struct span answered_body(void);
struct span answered(const char *path);
const char *answered_text(const char *path);

/* All entities of a resource, as they are stored, with their versions: the same text says that
 * nothing has happened to any. */
struct span asking_entities(const char *resource);
size_t asking_count(const char *resource);
/* Serial of the next record. */
uint64_t asking_serial(void);
const char *asking_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The last answer has this status. */
#define ck_status(expected)                                                                        \
    ck_assert_msg(asking.answer.status == (expected), "status %d, should be %d: %.*s",             \
                  asking.answer.status, (expected), SPAN_FMT(answered_body()))
/* A request without headers is answered with this status. */
#define ck_asks(expected, method, target, body)                                                    \
    do {                                                                                           \
        ask(method, target, body);                                                                 \
        ck_status(expected);                                                                       \
    } while (0)
#define ck_body_eq(literal) ck_span_eq(answered_body(), literal)
#define ck_header_eq(name, literal) ck_span_eq(answered_header(name), literal)
#define ck_member_eq(path, literal) ck_span_eq(answered(path), literal)

/* The last answer is the problem of this code, and its detail contains `text`. */
#define ck_problem(expected, text)                                                                 \
    do {                                                                                           \
        ck_assert_msg(asking.answer.error == (expected), "error %d, should be %d: %d %.*s",        \
                      (int)asking.answer.error, (int)(expected), asking.answer.status,             \
                      SPAN_FMT(answered_body()));                                                  \
        ck_status(err_info(expected)->status);                                                     \
        ck_assert_msg(span_find(span_str(answered_text("detail")), span_str(text)) != SIZE_MAX,    \
                      "'%s' lacks '%s'", answered_text("detail"), text);                           \
    } while (0)
#define ck_refuses(code, text, method, target, body)                                               \
    do {                                                                                           \
        ask(method, target, body);                                                                 \
        ck_problem(code, text);                                                                    \
    } while (0)

#endif
