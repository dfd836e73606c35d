#include "asking.h"

#include "access/access.h"
#include "admin/service_options.h"
#include "base/digest.h"
#include "base/text.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "journal/journal.h"
#include "journal/journal_options.h"
#include "resource/declaration.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "store/turn.h"
#include "json/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct asking asking;
static char directory[TESTING_PATH_BYTES];

/* ---- the service ---- */

static struct service *make(struct loop *loop)
{
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 32,
        .retention = {.error_days = 30,
                      .errors = 1000,
                      .log_days = 14,
                      .log_entries = 1000,
                      .error_bytes = 1 << 24,
                      .log_bytes = 1 << 24,
                      .event_bytes = 1 << 24,
                      .event_days = 1,
                      .events = 1000,
                      .idempotency_seconds = 60,
                      .idempotency_keys = 1000},
        .connections_per_host = 32,
        .fetch = {.connect_timeout_ms = 1000, .max_connections = 1},
    };
    struct service *service;

    limits_init(&options.limits);
    egress_init(&options.egress);
    access_init(&options.access);
    ck_ok(loop_init(loop));
    ck_ok(service_new(loop, &options, &service));
    return service;
}

static void unmake(struct service *service, struct loop *loop)
{
    service_free(service);
    loop_run(loop);
    loop_done(loop);
}

static void start(void)
{
    const struct journal_options journal = {
        .directory = directory, .fsync = JOURNAL_NO, .segment_bytes = 1u << 16};
    const struct turn_options turn = {.journal = &journal};
    struct json_doc doc;

    asking.service = make(&asking.loop);
    ck_ok(service_replay(asking.service, &turn));
    ck_ok(api_keys_list_configured(asking.service->rest.api_keys));
    if (asking.resources == NULL)
        return;
    ck_ok(json_parse(span_str(asking.resources), NULL, &asking.arena, &doc));
    ck_ok(declarations_configure(asking.service->rest.resources, json_root(&doc), ".", false));
}

static void stop(void)
{
    unmake(asking.service, &asking.loop);
}

void asking_open(const char *resources)
{
    testing_make_directory_in_memory(directory);
    asking.resources = resources;
    arena_init(&asking.arena);
    response_init(&asking.answer, 1u << 20);
    start();
}

void asking_reload(void)
{
    struct store_digest before, after;
    uint64_t serial;

    asking_commit(); /* turns of the loop: more may be stored meanwhile */
    serial = asking_serial();
    before = store_digest(asking.service->store);
    stop();
    start();
    after = store_digest(asking.service->store);
    ck_assert_uint_eq(after.objects, before.objects);
    ck_assert_uint_eq(after.sum, before.sum);
    ck_assert_uint_eq(asking_serial(), serial);
}

void asking_close(void)
{
    asking_reload();
    stop();
    response_done(&asking.answer);
    arena_done(&asking.arena);
    testing_remove_directory(directory);
}

struct store_digest asking_replay(const struct asking_record *records, size_t count,
                                  void (*look)(struct service *service))
{
    struct loop loop;
    struct service *service = make(&loop);
    struct store_digest digest;

    for (size_t i = 0; i < count; i++) {
        const struct store_origin origin = {.serial = i + 1, .bytes = 1};

        ck_ok(store_apply(service->store, records[i].kind, records[i].body, &origin));
    }
    ck_ok(store_loaded(service->store));
    if (look != NULL)
        look(service);
    digest = store_digest(service->store);
    unmake(service, &loop);
    return digest;
}

void asking_commit(void)
{
    const struct journal *journal = turn_journal(asking.service->turn);

    while (journal_committed_sequence(journal) < journal_sequence(journal))
        loop_run_once(&asking.loop);
}

void asking_turn(void)
{
    loop_wake(&asking.loop);
    loop_run_once(&asking.loop);
}

