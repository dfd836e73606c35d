/* A head is read line by line, as it was typed, kept or received. */
#include "cli/http_text.h"

#include "base/text.h"

static struct span take_line(struct span *rest, bool *out_ended)
{
    struct span line;

    *out_ended = span_find_char(*rest, '\n', 0) < rest->n;
    line = span_split(rest, '\n');
    if (span_ends(line, SPAN("\r")))
        line.n--;
    return line;
}

/* `POST /hook HTTP/1.1`. What is none, has a colon behind its name and no blank in it. */
static bool take_request_line(struct span line, struct http_text *out)
{
    struct span method = span_split(&line, ' ');
    struct span path = span_split(&line, ' ');

    if (!text_is_token(method) || path.n == 0 || !span_starts(line, SPAN("HTTP/")))
        return false;
    out->method = method;
    out->path = path;
    return true;
}

static struct err *take_field(struct span line, size_t number, struct http_text *out)
{
    struct span name = span_split(&line, ':');

    if (!text_is_token(name) || line.p == NULL)
        return ERR(ERR_UNKNOWN, "line %zu is no header field: name, colon, value", number);
    if (out->field_count == HTTP_TEXT_FIELDS)
        return ERR(ERR_UNKNOWN, "more than %d header fields", HTTP_TEXT_FIELDS);
    out->fields[out->field_count].name = name;
    out->fields[out->field_count++].value = span_trim(line);
    return NULL;
}

struct err *http_text_parse(struct span text, struct http_text *out)
{
    struct span rest = text;

    out->method = out->path = span_of(NULL, 0);
    out->field_count = 0;
    for (size_t number = 1;; number++) {
        bool ended;
        struct span line = take_line(&rest, &ended);

        if (!ended)
            return ERR(ERR_NO_DATA_SOURCE, "no empty line ends the header fields");
        if (line.n == 0 && number > 1)
            break;
        if (number == 1 && (line.n == 0 || take_request_line(line, out)))
            continue;
        TRY(take_field(line, number, out));
    }
    out->body = rest.p == NULL ? SPAN("") : rest;
    return NULL;
}

struct span http_text_field(const struct http_text *request, struct span name)
{
    for (size_t i = 0; i < request->field_count; i++)
        if (span_ieq(request->fields[i].name, name))
            return request->fields[i].value;
    return span_of(NULL, 0);
}

bool http_text_length(const struct http_text *request, uint64_t *out_bytes)
{
    struct span value = http_text_field(request, SPAN("Content-Length"));

    *out_bytes = 0;
    return value.p == NULL || span_to_u64(value, out_bytes);
}
