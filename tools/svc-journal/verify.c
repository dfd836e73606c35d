/* verify and dump: reading only, also beside a running server, whose last segment is in motion:
 * what looks wrong there is looked at again. */
#include "tool.h"

#include "access/mask.h"
#include "base/text.h"
#include "store/record.h"
#include "json/json.h"
#include "json/member.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TRIES = 20, PAUSE_NS = 50000000 };

static void say_segment(const struct tool_walk *w)
{
    const struct journal_walk *walk = &w->walk;

    printf("%s/%s: %llu records, up to serial %llu, %llu bytes used\n", walk->directory, walk->name,
           (unsigned long long)w->segment_records, (unsigned long long)walk->next_serial - 1,
           (unsigned long long)w->end.offset);
    if (w->end.why != NULL)
        fprintf(stderr, "%s/%s: a torn end at offset %llu (%s), which a start would cut\n",
                walk->directory, walk->name, (unsigned long long)w->end.offset, w->end.why);
}

/* Is what went wrong in the last segment, or about one that cleaning has taken away meanwhile? */
static bool may_be_in_motion(const struct tool *t, const struct tool_walk *w)
{
    return w->place + 1 >= t->count || w->place == 0;
}

static struct err *walk_quietly(struct tool *t, struct tool_walk *w)
{
    struct err *e = tool_walk(t, w);

    for (int i = 0; i < TRIES && e != NULL && may_be_in_motion(t, w); i++) {
        err_free(e);
        journal_walk_done(&w->walk);
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        TRY(tool_list(t));
        e = tool_walk(t, w);
    }
    return e;
}

static int verify(struct tool *t)
{
    struct tool_walk quiet = {.place = 0}, loud = {.on_segment = say_segment};
    struct err *e = walk_quietly(t, &quiet);

    journal_walk_done(&quiet.walk);
    err_free(e);
    e = tool_walk(t, &loud);
    journal_walk_done(&loud.walk);
    if (e != NULL)
        return tool_say(e, TOOL_DAMAGED);
    printf("ok: %llu records\n", (unsigned long long)loud.walk.records);
    return TOOL_GOOD;
}

static bool is_file(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0 && S_ISREG(status.st_mode);
}

static int verify_directory(const char *directory)
{
    struct tool t;
    struct err *e = tool_open(&t, directory);
    int status = e != NULL ? tool_say(e, TOOL_FAILED) : verify(&t);

    tool_close(&t);
    return status;
}

int tool_verify(const char *name)
{
    return is_file(name) ? tool_verify_file(name) : verify_directory(name);
}

/* dump. ------------------------------------------------------------------------------------ */

struct dumping {
    const struct dump_options *options;
    const struct tool_walk *w;
    struct buf record, line;
    struct arena arena; /* of a record */
};

static bool is_wanted(const struct dump_options *options, const struct segment_record *record)
{
    return record->serial + record->serials > options->from &&
           (options->kind == NULL || strcmp(record_kind_name(record->kind), options->kind) == 0);
}

/* Which header fields are secret is in a configuration that the tool does not know: all of a
 * webhook are. */
static const char **names_of_headers(struct json_value headers, const char **names, struct arena *a)
{
    for (struct json_member m = json_first_member(headers); json_exists(m.name);
         m = json_next_member(headers, m))
        *names++ = arena_copy(a, json_string(m.name, a)).p;
    return names;
}

static struct mask mask_of(struct json_value json, struct arena *a)
{
    struct json_value own = json_member(json, SPAN("Headers"));
    struct json_value custom =
        json_member(json_member(json, SPAN("CustomPayloadRequest")), SPAN("Headers"));
    bool has_own = json_type(own) == JSON_OBJECT, has_custom = json_type(custom) == JSON_OBJECT;
    size_t count = (has_own ? json_count(own) : 0) + (has_custom ? json_count(custom) : 0);
    const char **names = ARENA_ARRAY(a, const char *, count + 3), **at = names;

