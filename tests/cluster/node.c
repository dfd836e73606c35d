/* A node of a cluster without a service: it takes part (journal/replica.h), appends batches one
 * after another while it leads, and writes down what it is told. Its journal is a text file, a line
 * a batch, `first count name`, which it reads when it begins; what it does goes to another, a line
 * each: `try NAME`, `late NAME`, `done NAME`, `declined NAME`, `uncertain NAME`, `role ROLE`,
 * `trouble TEXT`. run.py compares them.
 *
 *   cluster_node DIRECTORY NODE ETCD-URL,... [NAME=VALUE...]
 *
 * SIGUSR1: it steps down. SIGTERM: it gives its lease back and ends. What it lacks it takes from
 * the journals of the others in the directory. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "fetch/etcd.h"
#include "fetch/resolve.h"
#include "journal/replica.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 96, LINE_BYTES = 256, ENDPOINTS = 16 };

static struct node {
    struct loop loop;
    struct resolver *resolver;
    struct etcd *etcd;
    struct replica *replica;
    struct replica_options options;
    struct etcd_options etcd_options;
    const char *endpoints[ENDPOINTS];
    const char *directory, *name;
    FILE *journal, *events;
    uint64_t next;
    uint8_t id[REPLICA_UUID_BYTES];
    bool has_id, ends;
    char run[17]; /* of this process, for names */
    unsigned made;
    struct replica_append append;
    struct buf content;
    char appending[NAME_BYTES];
    struct timer again;
    uv_signal_t on_usr1, on_term;
    unsigned batch_bytes, pause_ms;
} node;

static void path_of(char *path, size_t size, const char *name, const char *suffix)
{
    snprintf(path, size, "%s/%s.%s", node.directory, name, suffix);
}

static void note(const char *what, const char *name)
{
    fprintf(node.events, "%s %s\n", what, name);
    fflush(node.events);
}

/* The content's first line is the batch's name. */
static void journal_add(uint64_t first, uint32_t count, struct span content)
{
    struct span rest = content, name = span_split(&rest, '\n');

    MUST(first == node.next);
    fprintf(node.journal, "%" PRIu64 " %u %.*s\n", first, count, SPAN_FMT(name));
    fflush(node.journal);
    node.next = first + count;
}

/* Where a journal ends; 1: it is empty, or there is none. */
static uint64_t journal_end(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[LINE_BYTES];
    uint64_t next = 1;

    if (file == NULL)
        return next;
    while (fgets(line, sizeof(line), file) != NULL) {
        struct span rest = span_str(line);
        uint64_t first, count;

        if (span_to_u64(span_split(&rest, ' '), &first) &&
            span_to_u64(span_split(&rest, ' '), &count) && span_ends(rest, SPAN("\n")))
            next = first + count;
    }
    fclose(file);
    return next;
}

static void journal_open_again(const char *mode)
{
    char path[LINE_BYTES];

    path_of(path, sizeof(path), node.name, "journal");
    if (node.journal != NULL)
        fclose(node.journal);
    node.journal = fopen(path, mode);
    MUST(node.journal != NULL);
}

/* The other node's, up to its last whole line. */
static void copy_journal(const char *from)
{
    FILE *file = fopen(from, "r");
    char line[LINE_BYTES];

    MUST(file != NULL);
    journal_open_again("w");
    while (fgets(line, sizeof(line), file) != NULL)
        if (span_ends(span_str(line), SPAN("\n")))
            fputs(line, node.journal);
    fflush(node.journal);
    fclose(file);
}

static void on_again(struct timer *timer);

static void join(void)
{
    DIR *directory = opendir(node.directory);
    char best[LINE_BYTES] = "", path[LINE_BYTES];
    uint64_t best_end = node.next;
    const struct dirent *entry;

    while ((entry = readdir(directory)) != NULL) {
        if (!span_ends(span_str(entry->d_name), SPAN(".journal")))
            continue;
        snprintf(path, sizeof(path), "%s/%.100s", node.directory, entry->d_name);
        if (journal_end(path) > best_end) {
            best_end = journal_end(path);
            snprintf(best, sizeof(best), "%s", path);
        }
    }
    closedir(directory);
    if (best[0] == '\0') {
        timer_start(&node.loop, &node.again, 200);
        return;
    }
    copy_journal(best);
    path_of(path, sizeof(path), node.name, "journal");
    node.next = journal_end(path);
    note("joined", best);
    replica_joined(node.replica, node.next);
}

