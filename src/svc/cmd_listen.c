/* listen: the events of a server at a program on this desk, without a tunnel and without a webhook.
 * Selectors with conditions are judged by the server (Svc.Explain), so that they mean what they
 * mean in a webhook. */
#include "base/clock.h"
#include "base/text.h"
#include "cli/catalogue.h"
#include "cli/follow.h"
#include "cli/forward.h"
#include "cli/settings.h"
#include "cli/show.h"
#include "cli/signature.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "svc/command.h"
#include "json/member.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_FILE_BYTES = 4096 };

struct selector {
    struct span resource; /* a full name, `X.*` or `*` */
    struct span text;     /* absent: without conditions */
};

struct listening {
    struct cli *cli;
    struct selector *selectors;
    size_t count;
    struct forward forward; /* url absent: it is only shown */
    uint64_t position;
};

/* ---- the secret ---- */

/* The directory of a path, when it is not there. */
static struct err *make_directory(struct span path, struct arena *a)
{
    for (size_t i = 1; i < path.n; i++) {
        struct span part;

        if (path.p[i] != '/')
            continue;
        part = arena_copy(a, span_sub(path, 0, i));
        if (mkdir(part.p, 0700) != 0 && errno != EEXIST)
            return ERR(ERR_UNKNOWN, "%s: %s", part.p, strerror(errno));
    }
    return NULL;
}

static struct err *make_secret(struct span path, struct arena *a, struct span *out_secret)
{
    struct buf text;
    ssize_t written;
    int fd;

    TRY(make_directory(path, a));
    buf_init_arena(&text, a);
    signature_add_secret(&text);
    *out_secret = arena_copy(a, buf_span(&text));
    buf_add_char(&text, '\n');
    fd = open(arena_copy(a, path).p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return ERR(ERR_UNKNOWN, "%.*s: %s", SPAN_FMT(path), strerror(errno));
    written = write(fd, text.p, text.n);
    if (close(fd) != 0 || written != (ssize_t)text.n)
        return ERR(ERR_UNKNOWN, "%.*s: the secret could not be written", SPAN_FMT(path));
    return NULL;
}

static struct err *read_secret(struct span path, struct arena *a, struct span *out_secret)
{
    struct span name = arena_copy(a, path), text;
    struct stat status;

    if (stat(name.p, &status) != 0 && errno == ENOENT)
        return make_secret(path, a, out_secret);
    if ((status.st_mode & 077) != 0)
        return ERR(ERR_UNKNOWN, "%s: others may read the secret in it; chmod 600 it", name.p);
    TRY(cli_read_file(path, SECRET_FILE_BYTES, a, &text));
    *out_secret = span_trim(span_split(&text, '\n'));
    return signature_check_secret(*out_secret);
}

static int find_secret(struct listening *l)
{
    struct cli *cli = l->cli;
    struct span path = args_value(&cli->args, OPTION_SECRET_FILE);
    struct err *e;

    if (path.p == NULL)
        path = settings_path(cli->arena, "listen.secret");
    if (path.p == NULL)
        return cli_fail(CLI_MISUSE, "there is no HOME to keep the secret in; name a --secret-file");
    e = read_secret(path, cli->arena, &l->forward.secret);
    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    cli_note(cli, "forwarding to %.*s, signed with %.*s", SPAN_FMT(l->forward.url),
             SPAN_FMT(l->forward.secret));
    return CLI_DONE;
}

/* ---- selectors ---- */

static bool is_pattern(struct span resource)
{
    return span_eq(resource, SPAN("*")) || span_ends(resource, SPAN(".*"));
}

/* Asks whether the selector finds the payload. An example is asked about at the beginning, so that
 * a bad selector is refused at once. */
static int ask_explain(struct listening *l, const struct selector *selector, struct span resource,
                       struct span payload, struct arena *a, bool *out_matches)
{
    struct ask ask = {.method = "POST", .target = SPAN("/Svc.Explain")};
    struct answer answer;
    struct buf body;
    int status;