    *at++ = "X-Auth-Token"; /* the default of Limits.SecretHeaders */
    *at++ = "Api-Key";
    if (has_own)
        at = names_of_headers(own, at, a);
    if (has_custom)
        names_of_headers(custom, at, a);
    return (struct mask){names};
}

/* The service's own entities are shown without their secrets; those of the application are its. */
static bool may_hold_secrets(const struct segment_record *record)
{
    struct record_entity entity;
    struct err *e;

    if (record->kind != RECORD_ENTITY)
        return false;
    e = record_read_entity(record->body, &entity);
    if (e != NULL) {
        err_free(e);
        return false;
    }
    return span_istarts(entity.resource, SPAN("Svc."));
}

static void add_masked(struct buf *b, struct span dumped, struct arena *a)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST, UINT32_MAX};
    struct json_value root;
    struct json_doc doc;
    struct mask mask;
    struct err *e = json_parse(dumped, &limits, a, &doc);

    if (e != NULL) { /* what it holds is shown nowhere else either */
        err_free(e);
        json_add_string(b, SPAN(MASK));
        return;
    }
    root = json_root(&doc);
    mask = mask_of(json_member(root, SPAN("json")), a);
    mask_add_value(b, &mask, root, a);
}

static struct span dumped_record(struct dumping *d, const struct segment_record *record)
{
    struct buf masked;

    arena_reset(&d->arena);
    buf_clear(&d->record);
    record_add_dump(&d->record, record->kind, record->body);
    if (!may_hold_secrets(record))
        return buf_span(&d->record);
    buf_init_arena(&masked, &d->arena);
    add_masked(&masked, buf_span(&d->record), &d->arena);
    return buf_span(&masked);
}

static struct err *dump_record(void *context, const struct segment_record *record)
{
    struct dumping *d = context;
    struct buf *b = &d->line;

    if (!is_wanted(d->options, record))
        return NULL;
    buf_clear(b);
    buf_add_char(b, '{');
    member_add_u64(b, SPAN("segment"), d->w->walk.number);
    member_add_u64(b, SPAN("offset"), record->offset);
    member_add_u64(b, SPAN("serial"), record->serial);
    member_add_u64(b, SPAN("serials"), record->serials);
    member_add_bool(b, SPAN("more"), record->more);
    json_add_name(b, SPAN("record"));
    text_add_shown(b, dumped_record(d, record));
    buf_add_str(b, "}\n");
    if (fwrite(b->p, 1, b->n, stdout) != b->n)
        return ERR(ERR_STORAGE_FAILURE, "standard output: %s", strerror(errno));
    return NULL;
}

static bool is_kind(const char *name)
{
    for (unsigned kind = 1; kind < RECORD_KIND_END; kind++)
        if (strcmp(record_kind_name(kind), name) == 0)
            return true;
    return false;
}

int tool_dump(const char *directory, const struct dump_options *options)
{
    struct tool_walk w = {.place = 0};
    struct dumping d = {.options = options, .w = &w};
    struct tool t;
    struct err *e;
    int status;

    if (options->kind != NULL && !is_kind(options->kind))
        return tool_say(ERR(ERR_INVALID_ENTITY, "--kind %s: there is no such kind", options->kind),
                        TOOL_FAILED);
    buf_init(&d.record, BUF_NO_CAP);
    buf_init(&d.line, BUF_NO_CAP);
    arena_init(&d.arena);
    e = tool_open(&t, directory);
    status = e != NULL ? tool_say(e, TOOL_FAILED) : TOOL_GOOD;
    if (status == TOOL_GOOD) {
        w.walk.on_record = dump_record;
        w.walk.context = &d;
        status = tool_say(tool_walk(&t, &w), TOOL_DAMAGED);
        journal_walk_done(&w.walk);
    }
    tool_close(&t);
    buf_done(&d.record);
    buf_done(&d.line);
    arena_done(&d.arena);
    return status;
}