void asking_add_key(const char *key, const char *allow)
{
    struct access *access = asking.service->rest.access;
    uint8_t digest[DIGEST_BYTES];
    struct json_doc doc;
    struct span json;
    struct buf hex;

    access->required = true;
    digest_sha256(span_str(key), digest);
    buf_init_arena(&hex, &asking.arena);
    text_add_hex(&hex, span_of((const char *)digest, sizeof(digest)));
    json =
        arena_printf(&asking.arena, "{\"Name\":\"%s\",\"KeySha256\":\"%.*s\",\"AllowAccess\":%s}",
                     key, SPAN_FMT(buf_span(&hex)), allow);
    ck_ok(json_parse(json, NULL, &asking.arena, &doc));
    ck_ok(access_add(access, json_root(&doc), &asking.arena));
}

void asking_below(const char *base_path)
{
    asking.service->rest.base_path = asking.service->rest.prefix = span_str(base_path);
}

void asking_remove_key(const char *key)
{
    struct access *access = asking.service->rest.access;

    access_remove(access, access_find(access, span_of(NULL, 0), span_str(key)));
}

/* ---- requests ---- */

void ask_request(const struct request *request)
{
    dispatch_run(&asking.service->rest, request, &asking.answer);
    ck_assert(!asking.answer.gives_way);
}

void ask_with(const char *headers, const char *method, const char *target, const char *body)
{
    enum { MOST = 16 };
    struct header_field list[MOST];
    struct span rest = span_str(headers);
    struct request request = {
        .method = span_str(method),
        .target = span_str(target),
        .headers = list,
        .body = span_str(body),
    };

    while (rest.n > 0) {
        struct span value = span_split(&rest, '\n');
        struct span name = span_split(&value, ':');

        ck_assert_uint_lt(request.header_count, MOST);
        list[request.header_count++] = (struct header_field){name, span_trim(value)};
    }
    ask_request(&request);
}

void ask(const char *method, const char *target, const char *body)
{
    ask_with(NULL, method, target, body);
}

/* ---- answers ---- */

struct span answered_header(const char *name)
{
    return response_header(&asking.answer, span_str(name));
}

struct span answered_body(void)
{
    return buf_span(&asking.answer.body);
}

static struct json_value value_at(const char *path)
{
    struct json_doc *doc = ARENA_NEW(&asking.arena, struct json_doc);
    struct span rest = span_str(path);
    struct json_value value;

    ck_ok(json_parse(arena_copy(&asking.arena, answered_body()), NULL, &asking.arena, doc));
    value = json_root(doc);
    while (rest.n > 0) {
        struct span step = span_split(&rest, '.');
        uint64_t index;

        if (json_type(value) == JSON_ARRAY && span_to_u64(step, &index))
            value = json_at(value, (uint32_t)index);
        else
            value = json_member(value, step);
    }
    return value;
}

struct span answered(const char *path)
{
    struct json_value value = value_at(path);

    return json_exists(value) ? json_text(value) : (struct span){NULL, 0};
}

const char *answered_text(const char *path)
{
    struct json_value value = value_at(path);

    ck_assert_msg(json_type(value) == JSON_STRING, "%s: no string in %.*s", path,
                  SPAN_FMT(answered_body()));
    return arena_copy(&asking.arena, json_string(value, &asking.arena)).p;
}

/* ---- what is stored ---- */

static struct collection *collection_of(const char *resource)
{
    return store_collection(asking.service->store, span_str(resource));
}

struct span asking_entities(const char *resource)
{
    struct collection *c = collection_of(resource);
    struct span all;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (struct entity *e = collection_first(c); e != NULL; e = collection_next(c, e))
        buf_printf(&b, "%llu %.*s\n", (unsigned long long)e->version, SPAN_FMT(entity_json(e)));
    all = arena_copy(&asking.arena, buf_span(&b));
    buf_done(&b);
    return all;
}

size_t asking_count(const char *resource)
{
    return collection_count(collection_of(resource));
}

uint64_t asking_serial(void)
{
    return journal_next_serial(turn_journal(asking.service->turn));
}

const char *asking_printf(const char *fmt, ...)
{
    char text[4096];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ck_assert(n >= 0 && (size_t)n < sizeof(text));
    return arena_copy(&asking.arena, span_of(text, (size_t)n)).p;
}
