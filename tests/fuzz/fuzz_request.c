/* The whole service without sockets, disk and network: io/journal, io/resolve and io/fetch are
 * replaced at link time. The first line of the input says what is
 * required; then come requests, each a line `METHOD TARGET|Header: value|...` and a line with the
 * body, where \v stands for a line break. No answer is 500, each is well-formed, what only reads
 * changes nothing, and what the records say in a new store is what the old one says. */
#include "access/access.h"
#include "admin/service.h"
#include "admin/service_options.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/fetch_url.h"
#include "fetch/resolve.h"
#include "fuzzing.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "journal/journal_options.h"
#include "journal/place.h"
#include "journal/segment.h"
#include "resource/declaration.h"
#include "rest/request.h"
#include "rest/response.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"
#include "zoo.h"
#include "json/json.h"

#include <netinet/in.h>

#define NOW_NS (INT64_C(1800000000) * 1000000000)

enum {
    REQUESTS_MOST = 24,
    HEADERS_MOST = 12,
    DISK_BYTES = 1 << 18,
    SEGMENT_RECORDS = 8,
    STEP_NS = 100000000
};

static bool is_plain(struct span line)
{
    for (size_t i = 0; i < line.n; i++)
        if ((unsigned char)line.p[i] < ' ' || line.p[i] == 0x7f)
            return false;
    return true;
}

/* ---- a journal in memory, of small segments, so that it is cleaned ---- */

struct journal {
    struct journal_callbacks callbacks;
    struct segment_record *records; /* bodies are owned, and NULL before `first` */
    size_t first, count, size;
    size_t bytes; /* from `first` on */
    uint64_t next_serial, committed;
    size_t committed_count; /* of the records */
};

/* What a service that is opened finds: the records of the one before. At first these are the
 * declarations, which it would take long to make anew for each input. */
static struct journal remembered, declarations;

static void keep(struct journal *j, const struct segment_record *r)
{
    if (j->count == j->size) {
        j->size = MAX(64, 2 * j->size);
        j->records = mem_resize(j->records, j->size * sizeof(*j->records));
    }
    j->records[j->count] = *r;
    j->records[j->count++].body = span_of(mem_string(r->body), r->body.n);
    j->bytes += r->body.n;
    j->next_serial = r->serial + r->serials;
}

static void drop(struct journal *j, size_t end)
{
    for (; j->first < end; j->first++) {
        j->bytes -= j->records[j->first].body.n;
        mem_free((void *)(uintptr_t)j->records[j->first].body.p);
    }
}

static void forget(struct journal *j)
{
    drop(j, j->count);
    mem_free(j->records);
    *j = (struct journal){.count = 0};
}

static struct journal_place place_of(size_t i)
{
    return (struct journal_place){(uint32_t)(1 + i / SEGMENT_RECORDS), (uint32_t)i};
}

struct err *journal_open(struct loop *loop, const struct journal_options *options,
                         const struct journal_callbacks *callbacks, struct journal **out_journal)
{
    struct journal *j = NEW(struct journal);

    (void)loop;
    (void)options;
    j->callbacks = *callbacks;
    j->next_serial = 1;
    *out_journal = j;
    for (size_t i = remembered.first; i < remembered.count; i++) {
        keep(j, &remembered.records[i]);
        TRY(callbacks->on_replay(callbacks->context, &j->records[j->count - 1],
                                 place_of(j->count - 1)));
    }
    j->committed = j->next_serial - 1;
    j->committed_count = j->count;
    return NULL;
}

static void remember(const struct journal *j)
{
    forget(&remembered);
    for (size_t i = j->first; i < j->count; i++)
        keep(&remembered, &j->records[i]);
}

void journal_close(struct journal *j)
{
    if (j == NULL)
        return;
    forget(&remembered);
    remembered = *j;
    mem_free(j);
}

uint64_t journal_next_serial(const struct journal *j)
{
    return j->next_serial;
}

uint64_t journal_committed_serial(const struct journal *j)
{
    return j->committed;
}

uint64_t journal_sequence(const struct journal *j)
{
    return j->count;
}

uint64_t journal_committed_sequence(const struct journal *j)
{
    return j->committed_count;
}

bool journal_has_committed(const struct journal *j, struct journal_place place)
{
    return place.offset < j->committed_count;
}

/* A disk that is full makes 507. */
struct err *journal_reserve(struct journal *j, size_t bytes, const struct journal_left *left)
{
    if (j->bytes + bytes + (left == NULL ? 0 : left->spare) > DISK_BYTES)
        return ERR(ERR_STORAGE_FAILURE, "the disk is full");
    return NULL;
}

