/* An easy handle is made once, with everything that no request changes; a request then costs a few
 * settings and no allocation of ours, since its strings and list nodes lie in the transfer's
 * memory.
 *
 * Addresses. libcurl must never ask for a name: it would start a thread. So the answer of `resolve`
 * is put into libcurl's own cache of names together with each request (CURLOPT_RESOLVE), where it
 * replaces the one before; and should libcurl find none there, on_resolver_start refuses. The cache
 * would grow with each new name: one request a minute is allowed to drop what is older than ten
 * minutes when it ends (it costs a walk over the whole cache, which is why the others are not).
 *
 * A connection is checked by `egress` when it is opened. One that is kept open and used again goes
 * to the address that was checked then, also when its name leads elsewhere by now; it lives five
 * minutes at most, and that is how long a move can take to be noticed. */
#include "fetch_private.h"

#include "base/clock.h"
#include "base/must.h"

#include <arpa/inet.h>
#include <string.h>

enum {
    CONNECTION_LIFE_S = 300,
    PRUNE_EVERY_MS = 60000,
    PIN_AGE_S = 600,
    NEVER = -1,
    /* Less memory for each request under way, at the same speed. */
    READ_BUFFER = 1024,
    WRITE_BUFFER = 16384,
    /* The least body that any version of libcurl would announce with `Expect: 100-continue`. */
    EXPECT_BYTES = 1024,
    MEMORY_KEPT = 4096, /* of a request, for the next */
    LEFT_OUT_MOST = 2,
};

/* What libcurl would add, and may have to leave out. */
static const struct span content_type = SPAN_INIT("Content-Type"), expect = SPAN_INIT("Expect");

#define LEFT_OUT_BYTES (sizeof("Content-Type:") + sizeof("Expect:"))

static const struct {
    CURLoption option;
    long value;
} constants[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS},
    {CURLOPT_PATH_AS_IS, 1},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    {CURLOPT_BUFFERSIZE, READ_BUFFER},
    {CURLOPT_UPLOAD_BUFFERSIZE, WRITE_BUFFER},
    {CURLOPT_MAXLIFETIME_CONN, CONNECTION_LIFE_S},
    {CURLOPT_DNS_CACHE_TIMEOUT, NEVER},
};

/* libcurl asks for literal addresses too, and then needs nobody. */
static int on_resolver_start(void *state, void *reserved, void *data)
{
    const struct fetch_transfer *t = MUST_BE(struct fetch_transfer, FETCH_KIND_TRANSFER, data);
    const struct fetcher *f = t->fetcher;

    (void)state;
    (void)reserved;
    return f->proxy != NULL ? !f->proxy_target.literal : !t->host->target.literal;
}

static CURLcode set_constants(CURL *easy, const struct fetcher *f)
{
    CURLcode code = CURLE_OK;

    for (size_t i = 0; code == CURLE_OK && i < ARRAY_LEN(constants); i++)
        code = curl_easy_setopt(easy, constants[i].option, constants[i].value);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)f->connect_timeout_ms);
    return code;
}

/* Texts that are copied by libcurl. Without a proxy and a CA directory given, it would look into
 * the environment for the one, and with the other read all certificates again at each new
 * connection instead of keeping them. */
static CURLcode set_texts(CURL *easy, const struct fetcher *f)
{
    const struct {
        CURLoption option;
        const char *text;
    } texts[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_USERAGENT, f->user_agent},
        {CURLOPT_PROXY, f->proxy != NULL ? f->proxy : ""},
        {CURLOPT_NOPROXY, ""},
        {CURLOPT_CAPATH, NULL},
        {CURLOPT_PROXY_CAPATH, NULL},
    };
    CURLcode code = CURLE_OK;

    for (size_t i = 0; code == CURLE_OK && i < ARRAY_LEN(texts); i++)
        code = curl_easy_setopt(easy, texts[i].option, texts[i].text);
    if (code == CURLE_OK && f->ca_file != NULL)
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, f->ca_file);
    if (code == CURLE_OK && f->ca_file != NULL)
        code = curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, f->ca_file);
    return code;
}

