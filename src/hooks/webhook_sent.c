/* Of most attempts a text is kept that is the same for all of a webhook's, and is made once for its
 * settings. */
#include "hooks/webhook_sent.h"

#include "access/mask.h"
#include "base/blob.h"
#include "base/datetime.h"
#include "base/text.h"
#include "hooks/attempt_inner.h"
#include "hooks/delivery_inner.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_settings.h"
#include "hooks/payload.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "webhook/webhook_log.h"
#include "json/json.h"
#include "json/member.h"

static const struct span usual_type = SPAN_INIT("application/json");

/* ---- keeping ---- */

/* Of Authorization not even the scheme: stored errors show `apikey`, whatever it was. */
static struct span shown_value(const struct mask *m, const struct header_field *header,
                               struct arena *a)
{
    if (mask_is_secret_header(m, header->name))
        return SPAN(MASK);
    return mask_header_value(m, header->name, header->value, a);
}

/* A line, with what is secret in it masked. */
static void add_line(struct buf *b, const struct mask *m, const struct header_field *header,
                     struct arena *a)
{
    buf_add(b, header->name);
    buf_add_str(b, ": ");
    buf_add(b, shown_value(m, header, a));
    buf_add_char(b, '\n');
}

/* Those of the webhook, and those that every request has. Its Content-Type is that of the body. */
static void add_constant(struct buf *b, const struct mask *m,
                         const struct webhook_settings *settings, struct arena *a)
{
    static const struct header_field every[] = {
        {SPAN_INIT("User-Agent"), SPAN_INIT("svcd/" SVCD_VERSION)},
        {SPAN_INIT("Accept"), SPAN_INIT("*/*")},
    };

    for (size_t i = 0; i < settings->header_count; i++)
        if (!span_ieq(settings->headers[i].name, SPAN("Content-Type")))
            add_line(b, m, &settings->headers[i], a);
    for (size_t i = 0; i < ARRAY_LEN(every) && !settings->is_local; i++)
        if (header_field_find(settings->headers, settings->header_count, every[i].name) == NULL)
            add_line(b, m, &every[i], a);
}

static struct span as_json(struct span text, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    json_add_string(&b, text);
    return buf_span(&b);
}

static void make_constant(struct lane_settings *settings, const struct mask *m)
{
    struct buf b;

    buf_init_arena(&b, &settings->arena);
    add_constant(&b, m, &settings->webhook, &settings->arena);
    settings->sent_lines = buf_span(&b);
    settings->sent = as_json(settings->sent_lines, &settings->arena);
}

static bool has_usual_type(const struct attempt *attempt)
{
    return attempt->content_type.p == NULL || attempt->delivery->event->is_binary ||
           span_eq(attempt->content_type, usual_type);
}

/* A mask can be longer than what it stands for. */
static struct span shown_body(const struct mask *m, struct span body, struct arena *a)
{
    body = mask_body(m, text_cut_bytes(body, WEBHOOK_LOG_BODY_BYTES), NULL, a);
    return text_cut_bytes(body, WEBHOOK_LOG_BODY_BYTES);
}

/* One that has something of its own. */
static struct span special(const struct attempt *attempt, const struct mask *m, struct arena *a)
{
    const struct header_field type = {SPAN_INIT("Content-Type"), attempt->content_type};
    struct buf b;

    buf_init_arena(&b, a);
    buf_add(&b, attempt->settings->sent_lines);
    if (!has_usual_type(attempt))
        add_line(&b, m, &type, a);
    for (size_t i = attempt->known_headers; i < attempt->header_count; i++)
        add_line(&b, m, &attempt->headers[i], a);
    if (attempt->made != NULL) {
        buf_add_char(&b, '\n');
        buf_add(&b, shown_body(m, blob_span(attempt->body), a));
    }
    return as_json(buf_span(&b), a);
}

struct span webhook_sent_keep_answer(struct attempt *attempt, struct span body)
{
    const struct mask *m = attempt->deliveries->hooks->rest->mask;

    return arena_copy(&attempt->arena, shown_body(m, body, &attempt->arena));
}

struct span webhook_sent_keep_error(struct attempt *attempt, struct span error)
{
    return mask_text(attempt->deliveries->hooks->rest->mask, error, &attempt->arena);
}

/* Most have at most a signature, of which no character needs an escape. */
static bool has_signature_only(const struct attempt *attempt)
{
    return attempt->header_count == attempt->known_headers + 1u &&
           span_eq(attempt->headers[attempt->known_headers].name, SPAN("webhook-signature"));
}

void webhook_sent(struct attempt *attempt)
{
    struct webhook_log_entry *entry = &attempt->outcome;
    struct lane_settings *settings = attempt->settings;
    const struct mask *m = attempt->deliveries->hooks->rest->mask;

    if (attempt->header_count == 0)
        return;
    if (settings->sent.p == NULL)
        make_constant(settings, m);
    entry->sent = settings->sent;
    if (attempt->made == NULL && has_usual_type(attempt) && has_signature_only(attempt))
        entry->signature = attempt->headers[attempt->known_headers].value;
    else if (attempt->made != NULL || !has_usual_type(attempt) ||
             attempt->header_count > attempt->known_headers)
        entry->sent = special(attempt, m, &attempt->arena);
}

/* ---- telling ---- */

