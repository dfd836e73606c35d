/* Byte by byte, so that the header ends where it ends, however it is cut, and what is wrong is
 * known at its first byte: who speaks HTTP or TLS instead waits for nothing. */
#include "http/proxy_protocol.h"

#include <string.h>

static const struct span prefix = SPAN_INIT("PROXY ");
static const struct span signature = SPAN_INIT("\r\n\r\n\0\r\nQUIT\n");

/* Of version 2. */
enum {
    AT_COMMAND = 12,
    AT_FAMILY = 13,
    AT_LENGTH = 14,
    AT_SOURCE = 16,
    COMMAND_LOCAL = 0x20,
    COMMAND_PROXY = 0x21
};

static const struct family {
    uint8_t code;
    uint16_t bytes; /* of both addresses and ports */
    uint8_t source; /* bytes of an address that stands for a client */
} families[] = {
    {0x00, 0, 0},   /* unspecified */
    {0x11, 12, 4},  /* TCP over IPv4 */
    {0x12, 12, 0},  /* UDP */
    {0x21, 36, 16}, /* TCP over IPv6 */
    {0x22, 36, 0},  /* UDP */
    {0x31, 216, 0}, /* UNIX stream */
    {0x32, 216, 0}, /* UNIX datagram */
};

static enum proxy_result fail(struct proxy_protocol *p, const char *why)
{
    p->why = why;
    return PROXY_FAILED;
}

static bool is_part_of(struct span whole, const struct proxy_protocol *p)
{
    return p->head[p->taken - 1] == whole.p[p->taken - 1];
}

/* ---- version 1 ---- */

static bool is_port(struct span text)
{
    uint64_t number;

    return text.n <= 5 && span_to_u64(text, &number) && number <= UINT16_MAX &&
           (text.n == 1 || text.p[0] != '0');
}

static bool parse_address(struct span text, bool v6, struct in6_addr *out_ip)
{
    return (span_find_char(text, ':', 0) < text.n) == v6 && ip_parse(text, out_ip);
}

static enum proxy_result read_line(struct proxy_protocol *p)
{
    struct span rest = span_sub(span_of(p->head, p->taken - 2), prefix.n, p->taken);
    struct span family = span_split(&rest, ' ');
    bool v6 = span_eq(family, SPAN("TCP6"));
    struct in6_addr destination;

    if (p->head[p->taken - 2] != '\r')
        return fail(p, "its line does not end in CR LF");
    if (span_eq(family, SPAN("UNKNOWN")))
        return PROXY_DONE;
    if ((!v6 && !span_eq(family, SPAN("TCP4"))) ||
        !parse_address(span_split(&rest, ' '), v6, &p->client) ||
        !parse_address(span_split(&rest, ' '), v6, &destination) ||
        !is_port(span_split(&rest, ' ')) || !is_port(span_split(&rest, ' ')) || rest.p != NULL)
        return fail(p, "its line is malformed");
    p->has_client = true;
    return PROXY_DONE;
}

static enum proxy_result look_at_text(struct proxy_protocol *p)
{
    if (p->taken <= prefix.n)
        return is_part_of(prefix, p) ? PROXY_NEED_MORE : fail(p, "it begins otherwise");
    if (p->head[p->taken - 1] == '\n')
        return read_line(p);
    return p->taken < PROXY_PROTOCOL_LINE_MOST ? PROXY_NEED_MORE : fail(p, "its line is too long");
}

/* ---- version 2 ---- */

static const struct family *family_of(const struct proxy_protocol *p)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (families[i].code == (uint8_t)p->head[AT_FAMILY])
            return &families[i];
    return NULL;
}

static bool is_local(const struct proxy_protocol *p)
{
    return p->head[AT_COMMAND] == COMMAND_LOCAL;
}

static enum proxy_result read_length(struct proxy_protocol *p)
{
    const struct family *family = family_of(p);
    size_t length = (size_t)(uint8_t)p->head[AT_LENGTH] << 8 | (uint8_t)p->head[AT_LENGTH + 1];

    p->length = AT_SOURCE + length;
    if (p->length > PROXY_PROTOCOL_MOST)
        return fail(p, "it is too long");
    if (is_local(p))
        return PROXY_NEED_MORE;
    if (family == NULL)
        return fail(p, "its family or protocol is unknown");
    p->source_bytes = family->source;
    return length < family->bytes ? fail(p, "its addresses are cut short") : PROXY_NEED_MORE;
}

static enum proxy_result read_source(struct proxy_protocol *p)
{
    if (p->source_bytes == 0)
        return PROXY_DONE;
    if (p->source_bytes == IP_V4_BYTES)
        p->client = ip_of_v4(p->head + AT_SOURCE);
    else
        memcpy(&p->client, p->head + AT_SOURCE, sizeof(p->client));
    p->has_client = true;
    return PROXY_DONE;
}

static enum proxy_result look_at_binary(struct proxy_protocol *p)
{
    enum proxy_result result = PROXY_NEED_MORE;

    if (p->taken <= signature.n)
        return is_part_of(signature, p) ? PROXY_NEED_MORE : fail(p, "it begins otherwise");
    if (p->taken == AT_COMMAND + 1 && !is_local(p) && p->head[AT_COMMAND] != COMMAND_PROXY)
        return fail(p, "its version or command is unknown");
    if (p->taken == AT_SOURCE)
        result = read_length(p);
    if (result == PROXY_NEED_MORE && p->taken == p->length)
        result = read_source(p);
    return result;
}

/* ---- both ---- */

enum proxy_result proxy_protocol_feed(struct proxy_protocol *p, struct span bytes,
                                      size_t *out_taken)
{
    enum proxy_result result = PROXY_NEED_MORE;
    size_t taken = 0;

    while (taken < bytes.n && result == PROXY_NEED_MORE) {
        if (p->taken < sizeof(p->head))
            p->head[p->taken] = bytes.p[taken];
        p->taken++;
        taken++;
        result = p->head[0] == signature.p[0] ? look_at_binary(p) : look_at_text(p);
    }
    *out_taken = taken;
    return result;
}