/* What the replica tells. */

static void on_entered(void *context, const uint8_t id[REPLICA_UUID_BYTES],
                       const uint8_t secret[REPLICA_SECRET_BYTES])
{
    char path[LINE_BYTES];
    FILE *file;

    (void)context, (void)secret;
    path_of(path, sizeof(path), node.name, "id");
    file = fopen(path, "w");
    MUST(file != NULL && fwrite(id, REPLICA_UUID_BYTES, 1, file) == 1);
    fclose(file);
}

static void append_next(void)
{
    if (!replica_can_append(node.replica) || node.append.on_settled != NULL)
        return;
    timer_start(&node.loop, &node.again, node.pause_ms);
}

static void on_role(void *context, enum replica_role role)
{
    (void)context;
    note("role", replica_role_text(role));
    if (role == REPLICA_LEADING)
        append_next();
}

static void on_batch(void *context, const struct replica_batch *batch)
{
    (void)context;
    if (batch->first + batch->count > node.next)
        journal_add(batch->first, batch->count, batch->content);
    replica_taken(node.replica, node.next);
}

static void on_missing(void *context, uint64_t next, uint64_t begins)
{
    (void)context, (void)next, (void)begins;
    timer_start(&node.loop, &node.again, 0);
}

static void on_trouble(void *context, enum replica_trouble trouble, const char *why)
{
    char text[512];

    (void)context;
    snprintf(text, sizeof(text), "%s: %s", replica_trouble_text(trouble), why);
    note("trouble", text);
}

/* Appending. */

static void on_late(struct replica_append *append, const char *why)
{
    (void)append, (void)why;
    note("late", node.appending);
}

static void on_left(void *context)
{
    (void)context;
    note("left", node.name);
    exit(0);
}

static void leave(void)
{
    replica_leave(node.replica, on_left, NULL);
}

static void on_settled(struct replica_append *append, enum replica_settlement settlement,
                       const char *why)
{
    static const char *const words[] = {"done", "declined", "uncertain"};

    (void)why;
    if (settlement == REPLICA_CONFIRMED)
        journal_add(append->first, append->count, append->content);
    note(words[settlement], node.appending);
    append->on_settled = NULL;
    if (node.ends)
        leave();
    else
        append_next();
}

/* A name of its own, and bytes that compress to some degree. */
static void append(void)
{
    uint64_t bytes = rng_below(node.batch_bytes) + 1;

    snprintf(node.appending, sizeof(node.appending), "%s-%s-%u", node.name, node.run, node.made++);
    buf_clear(&node.content);
    buf_printf(&node.content, "%s\n", node.appending);
    for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t))
        buf_add_le64(&node.content, rng_below(4) == 0 ? rng_u64() : i);
    node.append = (struct replica_append){
        .first = node.next,
        .count = (uint32_t)rng_below(5) + 1,
        .content = buf_span(&node.content),
        .on_settled = on_settled,
        .on_late = on_late,
    };
    note("try", node.appending);
    replica_append(node.replica, &node.append);
}

static void on_again(struct timer *timer)
{
    (void)timer;
    if (replica_role(node.replica) == REPLICA_JOINING)
        join();
    else if (replica_can_append(node.replica) && node.append.on_settled == NULL)
        append();
}

/* Beginning and ending. */

static void on_signal(uv_signal_t *handle, int number)
{
    (void)handle;
    if (number == SIGUSR1)
        replica_step_down(node.replica);
    else if (node.append.on_settled == NULL)
        leave();
    else
        node.ends = true; /* once that is settled */
}

