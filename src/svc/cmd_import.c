/* import: makes or updates what an export holds. What is there is found by its name and changed
 * only where it differs, so that an import that is repeated changes nothing, and what is masked in
 * both stays as it is. A secret that is masked and new is made here, and told at the end. */
#include "base/map.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/kinds.h"
#include "cli/show.h"
#include "cli/signature.h"
#include "svc/command.h"
#include "json/member.h"

enum { FILE_BYTES_MOST = 256 << 20, TOKEN_BYTES = 24 };

static const struct span mask = SPAN_INIT("*******");
static const char left[] = "left"; /* what a failure on the way has not come to */

struct known {
    struct span name;
    struct json_value entity;
    bool is_ambiguous;
};

struct made {
    struct made *next;
    struct span where, value;
};

/* One of the file. */
struct item {
    const struct kind *kind;
    struct json_value entity;
    const struct known *known; /* NULL: it is new */
    struct span name;          /* for people */
    struct span body;          /* of the request */
    const char *action;
    struct span error;
    struct made *made;
};

struct import {
    struct cli *cli;
    struct item *items;
    size_t count, done;
    struct map known; /* of the kind at hand */
    bool is_dry;
    int status;
};

/* ---- what is there ---- */

/* A member that is left out is one that is null. */
static struct span text_of(struct json_value entity, const char *member)
{
    struct json_value value = json_member(entity, span_str(member));

    return json_exists(value) ? json_text(value) : SPAN("null");
}

static struct span name_of(struct cli *cli, const struct kind *kind, struct json_value entity)
{
    struct span name = client_text(cli, entity, kind->name);
    struct span scope =
        kind->scope != NULL ? client_text(cli, entity, kind->scope) : span_of(NULL, 0);

    if (name.n == 0) /* a webhook without a Label: by what it sends where */
        name = arena_printf(
            cli->arena, "%.*s %.*s %.*s", SPAN_FMT(text_of(entity, "EventSelector")),
            SPAN_FMT(text_of(entity, "EventSelectors")), SPAN_FMT(text_of(entity, "Destination")));
    return arena_printf(cli->arena, "%.*s/%.*s", SPAN_FMT(scope), SPAN_FMT(name));
}

static struct span key_of(const void *item)
{
    return ((const struct known *)item)->name;
}

static int find_known(struct import *import, const struct kind *kind)
{
    struct entities all;
    int status = kind_get_all(import->cli, kind, &all);

    for (size_t i = 0; status == CLI_DONE && i < all.count; i++) {
        struct known *known = ARENA_NEW(import->cli->arena, struct known);
        struct known *same;

        known->name = name_of(import->cli, kind, all.items[i]);
        known->entity = all.items[i];
        same = map_put(&import->known, known);
        known->is_ambiguous = same != NULL;
    }
    return status;
}

/* ---- a new one ---- */

static struct span new_secret(struct cli *cli, bool signs)
{
    uint8_t bytes[TOKEN_BYTES];
    struct buf b;

    buf_init_arena(&b, cli->arena);
    if (signs) {
        signature_add_secret(&b);
    } else {
        rng_secret(bytes, sizeof(bytes));
        text_add_hex(&b, span_of((const char *)bytes, sizeof(bytes)));
    }
    return buf_span(&b);
}

static void add_unmasked(struct cli *cli, struct item *item, struct span where,
                         struct json_value value, struct buf *b);

static void add_unmasked_array(struct cli *cli, struct item *item, struct span where,
                               struct json_value array, struct buf *b)
{
    uint64_t index = 0;

    buf_add_char(b, '[');
    for (struct json_value e = json_first(array); json_exists(e); e = json_next(array, e)) {
        json_add_comma(b);
        add_unmasked(
            cli, item,
            arena_printf(cli->arena, "%.*s.%llu", SPAN_FMT(where), (unsigned long long)index++), e,
            b);
    }
    buf_add_char(b, ']');
}