bool journal_has_reserve(const struct journal *j)
{
    (void)j;
    return false;
}

bool journal_can_move(const struct journal *j, uint64_t moved_bytes)
{
    (void)j;
    (void)moved_bytes;
    return true;
}

uint64_t journal_moved_bytes(uint64_t bytes)
{
    return bytes;
}

uint64_t journal_largest(const struct journal *j)
{
    (void)j;
    return 0;
}

bool journal_is_dropping(const struct journal *j)
{
    (void)j;
    return false;
}

uint64_t journal_oldest_number(const struct journal *j)
{
    return 1 + j->first / SEGMENT_RECORDS;
}

uint64_t journal_newest_number(const struct journal *j)
{
    return 1 + j->count / SEGMENT_RECORDS;
}

uint64_t journal_append(struct journal *j, const struct journal_record *records, size_t count,
                        size_t bytes, struct journal_place *places)
{
    uint64_t first = j->next_serial;

    (void)bytes;
    for (size_t i = 0; i < count; i++) {
        if (places != NULL)
            places[i] = place_of(j->count);
        keep(j, &(struct segment_record){.serial = j->next_serial,
                                         .serials = records[i].serials,
                                         .kind = records[i].kind,
                                         .body = records[i].body});
    }
    return first;
}

void journal_commit(struct journal *j)
{
    j->committed = j->next_serial - 1;
    j->committed_count = j->count;
    j->callbacks.on_commit(j->callbacks.context, j->committed);
}

bool journal_idle(const struct journal *j)
{
    return j->committed_count == j->count;
}

struct err *journal_read(struct journal *j, struct journal_place place, bool may_wait,
                         struct buf *out_body, bool *out_there)
{
    (void)may_wait;
    MUST(place.offset >= j->first && place.offset < j->count);
    buf_add(out_body, j->records[place.offset].body);
    *out_there = true;
    return NULL;
}

/* The first record of the segment after the oldest. */
static size_t second_segment(const struct journal *j)
{
    return (j->first / SEGMENT_RECORDS + 1) * SEGMENT_RECORDS;
}

uint64_t journal_second_first_serial(const struct journal *j)
{
    return second_segment(j) < j->count ? j->records[second_segment(j)].serial : 0;
}

void journal_drop_oldest(struct journal *j)
{
    MUST(second_segment(j) < j->count);
    drop(j, second_segment(j));
}

/* Much more than there is, so that the cleaner never rests for long. */
void journal_stats(const struct journal *j, struct journal_stats *out_stats)
{
    *out_stats = (struct journal_stats){.segments = 1};
    for (size_t i = j->first; i + SEGMENT_RECORDS < j->count; i++)
        out_stats->sealed_bytes += 100 * segment_record_bytes(j->records[i].body.n);
}

void journal_time_commits(struct journal *j, struct histogram *times)
{
    (void)j;
    (void)times;
}

/* ---- a network that answers one fetch a turn, well or badly ---- */

static struct list fetches; /* that are under way */
static size_t fetches_done;

/* Names of one length share one. */
static struct fetch_origin {
    size_t refs;
    void *user;
    bool is_known; /* to lead to the address that all of them lead to */
} origins[4];

struct err *resolver_new(struct loop *loop, const struct resolve_options *options,
                         struct resolver **out_resolver)
{
    (void)loop;
    (void)options;
    *out_resolver = NULL;
    return NULL;
}

void resolver_free(struct resolver *r)
{
    (void)r;
}

struct err *fetcher_new(struct loop *loop, struct resolver *resolver,
                        const struct egress_rules *rules, const struct fetch_options *options,
                        struct fetcher **out_fetcher)
{
    (void)loop;
    (void)resolver;
    (void)rules;
    (void)options;
    *out_fetcher = NULL;
    list_init(&fetches);
    fetches_done = 0;
    return NULL;
}

void fetcher_free(struct fetcher *f)
{
    (void)f;
    while (list_pop_front(&fetches) != NULL) {
    }
    for (size_t i = 0; i < ARRAY_LEN(origins); i++) {
        MUST(origins[i].refs == 0 && origins[i].user == NULL);
        origins[i].is_known = false;
    }
}

struct fetch_origin *fetch_origin_get(struct fetcher *f, struct span url)
{
    struct fetch_origin *origin = &origins[fetch_url_origin(url).n % ARRAY_LEN(origins)];

    (void)f;
    origin->refs++;
    return origin;
}

void fetch_origin_put(struct fetch_origin *origin)
{
    if (origin != NULL)
        MUST(origin->refs-- > 0);
}

