/* Tables show what fits a line of a terminal; everything is in --json. */
#include "cli/show.h"

#include "base/datetime.h"
#include "json/decimal.h"

#include <time.h>

enum { COLUMNS_MOST = 64, NESTED_MOST = 8 };

struct span show_time(struct cli *cli, struct span datetime)
{
    struct instant at;
    struct tm parts;
    char text[64];
    time_t seconds;

    if (!datetime_parse(datetime, &at))
        return datetime;
    seconds = (time_t)at.seconds;
    if (localtime_r(&seconds, &parts) == NULL)
        return datetime;
    return arena_copy(cli->arena,
                      span_of(text, strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts)));
}

static struct span clock_time(struct cli *cli, struct json_value event)
{
    struct span time = show_time(cli, client_text(cli, event, "Time"));

    return time.n == 19 ? span_sub(time, 11, 19) : time;
}

void show_add_event(struct cli *cli, struct json_value event, struct buf *line)
{
    table_add_painted(line, cli->look, PAINT_FAINT, clock_time(cli, event));
    buf_add_str(line, "  ");
    table_add_painted(line, cli->look, PAINT_STRONG, client_text(cli, event, "Resource"));
    buf_printf(line, "  %.*s", SPAN_FMT(client_text(cli, event, "Id")));
}

static bool is_server_time(struct span text)
{
    struct instant at;

    return text.n == 28 && span_ends(text, SPAN("Z")) && datetime_parse(text, &at);
}

/* Without arrays and objects in it. */
static bool is_plain_list(struct json_value value)
{
    for (struct json_value e = json_first(value); json_exists(e); e = json_next(value, e))
        if (json_type(e) == JSON_ARRAY || json_type(e) == JSON_OBJECT)
            return false;
    return json_type(value) == JSON_ARRAY;
}

struct span show_value(struct cli *cli, struct json_value value)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    if (is_plain_list(value)) {
        for (struct json_value e = json_first(value); json_exists(e); e = json_next(value, e)) {
            if (b.n > 0)
                buf_add_str(&b, ", ");
            buf_add(&b, json_type(e) == JSON_NULL ? SPAN("null") : show_value(cli, e));
        }
        return buf_span(&b);
    }
    if (json_type(value) == JSON_NULL)
        return SPAN("");
    if (json_type(value) == JSON_STRING) {
        struct span text = json_string(value, cli->arena);

        return is_server_time(text) ? show_time(cli, text) : text;
    }
    json_add_compact(&b, value);
    return buf_span(&b);
}

struct json_value show_member(struct json_value entity, const char *path)
{
    struct span rest = span_str(path);

    while (rest.n > 0)
        entity = json_member(entity, span_split(&rest, '.'));
    return entity;
}

int show_table(struct cli *cli, const struct table *table)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    table_print(table, cli->look, &b);
    return cli_print(buf_span(&b));
}

void show_add_array(const struct entities *entities, struct buf *b)
{
    buf_add_char(b, '[');
    for (size_t i = 0; i < entities->count; i++) {
        json_add_comma(b);
        buf_add(b, json_text(entities->items[i]));
    }
    buf_add_char(b, ']');
}

static int print_array(struct cli *cli, const struct entities *entities)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    show_add_array(entities, &b);
    return cli_print_line(buf_span(&b));
}

/* Of `A|B` the first that is not null. */
static struct json_value first_member(struct json_value entity, struct span paths, struct arena *a)
{
    struct json_value value = {NULL, NULL};

    while (paths.n > 0 && json_type(value) == JSON_NULL)
        value = show_member(entity, arena_copy(a, span_split(&paths, '|')).p);
    return value;
}

/* `98%` of 0.9761; as it is where it is no part of 1. */
static struct span percent_of(struct cli *cli, struct json_value value)
{
    double part;

    if (json_type(value) != JSON_NUMBER)
        return show_value(cli, value);
    part = decimal_to_double(json_text(value));
    if (!(part >= 0 && part <= 1))
        return json_text(value);
    return arena_printf(cli->arena, "%d%%", (int)(part * 100 + 0.5));
}

static struct span cell_of(struct cli *cli, struct json_value entity, struct span paths)
{
    bool is_percent = span_ends(paths, SPAN("%"));
    struct json_value value;

    paths.n -= is_percent;
    value = first_member(entity, paths, cli->arena);
    return is_percent ? percent_of(cli, value) : show_value(cli, value);
}