/* The value with something new in place of each mask. The depth is bounded by json_parse. */
static void add_unmasked(struct cli *cli, struct item *item, struct span where,
                         struct json_value value, struct buf *b)
{
    if (json_type(value) == JSON_OBJECT) {
        buf_add_char(b, '{');
        for (struct json_member m = json_first_member(value); json_exists(m.name);
             m = json_next_member(value, m)) {
            struct span name = json_string(m.name, cli->arena);

            if (where.n == 0 && kind_drops(item->kind, name))
                continue;
            json_add_name(b, name);
            add_unmasked(cli, item,
                         where.n == 0 ? name
                                      : arena_printf(cli->arena, "%.*s.%.*s", SPAN_FMT(where),
                                                     SPAN_FMT(name)),
                         m.value, b);
        }
        buf_add_char(b, '}');
    } else if (json_type(value) == JSON_ARRAY) {
        add_unmasked_array(cli, item, where, value, b);
    } else if (json_type(value) == JSON_STRING && span_eq(json_string(value, cli->arena), mask)) {
        struct made *made = ARENA_NEW(cli->arena, struct made);

        made->where = where;
        made->value = new_secret(cli, span_starts(where, SPAN("Signing.")));
        made->next = item->made;
        item->made = made;
        json_add_string(b, made->value);
    } else {
        json_add_compact(b, value);
    }
}

/* ---- one that is there ---- */

/* A PATCH merges header fields: those that the file has no more are taken out by null. */
static void add_object_patch(struct cli *cli, struct json_value wanted, struct json_value there,
                             struct buf *b)
{
    buf_add_char(b, '{');
    for (struct json_member m = json_first_member(wanted); json_exists(m.name);
         m = json_next_member(wanted, m)) {
        json_add_name(b, json_string(m.name, cli->arena));
        json_add_compact(b, m.value);
    }
    for (struct json_member m = json_first_member(there); json_exists(m.name);
         m = json_next_member(there, m)) {
        struct span name = json_string(m.name, cli->arena);

        if (json_exists(json_member(wanted, name)))
            continue;
        json_add_name(b, name);
        buf_add_str(b, "null");
    }
    buf_add_char(b, '}');
}

/* What differs; empty when nothing does. */
static struct span patch_of(struct cli *cli, const struct item *item)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_char(&b, '{');
    for (struct json_member m = json_first_member(item->entity); json_exists(m.name);
         m = json_next_member(item->entity, m)) {
        struct span name = json_string(m.name, cli->arena);
        struct json_value there = json_member(item->known->entity, name);

        if (kind_drops(item->kind, name) || json_equal(m.value, there))
            continue;
        json_add_name(&b, name);
        if (span_eq(name, SPAN("Headers")) && json_type(m.value) == JSON_OBJECT)
            add_object_patch(cli, m.value, there, &b);
        else
            json_add_compact(&b, m.value);
    }
    if (b.n == 1)
        return span_of(NULL, 0);
    buf_add_char(&b, '}');
    return buf_span(&b);
}

/* ---- planning ---- */

static void plan(struct import *import, struct item *item)
{
    struct cli *cli = import->cli;
    struct buf b;

    item->known = map_find(&import->known, name_of(cli, item->kind, item->entity));
    if (item->known != NULL && item->known->is_ambiguous) {
        item->action = "refused";
        item->error = SPAN("several have this name");
        import->status = CLI_REFUSED;
    } else if (item->known != NULL) {
        item->body = patch_of(cli, item);
        item->action = item->body.n == 0 ? "unchanged" : import->is_dry ? "update" : "updated";
    } else {
        buf_init_arena(&b, cli->arena);
        add_unmasked(cli, item, span_of(NULL, 0), item->entity, &b);
        item->body = buf_span(&b);
        item->action = import->is_dry ? "create" : "created";
    }
}

/* ---- doing ---- */

static void refuse(struct import *import, struct item *item, const struct answer *answer)
{
    item->action = "refused";
    item->error = client_words(import->cli, answer);
    item->made = NULL;
    import->status = CLI_REFUSED;
}

static bool is_refused(const struct answer *answer)
{
    return answer->status < 200 || answer->status > 299;
}

static void note_key(struct cli *cli, struct item *item, const struct answer *answer)
{
    struct span key = client_text(cli, json_first(answer->json), "Key");
    struct made *made;

    if (key.p == NULL)
        return;
    made = ARENA_NEW(cli->arena, struct made);
    *made = (struct made){.next = item->made, .where = SPAN("Key"), .value = key};
    item->made = made;
}