struct span fetch_origin_text(const struct fetch_origin *origin)
{
    (void)origin;
    return SPAN("http://fuzz.test");
}

void **fetch_origin_user(struct fetch_origin *origin)
{
    return &origin->user;
}

bool fetch_origin_address(const struct fetch_origin *origin, struct in6_addr *out_address)
{
    if (origin->is_known)
        *out_address = in6addr_loopback;
    return origin->is_known;
}

void fetch_start(struct fetcher *fetcher, struct fetch *f)
{
    (void)fetcher;
    MUST(is_plain(f->url) && f->origin->refs > 0 && (f->body == NULL || f->body->refs > 0));
    for (size_t i = 0; i < f->header_count; i++)
        MUST(is_plain(f->headers[i].name));
    list_push_back(&fetches, &f->link);
}

void fetch_cancel(struct fetcher *fetcher, struct fetch *f)
{
    (void)fetcher;
    if (list_linked(&f->link))
        list_remove(&fetches, &f->link);
}

size_t fetch_active(const struct fetcher *f)
{
    (void)f;
    return list_count(&fetches);
}

static void answer_fetch(void)
{
    static const struct fetch_result results[] = {
        {.status = 200, .retry_after_s = -1},
        {.status = 503, .retry_after_s = 1},
        {.error = FETCH_CONNECT, .why = "refused", .retry_after_s = -1},
        {.status = 204, .retry_after_s = -1},
        {.status = 410, .retry_after_s = -1},
    };
    struct list_link *first = list_pop_front(&fetches);

    if (first != NULL) {
        struct fetch *f = CONTAINER_OF(first, struct fetch, link);

        f->origin->is_known = true;
        f->on_connected(f);
        f->on_done(f, &results[fetches_done++ % ARRAY_LEN(results)]);
    }
}

/* ---- a service ---- */

static struct loop loop;

static struct service *open_service(bool requires_key)
{
    static const char key[] =
        "{\"Name\":\"k\",\"KeySha256\":"
        "\"8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a\","
        "\"AllowAccess\":[{\"Resources\":[\"Zoo.*\",\"Svc.Event\"],\"Methods\":[\"GET\",\"POST\"]}]"
        "}";
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 1,
        .retention = {30, 10000, 14, 10000, 1, 10000, 86400, 10000},
    };
    const struct journal_options journal = {.directory = NULL};
    const struct turn_options turn_options = {.journal = &journal};
    struct service *s;
    struct arena a;

    arena_init(&a);
    limits_init(&options.limits);
    access_init(&options.access);
    egress_init(&options.egress);
    options.access.required = requires_key;
    MUST(access_add(&options.access, entity_parse(span_str(key), &a), &a) == NULL);
    MUST(service_new(&loop, &options, &s) == NULL);
    MUST(service_replay(s, &turn_options) == NULL);
    MUST(api_keys_list_configured(s->rest.api_keys) == NULL);
    service_start(s);
    arena_done(&a);
    return s;
}

static void turn_loop(void)
{
    answer_fetch();
    loop_wake(&loop);
    loop_run_once(&loop);
}

/* ---- requests ---- */

static size_t read_headers(struct span rest, struct header_field *headers)
{
    size_t count = 0;

    while (rest.p != NULL && count < HEADERS_MOST) {
        struct span value = span_split(&rest, '|');
        struct span name = span_split(&value, ':');

        if (name.n > 0)
            headers[count++] = (struct header_field){name, span_trim(value)};
    }
    return count;
}

/* False: h1 would not have let it through. */
static bool read_request(struct input *in, struct header_field *headers, struct arena *a,
                         struct request *out_request)
{
    struct span line = input_line(in), body = input_line(in);
    struct span head = span_split(&line, '|');
    struct request r = {.method = span_split(&head, ' '), .target = head, .headers = headers};
    char *text;

    if (!is_plain(head) || !is_plain(line) || !is_plain(r.method) || r.method.n == 0 ||
        !span_starts(r.target, SPAN("/")) || span_find_char(r.target, ' ', 0) < r.target.n)
        return false;
    r.header_count = read_headers(line, headers);
    r.body = body.n > 0 ? arena_copy(a, body) : (struct span){NULL, 0};
    text = (char *)(uintptr_t)r.body.p;
    for (size_t i = 0; i < r.body.n; i++)
        if (text[i] == '\v')
            text[i] = '\n';
    *out_request = r;
    return true;
}

/* ---- answers ---- */

