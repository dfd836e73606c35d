/* An event as Svc.Event shows it. */
#include "base/blob.h"
#include "base/text.h"
#include "hooks/event.h"
#include "json/member.h"

static void add_payload(struct payloads *p, struct event *event, struct buf *b)
{
    struct blob *payload = payload_or_null(p, event);

    if (payload == NULL) {
        buf_add_str(b, "null");
    } else if (event->is_binary) {
        buf_add_char(b, '"');
        text_add_base64(b, blob_span(payload));
        buf_add_char(b, '"');
    } else {
        buf_add(b, blob_span(payload));
    }
    blob_unref(payload);
}

void event_add_json(struct events *e, struct event *event, struct buf *b)
{
    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), &event->id);
    member_add_text(b, SPAN("Resource"), event->resource);
    member_add_time(b, SPAN("Time"), event->time_unix_ns);
    member_add_text(b, SPAN("ContentType"),
                    event->is_binary ? event->content_type : SPAN("application/json"));
    json_add_name(b, SPAN("Payload"));
    add_payload(events_payloads(e), event, b);
    member_add_text_or_null(b, SPAN("ClientId"), event_client_id(event));
    member_add_text_or_null(b, SPAN("Tenant"), event_tenant_name(event));
    member_add_json(b, SPAN("ce"), event->ce.n > 0 ? event->ce : SPAN("null"));
    member_add_u64(b, SPAN("Webhooks"), event->webhooks);
    member_add_u64(b, SPAN("ObjectNo"), event->object_no);
    buf_add_char(b, '}');
}
