/* libcurl's simple interface: a command waits for its answer and has nothing else to do. Targets go
 * out as they are written (CURLOPT_REQUEST_TARGET): libcurl does not know this request language,
 * and would take a `#` or a `?` for its own. */
#include "cli/client.h"

#include "base/mem.h"
#include "base/must.h"

#include <stdio.h>
#include <string.h>

enum {
    CONNECT_SECONDS = 10,
    READ_SECONDS = 10,   /* without a byte: it is not reached */
    CHANGE_SECONDS = 60, /* a change of very many entities gives way to others */
    PAGE_ENTITIES = 500,
    ANSWER_BYTES_MOST = 256 << 20,
};

struct client {
    struct span url;       /* as it was given */
    struct span origin;    /* what libcurl connects to */
    struct span base_path; /* without a slash at its end */
    struct span socket;    /* absent: TCP */
    struct span key;
    struct span leader; /* Url of a node that changes were sent on to; absent: none yet */
};

struct client *client_new(const struct settings *settings, struct arena *a)
{
    struct client *client = NEW(struct client);
    struct span rest = settings->url;
    size_t authority;

    MUST(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    client->url = settings->url;
    client->key = settings->key;
    if (span_starts(rest, SPAN("unix:"))) {
        client->socket = arena_copy(a, span_sub(rest, 5, rest.n));
        client->origin = SPAN("http://localhost/");
        return client;
    }
    authority = span_find(rest, SPAN("://")) + 3;
    authority = span_find_char(rest, '/', authority);
    client->origin = arena_printf(a, "%.*s/", SPAN_FMT(span_sub(rest, 0, authority)));
    client->base_path = span_sub(rest, authority, rest.n);
    while (span_ends(client->base_path, SPAN("/")))
        client->base_path.n--;
    return client;
}

struct client *client_beside(const struct cli *cli, struct span url)
{
    return client_new(&(struct settings){.url = url, .key = cli->client->key}, cli->arena);
}

void client_free(struct client *client)
{
    if (client == NULL)
        return;
    mem_free(client);
    curl_global_cleanup();
}

struct span client_address(const struct cli *cli)
{
    return cli->client->url;
}

void client_add_field(struct curl_slist **fields, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*fields, text);

    MUST(longer != NULL);
    *fields = longer;
}

static void set_text(CURL *handle, CURLoption option, const char *text)
{
    MUST(curl_easy_setopt(handle, option, text) == CURLE_OK);
}

static CURL *make_handle(struct cli *cli, const struct client *client, struct span target,
                         struct curl_slist **out_fields)
{
    CURL *handle = curl_easy_init();
    struct span whole =
        arena_printf(cli->arena, "%.*s%.*s", SPAN_FMT(client->base_path), SPAN_FMT(target));

    MUST(handle != NULL);
    set_text(handle, CURLOPT_URL, client->origin.p);
    set_text(handle, CURLOPT_REQUEST_TARGET, whole.p);
    set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    set_text(handle, CURLOPT_USERAGENT, "svc/" SVCD_VERSION);
    if (client->socket.p != NULL)
        set_text(handle, CURLOPT_UNIX_SOCKET_PATH, client->socket.p);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    if (client->key.p != NULL) {
        struct buf field;

        buf_init(&field, BUF_NO_CAP);
        buf_printf(&field, "Authorization: apikey %.*s", SPAN_FMT(client->key));
        client_add_field(out_fields, buf_text(&field));
        mem_wipe(field.p, field.n);
        buf_done(&field);
    }
    return handle;
}

CURL *client_handle(struct cli *cli, struct span target, struct curl_slist **out_fields)
{
    return make_handle(cli, cli->client, target, out_fields);
}

static size_t take_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct buf *body = arg;

    if (body->n + n * size > ANSWER_BYTES_MOST)
        return 0;
    buf_add(body, span_of(bytes, n * size));
    return n * size;
}

static void set_request(CURL *handle, const struct ask *ask, struct curl_slist **fields,
                        struct arena *a)
{
    bool reads = strcmp(ask->method, "GET") == 0 || strcmp(ask->method, "REPORT") == 0;
    struct span type = ask->content_type.p != NULL ? ask->content_type : SPAN("application/json");

    set_text(handle, CURLOPT_CUSTOMREQUEST, ask->method);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                     reads ? (long)READ_SECONDS : (long)CHANGE_SECONDS);
    if (ask->minimal)
        client_add_field(fields, "Prefer: return=minimal");
    if (ask->body.p != NULL) {
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body.n);
        set_text(handle, CURLOPT_POSTFIELDS, ask->body.p);
        client_add_field(fields, "Expect:");
        client_add_field(fields, arena_printf(a, "Content-Type: %.*s", SPAN_FMT(type)).p);
    }
    MUST(curl_easy_setopt(handle, CURLOPT_HTTPHEADER, *fields) == CURLE_OK);
}

