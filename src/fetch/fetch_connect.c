/* libcurl makes the connections: over the addresses that were resolved, in their order and beside
 * each other; through proxies and tunnels; with TLS, verified, with sessions that are resumed. It
 * is told to do no more than that (CURLOPT_CONNECT_ONLY), and then the easy handle stays where it
 * is and keeps the connection open. A handle is made once, with everything that no connection
 * changes.
 *
 * Addresses. libcurl must never ask for a name: it would start a thread. So the answer of `resolve`
 * is put into libcurl's own cache of names for each connection (CURLOPT_RESOLVE), where it replaces
 * the one before; and should libcurl find none there, on_resolver_start refuses. The cache would
 * grow with each new name: one connection a minute is allowed to drop what is older than ten
 * minutes when it is made (it costs a walk over the whole cache, which is why the others are not).
 *
 * HTTP/2 is not offered: with libcurl 7.88 streams that share a connection stall. */
#include "fetch_private.h"

#include "base/clock.h"
#include "base/must.h"

#include <string.h>

enum {
    PRUNE_EVERY_MS = 60000,
    PIN_AGE_S = 600,
    NEVER = -1,
    A_DAY_S = 86400,    /* longer than any connection lives */
    READ_BUFFER = 1024, /* the least: one for each connection */
    US_PER_MS = 1000,
};

/* libcurl asks for literal addresses too, and then needs nobody. */
static int on_resolver_start(void *state, void *reserved, void *data)
{
    const struct fetch_conn *c = MUST_BE(struct fetch_conn, FETCH_KIND_CONN, data);
    const struct fetcher *f = c->fetcher;

    (void)state;
    (void)reserved;
    return f->options.proxy != NULL ? !f->proxy_target.literal : !c->origin->target.literal;
}

/* What no connection changes. Texts are copied by libcurl. Without a proxy and a CA directory
 * given, it would look into the environment for the one, and with the other read all certificates
 * again at each new connection instead of keeping them. Without a CA file it knows the system's. */
static CURLcode configure(struct fetch_conn *c)
{
    const struct fetch_options *options = &c->fetcher->options;
    CURLcode code = CURLE_OK;

#define SET(option, value) code = code == CURLE_OK ? curl_easy_setopt(c->easy, option, value) : code
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECT_ONLY, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_BUFFERSIZE, (long)READ_BUFFER);
    SET(CURLOPT_MAXAGE_CONN, (long)A_DAY_S); /* ours to end, see fetch_conn.c */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_USERAGENT, FETCH_USER_AGENT);
    SET(CURLOPT_PROXY, options->proxy != NULL ? options->proxy : "");
    SET(CURLOPT_NOPROXY, "");
    SET(CURLOPT_CAPATH, (const char *)NULL);
    SET(CURLOPT_PROXY_CAPATH, (const char *)NULL);
    if (options->ca_file != NULL) {
        SET(CURLOPT_CAINFO, options->ca_file);
        SET(CURLOPT_PROXY_CAINFO, options->ca_file);
    }
    SET(CURLOPT_SSLCERT, options->cert_file);
    SET(CURLOPT_SSLKEY, options->key_file);
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_ERRORBUFFER, c->text);
    SET(CURLOPT_OPENSOCKETDATA, c);
    SET(CURLOPT_OPENSOCKETFUNCTION, fetch_socket_on_open);
    SET(CURLOPT_CLOSESOCKETDATA, c->fetcher);
    SET(CURLOPT_CLOSESOCKETFUNCTION, fetch_socket_on_close);
    SET(CURLOPT_RESOLVER_START_DATA, c);
    SET(CURLOPT_RESOLVER_START_FUNCTION, on_resolver_start);
    SET(CURLOPT_SSL_CTX_DATA, c);
    SET(CURLOPT_SSL_CTX_FUNCTION, fetch_tls_on_context); /* OpenSSL's alone */
#undef SET
    return code;
}

struct err *fetch_connect_open(struct fetch_conn *c)
{
    CURLcode code;

    c->easy = curl_easy_init();
    if (c->easy == NULL)
        return ERR(ERR_UNKNOWN, "libcurl is out of memory");
    code = configure(c);
    if (code == CURLE_OK)
        return NULL;
    fetch_connect_close(c);
    return ERR(ERR_UNKNOWN, "libcurl lacks what is needed: %s", curl_easy_strerror(code));
}

void fetch_connect_close(struct fetch_conn *c)
{
    curl_easy_cleanup(TAKE(c->easy));
}

/* `+name:port:[address],[address]`; with the plus sign it is not kept for ever. */
static void pin(struct fetch_conn *c, const struct resolve_result *addresses)
{
    const struct fetcher *f = c->fetcher;
    const struct fetch_target *target =
        f->options.proxy != NULL ? &f->proxy_target : &c->origin->target;
    struct buf *b = &c->pin_text;
    char text[INET6_ADDRSTRLEN];

    buf_clear(b);
    buf_add_char(b, '+');
    buf_add(b, target->name);
    buf_add_char(b, ':');
    buf_add_u64(b, target->port);
    for (unsigned i = 0; i < addresses->count; i++) {
        buf_add_str(b, i == 0 ? ":[" : ",[");
        buf_add_str(b, ip_text(&addresses->addresses[i], text));
        buf_add_char(b, ']');
    }
    buf_add_char(b, '\0');
    c->pin = (struct curl_slist){.data = b->p};
}

static void set_pruning(struct fetch_conn *c)
{
    struct fetcher *f = c->fetcher;
    uint64_t now_ms = loop_now_ms(f->loop);
    bool prunes = now_ms >= f->prune_at_ms;

    if (prunes)
        f->prune_at_ms = now_ms + PRUNE_EVERY_MS;
    curl_easy_setopt(c->easy, CURLOPT_DNS_CACHE_TIMEOUT, prunes ? PIN_AGE_S : (long)NEVER);
}

