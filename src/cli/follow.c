/* What has been dealt with is remembered by its ObjectNo, which is the Last-Event-ID of the next
 * connection. At the beginning that is the newest event there is, asked for before the first
 * connection: else what is raised before the first event arrives, while a connection breaks, would
 * be left out.
 *
 * Bytes are only read between events, so that a receiver that is slow slows the stream down; when
 * that takes too long for the server it closes, and we go on where we were. */
#include "cli/follow.h"

#include "base/mem.h"
#include "base/must.h"
#include "cli/stop.h"

#include <stdlib.h>

enum {
    EVENT_BYTES_MOST = 128 << 20,
    REFUSAL_BYTES_MOST = 65536,
    SILENT_SECONDS = 45, /* a comment comes every 15 */
    DELAY_MS_LEAST = 200,
    DELAY_MS_MOST = 5000,
    POLL_MS = 1000,
};

/* An event that has come and is not dealt with yet. */
struct waiting {
    struct waiting *next;
    bool is_gap;
    uint64_t id;
    struct span data; /* behind this, in the same block */
};

struct following {
    struct cli *cli;
    const struct follow *follow;
    CURL *handle;
    struct stream stream;
    struct waiting *first, **last;
    struct buf refusal;
    struct arena arena; /* of one event */
    uint64_t position;
    bool was_connected, was_resumed, is_alive;
    int delay_ms;
};

static void on_stream_event(void *arg, const struct stream_event *event)
{
    struct following *f = arg;
    struct waiting *w = mem_zero(sizeof(*w) + event->data.n + 1);
    char *data = (char *)(w + 1);

    memcpy(data, event->data.p, event->data.n);
    w->data = span_of(data, event->data.n);
    w->is_gap = span_eq(event->type, SPAN("gap"));
    if (!span_to_u64(event->id, &w->id))
        w->id = 0;
    *f->last = w;
    f->last = &w->next;
}

static bool is_stream(CURL *handle)
{
    char *type = NULL;
    long status = 0;

    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(handle, CURLINFO_CONTENT_TYPE, &type);
    return status == 200 && span_istarts(span_str(type), SPAN("text/event-stream"));
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *arg)
{
    struct following *f = arg;
    struct span part = span_of(bytes, size * n);

    if (!is_stream(f->handle)) {
        buf_add(&f->refusal, part);
        return part.n;
    }
    f->was_connected = f->is_alive = true;
    f->delay_ms = DELAY_MS_LEAST;
    return stream_feed(&f->stream, part) ? part.n : 0;
}

/* ---- what has come ---- */

static void tell_gap(struct json_value gap)
{
    struct span from = json_text(json_member(gap, SPAN("From")));
    struct span to = json_text(json_member(gap, SPAN("To")));

    (void)cli_fail(CLI_DONE, "what was raised from ObjectNo %.*s to %.*s is no longer kept",
                   SPAN_FMT(from), SPAN_FMT(to));
}

static int deal_with(struct following *f, const struct waiting *w)
{
    struct json_doc doc;
    int status = CLI_DONE;
    struct err *e = json_parse(w->data, NULL, &f->arena, &doc);

    if (e != NULL)
        return cli_fail_err(CLI_REFUSED, err_prefix(e, "the stream holds no JSON: "));
    if (w->is_gap && (f->was_resumed || f->follow->after.p != NULL))
        tell_gap(json_root(&doc));
    else if (w->is_gap)
        status = CLI_DONE; /* what was forgotten before we began */
    else if (w->id > f->position)
        status = f->follow->on_event(f->follow->arg, json_root(&doc));
    if (!w->is_gap && !stop_is_asked())
        f->position = MAX(f->position, w->id);
    arena_reset(&f->arena);
    return status;
}

static void drop_first(struct following *f)
{
    struct waiting *w = f->first;

    f->first = w->next;
    if (f->first == NULL)
        f->last = &f->first;
    mem_free(w);
}

static int deal_with_all(struct following *f)
{
    int status = CLI_DONE;

    while (f->first != NULL && status == CLI_DONE && !stop_is_asked()) {
        status = deal_with(f, f->first);
        drop_first(f);
    }
    return status;
}

/* ---- a connection ---- */

static CURL *open_stream(struct following *f, struct curl_slist **fields)
{
    CURL *handle = client_handle(f->cli, f->follow->target, fields);
    char field[64];

    client_add_field(fields, "Accept: text/event-stream");
    snprintf(field, sizeof(field), "Last-Event-ID: %llu", (unsigned long long)f->position);
    client_add_field(fields, field);
    MUST(curl_easy_setopt(handle, CURLOPT_HTTPHEADER, *fields) == CURLE_OK);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)SILENT_SECONDS);
    return handle;
}