    buf_init_arena(&body, a);
    buf_add_char(&body, '{');
    member_add_text(&body, SPAN("EventSelector"), selector->text);
    member_add_text(&body, SPAN("Resource"), resource);
    member_add_json(&body, SPAN("Payload"), payload);
    buf_add_char(&body, '}');
    ask.body = buf_span(&body);
    status = client_ask(l->cli, &ask, &answer);
    *out_matches = false;
    for (struct json_value e = json_first(answer.json); status == CLI_DONE && json_exists(e);
         e = json_next(answer.json, e))
        *out_matches = *out_matches || json_is_true(json_member(e, SPAN("Matches")));
    return status;
}

static int add_selector(struct listening *l, struct span typed)
{
    struct cli *cli = l->cli;
    struct selector *selector = &l->selectors[l->count];
    struct span resource, conditions, example = span_of(NULL, 0);
    bool matches;
    int status = CLI_DONE;

    target_split_selector(typed, &resource, &conditions);
    selector->resource = resource;
    if (is_pattern(resource))
        status = catalogue_first(cli, resource, &example);
    else
        status = catalogue_find(cli, resource, &selector->resource);
    if (status != CLI_DONE)
        return status;
    l->count++;
    if (conditions.p == NULL)
        return CLI_DONE;
    selector->text =
        arena_printf(cli->arena, "/%.*s/%.*s", SPAN_FMT(selector->resource), SPAN_FMT(conditions));
    return ask_explain(l, selector, example.p != NULL ? example : selector->resource, SPAN("{}"),
                       cli->arena, &matches);
}

static int add_selectors(struct listening *l)
{
    size_t count = args_count(&l->cli->args, OPTION_EVENTS);
    const struct span *typed = args_values(&l->cli->args, OPTION_EVENTS, l->cli->arena);
    int status = CLI_DONE;

    l->selectors = ARENA_ARRAY(l->cli->arena, struct selector, count + 1);
    for (size_t i = 0; i < count && status == CLI_DONE; i++)
        status = add_selector(l, typed[i]);
    return status;
}

/* One resource alone is selected by the stream itself. */
static struct span target_of(const struct listening *l)
{
    if (l->count != 1 || is_pattern(l->selectors[0].resource))
        return SPAN("/Svc.Event");
    return target_with(l->cli->arena, "/Svc.Event/Resource=", l->selectors[0].resource);
}

static int is_selected(struct listening *l, struct json_value event, struct arena *a, bool *out)
{
    struct span resource = json_string(json_member(event, SPAN("Resource")), a);
    struct span payload = json_text(json_member(event, SPAN("Payload")));
    int status = CLI_DONE;

    *out = l->count == 0;
    for (size_t i = 0; i < l->count && !*out && status == CLI_DONE; i++) {
        const struct selector *selector = &l->selectors[i];
        bool is_meant = is_pattern(selector->resource) ? target_means(selector->resource, resource)
                                                       : span_ieq(selector->resource, resource);

        if (!is_meant)
            continue;
        if (selector->text.p == NULL)
            *out = true;
        else
            status = ask_explain(l, selector, resource, payload, a, out);
    }
    return status;
}

/* ---- events ---- */

static void add_outcome(struct buf *b, struct look look, const struct forwarded *forwarded,
                        struct arena *a)
{
    if (forwarded->status == 0)
        table_add_painted(b, look, PAINT_BAD, forwarded->why);
    else
        table_add_painted(b, look, forwarded->status < 300 ? PAINT_GOOD : PAINT_BAD,
                          arena_u64(a, (uint64_t)forwarded->status));
    buf_printf(b, "  %u ms", forwarded->ms);
}

static int print_event(struct listening *l, struct json_value event,
                       const struct forwarded *forwarded)
{
    struct cli *cli = l->cli;
    struct buf line;

    if (cli->json) {
        if (forwarded != NULL && (forwarded->status < 200 || forwarded->status > 299))
            (void)cli_fail(CLI_DONE, "%.*s: %d %.*s", SPAN_FMT(client_text(cli, event, "Id")),
                           forwarded->status, SPAN_FMT(forwarded->why));
        return cli_print_line(json_text(event));
    }
    buf_init_arena(&line, cli->arena);
    show_add_event(cli, event, &line);
    if (forwarded != NULL) {
        buf_add_str(&line, "  ");
        add_outcome(&line, cli->look, forwarded, cli->arena);
    }
    return cli_print_line(buf_span(&line));
}

static int on_event(void *arg, struct json_value event)
{
    struct listening *l = arg;
    struct cli whole = *l->cli, *command = l->cli;
    struct forwarded forwarded;
    struct arena a;
    bool selected;
    int status;

    arena_init(&a); /* of this event: it goes on for days */
    whole.arena = &a;
    l->cli = &whole;
    status = is_selected(l, event, &a, &selected);
    if (status == CLI_DONE && selected && l->forward.url.p != NULL)
        status = forward_event(&l->forward, event, &a, &forwarded);
    if (status == CLI_DONE && selected && !stop_is_asked())
        status = print_event(l, event, l->forward.url.p != NULL ? &forwarded : NULL);
    if (status == CLI_DONE && !stop_is_asked() &&
        !span_to_u64(json_text(json_member(event, SPAN("ObjectNo"))), &l->position))
        l->position = 0;
    l->cli = command;
    arena_done(&a);
    return status;
}

static int check_forward(struct listening *l)
{
    struct err *e = NULL;

    if (l->forward.url.p != NULL)
        e = settings_check_receiver("--forward", l->forward.url);
    return e != NULL ? cli_fail_err(CLI_MISUSE, e) : CLI_DONE;
}

int run_listen(struct cli *cli)
{
    struct listening l = {.cli = cli};
    struct follow follow = {.on_event = on_event, .arg = &l};
    int status;

    stop_watch();
    l.forward.url = args_value(&cli->args, OPTION_FORWARD);
    status = check_forward(&l);
    if (status == CLI_DONE)
        status = add_selectors(&l);
    if (status == CLI_DONE && l.forward.url.p != NULL)
        status = find_secret(&l);
    if (status != CLI_DONE)
        return status;
    follow.target = target_of(&l);
    follow.after = args_value(&cli->args, OPTION_AFTER);
    follow.start = &l.position;
    if (l.forward.url.p == NULL && cli->look.columns > 0)
        cli_note(cli, "waiting for events; Ctrl-C ends it");
    status = follow_run(cli, &follow);
    if (status == CLI_DONE)
        cli_note(cli, "stopped; --after %llu goes on here", (unsigned long long)l.position);
    return status;
}
