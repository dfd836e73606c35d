/* The configuration file, as far as the black-box tests cannot see it. */
#include "testing.h"

#include "app/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(char name[], const char *text)
{
    int fd = mkstemp(name);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* NULL, or the error. */
static struct err *read_text(struct config *c, const char *text)
{
    char name[] = "/tmp/check-config-XXXXXX";
    const struct config_arguments arguments = {.file = name};
    struct err *e;

    write_file(name, text);
    e = config_read(c, &arguments);
    unlink(name);
    return e;
}

static void check_defaults(const struct config *c)
{
    struct limits limits;

    limits_init(&limits);
    ck_assert_mem_eq(&c->limits, &limits, sizeof(limits));
#define RETENTION_AS_CHECK(member, name, value, unit) ck_assert_int_eq(c->retention.member, value);
    RETENTIONS(RETENTION_AS_CHECK)
#undef RETENTION_AS_CHECK
    ck_assert_uint_eq(c->listener_count, 1);
    ck_assert_str_eq(c->listeners[0].text, "127.0.0.1:8080");
    ck_assert(c->listens_by_default && !c->require_api_key);
    ck_assert_str_eq(c->base_path, "/");
    ck_assert_str_eq(c->data_directory, "svc-data");
    ck_assert_ptr_null(c->user);
    ck_assert_int_eq(c->fsync, JOURNAL_ALWAYS);
    ck_assert_int_eq(c->segment_bytes, 16777216);
    ck_assert_uint_eq(c->trusted_proxies.count, 2);
    ck_assert_ptr_null(c->cors_origins);
    ck_assert_str_eq(c->secret_headers[0], "X-Auth-Token");
    ck_assert_str_eq(c->secret_headers[1], "Api-Key");
    ck_assert_ptr_null(c->secret_headers[2]);
    ck_assert_uint_eq(json_count(c->api_keys) + json_count(c->resources), 0);
    ck_assert_int_eq(c->connect_seconds, 5);
    ck_assert_int_eq(c->max_in_flight, 1024);
    ck_assert_int_eq(c->max_connections_per_host, 32);
    ck_assert_int_eq(c->egress.preset, EGRESS_LOCAL_NETWORK);
    ck_assert_uint_eq(c->egress.allow.count + c->egress.deny.count, 0);
    ck_assert(c->proxy == NULL && c->ca_file == NULL);
    ck_assert(c->hosts_file == NULL && c->name_servers == NULL);
    ck_assert_int_eq(c->log_level, LOG_INFO);
    ck_assert_int_eq(c->log_format, LOG_TEXT);
}

START_TEST(what_is_left_out_has_its_default)
{
    static const char *const texts[] = {
        "{}", "{\"Listen\": null, \"RequireApiKey\": null, \"Limits\": null, \"Log\": {}}",
        "{\"Delivery\": {\"Egress\": {\"Allow\": null}, \"MaxInFlight\": null}}"};
    const struct config_arguments none = {.file = NULL};
    struct config c;

    ck_ok(config_read(&c, &none));
    check_defaults(&c);
    config_done(&c);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        ck_ok(read_text(&c, texts[i]));
        check_defaults(&c);
        config_done(&c);
    }
}
END_TEST

START_TEST(what_is_given)
{
    struct config c;

    ck_ok(read_text(
        &c,
        "{\"listen\": [\"[::1]:7\", {\"ProxyProtocol\": true, \"address\": \"unix:/s\"}],\n"
        "// \"User\": \"nobody\",\n"
        "\"BasePath\": \"/a\\u0062\", \"TrustedProxies\": [], \"fsync\": \"EVERYSEC\",\n"
        "\"AllowedCorsOrigins\": [\"*\", \"https://x\"], \"Limits\": {\"uribytes\": 1e3,\n"
        "\"SecretHeaders\": [\"X-A\"]},\n"
        "\"Retention\": {\"Events\": 7.0}, \"Log\": {\"Level\": \"Error\", \"Format\": \"json\"},\n"
        "\"Resources\": [{}, {}], \"Delivery\": {\"NameServers\": [\"::1\", \"1.1.1.1:53\"],\n"
        "\"Egress\": {\"Preset\": \"public-only\", \"Deny\": [\"10.0.0.0/8\"]}, \"Proxy\": "
        "\"p\"}}"));
    ck_assert_uint_eq(c.listener_count, 2);
    ck_assert(!c.listens_by_default && !c.listeners[0].is_proxied && c.listeners[1].is_proxied);
    ck_assert_str_eq(c.listeners[0].text, "[::1]:7");
    ck_assert_str_eq(c.listeners[1].text, "unix:/s");
    ck_assert_ptr_null(c.user);
    ck_assert_str_eq(c.base_path, "/ab");
    ck_assert_uint_eq(c.trusted_proxies.count, 0);
    ck_assert_int_eq(c.fsync, JOURNAL_EVERYSEC);
    ck_assert_str_eq(c.cors_origins[0], "*");
    ck_assert_str_eq(c.cors_origins[1], "https://x");
    ck_assert_ptr_null(c.cors_origins[2]);
    ck_assert_int_eq(c.limits.uri_bytes, 1000);
    ck_assert_str_eq(c.secret_headers[0], "X-A");
    ck_assert_ptr_null(c.secret_headers[1]);
    ck_assert_int_eq(c.retention.events, 7);
    ck_assert_int_eq(c.log_level, LOG_ERROR);
    ck_assert_int_eq(c.log_format, LOG_JSON);
    ck_assert_uint_eq(json_count(c.resources), 2);
    ck_assert_str_eq(c.name_servers, "::1,1.1.1.1:53");
    ck_assert_int_eq(c.egress.preset, EGRESS_PUBLIC_ONLY);
    ck_assert_uint_eq(c.egress.deny.count, 1);
    ck_assert_str_eq(c.proxy, "p");
    config_done(&c);
}
END_TEST

