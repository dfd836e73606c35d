/* A whole service on a directory of its own, whose loop stands still unless told otherwise. */
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

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[32];
static struct loop loop;
static struct service *service;
static struct response response;
static struct arena arena;

static void make_service(void)
{
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 32,
        .retention = {.errors = 100,
                      .log_days = 14,
                      .log_entries = 100,
                      .events = 100,
                      .event_days = 1,
                      .idempotency_keys = 100,
                      .idempotency_seconds = 60},
        .connections_per_host = 1,
        .fetch = {.connect_timeout_ms = 1000, .max_connections = 1},
    };
    const struct journal_options journal = {.directory = directory};
    const struct turn_options turn = {.journal = &journal};

    limits_init(&options.limits);
    egress_init(&options.egress);
    access_init(&options.access);
    ck_ok(loop_init(&loop));
    ck_ok(service_new(&loop, &options, &service));
    ck_ok(service_open(service, &turn));
}

static void declare(void)
{
    struct json_doc doc;

    ck_ok(json_parse(SPAN("[{\"Name\":\"Shop.OrderPlaced\",\"Kind\":\"EventResource\"},"
                          "{\"Name\":\"Shop.Message\",\"Kind\":\"EntityResource\"}]"),
                     NULL, &arena, &doc));
    ck_ok(declarations_configure(&service->rest, json_root(&doc), ".", false));
}

static void set_up(void)
{
    strcpy(directory, "/tmp/svc-serving-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    arena_init(&arena);
    response_init(&response, 1u << 20);
    make_service();
    declare();
}

static void remove_directory(void)
{
    DIR *d = opendir(directory);
    struct dirent *entry;

    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL)
        unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(directory);
}

static void tear_down(void)
{
    service_free(service);
    loop_run(&loop);
    loop_done(&loop);
    response_done(&response);
    arena_done(&arena);
    remove_directory();
}

static void commit(void)
{
    uint64_t last = journal_next_serial(turn_journal(service->turn)) - 1;

    while (!turn_is_committed(service->turn, last))
        loop_run_once(&loop);
}

#endif
