/* Conditions are put together from what people give: an Id, a label, a time. Values are encoded
 * whole, so that no label can become a condition of its own. */
#include "cli/target.h"

#include "base/datetime.h"
#include "base/text.h"
#include "base/uuid.h"

static const struct span none = {NULL, 0};

void target_add_value(struct buf *b, struct span text)
{
    text_add_percent(b, text, "-._~:");
}

void target_add_typed(struct buf *b, struct span text)
{
    if (!span_starts(text, SPAN("/")))
        buf_add_char(b, '/');
    text_add_percent(b, text, "!$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
}

bool target_is_id(struct span text)
{
    struct uuid id;

    return uuid_parse(text, &id);
}

struct span target_with(struct arena *a, const char *before, struct span value)
{
    struct buf b;

    buf_init_arena(&b, a);
    buf_add_str(&b, before);
    target_add_value(&b, value);
    return buf_span(&b);
}

/* In quotes, so that a label of digits is a text: conditions read literals. */
struct span target_named(struct arena *a, const char *resource, const char *property,
                         struct span text)
{
    if (target_is_id(text))
        return arena_printf(a, "/%s/Id=%.*s", resource, SPAN_FMT(text));
    return arena_printf(
        a, "%.*s'",
        SPAN_FMT(target_with(a, arena_printf(a, "/%s/%s='", resource, property).p, text)));
}

void target_split_selector(struct span selector, struct span *out_resource,
                           struct span *out_conditions)
{
    if (span_starts(selector, SPAN("/")))
        selector = span_sub(selector, 1, selector.n);
    *out_resource = span_split(&selector, '/');
    *out_conditions = selector.n == 0 || span_eq(selector, SPAN("_")) ? none : selector;
}

bool target_means(struct span typed, struct span full_name)
{
    struct span end;

    if (span_eq(typed, SPAN("*")))
        return true;
    if (span_ends(typed, SPAN(".*"))) {
        struct span space = span_sub(typed, 0, typed.n - 1); /* with its dot */

        return span_istarts(full_name, space) &&
               span_find_char(full_name, '.', space.n) == full_name.n;
    }
    if (typed.n > full_name.n || typed.n == 0)
        return false;
    end = span_sub(full_name, full_name.n - typed.n, full_name.n);
    return span_ieq(typed, end) &&
           (end.n == full_name.n || full_name.p[full_name.n - end.n - 1] == '.');
}

/* Seconds of `90s`, `5m`, `2h`, `3d`. */
static bool read_span_of_time(struct span text, int64_t *out_s)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    uint64_t count;

    if (text.n < 2 || !span_to_u64(span_sub(text, 0, text.n - 1), &count) || count > 36500)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (text.p[text.n - 1] != units[i].unit)
            continue;
        *out_s = (int64_t)count * units[i].seconds;
        return true;
    }
    return false;
}

struct err *target_add_time(struct buf *b, const char *what, struct span text, int64_t now_ns,
                            bool ahead)
{
    struct instant at;
    int64_t seconds;

    if (read_span_of_time(text, &seconds)) {
        datetime_add(b, now_ns + (ahead ? seconds : -seconds) * INT64_C(1000000000));
        return NULL;
    }
    if (!datetime_parse(text, &at))
        return ERR(ERR_UNKNOWN,
                   "%s: '%.*s' is no time; write 2026-01-31, 2026-01-31T12:00:00Z, or 90s, 5m, 2h, "
                   "3d %s",
                   what, SPAN_FMT(text), ahead ? "from now" : "ago");
    buf_add(b, text);
    return NULL;
}