static const struct {
    const char *number;
    int64_t value;
} numbers[] = {
    {"0", 0},
    {"1e3", 1000},
    {"9007199254740993", 9007199254740992}, /* a double holds no more */
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775808", INT64_MAX},
};

START_TEST(whole_numbers)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct config c;
        char text[80];

        snprintf(text, sizeof(text), "{\"Limits\": {\"MemoryBytes\": %s}}", numbers[i].number);
        ck_ok(read_text(&c, text));
        ck_assert_int_eq(c.limits.memory_bytes, numbers[i].value);
        config_done(&c);
    }
}
END_TEST

static const char *const wrong_numbers[] = {"-1", "0.5", "9223372036854779904", "1e400", "\"1\""};

START_TEST(wrong_numbers_are_named)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong_numbers); i++) {
        struct config c;
        char text[80];

        snprintf(text, sizeof(text), "{\"Limits\": {\"MemoryBytes\": %s}}", wrong_numbers[i]);
        ck_fails(read_text(&c, text), ERR_INVALID_ENTITY, "Limits.MemoryBytes: ");
        config_done(&c);
    }
}
END_TEST

static const struct limit_row {
    struct span name;
    int64_t value, least, most;
    const char *unit, *meaning;
} limit_rows[] = {
#define LIMIT_AS_ROW(member, name, value, least, most, unit, meaning)                              \
    {SPAN_INIT(name), value, least, most, unit, meaning},
    LIMITS(LIMIT_AS_ROW)
#undef LIMIT_AS_ROW
};

START_TEST(secret_headers_are_names)
{
    static const struct {
        const char *value, *text;
    } bad[] = {
        {"\"X-A\"", "Limits.SecretHeaders"},
        {"[1]", "Limits.SecretHeaders"},
        {"[\"X-A\",\"X A\"]", "Limits.SecretHeaders[1]: 'X A' is not a header name"},
        {"[\"\"]", "Limits.SecretHeaders[0]: '' is not a header name"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[200];
        struct config c;
        struct err *e;

        snprintf(text, sizeof(text), "{\"Limits\": {\"SecretHeaders\": %s}}", bad[i].value);
        e = read_text(&c, text);
        ck_assert_ptr_nonnull(e);
        ck_assert_msg(span_find(err_message(e), span_str(bad[i].text)) != SIZE_MAX, "%.*s",
                      SPAN_FMT(err_message(e)));
        err_free(e);
        config_done(&c);
    }
}
END_TEST

START_TEST(limits_make_sense)
{
    for (size_t i = 0; i < ARRAY_LEN(limit_rows); i++) {
        const struct limit_row *row = &limit_rows[i];

        ck_assert_msg(row->least <= row->value && row->value <= row->most, "%s", row->name.p);
        ck_assert_int_ge(row->least, 0);
        ck_assert(row->unit[0] != '\0' && row->meaning[0] != '\0');
        for (size_t k = 0; k < i; k++)
            ck_assert(!span_ieq(row->name, limit_rows[k].name));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, what_is_left_out_has_its_default);
    tcase_add_test(tc, what_is_given);
    tcase_add_test(tc, whole_numbers);
    tcase_add_test(tc, wrong_numbers_are_named);
    tcase_add_test(tc, secret_headers_are_names);
    tcase_add_test(tc, limits_make_sense);
}