CURLSH *fetch_connect_share(void)
{
    CURLSH *share = curl_share_init();

    if (share != NULL)
        curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return share;
}

/* Each origin of TLS has one. A handle is never without: libcurl 7.88.1 would make a place for
 * sessions of its own for it, and lose that with the next share. */
static CURLSH *share_of(struct fetch_origin *origin)
{
    if (origin->is_tls && origin->share == NULL)
        origin->share = fetch_connect_share();
    return origin->share != NULL ? origin->share : origin->fetcher->share;
}

bool fetch_connect_launch(struct fetch_conn *c, const struct resolve_result *addresses)
{
    const char *url = c->origin->text;

    set_pruning(c);
    if (addresses != NULL)
        pin(c, addresses);
    curl_easy_setopt(c->easy, CURLOPT_RESOLVE, addresses != NULL ? &c->pin : NULL);
    curl_easy_setopt(c->easy, CURLOPT_SHARE, share_of(c->origin));
    c->launched_ns = clock_mono_ns();
    return curl_easy_setopt(c->easy, CURLOPT_URL, url) == CURLE_OK &&
           curl_multi_add_handle(c->fetcher->multi, c->easy) == CURLM_OK;
}

void fetch_connect_stop(struct fetch_conn *c)
{
    MUST(curl_multi_remove_handle(c->fetcher->multi, c->easy) == CURLM_OK);
    curl_easy_setopt(c->easy, CURLOPT_SHARE, c->fetcher->share);
    fetch_sockets_forget(c, NULL);
}

/* The verdict. */

static const struct {
    CURLcode code;
    enum fetch_error error;
} verdicts[] = {
    {CURLE_COULDNT_RESOLVE_HOST, FETCH_NAME},
    {CURLE_COULDNT_RESOLVE_PROXY, FETCH_NAME},
    {CURLE_COULDNT_CONNECT, FETCH_CONNECT},
    {CURLE_PROXY, FETCH_CONNECT},
    {CURLE_OPERATION_TIMEDOUT, FETCH_TIMEOUT},
    {CURLE_SSL_CONNECT_ERROR, FETCH_TLS},
    {CURLE_SSL_CERTPROBLEM, FETCH_TLS},
    {CURLE_SSL_CIPHER, FETCH_TLS},
    {CURLE_PEER_FAILED_VERIFICATION, FETCH_TLS},
    {CURLE_SSL_CACERT_BADFILE, FETCH_TLS},
    {CURLE_SSL_ISSUER_ERROR, FETCH_TLS},
    {CURLE_USE_SSL_FAILED, FETCH_TLS},
    {CURLE_SEND_ERROR, FETCH_CLOSED},
    {CURLE_RECV_ERROR, FETCH_CLOSED},
    {CURLE_GOT_NOTHING, FETCH_CLOSED},
    {CURLE_WEIRD_SERVER_REPLY, FETCH_PROTOCOL},
};

static enum fetch_error verdict(const struct fetch_conn *c, CURLcode code)
{
    if (c->is_noisy)
        return FETCH_PROTOCOL;
    if (code == CURLE_COULDNT_CONNECT && c->refused[0] != '\0' && c->allowed_addresses == 0)
        return FETCH_REFUSED_ADDRESS;
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
        if (verdicts[i].code == code)
            return verdicts[i].error;
    return FETCH_OTHER;
}

static const char *verdict_text(const struct fetch_conn *c, enum fetch_error error, CURLcode code)
{
    if (c->is_noisy)
        return "far more bytes came than a handshake may have";
    if (error == FETCH_REFUSED_ADDRESS)
        return c->refused;
    if (error == FETCH_CONNECT && c->no_socket != NULL)
        return c->no_socket;
    return c->text[0] != '\0' ? c->text : curl_easy_strerror(code);
}

/* From the beginning of the connection; libcurl's clock started when it got the handle. */
static uint32_t phase_ms(const struct fetch_conn *c, CURLINFO info)
{
    curl_off_t us = 0;

    if (curl_easy_getinfo(c->easy, info, &us) != CURLE_OK || us <= 0)
        return 0;
    return (uint32_t)(us / US_PER_MS);
}

static void note_address(struct fetch_conn *c)
{
    struct sockaddr_storage address;
    socklen_t n = sizeof(address);

    if (c->fetcher->options.proxy == NULL &&
        getpeername(fetch_socket_fd(c->socket), (struct sockaddr *)&address, &n) == 0)
        c->origin->has_address = ip_of_sockaddr((struct sockaddr *)&address, &c->origin->address);
}

void fetch_connect_finish(struct fetch_conn *c, CURLcode code)
{
    struct fetch_transfer *t = c->transfer;
    enum fetch_error error = verdict(c, code);
    curl_socket_t fd = CURL_SOCKET_BAD;

    if (code == CURLE_OK)
        curl_easy_getinfo(c->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (fetch_socket_at(c->fetcher, fd) == NULL) {
        fetch_end(t, error, verdict_text(c, error, code));
        return;
    }
    fetch_conn_made(c, fetch_socket_at(c->fetcher, fd));
    note_address(c);
    if (fetch_channel_open(c))
        fetch_on_connected(t, phase_ms(c, CURLINFO_CONNECT_TIME_T),
                           phase_ms(c, CURLINFO_APPCONNECT_TIME_T));
    else
        fetch_end(t, FETCH_CLOSED, c->text[0] != '\0' ? c->text : "Empty reply from the receiver");
}
