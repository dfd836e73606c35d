/* Searching with PCRE2. Backtracking can take time without end, and even an expression that stays
 * below the library's match limit at each offset of a text can take quadratic time over all of
 * them. So work is counted where it is done: the expression is compiled with a callout before each
 * of its items, and a callout costs one step plus the distance the matcher moved since the last.
 * A search has a budget of steps, to which each text adds a multiple of its length: looking for
 * something in much data is fine, grinding on a little of it is not. PCRE2's own limits stay as
 * bounds for a single attempt and for memory. */
#include "meta_search.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/must.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define META_REGEX_KIND 0x7265676du

enum {
    PATTERN_BYTES = 1000,
    STEPS = 50000000, /* about half a second */
    STEPS_PER_BYTE = 8,
    MATCH_LIMIT = 1000000,
    DEPTH_LIMIT = 100000,
    HEAP_LIMIT_KIB = 16384,
};

struct meta_regex {
    unsigned kind;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    int64_t steps_left;
    size_t position; /* where the last callout was */
};

/* ---- form ---- */

/* Offset behind the closing quote, which a comma or the end follows; 0: the text is not quoted. */
static size_t end_of_quoted(struct span value)
{
    if (value.n == 0 || (value.p[0] != '\'' && value.p[0] != '"'))
        return 0;
    for (size_t at = 1; (at = span_find_char(value, value.p[0], at)) < value.n; at++)
        if (at + 1 == value.n || value.p[at + 1] == ',')
            return at + 1;
    return 0;
}

static struct span take_text(struct span *rest)
{
    struct span value = *rest;
    size_t end = end_of_quoted(value);

    if (end == 0)
        return span_split(rest, ',');
    *rest = end < value.n ? span_sub(value, end + 1, value.n) : span_of(NULL, 0);
    return span_sub(value, 1, end - 1);
}

static bool read_case(struct span text, bool *out_ignore)
{
    *out_ignore = span_ieq(text, SPAN("CI"));
    return *out_ignore || span_ieq(text, SPAN("CS"));
}

struct err *meta_search_read(struct span name, struct span value, struct meta_search_form *out_form)
{
    struct span rest = value;
    struct meta_search_form form = {.text = take_text(&rest)};
    struct span second = span_trim(span_split(&rest, ','));

    if (!read_case(second, &form.ignore_case) || rest.p != NULL) {
        form.property = second;
        if (rest.p != NULL && !read_case(span_trim(rest), &form.ignore_case))
            return ERR(
                ERR_INVALID_META_SYNTAX,
                "The value of '%.*s' has the form text[,property][,CS or CI], '%.*s' has not; "
                "a text with a comma is quoted.",
                SPAN_FMT(name), SPAN_FMT(value));
    }
    if (form.text.n == 0)
        return ERR(ERR_INVALID_META_SYNTAX, "The value of '%.*s' has no text to look for: '%.*s'.",
                   SPAN_FMT(name), SPAN_FMT(value));
    *out_form = form;
    return NULL;
}

/* ---- expressions ---- */

static int on_callout(pcre2_callout_block *block, void *arg)
{
    struct meta_regex *regex = MUST_BE(struct meta_regex, META_REGEX_KIND, arg);
    size_t at = block->current_position;

    regex->steps_left -= 1 + (int64_t)(MAX(at, regex->position) - MIN(at, regex->position));
    regex->position = at;
    return regex->steps_left > 0 ? 0 : PCRE2_ERROR_MATCHLIMIT;
}

static struct err *bad_expression(struct span text, int code, size_t offset)
{
    PCRE2_UCHAR reason[256];

    pcre2_get_error_message(code, reason, sizeof(reason));
    return ERR(ERR_INVALID_META_SYNTAX, "The expression '%.*s' is wrong at offset %zu: %s.",
               SPAN_FMT(text), offset, (const char *)reason);
}

static struct err *compile(struct span text, uint32_t options, pcre2_code **out_code)
{
    int code;
    size_t offset;

    if (text.n > PATTERN_BYTES)
        return ERR(ERR_INVALID_META_SYNTAX,
                   "The text to look for is %zu bytes long, at most %d are allowed.", text.n,
                   PATTERN_BYTES);
    *out_code = pcre2_compile((PCRE2_SPTR)text.p, text.n, options | PCRE2_UTF | PCRE2_AUTO_CALLOUT,
                              &code, &offset, NULL);
    return *out_code != NULL ? NULL : bad_expression(text, code, offset);
}

static struct meta_regex *regex_new(pcre2_code *code)
{
    struct meta_regex *regex = NEW(struct meta_regex);

    regex->kind = META_REGEX_KIND;
    regex->code = code;
    regex->steps_left = STEPS;
    regex->data = pcre2_match_data_create(1, NULL);
    regex->limits = pcre2_match_context_create(NULL);
    MUST(regex->data != NULL && regex->limits != NULL); /* out of memory ends the process */
    pcre2_set_match_limit(regex->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(regex->limits, HEAP_LIMIT_KIB);
    pcre2_set_callout(regex->limits, on_callout, regex);
    return regex;
}

struct err *meta_search_compile(struct meta_search *s, bool is_expression)
{
    uint32_t options = is_expression ? PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL;
    pcre2_code *code;

    if (!is_expression && !s->ignore_case)
        return NULL;
    TRY(compile(s->text, options | (s->ignore_case ? PCRE2_CASELESS : 0), &code));
    s->regex = regex_new(code);
    return NULL;
}

void meta_search_done(struct meta_search *s)
{
    struct meta_regex *regex = TAKE(s->regex);

    if (regex == NULL)
        return;
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->data);
    pcre2_code_free(regex->code);
    mem_free(regex);
}

static struct err *gave_up(struct span text, int code)
{
    PCRE2_UCHAR reason[256];

    pcre2_get_error_message(code, reason, sizeof(reason));
    return ERR(ERR_INVALID_META_SYNTAX, "The search for '%.*s' takes too much work: %s.",
               SPAN_FMT(text), (const char *)reason);
}

struct err *meta_search_holds(const struct meta_search *s, struct span text, bool *out_holds)
{
    struct meta_regex *regex = s->regex;
    int64_t budget;
    int result;

    if (regex == NULL) {
        *out_holds = span_find(text, s->text) != SIZE_MAX;
        return NULL;
    }
    budget = regex->steps_left;
    regex->steps_left += STEPS_PER_BYTE * (int64_t)text.n;
    regex->position = 0;
    result = pcre2_match(regex->code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, 0, 0,
                         regex->data, regex->limits);
    regex->steps_left = MIN(regex->steps_left, budget);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
        return gave_up(s->text, result);
    *out_holds = result >= 0;
    return NULL;
}
