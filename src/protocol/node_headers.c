/* The value: `1;<milliseconds since 1970>;<node>;<client>;<key in hex, or ->;<HMAC in hex>`.
 *
 * What the HMAC is taken of has each part behind its length, so that no two requests have the same
 * text: `svc-cluster 1`, then all parts of the value before it, method, target, and the SHA-256 of
 * the body. It is compared before anything in the value is believed, in constant time. */
#include "protocol/node_headers.h"

#include "base/digest.h"
#include "base/must.h"
#include "base/text.h"

const struct span node_headers_passed_on = SPAN_INIT("Svc-cluster");
const struct span node_headers_serial = SPAN_INIT("Svc-serial");
const struct span node_headers_min_serial = SPAN_INIT("Svc-min-serial");

enum place { VERSION, AT, NODE, CLIENT, KEY, CODE, PARTS };

static void add_part(struct buf *b, struct span part)
{
    buf_add_le64(b, part.n);
    buf_add(b, part);
}

static void code_of(struct span claims, struct span secret, const struct passed_request *request,
                    uint8_t out_code[DIGEST_BYTES])
{
    uint8_t body[DIGEST_BYTES];
    struct buf text;

    MUST(secret.n >= PASSED_ON_SECRET_BYTES);
    digest_sha256(request->body, body);
    buf_init(&text, BUF_NO_CAP);
    add_part(&text, SPAN("svc-cluster 1"));
    add_part(&text, claims);
    add_part(&text, request->method);
    add_part(&text, request->target);
    add_part(&text, span_of((const char *)body, sizeof(body)));
    digest_hmac(secret, buf_span(&text), out_code);
    buf_done(&text);
}

void passed_on_add(struct buf *b, struct span secret, const struct passed_on *who,
                   const struct passed_request *request)
{
    uint8_t code[DIGEST_BYTES];
    struct buf claims;

    MUST(who->node.n <= PASSED_ON_NODE_BYTES && who->client.n <= PASSED_ON_CLIENT_BYTES &&
         who->key.n <= PASSED_ON_KEY_BYTES);
    MUST(span_find_char(who->node, ';', 0) == who->node.n &&
         span_find_char(who->client, ';', 0) == who->client.n);
    buf_init(&claims, BUF_NO_CAP);
    buf_add_str(&claims, "1;");
    buf_add_i64(&claims, who->at_unix_ms);
    buf_add_char(&claims, ';');
    buf_add(&claims, who->node);
    buf_add_char(&claims, ';');
    buf_add(&claims, who->client);
    buf_add_char(&claims, ';');
    if (who->key.p == NULL)
        buf_add_char(&claims, '-');
    else
        text_add_hex(&claims, who->key);
    code_of(buf_span(&claims), secret, request, code);
    buf_add(b, buf_span(&claims));
    buf_add_char(b, ';');
    text_add_hex(b, span_of((const char *)code, sizeof(code)));
    buf_done(&claims);
}

static struct err *refuse(const char *why)
{
    return ERR(ERR_NOT_AUTHORIZED, "Svc-cluster: %s", why);
}

static bool split(struct span value, struct span parts[PARTS])
{
    for (int i = 0; i < PARTS; i++) {
        if (value.p == NULL)
            return false;
        parts[i] = span_split(&value, ';');
    }
    return value.p == NULL && span_eq(parts[VERSION], SPAN("1"));
}

/* All before the last semicolon. */
static struct span claims_of(struct span value, const struct span parts[PARTS])
{
    return span_of(value.p, (size_t)(parts[CODE].p - value.p) - 1);
}

static bool is_code(struct span text, const uint8_t code[DIGEST_BYTES])
{
    uint8_t given[DIGEST_BYTES];

    return text.n == 2 * (size_t)DIGEST_BYTES && text_from_hex(text, given) &&
           digest_equal(given, code, DIGEST_BYTES);
}

static bool read_key(struct span text, struct arena *a, struct span *out_key)
{
    uint8_t *bytes;

    *out_key = span_of(NULL, 0);
    if (span_eq(text, SPAN("-")))
        return true;
    if (text.n % 2 != 0 || text.n / 2 > PASSED_ON_KEY_BYTES)
        return false;
    bytes = arena_alloc(a, text.n / 2 + 1);
    if (!text_from_hex(text, bytes))
        return false;
    *out_key = span_of((const char *)bytes, text.n / 2);
    return true;
}

static struct err *check_time(int64_t at_unix_ms, int64_t now_unix_ms)
{
    const int64_t most = (int64_t)PASSED_ON_SECONDS * 1000;

    if (at_unix_ms >= now_unix_ms - most && at_unix_ms <= now_unix_ms + most)
        return NULL;
    return refuse("it was made at another time; do the clocks of the nodes differ?");
}

struct err *passed_on_read(struct span value, struct span secret,
                           const struct passed_request *request, int64_t now_unix_ms,
                           struct arena *a, struct passed_on *out_who)
{
    struct span parts[PARTS];
    uint8_t code[DIGEST_BYTES];
    struct passed_on who;

    if (!split(value, parts))
        return refuse("it is not of this version");
    code_of(claims_of(value, parts), secret, request, code);
    if (!is_code(parts[CODE], code))
        return refuse("it was not made by a node of this cluster for this request");
    who.node = parts[NODE];
    who.client = parts[CLIENT];
    if (!span_to_i64(parts[AT], &who.at_unix_ms) || !read_key(parts[KEY], a, &who.key))
        return refuse("a node of another version made it");
    TRY(check_time(who.at_unix_ms, now_unix_ms));
    *out_who = who;
    return NULL;
}

struct err *min_serial_read(struct span value, uint64_t *out_serial)
{
    uint64_t serial = 0;

    if (value.p != NULL && !span_to_u64(value, &serial))
        return ERR(ERR_INVALID_CONDITION_VALUE, "Svc-min-serial: '%.*s' is no serial",
                   SPAN_FMT(value));
    *out_serial = serial;
    return NULL;
}
