/* Searching with PCRE2. What an expression costs on a text can be anything: backtracking has no
 * end, and a single step, such as a class of many ranges that is repeated, goes over a whole text
 * before anybody is asked. So it runs where the clock can interrupt it anywhere (base/budget.h), in
 * memory of its own, and no callouts are compiled in. PCRE2's limits stay, as a bound for memory
 * and for who has no budget. */
#include "meta_search.h"

#include "base/budget.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/meta_items.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stddef.h>

enum {
    PATTERN_BYTES = 1000,
    MATCH_LIMIT = 100000000,
    DEPTH_LIMIT = 100000,
    HEAP_LIMIT_KIB = 16384,
};

/* A block of what a match allocates: all are freed together when a match has been left. */
struct block {
    struct list_link link;
    _Alignas(max_align_t) char data[];
};

struct meta_regex {
    pcre2_code *code;
    struct list blocks; /* struct block: of the following */
    pcre2_general_context *memory;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    struct span text; /* of the match at hand */
    int result;
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
    bool ignores = span_ieq(text, SPAN("CI"));

    if (!ignores && !span_ieq(text, SPAN("CS")))
        return false;
    *out_ignore = ignores;
    return true;
}

struct err *meta_search_read(struct span name, struct span value, struct meta_search_form *out_form)
{
    struct span rest = value;
    struct meta_search_form form = {.text = take_text(&rest), .ignore_case = true};
    struct span second = span_trim(path_split_list(&rest));

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
    *out_code =
        pcre2_compile((PCRE2_SPTR)text.p, text.n, options | PCRE2_UTF, &code, &offset, NULL);
    return *out_code != NULL ? NULL : bad_expression(text, code, offset);
}

/* ---- memory ---- */

static void *block_new(size_t n, void *regex)
{
    struct meta_regex *r = regex;
    struct block *block;

    budget_uninterrupted();
    block = mem_alloc(sizeof(*block) + n);
    block->link = (struct list_link){NULL, NULL};
    list_push_back(&r->blocks, &block->link);
    budget_interruptible();
    return block->data;
}

static void block_free(void *data, void *regex)
{
    struct meta_regex *r = regex;
    struct block *block;

    if (data == NULL)
        return;
    budget_uninterrupted();
    block = CONTAINER_OF(data, struct block, data);
    list_remove(&r->blocks, &block->link);
    mem_free(block);
    budget_interruptible();
}

static void make_contexts(struct meta_regex *r)
{
    r->memory = pcre2_general_context_create(block_new, block_free, r);
    r->data = pcre2_match_data_create(1, r->memory);
    r->limits = pcre2_match_context_create(r->memory);
    MUST(r->memory != NULL && r->data != NULL && r->limits != NULL);
    pcre2_set_match_limit(r->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(r->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(r->limits, HEAP_LIMIT_KIB);
}

/* Whatever state they are in. */
static void drop_contexts(struct meta_regex *r)
{
    struct list_link *at;

    while ((at = list_pop_front(&r->blocks)) != NULL)
        mem_free(CONTAINER_OF(at, struct block, link));
    r->data = NULL;
}

static struct meta_regex *regex_new(pcre2_code *code)
{
    struct meta_regex *r = NEW(struct meta_regex);

    r->code = code;
    list_init(&r->blocks);
    make_contexts(r);
    return r;
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
    drop_contexts(regex);
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

static void match(void *regex)
{
    struct meta_regex *r = regex;

    r->result = pcre2_match(r->code, (PCRE2_SPTR)(r->text.n > 0 ? r->text.p : ""), r->text.n, 0, 0,
                            r->data, r->limits);
}

struct err *meta_search_holds(const struct meta_search *s, struct span text, bool *out_holds)
{
    struct meta_regex *regex = s->regex;

    budget_spend(256 + text.n / 4);
    if (regex == NULL) {
        *out_holds = span_find(text, s->text) != SIZE_MAX;
        return NULL;
    }
    if (regex->data == NULL)
        make_contexts(regex);
    regex->text = text;
    *out_holds = false;
    if (!budget_run_pure(match, regex)) {
        drop_contexts(regex);
        return NULL; /* of which nothing comes */
    }
    if (regex->result < 0 && regex->result != PCRE2_ERROR_NOMATCH)
        return gave_up(s->text, regex->result);
    *out_holds = regex->result >= 0;
    return NULL;
}