struct sent {
    struct hooks *hooks;
    struct json_value entry;
    struct span text;          /* absent: it is not known */
    struct delivery *delivery; /* NULL: it is not there any more */
    struct arena *arena;
};

static struct span text_of(const struct sent *s, struct span member)
{
    return json_string(json_member(s->entry, member), s->arena);
}

static struct delivery *find_delivery(const struct sent *s)
{
    struct uuid id;

    return uuid_parse(text_of(s, SPAN("DeliveryId")), &id)
               ? delivery_find(s->hooks->deliveries, &id)
               : NULL;
}

static struct sent read_entry(struct hooks *hooks, const struct entity *entry, struct arena *a)
{
    struct sent s = {.hooks = hooks, .entry = entity_parse(entity_json(entry), a), .arena = a};

    s.text = json_string(json_member(s.entry, SPAN("Sent")), a);
    s.delivery = find_delivery(&s);
    return s;
}

static bool is_type(struct span line)
{
    return span_istarts(line, SPAN("Content-Type: "));
}

/* Names are tokens: they need no escape. Returns whether the type was among them. */
static bool add_kept(struct buf *b, struct span lines)
{
    bool has_type = false;

    while (lines.n > 0) {
        struct span line = span_split(&lines, '\n');
        size_t colon = span_find_char(line, ':', 0);

        if (line.n == 0) /* the body follows */
            break;
        has_type = has_type || is_type(line);
        member_add_text(b, span_sub(line, 0, colon), span_sub(line, colon + 2, line.n));
    }
    return has_type;
}

/* Behind the empty line; absent: it is the event's payload. */
static struct span kept_body(struct span text)
{
    size_t at;

    if (span_starts(text, SPAN("\n")))
        return span_sub(text, 1, text.n);
    at = span_find(text, SPAN("\n\n"));
    return at == SIZE_MAX ? span_of(NULL, 0) : span_sub(text, at + 2, text.n);
}

static void add_type(const struct sent *s, struct buf *b)
{
    const struct event *event = s->delivery == NULL ? NULL : s->delivery->event;

    struct span kept = kept_body(s->text);

    if ((kept.p != NULL && kept.n == 0) || span_eq(text_of(s, SPAN("Method")), SPAN("HEAD")))
        return; /* nothing is of a type */
    member_add_text(b, SPAN("Content-Type"),
                    event != NULL && event->is_binary ? event->content_type : usual_type);
}

static void add_known(const struct sent *s, struct buf *b)
{
    struct span time = text_of(s, SPAN("Time"));
    struct instant at;

    member_add_text(b, SPAN("Svc-webhook-id"), text_of(s, SPAN("WebhookId")));
    if (s->delivery != NULL)
        member_add_text(b, SPAN("Svc-event"), s->delivery->event->resource);
    member_add_text(b, SPAN("Svc-attempt"), json_text(json_member(s->entry, SPAN("Attempt"))));
    if (s->delivery != NULL)
        member_add_text(b, SPAN("Svc-depth"), arena_u64(s->arena, s->delivery->event->depth + 1u));
    member_add_text(b, SPAN("webhook-id"), text_of(s, SPAN("EventId")));
    if (datetime_parse(time, &at))
        member_add_text(b, SPAN("webhook-timestamp"), arena_u64(s->arena, (uint64_t)at.seconds));
}

void webhook_sent_add_headers(struct hooks *hooks, const struct entity *entry, struct buf *b)
{
    struct arena a;
    struct sent s;

    arena_init(&a);
    s = read_entry(hooks, entry, &a);
    if (s.text.p == NULL) {
        buf_add_str(b, "null");
    } else {
        buf_add_char(b, '{');
        if (!add_kept(b, s.text))
            add_type(&s, b);
        add_known(&s, b);
        buf_add_char(b, '}');
    }
    arena_done(&a);
}

/* Bytes that are no text in base64, as those of stored errors. */
static void add_payload(const struct sent *s, struct buf *b)
{
    struct blob *payload = payload_or_null(events_payloads(s->hooks->events), s->delivery->event);
    struct span body = blob_span(payload);
    struct buf text;

    buf_init_arena(&text, s->arena);
    if (payload == NULL) {
        buf_add_str(b, "null");
        return;
    }
    if (text_is_utf8(body)) {
        buf_add(&text, shown_body(s->hooks->rest->mask, body, s->arena));
    } else {
        buf_add_str(&text, "base64:");
        text_add_base64(&text, span_sub(body, 0, MIN(body.n, WEBHOOK_LOG_BODY_BYTES)));
    }
    json_add_string(b, buf_span(&text));
    blob_unref(payload);
}

void webhook_sent_add_body(struct hooks *hooks, const struct entity *entry, struct buf *b)
{
    struct arena a;
    struct sent s;
    struct span kept;
    bool is_known;

    arena_init(&a);
    s = read_entry(hooks, entry, &a);
    kept = kept_body(s.text);
    is_known = s.text.p != NULL &&
               !span_eq(json_text(json_member(s.entry, SPAN("BodyByteCount"))), SPAN("0"));
    if (is_known && kept.p != NULL)
        json_add_string(b, kept);
    else if (is_known && s.delivery != NULL)
        add_payload(&s, b);
    else
        buf_add_str(b, "null");
    arena_done(&a);
}
