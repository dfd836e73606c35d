/* What a stored webhook says of its requests: for an attempt, which reads it once. */
#ifndef WEBHOOK_WEBHOOK_SETTINGS_H
#define WEBHOOK_WEBHOOK_SETTINGS_H

#include "base/span.h"
#include "webhook/retry.h"

struct arena;
struct enumeration;
struct err;
struct header_field;
struct json_value;
struct signer;
struct webhook;

/* The values of its property Format. */
enum webhook_format {
    WEBHOOK_ARRAY,
    WEBHOOK_STANDARD,
    WEBHOOK_CLOUD_BINARY, /* protocol/cloudevents.h */
    WEBHOOK_CLOUD_STRUCTURED,
    WEBHOOK_FORMAT_COUNT
};
extern const struct enumeration webhook_format_names;

#define WEBHOOK_SIGNS_ALWAYS INT64_MAX
/* One of the member Secrets of its Signing. */
struct webhook_secret {
    struct span text;
    int64_t expires_unix_ns; /* it does not sign from then on; or WEBHOOK_SIGNS_ALWAYS */
};
/* Reads a stored Signing, which may be null. Texts live in the arena. */
size_t webhook_secrets(struct json_value signing, struct arena *a,
                       struct webhook_secret **out_secrets);

/* What an attempt needs. Spans live in the arena. */
struct webhook_settings {
    struct span method;
    struct span destination; /* absolute URL, or a local target that begins with '/' */
    bool is_local;
    struct header_field *headers;
    size_t header_count;
    struct span content_type; /* of Headers; absent: JSON */
    bool has_custom;
    struct span custom_uri;
    struct header_field *custom_headers;
    size_t custom_header_count;
    struct span custom_body; /* JSON text or absent */
    bool break_on_error, break_on_no_content;
    uint32_t timeout_ms;
    struct retry_policy retry;
    uint32_t max_in_flight;
    double rate_per_second; /* 0: none */
    bool ordered;
    double disable_after_days;
    struct webhook_secret *secrets;
    size_t secret_count;
    enum webhook_format format;
    bool verifies; /* its receiver is to agree first: lane_consent.h */
};
struct err *webhook_read(const struct webhook *w, struct arena *a,
                         struct webhook_settings *out_settings) MUST_USE;

/* Keys of the secrets that sign now. */
struct webhook_signer {
    struct signer *keys;   /* to be unreferenced; NULL: not needed yet */
    int64_t until_unix_ns; /* when one of the secrets expires */
};
/* They are made, unless they still hold; the arena is for what that takes. ERR_UNKNOWN when
 * libcrypto fails: there are none then. */
struct err *webhook_keep_signer(struct webhook_signer *kept,
                                const struct webhook_settings *settings, int64_t now_unix_ns,
                                struct arena *a) MUST_USE;

/* Has each request a body of its own, or the event's payload as it is? */
bool webhook_makes_bodies(const struct webhook_settings *settings);

#endif