static CURLcode set_callbacks(struct fetch_transfer *t)
{
    const struct {
        CURLoption option;
        void *data;
    } data[] = {
        {CURLOPT_PRIVATE, t},
        {CURLOPT_SHARE, t->fetcher->share},
        {CURLOPT_HEADERDATA, t},
        {CURLOPT_WRITEDATA, t},
        {CURLOPT_OPENSOCKETDATA, t},
        {CURLOPT_CLOSESOCKETDATA, t->fetcher},
        {CURLOPT_ERRORBUFFER, t->curl_text},
        {CURLOPT_RESOLVER_START_DATA, t},
        {CURLOPT_SSL_CTX_DATA, t},
    };
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;

    for (size_t i = 0; code == CURLE_OK && i < ARRAY_LEN(data); i++)
        code = curl_easy_setopt(easy, data[i].option, data[i].data);
    /* These take function pointers only, and fail for no reason but an unknown option, or another
     * library for TLS than OpenSSL. */
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolver_start);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, fetch_tls_on_context);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, fetch_answer_on_head);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, fetch_answer_on_body);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, fetch_socket_on_open);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, fetch_socket_on_close);
    return code;
}

struct err *fetch_easy_open(struct fetch_transfer *t)
{
    CURLcode code;

    t->easy = curl_easy_init();
    if (t->easy == NULL)
        return ERR(ERR_UNKNOWN, "libcurl is out of memory");
    code = set_constants(t->easy, t->fetcher);
    if (code == CURLE_OK)
        code = set_texts(t->easy, t->fetcher);
    if (code == CURLE_OK)
        code = set_callbacks(t);
    if (code == CURLE_OK)
        return NULL;
    fetch_easy_close(t);
    return ERR(ERR_UNKNOWN, "libcurl lacks what is needed: %s", curl_easy_strerror(code));
}

void fetch_easy_close(struct fetch_transfer *t)
{
    curl_easy_cleanup(TAKE(t->easy));
}

/* The request: nodes of the list of headers, and the texts that they and libcurl's options need,
 * one behind the other in one block that is large enough from the beginning. */
struct request {
    struct curl_slist *first, *node; /* the next one */
    char *at;                        /* the next text */
};

static struct request request_begin(struct fetch_transfer *t)
{
    const struct fetch *fetch = t->fetch;
    size_t nodes = fetch->header_count + LEFT_OUT_MOST;
    size_t bytes =
        nodes * sizeof(struct curl_slist) + LEFT_OUT_BYTES + fetch->url.n + 1 + fetch->method.n + 1;
    struct request r;

    for (size_t i = 0; i < fetch->header_count; i++)
        bytes += fetch->headers[i].name.n + strlen(": ") + fetch->headers[i].value.n + 1;
    buf_shrink(&t->memory, MEMORY_KEPT);
    r.first = r.node = (struct curl_slist *)(void *)buf_reserve(&t->memory, bytes);
    r.at = (char *)(r.first + nodes);
    return r;
}

static char *put(char *at, struct span s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

static const char *add_text(struct request *r, struct span s)
{
    const char *text = r->at;

    r->at = put(r->at, s);
    *r->at++ = '\0';
    return text;
}

/* `separator` with a blank before a value; libcurl reads `Name;` as a header without a value, and
 * `Name:` as an order to leave it out. printf would take longer than all the rest of this file. */
static void add_header(struct request *r, struct span name, struct span separator,
                       struct span value)
{
    r->node->data = r->at;
    r->node->next = r->node + 1;
    r->node++;
    r->at = put(put(put(r->at, name), separator), value);
    *r->at++ = '\0';
}

static void leave_out(struct request *r, struct span name)
{
    add_header(r, name, SPAN(":"), SPAN(""));
}

static struct curl_slist *list_of(struct request *r)
{
    if (r->node == r->first)
        return NULL;
    r->node[-1].next = NULL;
    return r->first;
}

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* A byte that is less borrows into its high bit. (So may one above it: then this says true as
 * well.)
 */
static bool may_hold_control(const char *eight)
{
    uint64_t word;

    memcpy(&word, eight, sizeof(word));
    return ((word - EACH_BYTE(' ')) & ~word & EACH_BYTE(0x80)) != 0;
}

bool fetch_breaks_line(struct span s)
{
    size_t i = 0;

    while (s.n - i >= 8 && !may_hold_control(s.p + i))
        i += 8;
    for (; i < s.n; i++)
        if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == '\0')
            return true;
    return false;
}