static struct span field_of(CURL *handle, const char *name, struct arena *a)
{
    struct curl_header *field;

    if (curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &field) != CURLHE_OK)
        return span_of(NULL, 0);
    return arena_copy(a, span_str(field->value));
}

static void read_answer(CURL *handle, struct span body, struct arena *a, struct answer *out)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    long status = 0;

    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    *out = (struct answer){
        .status = (int)status,
        .body = body,
        .info = field_of(handle, "Svc-info", a),
        .pager = field_of(handle, "Svc-pager", a),
        .content_type = field_of(handle, "Content-Type", a),
        .location = field_of(handle, "Location", a),
    };
    if (span_find(out->content_type, SPAN("json")) != SIZE_MAX && body.n > 0) {
        struct err *e = json_parse(body, NULL, a, doc);

        if (e == NULL)
            out->json = json_root(doc);
        err_free(e); /* then it is shown as it is */
    }
}

static bool try_at(struct cli *cli, const struct client *client, const struct ask *ask,
                   struct answer *out, struct span *out_why)
{
    struct curl_slist *fields = NULL;
    CURL *handle = make_handle(cli, client, ask->target, &fields);
    char why[CURL_ERROR_SIZE] = "";
    struct buf body;
    CURLcode code;

    buf_init_arena(&body, cli->arena);
    set_request(handle, ask, &fields, cli->arena);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
    code = curl_easy_perform(handle);
    if (code == CURLE_OK)
        read_answer(handle, buf_span(&body), cli->arena, out);
    else
        *out_why =
            arena_copy(cli->arena, span_str(why[0] != '\0' ? why : curl_easy_strerror(code)));
    curl_slist_free_all(fields);
    curl_easy_cleanup(handle);
    return code == CURLE_OK;
}

/* ---- a change that is made elsewhere ---- */

static bool is_below(struct span address, struct span url)
{
    return url.n > 0 && address.n > url.n && span_starts(address, url) && address.p[url.n] == '/';
}

/* The Url that the address is below, of a node as the server that was asked knows them; the absent
 * span with a reason. Who can answer there has the key already. */
static struct span find_node(struct cli *cli, struct span address, struct span *out_why)
{
    const struct ask ask = {.method = "GET", .target = SPAN("/Svc.Admin.Node/_")};
    struct answer nodes;

    if (!try_at(cli, cli->client, &ask, &nodes, out_why))
        return span_of(NULL, 0);
    if (nodes.status != 200 || json_type(nodes.json) != JSON_ARRAY) {
        *out_why = arena_printf(cli->arena, "the cluster's nodes cannot be read: %.*s",
                                SPAN_FMT(client_words(cli, &nodes)));
        return span_of(NULL, 0);
    }
    for (struct json_value at = json_first(nodes.json); json_exists(at);
         at = json_next(nodes.json, at)) {
        struct span url = client_text(cli, at, "Url");

        while (span_ends(url, SPAN("/")))
            url.n--;
        if (is_below(address, url))
            return url;
    }
    *out_why = SPAN("it is no node of the cluster");
    return span_of(NULL, 0);
}

/* As find_node, but for who may see the key on its way. */
static struct span find_safe_node(struct cli *cli, struct span address, struct span *out_why)
{
    const struct client *client = cli->client;
    bool is_plain = !span_starts(address, SPAN("https://"));

    if (is_below(address, client->leader))
        return client->leader;
    if (is_plain && !span_starts(client->url, SPAN("http://"))) {
        *out_why = SPAN("the key would go there in plain text");
        return span_of(NULL, 0);
    }
    return find_node(cli, address, out_why);
}

/* Once: who is sent on again is told where to. */
static bool ask_leader(struct cli *cli, const struct ask *ask, struct answer *out,
                       struct span *out_why)
{
    struct span why = SPAN(""), address = out->location;
    struct span url = find_safe_node(cli, address, &why);
    struct client leader = {.url = url, .key = cli->client->key};
    struct ask again = *ask;