int show_entities(struct cli *cli, const struct entities *entities, const char *const *columns,
                  size_t count)
{
    const char *headings[COLUMNS_MOST] = {NULL};
    struct span paths[COLUMNS_MOST];
    struct table *table;

    if (cli->json)
        return print_array(cli, entities);
    for (size_t i = 0; i < count; i++) {
        struct span rest = span_str(columns[i]), path = span_split(&rest, '=');

        headings[i] = rest.p != NULL ? rest.p : columns[i];
        while (span_ends(path, SPAN("!")) || span_ends(path, SPAN("*")))
            path.n--;
        paths[i] = path;
    }
    table = table_new(cli->arena, headings, count);
    for (size_t row = 0; row < entities->count; row++)
        for (size_t i = 0; i < count; i++)
            table_add(table, cell_of(cli, entities->items[row], paths[i]));
    return show_table(cli, table);
}

int show_more(struct cli *cli, const struct entities *entities, const char *const *columns,
              size_t count)
{
    int status = cli_print(SPAN("\n"));

    return status == CLI_DONE ? show_entities(cli, entities, columns, count) : status;
}

/* ---- any entities ---- */

static size_t find_columns(struct cli *cli, struct json_value array, const char **columns)
{
    size_t count = 0;

    for (struct json_value e = json_first(array); json_exists(e); e = json_next(array, e))
        for (struct json_member m = json_first_member(e); json_exists(m.name);
             m = json_next_member(e, m)) {
            struct span name = json_string(m.name, cli->arena);
            bool is_known = false;

            for (size_t i = 0; i < count && !is_known; i++)
                is_known = span_eq(span_str(columns[i]), name);
            if (!is_known && count < COLUMNS_MOST)
                columns[count++] = arena_copy(cli->arena, name).p;
        }
    return count;
}

static int show_rows(struct cli *cli, struct json_value array)
{
    const char *columns[COLUMNS_MOST], *headings[COLUMNS_MOST];
    size_t count = find_columns(cli, array, columns);
    struct table *table;

    for (size_t i = 0; i < count; i++) {
        bool is_id = span_eq(span_str(columns[i]), SPAN("Id"));

        headings[i] = is_id ? "Id!" : columns[i];
    }
    table = table_new(cli->arena, headings, count);
    for (struct json_value e = json_first(array); json_exists(e); e = json_next(array, e))
        for (size_t i = 0; i < count; i++)
            table_add(table, show_value(cli, json_member(e, span_str(columns[i]))));
    return show_table(cli, table);
}

struct pairs {
    struct cli *cli;
    struct buf out;
    size_t width; /* of the longest name, found in a first pass that prints nothing */
    bool prints;
};

static void each_pair(struct pairs *pairs, struct span outer, struct json_value object,
                      unsigned depth)
{
    struct cli *cli = pairs->cli;

    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        struct span name = json_string(m.name, cli->arena);

        if (outer.n > 0)
            name = arena_printf(cli->arena, "%.*s.%.*s", SPAN_FMT(outer), SPAN_FMT(name));
        if (json_type(m.value) == JSON_OBJECT && json_count(m.value) > 0 && depth < NESTED_MOST)
            each_pair(pairs, name, m.value, depth + 1);
        else if (pairs->prints)
            table_print_pair(&pairs->out, cli->look, pairs->width, name, show_value(cli, m.value));
        else
            pairs->width = MAX(pairs->width, name.n);
    }
}

int show_entity(struct cli *cli, struct json_value entity)
{
    struct pairs pairs = {.cli = cli};

    if (cli->json)
        return print_array(cli, &(struct entities){&entity, 1, 1});
    buf_init_arena(&pairs.out, cli->arena);
    each_pair(&pairs, span_of(NULL, 0), entity, 0);
    pairs.prints = true;
    each_pair(&pairs, span_of(NULL, 0), entity, 0);
    return cli_print(buf_span(&pairs.out));
}

static bool are_objects(struct json_value array)
{
    for (struct json_value e = json_first(array); json_exists(e); e = json_next(array, e))
        if (json_type(e) != JSON_OBJECT || json_count(e) == 0)
            return false;
    return json_type(array) == JSON_ARRAY;
}

int show_any(struct cli *cli, struct json_value array)
{
    if (!are_objects(array)) {
        struct buf b;

        buf_init_arena(&b, cli->arena);
        json_add_indented(&b, array, 2);
        return cli_print_line(buf_span(&b));
    }
    if (json_count(array) == 0)
        return CLI_DONE;
    if (json_count(array) == 1)
        return show_entity(cli, json_first(array));
    return show_rows(cli, array);
}

int show_body(struct span body)
{
    if (body.n == 0)
        return cli_print(SPAN("[]\n"));
    return span_ends(body, SPAN("\n")) ? cli_print(body) : cli_print_line(body);
}

int show_done(struct cli *cli, const struct answer *answer)
{
    if (cli->json)
        return show_body(answer->body);
    return cli_print_line(answer->info.p != NULL ? answer->info : SPAN("done"));
}

int show_asked(struct cli *cli, const struct ask *ask)
{
    struct answer answer;
    int status = client_ask(cli, ask, &answer);

    return status == CLI_DONE ? show_done(cli, &answer) : status;
}