static bool add_headers(struct request *r, const struct fetch *fetch)
{
    bool has_type = false;

    for (size_t i = 0; i < fetch->header_count; i++) {
        const struct fetch_header *h = &fetch->headers[i];

        if (fetch_breaks_line(h->name) || fetch_breaks_line(h->value))
            return false;
        add_header(r, h->name, h->value.n > 0 ? SPAN(": ") : SPAN(";"), h->value);
        has_type = has_type || span_ieq(h->name, content_type);
    }
    if (!has_type)
        leave_out(r, content_type);
    if (blob_span(fetch->body).n > EXPECT_BYTES)
        leave_out(r, expect);
    return true;
}

bool fetch_means_a_body(struct span method)
{
    return span_eq(method, SPAN("POST")) || span_eq(method, SPAN("PUT")) ||
           span_eq(method, SPAN("PATCH"));
}

/* The body is sent from the blob, of which the fetch holds a reference. Of these options each
 * undoes what the one before said of the body. */
static void set_body(struct fetch_transfer *t)
{
    const struct fetch *fetch = t->fetch;
    struct span body = blob_span(fetch->body);

    if (span_eq(fetch->method, SPAN("HEAD"))) {
        curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
    } else if (fetch->body == NULL && !fetch_means_a_body(fetch->method)) {
        curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
    } else {
        curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, body.n > 0 ? body.p : "");
        curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
        curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    }
}

const char *fetch_easy_prepare(struct fetch_transfer *t)
{
    const struct fetch *fetch = t->fetch;
    struct request r = request_begin(t);
    CURLcode code;

    if (!add_headers(&r, fetch))
        return "a request header holds a line break";
    code = curl_easy_setopt(t->easy, CURLOPT_URL, add_text(&r, fetch->url));
    if (code == CURLE_OK)
        code = curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, add_text(&r, fetch->method));
    if (code != CURLE_OK)
        return curl_easy_strerror(code);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, list_of(&r));
    set_body(t);
    return NULL;
}

static void add_ip(struct buf *b, const struct sockaddr *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    char text[INET6_ADDRSTRLEN];
    uint8_t bytes[4];

    if (address->sa_family == AF_INET6) {
        buf_add_str(b, inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)));
        return;
    }
    memcpy(bytes, &v4->sin_addr, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        buf_add_u64(b, bytes[i]);
        if (i + 1 < sizeof(bytes))
            buf_add_char(b, '.');
    }
}

/* `+name:port:[address],[address]`; with the plus sign it is not kept for ever. */
void fetch_easy_pin(struct fetch_transfer *t, const struct fetch_target *target,
                    const struct resolve_result *addresses)
{
    struct buf *b = &t->pin_text;

    buf_clear(b);
    buf_add_char(b, '+');
    buf_add(b, target->name);
    buf_add_char(b, ':');
    buf_add_u64(b, target->port);
    for (unsigned i = 0; i < addresses->count; i++) {
        buf_add_str(b, i == 0 ? ":[" : ",[");
        add_ip(b, (const struct sockaddr *)&addresses->addresses[i]);
        buf_add_char(b, ']');
    }
    buf_add_char(b, '\0');
    t->pin = (struct curl_slist){.data = b->p};
    t->pinned = true;
}

static void set_pruning(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    uint64_t now_ms = loop_now_ms(f->loop);
    bool prunes = now_ms >= f->prune_at_ms;

    if (prunes)
        f->prune_at_ms = now_ms + PRUNE_EVERY_MS;
    if (prunes != t->prunes)
        curl_easy_setopt(t->easy, CURLOPT_DNS_CACHE_TIMEOUT, prunes ? PIN_AGE_S : (long)NEVER);
    t->prunes = prunes;
}

bool fetch_easy_launch(struct fetch_transfer *t)
{
    set_pruning(t);
    curl_easy_setopt(t->easy, CURLOPT_RESOLVE, t->pinned ? &t->pin : NULL);
    t->launched_ns = clock_mono_ns();
    return curl_multi_add_handle(t->fetcher->multi, t->easy) == CURLM_OK;
}

void fetch_easy_stop(struct fetch_transfer *t)
{
    MUST(curl_multi_remove_handle(t->fetcher->multi, t->easy) == CURLM_OK);
}