/* Takes a row off the front and counts its fields. */
static size_t take_csv_row(struct span *text)
{
    bool is_quoted = false;
    size_t at = 0, fields = 1;

    for (; at < text->n && (is_quoted || text->p[at] != '\n'); at++) {
        is_quoted = is_quoted != (text->p[at] == '"');
        fields += text->p[at] == ',' && !is_quoted;
    }
    MUST(at < text->n && at > 0 && text->p[at - 1] == '\r');
    *text = span_sub(*text, at + 1, text->n);
    return fields;
}

static void check_csv(struct span text)
{
    size_t fields = take_csv_row(&text);

    while (text.n > 0)
        MUST(take_csv_row(&text) == fields);
}

static void check_body(const struct response *r, struct arena *a)
{
    struct span type = r->content_type, body = buf_span(&r->body);
    struct json_doc doc;

    if (body.n > 0 && span_starts(type, SPAN("text/csv")))
        check_csv(body);
    if (type.p == NULL || span_starts(type, SPAN("text/")) || body.n == 0)
        return;
    if (span_starts(type, SPAN("application/x-ndjson"))) {
        while (body.n > 0)
            MUST(json_parse(span_split(&body, '\n'), NULL, a, &doc) == NULL);
        return;
    }
    if (span_starts(type, SPAN("application/json")) ||
        span_starts(type, SPAN("application/problem+json")))
        MUST(json_parse(body, NULL, a, &doc) == NULL);
}

static void check_response(const struct service *s, const struct response *r, struct arena *a)
{
    MUST(r->status >= 200 && r->status < 600 && r->status != 500);
    MUST((r->status >= 400) == (r->error != ERR_NO_ERROR));
    MUST(r->header_count <= RESPONSE_MAX_HEADERS);
    MUST(r->serial < journal_next_serial(turn_journal(s->turn)));
    for (size_t i = 0; i < r->header_count; i++)
        MUST(is_plain(r->headers[i].name) && is_plain(r->headers[i].value));
    check_body(r, a);
}

static bool only_reads(const struct request *r)
{
    return span_eq(r->method, SPAN("GET")) || span_eq(r->method, SPAN("HEAD")) ||
           span_eq(r->method, SPAN("OPTIONS")) || span_eq(r->method, SPAN("REPORT"));
}

/* Of what is refused only the error is left behind; of Svc.Aggregator's, the inner one as well. */
static void check_unchanged(const struct request *request, const struct response *r,
                            struct store_digest before, struct store_digest after)
{
    if (r->status >= 400)
        MUST(after.objects - before.objects <= 2);
    else if (only_reads(request))
        MUST(after.objects == before.objects && after.sum == before.sum);
}

static void run_request(struct service *s, const struct request *request, struct response *response,
                        struct arena *a)
{
    struct store_digest before = store_digest(s->store);

    dispatch_run(&s->rest, request, response);
    check_response(s, response, a);
    check_unchanged(request, response, before, store_digest(s->store));
    turn_loop();
    clock_advance(STEP_NS);
}

static void run_requests(struct service *s, struct input *in)
{
    struct response response;
    struct arena a;

    response_init(&response, 1 << 20);
    arena_init(&a);
    for (size_t i = 0; i < REQUESTS_MOST && in->n > 0; i++) {
        struct header_field headers[HEADERS_MOST];
        struct request request;

        if (read_request(in, headers, &a, &request))
            run_request(s, &request, &response, &a);
        arena_reset(&a);
    }
    response_done(&response);
    arena_done(&a);
}

/* ---- the whole ---- */

static struct store_digest close_service(struct service *s)
{
    struct store_digest digest = store_digest(s->store);

    service_free(s);
    turn_loop();
    return digest;
}

static void declare(void)
{
    struct service *s = open_service(false);
    struct arena a;

    arena_init(&a);
    MUST(declarations_configure(s->rest.resources, entity_parse(span_str(zoo_declarations), &a),
                                ".", false) == NULL);
    arena_done(&a);
    close_service(s);
    declarations = remembered;
    remembered = (struct journal){.count = 0};
}

static void start(void)
{
    clock_fake(NOW_NS, 1);
    rng_seed(1);
    if (loop.scratch != NULL)
        return;
    log_configure(LOG_ERROR, LOG_TEXT);
    MUST(loop_init(&loop) == NULL);
    declare();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    bool requires_key = span_starts(input_line(&in), SPAN("key"));
    struct store_digest before, after;
    struct service *s;

    start();
    remember(&declarations);
    s = open_service(requires_key);
    run_requests(s, &in);
    before = close_service(s);
    if (remembered.next_serial > declarations.next_serial) {
        after = close_service(open_service(requires_key));
        MUST(before.objects == after.objects && before.sum == after.sum);
    }
    forget(&remembered);
    return 0;
}
