/* One attempt an event, and no more: who listens sees the failure at once, and can send the event
 * again (`svc events resend`). */
#include "cli/forward.h"

#include "base/clock.h"
#include "base/must.h"
#include "base/text.h"
#include "cli/signature.h"
#include "cli/stop.h"

enum { CONNECT_SECONDS = 5, WHOLE_SECONDS = 30 };

/* Entities as an array, whatever was raised; bytes as they were. */
static struct span body_of(struct json_value event, struct span type, struct arena *a)
{
    struct json_value payload = json_member(event, SPAN("Payload"));
    struct span bytes;
    struct buf b;

    buf_init_arena(&b, a);
    if (json_type(payload) == JSON_STRING && !span_istarts(type, SPAN("application/json")) &&
        text_from_base64(json_string(payload, a), a, &bytes))
        return bytes;
    if (json_type(payload) == JSON_ARRAY)
        return json_text(payload);
    buf_add_char(&b, '[');
    buf_add(&b, json_text(payload));
    buf_add_char(&b, ']');
    return buf_span(&b);
}

static void add_field(struct curl_slist **fields, const char *name, struct span value,
                      struct arena *a)
{
    client_add_field(fields, arena_printf(a, "%s: %.*s", name, SPAN_FMT(value)).p);
}

static struct err *add_fields(struct curl_slist **fields, const struct forward *forward,
                              struct json_value event, struct span body, struct arena *a)
{
    struct span type = json_string(json_member(event, SPAN("ContentType")), a);
    struct signed_request request = {
        .id = json_string(json_member(event, SPAN("Id")), a),
        .timestamp = arena_u64(a, (uint64_t)(clock_unix_ns() / 1000000000)),
        .body = body,
    };
    struct buf signature;

    buf_init_arena(&signature, a);
    TRY(signature_add(&signature, forward->secret, &request));
    add_field(fields, "Content-Type", type.n > 0 ? type : SPAN("application/json"), a);
    add_field(fields, "Svc-event", json_string(json_member(event, SPAN("Resource")), a), a);
    add_field(fields, "Svc-attempt", SPAN("1"), a);
    add_field(fields, "webhook-id", request.id, a);
    add_field(fields, "webhook-timestamp", request.timestamp, a);
    add_field(fields, "webhook-signature", buf_span(&signature), a);
    client_add_field(fields, "Expect:");
    return NULL;
}

static size_t drop_body(char *bytes, size_t size, size_t n, void *arg)
{
    (void)bytes, (void)arg;
    return size * n;
}

static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                       curl_off_t up)
{
    (void)arg, (void)down_all, (void)down, (void)up_all, (void)up;
    return stop_is_asked();
}

static void set_up(CURL *handle, const struct forward *forward, struct span body, char *why)
{
    MUST(curl_easy_setopt(handle, CURLOPT_URL, forward->url.p) == CURLE_OK);
    MUST(curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "svcd/" SVCD_VERSION);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.p);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, (long)WHOLE_SECONDS);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop_body);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
}

static void send_it(CURL *handle, struct curl_slist *fields, const char *why, struct arena *a,
                    struct forwarded *out)
{
    uint64_t began = clock_mono_ms();
    CURLcode code;
    long status = 0;

    MUST(curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields) == CURLE_OK);
    code = curl_easy_perform(handle);
    if (code == CURLE_OK)
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    *out = (struct forwarded){.status = (int)status, .ms = (unsigned)(clock_mono_ms() - began)};
    if (code != CURLE_OK)
        out->why = arena_copy(a, span_str(why[0] != '\0' ? why : curl_easy_strerror(code)));
}

int forward_event(const struct forward *forward, struct json_value event, struct arena *a,
                  struct forwarded *out)
{
    struct span type = json_string(json_member(event, SPAN("ContentType")), a);
    struct span body = body_of(event, type, a);
    struct curl_slist *fields = NULL;
    char why[CURL_ERROR_SIZE] = "";
    struct err *e = add_fields(&fields, forward, event, body, a);
    CURL *handle;

    if (e != NULL) {
        curl_slist_free_all(fields);
        return cli_fail_err(CLI_MISUSE, e);
    }
    handle = curl_easy_init();
    MUST(handle != NULL);
    set_up(handle, forward, body, why);
    send_it(handle, fields, why, a, out);
    curl_easy_cleanup(handle);
    curl_slist_free_all(fields);
    return CLI_DONE;
}
