/* What a peer may ask of OpenSSL, in the loop's only thread.
 *
 * OpenSSL reads on for as long as what comes is nothing for its caller: in a handshake
 * HelloRequests, after it session tickets. A peer that sends such messages faster than they are
 * read would keep it inside one call, and the loop with it, for ever. But OpenSSL tells of each
 * message that it reads, and of each record: they are counted, and too many in one go end the
 * socket, at which OpenSSL's call returns.
 *
 * And a key exchange over a finite field takes as long as the peer wants: it picks the numbers, of
 * up to 10 000 bits, which take seconds. Elliptic curves have been everybody's choice for long; no
 * others are offered.
 *
 * A write that the kernel did not take whole is tried again from wherever the bytes lie then. */
#include "fetch_private.h"

#include "base/must.h"

#define CIPHERS "DEFAULT:!kDHE"                /* up to TLS 1.2 */
#define GROUPS "X25519:P-256:X448:P-384:P-521" /* no ffdhe, in TLS 1.3 */

enum { MESSAGES_MOST = 4096 };

static void on_message(int is_written, int version, int kind, const void *bytes, size_t n, SSL *ssl,
                       void *data)
{
    struct fetch_conn *c = MUST_BE(struct fetch_conn, FETCH_KIND_CONN, data);

    (void)version;
    (void)kind;
    (void)bytes;
    (void)n;
    (void)ssl;
    if (!is_written && ++c->messages == MESSAGES_MOST)
        fetch_sockets_end_noise(c);
}

/* libcurl has a context for each connection, and closes that before its socket. */
CURLcode fetch_tls_on_context(CURL *easy, void *context, void *data)
{
    struct fetch_conn *c = MUST_BE(struct fetch_conn, FETCH_KIND_CONN, data);
    char groups[] = GROUPS; /* the macro below casts a constant's const away */

    (void)easy;
    if (SSL_CTX_set_cipher_list(context, CIPHERS) != 1 ||
        SSL_CTX_set1_groups_list(context, groups) != 1)
        return CURLE_SSL_CIPHER;
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_msg_callback(context, on_message);
    SSL_CTX_set_msg_callback_arg(context, c);
    return CURLE_OK;
}