    if (url.p == NULL) {
        out->info = arena_printf(cli->arena,
                                 "changes are made at %.*s, which is not asked: %.*s; nothing was "
                                 "done, --url names another server",
                                 SPAN_FMT(address), SPAN_FMT(why));
        return true;
    }
    cli->client->leader = url;
    leader.origin = arena_printf(cli->arena, "%.*s/", SPAN_FMT(url));
    again.target = span_sub(address, url.n, address.n);
    if (try_at(cli, &leader, &again, out, &why))
        return true;
    *out_why = arena_printf(cli->arena, "the cluster's leader, %.*s, does not answer: %.*s",
                            SPAN_FMT(url), SPAN_FMT(why));
    return false;
}

bool client_try(struct cli *cli, const struct ask *ask, struct answer *out, struct span *out_why)
{
    return try_at(cli, cli->client, ask, out, out_why) &&
           (out->status != 307 || out->location.n == 0 || ask_leader(cli, ask, out, out_why));
}

int client_send(struct cli *cli, const struct ask *ask, struct answer *out)
{
    struct span why;

    if (client_try(cli, ask, out, &why))
        return CLI_DONE;
    cli_progress(cli, NULL);
    return cli_fail(CLI_NOT_REACHED, "%.*s is not reached: %.*s", SPAN_FMT(client_address(cli)),
                    SPAN_FMT(why));
}

static bool is_good(const struct answer *answer)
{
    return answer->status >= 200 && answer->status < 300;
}

struct span client_words(struct cli *cli, const struct answer *answer)
{
    struct span detail = client_text(cli, answer->json, "detail");
    struct span code = client_text(cli, answer->json, "ErrorCode");

    if (detail.p == NULL)
        detail = answer->info.p != NULL ? answer->info : span_trim(answer->body);
    if (detail.n == 0)
        detail = SPAN("the server says no more");
    if (code.p == NULL)
        return arena_printf(cli->arena, "%.*s (%d)", SPAN_FMT(detail), answer->status);
    return arena_printf(cli->arena, "%.*s (%d %.*s)", SPAN_FMT(detail), answer->status,
                        SPAN_FMT(code));
}

int client_refuse(struct cli *cli, const struct answer *answer)
{
    cli_progress(cli, NULL);
    return cli_fail(CLI_REFUSED, "%.*s", SPAN_FMT(client_words(cli, answer)));
}

int client_ask(struct cli *cli, const struct ask *ask, struct answer *out)
{
    int status = client_send(cli, ask, out);

    if (status != CLI_DONE)
        return status;
    return is_good(out) ? CLI_DONE : client_refuse(cli, out);
}

int client_get(struct cli *cli, struct span target, struct answer *out)
{
    return client_ask(cli, &(struct ask){.method = "GET", .target = target}, out);
}

void client_add_entities(struct cli *cli, struct json_value array, struct entities *out)
{
    for (struct json_value e = json_first(array); json_exists(e); e = json_next(array, e)) {
        if (out->count == out->room) {
            size_t more = MAX(out->room * 2, PAGE_ENTITIES);

            out->items = arena_grow(cli->arena, out->items, out->room * sizeof(*out->items),
                                    more * sizeof(*out->items));
            out->room = more;
        }
        out->items[out->count++] = e;
    }
}

int client_get_all(struct cli *cli, struct span target, struct entities *out)
{
    bool has_meta = span_count_char(target, '/') == 3; /* `/resource/conditions/meta` */
    struct answer answer;

    *out = (struct entities){NULL, 0, 0};
    target = arena_printf(cli->arena, "%.*s%climit=%d", SPAN_FMT(target), has_meta ? '&' : '/',
                          PAGE_ENTITIES);
    do {
        int status = client_get(cli, target, &answer);

        if (status != CLI_DONE)
            return status;
        if (json_type(answer.json) == JSON_ARRAY)
            client_add_entities(cli, answer.json, out);
        target = answer.pager;
    } while (answer.pager.p != NULL);
    return CLI_DONE;
}

int client_get_one(struct cli *cli, struct span target, const char *what, struct span name,
                   struct json_value *out_entity)
{
    struct answer answer;
    int status = client_get(cli, target, &answer);

    if (status != CLI_DONE)
        return status;
    *out_entity = json_first(answer.json);
    if (!json_exists(*out_entity))
        return cli_fail(CLI_REFUSED, "there is no %s '%.*s'", what, SPAN_FMT(name));
    if (json_count(answer.json) > 1)
        return cli_fail(CLI_REFUSED, "'%.*s' is the name of %u of them; say which by its Id",
                        SPAN_FMT(name), (unsigned)json_count(answer.json));
    return CLI_DONE;
}

struct span client_text(struct cli *cli, struct json_value entity, const char *name)
{
    return json_string(json_member(entity, span_str(name)), cli->arena);
}