static int send_item(struct import *import, struct item *item)
{
    struct cli *cli = import->cli;
    struct ask ask = {.method = "POST", .body = item->body};
    struct answer answer;
    int status;

    ask.target = arena_printf(cli->arena, "/%s", item->kind->resource);
    if (item->known != NULL) {
        ask.method = "PATCH";
        ask.target = arena_printf(cli->arena, "/%s/Id=%.*s", item->kind->resource,
                                  SPAN_FMT(client_text(cli, item->known->entity, "Id")));
    }
    status = client_send(cli, &ask, &answer);
    if (status != CLI_DONE)
        return status;
    if (is_refused(&answer))
        refuse(import, item, &answer);
    else
        note_key(cli, item, &answer);
    return CLI_DONE;
}

/* All new ones of the kind, in one request. */
static int send_new(struct import *import, struct item *items, size_t count)
{
    struct cli *cli = import->cli;
    struct ask ask = {.method = "POST", .minimal = true};
    struct answer answer;
    struct buf body;
    int status;

    buf_init_arena(&body, cli->arena);
    for (size_t i = 0; i < count; i++) {
        if (items[i].known != NULL)
            continue;
        buf_add_char(&body, body.n == 0 ? '[' : ',');
        buf_add(&body, items[i].body);
    }
    if (body.n == 0)
        return CLI_DONE;
    buf_add_char(&body, ']');
    ask.body = buf_span(&body);
    ask.target = arena_printf(cli->arena, "/%s", items[0].kind->resource);
    status = client_send(cli, &ask, &answer);
    for (size_t i = 0; status == CLI_DONE && is_refused(&answer) && i < count; i++)
        if (items[i].known == NULL)
            refuse(import, &items[i], &answer);
    return status;
}

static int send_all(struct import *import, struct item *items, size_t count)
{
    int status = CLI_DONE;

    if (count > 0 && items[0].kind->at_once)
        status = send_new(import, items, count);
    for (size_t i = 0; i < count && status == CLI_DONE; i++, import->done++) {
        bool is_sent = items[i].known == NULL && items[i].kind->at_once;

        cli_progress(import->cli, "%zu of %zu", import->done, import->count);
        if (items[i].body.n > 0 && !is_sent)
            status = send_item(import, &items[i]);
    }
    return status;
}

static int import_kind(struct import *import, struct item *items, size_t count)
{
    int status = CLI_DONE;

    if (count == 0)
        return CLI_DONE;
    map_init(&import->known, key_of);
    status = find_known(import, items[0].kind);
    for (size_t i = 0; i < count && status == CLI_DONE; i++)
        plan(import, &items[i]);
    map_done(&import->known);
    if (status == CLI_DONE && !import->is_dry)
        status = send_all(import, items, count);
    return status;
}

/* ---- the file, and the outcome ---- */

static struct err *check_file(struct json_value root, struct arena *a)
{
    if (json_type(root) != JSON_OBJECT)
        return ERR(ERR_UNKNOWN, "is no JSON object");
    for (struct json_member m = json_first_member(root); json_exists(m.name);
         m = json_next_member(root, m)) {
        struct span name = json_string(m.name, a);
        bool is_known = false;

        for (size_t i = 0; i < KIND_COUNT; i++)
            is_known = is_known || span_eq(name, span_str(kinds[i].member));
        if (!is_known)
            return ERR(ERR_UNKNOWN,
                       "there is no member '%.*s'; Webhooks, Resources and Keys there "
                       "are",
                       SPAN_FMT(name));
        if (json_type(m.value) != JSON_ARRAY)
            return ERR(ERR_UNKNOWN, "%.*s: is no array", SPAN_FMT(name));
        for (struct json_value e = json_first(m.value); json_exists(e); e = json_next(m.value, e))
            if (json_type(e) != JSON_OBJECT)
                return ERR(ERR_UNKNOWN, "%.*s: holds what is no object", SPAN_FMT(name));
    }
    return NULL;
}

static struct err *read_file(struct cli *cli, struct json_value *out_root)
{
    struct json_doc *doc = ARENA_NEW(cli->arena, struct json_doc);
    struct span path = cli_operand(cli, 0), text;
    struct err *e;

    TRY(cli_read_file(path, FILE_BYTES_MOST, cli->arena, &text));
    e = json_parse(text, NULL, cli->arena, doc);
    if (e == NULL)
        e = check_file(json_root(doc), cli->arena);
    if (e != NULL)
        return err_prefix(e, "%.*s: ", SPAN_FMT(path));
    *out_root = json_root(doc);
    return NULL;
}

