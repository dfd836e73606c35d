/* Bytes over a connection that libcurl has made, one way for all:
 *
 *   http                       straight to the kernel
 *   https                      the first exchange through libcurl, the others straight to OpenSSL
 *   https, over a TLS proxy    through libcurl
 *
 * libcurl is asked for the first exchange because TLS sessions come with it, which libcurl keeps
 * for the next connection. It is passed over afterwards because its curl_easy_send and
 * curl_easy_recv look through all connections for theirs, and read the head and the rest of each
 * record by calls of their own; OpenSSL over the socket itself reads what is there at once.
 *
 * The first call of curl_easy_recv also marks the connection as in use, without which libcurl would
 * close it when it looks for those that are of no use any more. A receiver that speaks before it
 * was asked is heard all the same: it may say that it has no time. */
#include "fetch_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { RECORD_BYTES = 16384 /* the most that one carries */ };
enum { SEND_FLAGS = MSG_NOSIGNAL | MSG_DONTWAIT };

/* What curl_easy_recv and _send came to; errno was 0 before. libcurl gives its text for the first
 * failure only, which may have been one of the connecting: of an address that did not answer, or of
 * the look at the peer of a connection that had been reset by then. */
static ssize_t of_libcurl(struct fetch_conn *c, CURLcode code, size_t n)
{
    int error = errno;

    if (code == CURLE_OK)
        return (ssize_t)n;
    if (code == CURLE_AGAIN)
        return -EAGAIN;
    if (c->text[0] == '\0')
        snprintf(c->text, sizeof(c->text), "%s",
                 error != 0 && error != EAGAIN ? strerror(error) : curl_easy_strerror(code));
    return -EPROTO;
}

/* The result of SSL_read and SSL_write. An end that TLS has not announced is no end: somebody may
 * have cut the answer short. */
static ssize_t of_openssl(struct fetch_conn *c, int n)
{
    int error = errno;
    unsigned long reason;

    if (n > 0)
        return n;
    switch (SSL_get_error(c->ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return error != 0 ? -error : -ECONNRESET;
    default:
        reason = ERR_get_error();
        snprintf(c->text, sizeof(c->text), "TLS: %s",
                 reason != 0 ? ERR_reason_error_string(reason) : "failed");
        return -EPROTO;
    }
}

/* Before OpenSSL is called, so that what it says then is of that call. To empty a queue that is
 * empty, as it nearly always is, costs it as much as a look at all its places. */
static void forget_failures(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

static ssize_t of_kernel(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EINTR ? -EAGAIN : -errno;
}

ssize_t fetch_channel_read(struct fetch_conn *c, char *p, size_t size)
{
    CURLcode code;
    size_t n = 0;

    if (c->has_early) {
        c->has_early = false;
        p[0] = c->early;
        return 1;
    }
    errno = 0;
    if (!c->is_direct) {
        code = curl_easy_recv(c->easy, p, size, &n);
        return of_libcurl(c, code, n);
    }
    if (c->ssl == NULL)
        return of_kernel(recv(fetch_socket_fd(c->socket), p, size, MSG_DONTWAIT));
    forget_failures();
    return of_openssl(c, SSL_read(c->ssl, p, (int)size));
}

/* As much of both as one record takes, in one piece. */
static struct span gather(struct fetch_conn *c, struct span first, struct span second)
{
    char *scratch = c->fetcher->loop->scratch;
    size_t n = MIN(first.n, RECORD_BYTES), more = MIN(second.n, RECORD_BYTES - n);

    if (first.n == 0)
        return span_sub(second, 0, more);
    memcpy(scratch, first.p, n);
    memcpy(scratch + n, second.p, more);
    return span_of(scratch, n + more);
}

static ssize_t write_parts(const struct fetch_conn *c, struct span first, struct span second)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)first.p, first.n},
                             {(void *)(uintptr_t)second.p, second.n}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    return of_kernel(sendmsg(fetch_socket_fd(c->socket), &message, SEND_FLAGS));
}

/* What is small is copied: that takes less time than a system call with two parts takes more. */
ssize_t fetch_channel_write(struct fetch_conn *c, struct span first, struct span second)
{
    bool is_plain = c->is_direct && c->ssl == NULL;
    struct span record;
    CURLcode code;
    size_t n = 0;

    if (is_plain && first.n + second.n > RECORD_BYTES)
        return write_parts(c, first, second);
    record = gather(c, first, second);
    if (is_plain)
        return of_kernel(send(fetch_socket_fd(c->socket), record.p, record.n, SEND_FLAGS));
    errno = 0;
    if (!c->is_direct) {
        code = curl_easy_send(c->easy, record.p, record.n, &n);
        return of_libcurl(c, code, n);
    }
    forget_failures();
    return of_openssl(c, SSL_write(c->ssl, record.p, (int)record.n));
}

bool fetch_channel_is_quiet(struct fetch_conn *c)
{
    char byte;

    return fetch_channel_read(c, &byte, 1) == -EAGAIN;
}

bool fetch_channel_holds_bytes(const struct fetch_conn *c)
{
    return c->has_early || (c->ssl != NULL && SSL_has_pending(c->ssl) != 0);
}

bool fetch_channel_open(struct fetch_conn *c)
{
    const char *proxy = c->fetcher->options.proxy;
    bool is_proxy_tls = proxy != NULL && span_istarts(span_str(proxy), SPAN("https://"));
    struct curl_tlssessioninfo *info = NULL;
    ssize_t n;

    c->is_direct = c->has_early = false;
    n = fetch_channel_read(c, &c->early, 1);
    c->has_early = n > 0;
    if (c->origin->is_tls && !is_proxy_tls &&
        curl_easy_getinfo(c->easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK &&
        info->backend == CURLSSLBACKEND_OPENSSL)
        c->ssl = info->internals;
    c->is_direct = !c->origin->is_tls && !is_proxy_tls;
    return n > 0 || n == -EAGAIN;
}

/* libcurl's own calls, at the connection's end, find the socket as we do. */
void fetch_channel_settle(struct fetch_conn *c)
{
    BIO *bio;

    if (c->is_direct || c->ssl == NULL || SSL_has_pending(c->ssl) != 0)
        return;
    bio = BIO_new_socket((int)fetch_socket_fd(c->socket), BIO_NOCLOSE);
    if (bio == NULL)
        return;
    SSL_set_bio(c->ssl, bio, bio);
    SSL_set_read_ahead(c->ssl, 1);
    c->is_direct = true;
}
