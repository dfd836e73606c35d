/* What proxies say of their clients. The first byte of the input says how the others are cut into
 * pieces; they are a PROXY header and what follows it, and the value of X-Forwarded-For. In pieces
 * a header means and takes the same as whole, and names the address that a naive reading of it
 * finds. A list means the same in one header as in several, and never a proxy that is trusted. */
#include "base/header_field.h"
#include "fuzzing.h"
#include "http/forwarded.h"
#include "http/proxy_protocol.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { HEADERS_MOST = 64, V2_SOURCE_AT = 16 };

/* ---- the PROXY protocol ---- */

struct outcome {
    enum proxy_result result;
    size_t taken;
    struct proxy_protocol header;
};

/* Each piece is a block of its own, so that reading past it is seen. */
static struct outcome feed(struct span bytes, size_t most, uint32_t chance, struct arena *a)
{
    struct outcome o = {.result = PROXY_NEED_MORE};

    while (bytes.n > 0 && o.result == PROXY_NEED_MORE) {
        struct span piece = span_sub(bytes, 0, 1 + chance % most);
        char *copy = arena_alloc(a, piece.n);
        size_t taken;

        chance = chance * 1664525 + 1013904223;
        memcpy(copy, piece.p, piece.n);
        o.result = proxy_protocol_feed(&o.header, span_of(copy, piece.n), &taken);
        MUST(taken <= piece.n && (taken == piece.n || o.result != PROXY_NEED_MORE));
        o.taken += taken;
        bytes = span_sub(bytes, piece.n, bytes.n);
    }
    return o;
}

static struct in6_addr naive_text(const char *text, char family)
{
    struct in6_addr ip = {0};
    struct in_addr v4;

    if (family == '6') {
        MUST(inet_pton(AF_INET6, text, &ip) == 1);
        return ip;
    }
    MUST(inet_pton(AF_INET, text, &v4) == 1);
    return ip_of_v4(&v4);
}

static struct in6_addr naive_client(const char *head)
{
    char source[64], destination[64], family;
    struct in6_addr ip;
    unsigned ports[2];

    if (head[0] == 'P') {
        MUST(sscanf(head, "PROXY TCP%c %63s %63s %5u %5u\r\n", &family, source, destination,
                    &ports[0], &ports[1]) == 5);
        MUST(ports[0] <= UINT16_MAX && ports[1] <= UINT16_MAX);
        naive_text(destination, family);
        return naive_text(source, family);
    }
    if ((head[V2_SOURCE_AT - 3] & 0xf0) == 0x10)
        return ip_of_v4(head + V2_SOURCE_AT);
    memcpy(&ip, head + V2_SOURCE_AT, sizeof(ip));
    return ip;
}

static void check_header(const struct outcome *o, const char *head)
{
    struct in6_addr naive;

    MUST(o->taken <= PROXY_PROTOCOL_MOST);
    MUST((o->result == PROXY_FAILED) == (o->header.why != NULL));
    if (o->result != PROXY_DONE || !o->header.has_client)
        return;
    naive = naive_client(head);
    MUST(memcmp(&naive, &o->header.client, sizeof(naive)) == 0);
}

static void check_proxy(struct span bytes, unsigned choices, struct arena *a)
{
    struct outcome whole = feed(bytes, SIZE_MAX, UINT32_MAX, a);
    struct outcome cut = feed(bytes, 1 + choices % 32, choices, a);

    MUST(whole.result == cut.result && whole.taken == cut.taken);
    MUST(whole.header.has_client == cut.header.has_client && whole.header.why == cut.header.why);
    MUST(memcmp(&whole.header.client, &cut.header.client, sizeof(whole.header.client)) == 0);
    check_header(&whole, arena_copy(a, bytes).p);
}

/* ---- X-Forwarded-For ---- */

static size_t one_each(struct span list, struct header_field *headers)
{
    size_t count = 0;

    while (list.p != NULL && count < HEADERS_MOST)
        headers[count++] = (struct header_field){SPAN("x-forwarded-for"), span_split(&list, ',')};
    return list.p == NULL ? count : 0;
}

static void check_forwarded(struct span list)
{
    const struct header_field whole = {SPAN("X-Forwarded-For"), list};
    struct header_field headers[HEADERS_MOST];
    struct ip_ranges trusted = {NULL, 0};
    struct in6_addr ip = {0}, other = {0};
    size_t count = one_each(list, headers);
    bool found;

    MUST(ip_ranges_add(&trusted, SPAN("10.0.0.0/8")) == NULL);
    MUST(ip_ranges_add(&trusted, SPAN("::1")) == NULL);
    found = forwarded_client(&whole, 1, &trusted, &ip);
    MUST(!found || !ip_ranges_contain(&trusted, &ip));
    if (count > 0)
        MUST(forwarded_client(headers, count, &trusted, &other) == found);
    if (count > 0 && found)
        MUST(memcmp(&ip, &other, sizeof(ip)) == 0);
    ip_ranges_done(&trusted);
}

/* ---- addresses ---- */

static void check_address(struct span text)
{
    char out[INET6_ADDRSTRLEN];
    struct in6_addr ip, again;

    if (!ip_parse(text, &ip))
        return;
    MUST(ip_parse(span_str(ip_text(&ip, out)), &again));
    MUST(memcmp(&ip, &again, sizeof(ip)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned choices = input_byte(&in);
    struct arena a;

    arena_init(&a);
    check_proxy(input_rest(&in), choices, &a);
    check_forwarded(input_rest(&in));
    check_address(input_rest(&in));
    arena_done(&a);
    return 0;
}