static bool set_text_option(struct span name, struct span value)
{
    const struct {
        const char *name;
        const char **place;
    } texts[] = {
        {"ca_file", &node.etcd_options.ca_file},
        {"cert_file", &node.etcd_options.cert_file},
        {"key_file", &node.etcd_options.key_file},
        {"user", &node.etcd_options.user},
        {"password_file", &node.etcd_options.password_file},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (span_eq(name, span_str(texts[i].name))) {
            *texts[i].place = mem_string(value);
            return true;
        }
    return false;
}

static void set_option(const char *text)
{
    struct span rest = span_str(text), name = span_split(&rest, '=');
    uint64_t value;

    if (set_text_option(name, rest))
        return;
    MUST(span_to_u64(rest, &value));
    if (span_eq(name, SPAN("lease_s")))
        node.options.lease_s = (unsigned)value;
    else if (span_eq(name, SPAN("commit_ms")))
        node.options.commit_ms = (unsigned)value;
    else if (span_eq(name, SPAN("value_bytes")))
        node.options.value_bytes = (uint32_t)value;
    else if (span_eq(name, SPAN("tail_bytes")))
        node.options.tail_bytes = value;
    else if (span_eq(name, SPAN("window_bytes")))
        node.options.window_bytes = value;
    else if (span_eq(name, SPAN("trim_ms")))
        node.options.trim_ms = (unsigned)value;
    else if (span_eq(name, SPAN("attempt_ms")))
        node.etcd_options.attempt_ms = (unsigned)value;
    else if (span_eq(name, SPAN("silence_ms")))
        node.etcd_options.silence_ms = (unsigned)value;
    else if (span_eq(name, SPAN("batch_bytes")))
        node.batch_bytes = (unsigned)value;
    else if (span_eq(name, SPAN("pause_ms")))
        node.pause_ms = (unsigned)value;
    else if (span_eq(name, SPAN("adopt")))
        node.options.adopt = value != 0;
    else if (span_eq(name, SPAN("witness")))
        node.options.is_witness = value != 0;
    else
        MUST(!"a known option");
}

static void read_state(void)
{
    char path[LINE_BYTES];
    FILE *file;

    path_of(path, sizeof(path), node.name, "journal");
    node.next = node.options.next = journal_end(path);
    path_of(path, sizeof(path), node.name, "id");
    file = fopen(path, "r");
    if (file != NULL) {
        node.has_id = fread(node.id, sizeof(node.id), 1, file) == 1;
        fclose(file);
    }
    node.options.id = node.has_id ? node.id : NULL;
    journal_open_again("a");
    path_of(path, sizeof(path), node.name, "events");
    node.events = fopen(path, "a");
    MUST(node.events != NULL);
}

static void set_endpoints(char *list)
{
    struct span rest = span_str(list);

    while (rest.p != NULL && node.etcd_options.endpoint_count < ENDPOINTS)
        node.endpoints[node.etcd_options.endpoint_count++] = mem_string(span_split(&rest, ','));
    node.etcd_options.endpoints = node.endpoints;
}

static void run(void)
{
    const struct replica_callbacks callbacks = {.on_entered = on_entered,
                                                .on_role = on_role,
                                                .on_batch = on_batch,
                                                .on_missing = on_missing,
                                                .on_trouble = on_trouble};
    const struct resolve_options resolving = {0};
    struct err *e = loop_init(&node.loop);

    if (e == NULL)
        e = resolver_new(&node.loop, &resolving, &node.resolver);
    if (e == NULL)
        e = etcd_new(&node.loop, node.resolver, &node.etcd_options, &node.etcd);
    if (e == NULL)
        e = replica_new(&node.loop, node.etcd, &node.options, &callbacks, &node.replica);
    if (e != NULL) {
        fprintf(stderr, "%.*s\n", SPAN_FMT(err_message(e)));
        err_free(e);
        exit(2);
    }
    timer_init(&node.again, on_again);
    uv_signal_init(&node.loop.uv, &node.on_usr1);
    uv_signal_start(&node.on_usr1, on_signal, SIGUSR1);
    uv_signal_init(&node.loop.uv, &node.on_term);
    uv_signal_start(&node.on_term, on_signal, SIGTERM);
    replica_start(node.replica);
    loop_run(&node.loop);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: cluster_node DIRECTORY NODE ETCD-URL,... [NAME=VALUE...]\n");
        return 2;
    }
    node.directory = argv[1];
    node.name = argv[2];
    node.options.cluster = "test";
    node.options.node = node.name;
    node.options.url = "http://127.0.0.1:1";
    node.options.version = "0";
    node.batch_bytes = 3000;
    set_endpoints(argv[3]);
    for (int i = 4; i < argc; i++)
        set_option(argv[i]);
    snprintf(node.run, sizeof(node.run), "%016" PRIx64, rng_u64());
    buf_init(&node.content, BUF_NO_CAP);
    read_state();
    run();
    return 0;
}