/* Until the connection ends, or we are stopped; *out_code is how it ended. */
static int run_stream(struct following *f, CURLM *multi, CURLcode *out_code)
{
    struct curl_waitfd end = {.fd = stop_fd(), .events = CURL_WAIT_POLLIN};
    int running = 1, status = CLI_DONE, left;
    CURLMsg *message;

    *out_code = CURLE_OK;
    while (running > 0 && status == CLI_DONE && !stop_is_asked()) {
        MUST(curl_multi_perform(multi, &running) == CURLM_OK);
        status = deal_with_all(f);
        if (running > 0 && status == CLI_DONE)
            MUST(curl_multi_poll(multi, &end, 1, POLL_MS, NULL) == CURLM_OK);
    }
    message = curl_multi_info_read(multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE)
        *out_code = message->data.result;
    return status;
}

/* The connection was answered with something else than a stream. */
static int refused(struct following *f, int status)
{
    struct json_doc doc;
    struct answer answer = {.status = status, .body = buf_span(&f->refusal)};
    struct err *e = json_parse(answer.body, NULL, &f->arena, &doc);
    bool may_pass = status >= 500 || status == 429;

    if (e == NULL)
        answer.json = json_root(&doc);
    err_free(e);
    if (status < 300)
        return cli_fail(CLI_REFUSED, "%.*s answers without a stream (%d)",
                        SPAN_FMT(client_address(f->cli)), status);
    if (f->was_connected && may_pass)
        return CLI_DONE;
    return client_refuse(f->cli, &answer);
}

static int after_stream(struct following *f, CURL *handle, CURLcode code, const char *why)
{
    long status = 0;
    const char *words = why[0] != '\0' ? why : curl_easy_strerror(code);

    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (stop_is_asked())
        return CLI_DONE;
    if (status != 0 && !is_stream(handle))
        return refused(f, (int)status);
    if (code == CURLE_WRITE_ERROR)
        return cli_fail(CLI_REFUSED, "an event has more than %d bytes", EVENT_BYTES_MOST);
    if (!f->was_connected && code != CURLE_OK)
        return cli_fail(CLI_NOT_REACHED, "%.*s is not reached: %s",
                        SPAN_FMT(client_address(f->cli)), words);
    if (f->is_alive) /* once for each break, not for each try */
        (void)cli_fail(CLI_DONE, "the connection to %.*s broke (%s); it is tried again",
                       SPAN_FMT(client_address(f->cli)),
                       code == CURLE_OK ? "the server ended it" : words);
    f->was_connected = f->was_resumed = true;
    f->is_alive = false;
    return CLI_DONE;
}

static int connect_once(struct following *f)
{
    struct curl_slist *fields = NULL;
    CURLM *multi = curl_multi_init();
    char why[CURL_ERROR_SIZE] = "";
    CURLcode code;
    int status;

    MUST(multi != NULL);
    f->handle = open_stream(f, &fields);
    curl_easy_setopt(f->handle, CURLOPT_ERRORBUFFER, why);
    stream_restart(&f->stream);
    buf_clear(&f->refusal);
    MUST(curl_multi_add_handle(multi, f->handle) == CURLM_OK);
    status = run_stream(f, multi, &code);
    if (status == CLI_DONE)
        status = after_stream(f, f->handle, code, why);
    curl_multi_remove_handle(multi, f->handle);
    curl_easy_cleanup(f->handle);
    curl_multi_cleanup(multi);
    curl_slist_free_all(fields);
    return status;
}

/* ---- the beginning ---- */

static int find_newest(struct following *f)
{
    struct answer answer;
    struct json_value number;
    int status = client_get(f->cli, SPAN("/Svc.Event/_/offset=-1&select=ObjectNo"), &answer);

    if (status != CLI_DONE)
        return status;
    number = json_member(json_first(answer.json), SPAN("ObjectNo"));
    if (!span_to_u64(json_text(number), &f->position))
        f->position = 0; /* none is kept: all that there will be is new */
    return CLI_DONE;
}

static int begin(struct following *f)
{
    if (f->follow->after.p == NULL)
        return find_newest(f);
    if (!span_to_u64(f->follow->after, &f->position))
        return cli_fail(CLI_MISUSE, "--after: '%.*s' is no ObjectNo", SPAN_FMT(f->follow->after));
    return CLI_DONE;
}

int follow_run(struct cli *cli, const struct follow *follow)
{
    struct following f = {.cli = cli, .follow = follow, .delay_ms = DELAY_MS_LEAST};
    int status;

    f.last = &f.first;
    arena_init(&f.arena);
    buf_init(&f.refusal, REFUSAL_BYTES_MOST);
    stream_init(&f.stream, EVENT_BYTES_MOST, on_stream_event, &f);
    status = begin(&f);
    if (status == CLI_DONE && follow->start != NULL)
        *follow->start = f.position;
    while (status == CLI_DONE && !stop_is_asked()) {
        status = connect_once(&f);
        if (status == CLI_DONE && !stop_is_asked())
            stop_wait_ms(f.delay_ms);
        f.delay_ms = MIN(2 * f.delay_ms, DELAY_MS_MOST);
    }
    while (f.first != NULL)
        drop_first(&f);
    stream_done(&f.stream);
    buf_done(&f.refusal);
    arena_done(&f.arena);
    return status;
}