static int print_table(struct cli *cli, const struct import *import)
{
    static const char *const headings[] = {"Kind", "Name", "Action*", "Why"};
    struct table *table = table_new(cli->arena, headings, ARRAY_LEN(headings));
    int status;

    for (size_t i = 0; i < import->count; i++) {
        const struct item *item = &import->items[i];

        table_add(table, span_str(item->kind->one));
        table_add(table, item->name);
        table_add(table, span_str(item->action));
        table_add(table, item->error);
    }
    status = show_table(cli, table);
    for (size_t i = 0; i < import->count && !import->is_dry; i++)
        for (const struct made *m = import->items[i].made; m != NULL && status == CLI_DONE;
             m = m->next)
            status = cli_print_line(arena_printf(
                cli->arena, "new: %s '%.*s' %.*s %.*s", import->items[i].kind->one,
                SPAN_FMT(import->items[i].name), SPAN_FMT(m->where), SPAN_FMT(m->value)));
    return status;
}

static void add_item(const struct import *import, const struct item *item, struct buf *b)
{
    buf_add_char(b, '{');
    member_add_text(b, SPAN("Kind"), span_str(item->kind->one));
    member_add_text(b, SPAN("Name"), item->name);
    member_add_text(b, SPAN("Action"), span_str(item->action));
    if (item->error.n > 0)
        member_add_text(b, SPAN("Error"), item->error);
    if (item->made != NULL && !import->is_dry) {
        buf_add_str(b, ",\"New\":{");
        for (const struct made *m = item->made; m != NULL; m = m->next) {
            json_add_name(b, m->where);
            json_add_string(b, m->value);
        }
        buf_add_char(b, '}');
    }
    buf_add_char(b, '}');
}

static int print_json(struct cli *cli, const struct import *import)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    for (size_t i = 0; i < import->count; i++) {
        buf_add_char(&b, i == 0 ? '[' : ',');
        add_item(import, &import->items[i], &b);
    }
    buf_add_str(&b, import->count == 0 ? "[]" : "]");
    return cli_print_line(buf_span(&b));
}

static struct span shown_name(struct cli *cli, const struct kind *kind, struct json_value entity)
{
    struct span name = client_text(cli, entity, kind->name);

    return name.n > 0 ? name : client_text(cli, entity, "Destination");
}

/* Nothing was asked of the server, or nothing came of it: then there is no outcome to be shown. */
static bool was_begun(const struct import *import)
{
    for (size_t i = 0; i < import->count; i++)
        if (import->items[i].action != left)
            return true;
    return false;
}

int run_import(struct cli *cli)
{
    struct import import = {.cli = cli, .is_dry = args_has(&cli->args, OPTION_DRY_RUN)};
    struct json_value root;
    struct err *e = read_file(cli, &root);
    size_t before = 0;
    int status = CLI_DONE, printed;

    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    for (size_t i = 0; i < KIND_COUNT; i++)
        import.count += json_count(json_member(root, span_str(kinds[i].member)));
    import.items = ARENA_ARRAY(cli->arena, struct item, import.count + 1);
    for (size_t i = 0, at = 0; i < KIND_COUNT; i++) {
        struct json_value array = json_member(root, span_str(kinds[i].member));

        for (struct json_value v = json_first(array); json_exists(v); v = json_next(array, v))
            import.items[at++] = (struct item){.kind = &kinds[i],
                                               .entity = v,
                                               .name = shown_name(cli, &kinds[i], v),
                                               .action = left};
    }
    for (size_t i = 0; i < KIND_COUNT && status == CLI_DONE; i++) {
        size_t count = json_count(json_member(root, span_str(kinds[i].member)));

        status = import_kind(&import, import.items + before, count);
        before += count;
    }
    cli_progress(cli, NULL);
    if (status != CLI_DONE && !was_begun(&import))
        return status;
    if (import.count == 0)
        cli_note(cli, "there is nothing in it");
    printed = cli->json ? print_json(cli, &import) : print_table(cli, &import);
    if (printed != CLI_DONE)
        return printed;
    return status != CLI_DONE ? status : import.status;
}
