#include "serving.h"
#include "dispatch/api_key.h"

#include "journal/journal_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct loop loop;
struct service *service;
struct response response;
struct arena arena;
static char directory[TESTING_PATH_BYTES];

static void make_service(void)
{
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 32,
        .retention = {.errors = 100,
                      .log_days = 14,
                      .log_entries = 100,
                      .error_bytes = 1 << 24,
                      .log_bytes = 1 << 24,
                      .event_bytes = 1 << 24,
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
    ck_ok(service_replay(service, &turn));
    ck_ok(api_keys_list_configured(service->rest.api_keys));
}

static void declare(void)
{
    struct json_doc doc;

    ck_ok(json_parse(SPAN("[{\"Name\":\"Shop.OrderPlaced\",\"Kind\":\"EventResource\"},"
                          "{\"Name\":\"Shop.Message\",\"Kind\":\"EntityResource\"}]"),
                     NULL, &arena, &doc));
    ck_ok(declarations_configure(service->rest.resources, json_root(&doc), ".", false));
}

void set_up(void)
{
    testing_make_directory(directory);
    arena_init(&arena);
    response_init(&response, 1u << 20);
    make_service();
    declare();
}

void tear_down(void)
{
    service_free(service);
    loop_run(&loop);
    loop_done(&loop);
    response_done(&response);
    arena_done(&arena);
    testing_remove_directory(directory);
}

void commit(void)
{
    uint64_t last = journal_next_serial(turn_journal(service->turn)) - 1;

    while (!turn_is_committed(service->turn, last))
        loop_run_once(&loop);
}
