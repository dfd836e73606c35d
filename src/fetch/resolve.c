/* In the order in which they are asked: literal addresses and localhost, which need nobody; the
 * cache; c-ares, which looks into the hosts file before it asks a name server. That it reads the
 * file for each name that the cache has not is a few microseconds for a file of usual length; what
 * it finds there is kept for a second.
 *
 * An entry is one name: its last answer, good until `fresh_until_ms`, and the queries that wait for
 * the next one. c-ares' callback and the deadline only write down the answer and post a task, which
 * calls the queries: they may then start and cancel others, and none is called from resolve_start
 * even when c-ares answers at once. An entry is in the list `idle`, and may be dropped, when nobody
 * waits for it and no question about it is under way.
 *
 * c-ares asks for both families in one go, so that a search list cannot mix the addresses of two
 * names; an entry's deadline is ours, since a single question cannot be called off. Its answer, if
 * it still comes, serves the next query.
 *
 * Possible failure modes: a server that is unreachable, silent or wrong (c-ares tries each three
 * times, then the answer is a failure, kept for five seconds); the system's settings change (they
 * are read again when no question is under way); all entries are waiting (a new name fails). */
#include "fetch/resolve.h"

#include "io/timer.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"
#include "io/ip.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIND_RESOLVER 0x7265736fu
#define KIND_ENTRY 0x72656e74u

enum {
    MAX_NAMES = 10000,
    LEAST_TTL_S = 1,
    MOST_TTL_S = 3600,
    FAILURE_MS = 5000,
    TIMEOUT_MS = 5000,
    /* c-ares waits once, twice and four times as long: 7 / 8 of the time-out with one server. */
    TRIES = 3,
    FIRST_TRY_SHARE = 8,
    /* c-ares must be called to notice that time passes; what it says of when is found by walking
     * all its questions. */
    TICK_MS = 50,
    LOOK_EVERY_MS = 1000, /* at the system's settings */
    NAME_BYTES = 253,     /* longest name without its last dot (RFC 1035, section 2.3.4) */
};

static const char not_a_name[] = "it is not a host name";
static const char timed_out[] = "the name servers did not answer in time";

struct resolver {
    unsigned kind;
    struct loop *loop;
    ares_channel channel;
    char *servers; /* NULL: those of `settings` */
    unsigned timeout_ms;
    char *settings_path;  /* resolv.conf */
    struct stat settings; /* as it was when it was read; zeroed: it was not there */
    uint64_t look_again_ms;
    bool settings_changed; /* the channel is to be made anew */
    struct map entries;    /* struct resolve_entry by name */
    struct list idle;      /* least recently used first */
    struct list answered;  /* their queries are to be called */
    struct loop_task deliver;
    struct list sockets; /* struct resolve_socket, which c-ares has opened */
    struct timer tick;   /* runs while questions are under way */
    size_t asking;
};

struct resolve_entry {
    unsigned kind;
    struct resolver *resolver;
    struct list_link link; /* in `in` */
    struct list *in;       /* the resolver's `idle` or `answered`, or NULL */
    struct list waiting;   /* struct resolve_query */
    struct timer deadline; /* of those waiting */
    bool asking;           /* c-ares has a question about it */
    uint64_t fresh_until_ms;
    const char *error; /* NULL when there are addresses */
    unsigned count;
    struct in6_addr *addresses;
    size_t name_bytes;
    char name[];
};

struct resolve_socket {
    struct list_link link;
    uv_poll_t poll;
    struct resolver *resolver;
    ares_socket_t fd;
    int events;
};

/* Sockets. */

static void on_socket_closed(uv_handle_t *handle)
{
    mem_free(CONTAINER_OF(handle, struct resolve_socket, poll));
}

static struct resolve_socket *socket_find(struct resolver *r, ares_socket_t fd)
{
    LIST_EACH(&r->sockets, link) {
        struct resolve_socket *s = CONTAINER_OF(link, struct resolve_socket, link);

        if (s->fd == fd)
            return s;
    }
    return NULL;
}

static void on_socket_event(uv_poll_t *poll, int status, int events);

static void socket_arm(struct resolve_socket *s)
{
    MUST(uv_poll_start(&s->poll, s->events, on_socket_event) == 0);
}

/* libuv stops watching a socket that has an error, such as a port that nobody listens at. c-ares
 * finds the error by reading, and closes the socket or uses it again. */
static void on_socket_event(uv_poll_t *poll, int status, int events)
{
    struct resolve_socket *s = CONTAINER_OF(poll, struct resolve_socket, poll);
    struct resolver *r = s->resolver;
    ares_socket_t fd = s->fd;
    bool readable = status < 0 || (events & UV_READABLE) != 0;
    bool writable = status < 0 || (events & UV_WRITABLE) != 0;

    ares_process_fd(r->channel, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
    if (status < 0 && socket_find(r, fd) == s)
        socket_arm(s);
}

static struct resolve_socket *socket_new(struct resolver *r, ares_socket_t fd)
{
    struct resolve_socket *s = NEW(struct resolve_socket);

    if (uv_poll_init(&r->loop->uv, &s->poll, fd) != 0) {
        mem_free(s); /* the question times out */
        return NULL;
    }
    s->resolver = r;
    s->fd = fd;
    list_push_back(&r->sockets, &s->link);
    return s;
}

/* c-ares closes the socket right after a call that wants neither. */
static void on_socket_state(void *data, ares_socket_t fd, int readable, int writable)
{
    struct resolver *r = MUST_BE(struct resolver, KIND_RESOLVER, data);
    struct resolve_socket *s = socket_find(r, fd);

    if (!readable && !writable) {
        if (s == NULL)
            return;
        list_remove(&r->sockets, &s->link);
        uv_close((uv_handle_t *)&s->poll, on_socket_closed);
        return;
    }
    if (s == NULL)
        s = socket_new(r, fd);
    if (s == NULL)
        return;
    s->events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
    socket_arm(s);
}

/* The channel. */

static int channel_open(struct resolver *r, ares_channel *out_channel)
{
    struct ares_options options = {
        .flags = ARES_FLAG_NOALIASES, /* HOSTALIASES would be a file to read at each question */
        .timeout = (int)MAX(r->timeout_ms / FIRST_TRY_SHARE, 1u),
        .tries = TRIES,
        .lookups = (char[]){"fb"}, /* the hosts file, then name servers, whatever the system says */
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = r,
        .resolvconf_path = r->settings_path,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
               ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF;
    ares_channel channel;
    int status = ares_init_options(&channel, &options, mask);

    if (status != ARES_SUCCESS)
        return status;
    if (r->servers != NULL)
        status = ares_set_servers_ports_csv(channel, r->servers);
    if (status == ARES_SUCCESS)
        *out_channel = channel;
    else
        ares_destroy(channel);
    return status;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void look_at_settings(struct resolver *r)
{
    struct stat now;

    if (loop_now_ms(r->loop) < r->look_again_ms)
        return;
    r->look_again_ms = loop_now_ms(r->loop) + LOOK_EVERY_MS;
    if (stat(r->settings_path, &now) != 0)
        now = (struct stat){0};
    r->settings_changed = r->settings_changed || !is_same_file(&now, &r->settings);
    r->settings = now;
}

/* Questions under way would be lost: it waits until there are none. */
static void renew_channel(struct resolver *r)
{
    ares_channel channel;
    int status;

    look_at_settings(r);
    if (!r->settings_changed || r->asking > 0)
        return;
    r->settings_changed = false;
    status = channel_open(r, &channel);
    if (status != ARES_SUCCESS) {
        log_warn("resolve", "%s: %s", r->settings_path, ares_strerror(status));
        return;
    }
    ares_destroy(r->channel);
    r->channel = channel;
}

static void on_tick(struct timer *timer)
{
    struct resolver *r = CONTAINER_OF(timer, struct resolver, tick);

    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (r->asking > 0)
        timer_start(r->loop, &r->tick, TICK_MS);
}

/* Answers. */

static void entry_fail(struct resolve_entry *e, const char *error)
{
    mem_free(TAKE(e->addresses));
    e->count = 0;
    e->error = error;
    e->fresh_until_ms = loop_now_ms(e->resolver->loop) + FAILURE_MS;
}

static const char *failure_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {ARES_ENODATA, "the name has no address"},
        {ARES_ENOTFOUND, "the name does not exist"},
        {ARES_EBADNAME, not_a_name},
        {ARES_ETIMEOUT, timed_out},
        {ARES_ECONNREFUSED, "no name server gave an answer"}, /* or each said that it failed */
        {ARES_ESERVFAIL, "the name server failed"},
        {ARES_EREFUSED, "the name server refused the question"},
        {ARES_ENOTIMP, "the name server does not know the question"},
        {ARES_EFORMERR, "the name server did not understand the question"},
        {ARES_EBADRESP, "the name server's answer is malformed"},
        {ARES_ENOMEM, "out of memory"},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "the name could not be resolved";
}

static unsigned take_family(const struct ares_addrinfo *info, int family,
                            struct in6_addr list[RESOLVE_MAX_ADDRESSES])
{
    unsigned n = 0;

    for (const struct ares_addrinfo_node *node = info->nodes;
         node != NULL && n < RESOLVE_MAX_ADDRESSES; node = node->ai_next)
        n += node->ai_family == family && ip_of_sockaddr(node->ai_addr, &list[n]);
    return n;
}

static uint64_t least_ttl_ms(const struct ares_addrinfo *info)
{
    int ttl_s = MOST_TTL_S;

    for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next)
        ttl_s = MIN(ttl_s, node->ai_ttl);
    for (const struct ares_addrinfo_cname *c = info->cnames; c != NULL; c = c->next)
        ttl_s = MIN(ttl_s, c->ttl);
    return (uint64_t)MAX(ttl_s, LEAST_TTL_S) * 1000;
}

/* IPv6 first, then in turns (RFC 8305, section 4). */
static void entry_succeed(struct resolve_entry *e, const struct ares_addrinfo *info)
{
    struct in6_addr v6[RESOLVE_MAX_ADDRESSES], v4[RESOLVE_MAX_ADDRESSES];
    unsigned n6 = take_family(info, AF_INET6, v6), n4 = take_family(info, AF_INET, v4);

    e->addresses = mem_resize(e->addresses, MIN(n6 + n4, RESOLVE_MAX_ADDRESSES) * sizeof(v6[0]));
    e->count = 0;
    e->error = NULL;
    e->fresh_until_ms = loop_now_ms(e->resolver->loop) + least_ttl_ms(info);
    for (unsigned i = 0; i < MAX(n6, n4); i++) {
        if (i < n6 && e->count < RESOLVE_MAX_ADDRESSES)
            e->addresses[e->count++] = v6[i];
        if (i < n4 && e->count < RESOLVE_MAX_ADDRESSES)
            e->addresses[e->count++] = v4[i];
    }
}

static void entry_move(struct resolve_entry *e, struct list *to)
{
    if (e->in != NULL)
        list_remove(e->in, &e->link);
    e->in = to;
    if (to != NULL)
        list_push_back(to, &e->link);
}

/* Moves an entry that has just been used to its list; one with answers to deliver stays until they
 * are. */
static void entry_place(struct resolve_entry *e)
{
    struct resolver *r = e->resolver;

    if (e->in != &r->answered)
        entry_move(e, list_empty(&e->waiting) && !e->asking ? &r->idle : NULL);
}

static void entry_answered(struct resolve_entry *e)
{
    struct resolver *r = e->resolver;

    timer_stop(r->loop, &e->deadline);
    if (list_empty(&e->waiting)) {
        entry_place(e);
        return;
    }
    entry_move(e, &r->answered);
    loop_post(r->loop, &r->deliver);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    struct resolve_entry *e = MUST_BE(struct resolve_entry, KIND_ENTRY, arg);

    (void)timeouts;
    if (status == ARES_EDESTRUCTION)
        return; /* resolver_free */
    e->asking = false;
    e->resolver->asking--;
    if (status == ARES_SUCCESS && info->nodes != NULL)
        entry_succeed(e, info);
    else
        entry_fail(e, failure_text(status == ARES_SUCCESS ? ARES_ENODATA : status));
    ares_freeaddrinfo(info);
    entry_answered(e);
}

static void on_deadline(struct timer *timer)
{
    struct resolve_entry *e = CONTAINER_OF(timer, struct resolve_entry, deadline);

    entry_fail(e, timed_out);
    entry_answered(e);
}

static void entry_result(const struct resolve_entry *e, struct resolve_result *out_result)
{
    out_result->count = e->count;
    out_result->error = e->error;
    for (unsigned i = 0; i < e->count; i++)
        out_result->addresses[i] = e->addresses[i];
}

static void entry_deliver(struct resolve_entry *e)
{
    struct resolve_result result;
    struct list_link *link;

    entry_result(e, &result);
    while ((link = list_pop_front(&e->waiting)) != NULL) {
        struct resolve_query *query = CONTAINER_OF(link, struct resolve_query, link);

        query->entry = NULL;
        query->on_done(query, &result);
    }
}

/* An entry leaves the list last: a callback that starts new names must not make room by dropping
 * it. */
static void on_deliver(struct loop_task *task)
{
    struct resolver *r = CONTAINER_OF(task, struct resolver, deliver);
    struct list_link *link;

    while ((link = list_first(&r->answered)) != NULL) {
        struct resolve_entry *e = CONTAINER_OF(link, struct resolve_entry, link);

        entry_deliver(e);
        entry_move(e, NULL);
        entry_place(e);
    }
}

/* Questions. */

static void ask(struct resolve_entry *e)
{
    const struct ares_addrinfo_hints hints = {
        /* Sorting opens a socket for each address. CARES_HOSTS names the hosts file. */
        .ai_flags = ARES_AI_NOSORT | ARES_AI_ENVHOSTS,
        .ai_family = AF_UNSPEC,
    };
    struct resolver *r = e->resolver;

    renew_channel(r);
    e->asking = true;
    r->asking++;
    if (!timer_running(&r->tick))
        timer_start(r->loop, &r->tick, TICK_MS);
    ares_getaddrinfo(r->channel, e->name, NULL, &hints, on_answer, e);
}

static struct span entry_name(const void *item)
{
    const struct resolve_entry *e = item;

    return span_of(e->name, e->name_bytes);
}

static void entry_free(struct resolve_entry *e)
{
    mem_free(e->addresses);
    mem_free(e);
}

/* NULL when there is no room: every entry is waited for. */
static struct resolve_entry *entry_new(struct resolver *r, struct span name)
{
    struct resolve_entry *e;

    if (map_count(&r->entries) >= MAX_NAMES) {
        struct list_link *oldest = list_first(&r->idle);

        if (oldest == NULL)
            return NULL;
        e = CONTAINER_OF(oldest, struct resolve_entry, link);
        entry_move(e, NULL);
        map_remove(&r->entries, entry_name(e));
        entry_free(e);
    }
    e = mem_zero(sizeof(*e) + name.n + 1);
    e->kind = KIND_ENTRY;
    e->resolver = r;
    list_init(&e->waiting);
    timer_init(&e->deadline, on_deadline);
    e->name_bytes = name.n;
    memcpy(e->name, name.p, name.n);
    map_add(&r->entries, e);
    return e;
}

static bool entry_fresh(const struct resolve_entry *e)
{
    return loop_now_ms(e->resolver->loop) < e->fresh_until_ms;
}

static void entry_wait(struct resolve_entry *e, struct resolve_query *query)
{
    struct resolver *r = e->resolver;

    query->entry = e;
    list_push_back(&e->waiting, &query->link);
    entry_place(e);
    if (!timer_running(&e->deadline))
        timer_start(r->loop, &e->deadline, r->timeout_ms);
    if (!e->asking)
        ask(e);
}

bool resolve_is_localhost(struct span name)
{
    size_t host_at = name.n - MIN(name.n, strlen("localhost"));

    return span_ieq(span_sub(name, host_at, name.n), SPAN("localhost")) &&
           (host_at == 0 || name.p[host_at - 1] == '.');
}

/* Lower case and without the last dot. False when no name server could know it: names that are not
 * ASCII travel as punycode. */
static bool fold_name(struct span name, char folded[NAME_BYTES + 1])
{
    size_t n = span_ends(name, SPAN(".")) ? name.n - 1 : name.n;

    if (n == 0 || n > NAME_BYTES)
        return false;
    text_fold_into(folded, span_sub(name, 0, n));
    folded[n] = '\0';
    return strspn(folded, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

bool resolve_start(struct resolver *r, struct resolve_query *query, struct span name,
                   struct resolve_result *out_result)
{
    char folded[NAME_BYTES + 1];
    struct span key;
    struct resolve_entry *e;

    query->entry = NULL;
    out_result->count = ip_parse(name, &out_result->addresses[0]);
    out_result->error = out_result->count > 0 || fold_name(name, folded) ? NULL : not_a_name;
    if (out_result->count > 0 || out_result->error != NULL)
        return true;
    key = span_str(folded);
    if (resolve_is_localhost(key)) {
        out_result->addresses[0] = ip_of_v4(&(struct in_addr){htonl(INADDR_LOOPBACK)});
        out_result->addresses[1] = in6addr_loopback;
        out_result->count = 2;
        return true;
    }
    e = map_find(&r->entries, key);
    if (e == NULL)
        e = entry_new(r, key);
    if (e == NULL) {
        out_result->error = "too many names are being resolved";
        return true;
    }
    if (!entry_fresh(e)) {
        entry_wait(e, query);
        return false;
    }
    entry_place(e);
    entry_result(e, out_result);
    return true;
}

void resolve_cancel(struct resolver *r, struct resolve_query *query)
{
    struct resolve_entry *e = TAKE(query->entry);

    if (e == NULL)
        return;
    list_remove(&e->waiting, &query->link);
    if (list_empty(&e->waiting))
        timer_stop(r->loop, &e->deadline);
}

size_t resolve_cached(const struct resolver *r)
{
    return map_count(&r->entries);
}

/* One that goes later is as an empty one; one that is not there at the start is a mistake. */
static struct err *check_hosts_file(const char *path)
{
    if (path == NULL || access(path, R_OK) == 0)
        return NULL;
    return ERR(ERR_UNKNOWN, "HostsFile: '%s': %s", path, strerror(errno));
}

struct err *resolver_new(struct loop *loop, const struct resolve_options *options,
                         struct resolver **out_resolver)
{
    struct resolver *r;
    int status;

    TRY(check_hosts_file(options->hosts_file));
    r = NEW(struct resolver);
    status = ares_library_init(ARES_LIB_INIT_ALL);
    r->kind = KIND_RESOLVER;
    r->loop = loop;
    r->timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : TIMEOUT_MS;
    r->servers = options->servers != NULL ? mem_string(span_str(options->servers)) : NULL;
    r->settings_path = mem_string(
        span_str(options->resolv_file != NULL ? options->resolv_file : "/etc/resolv.conf"));
    look_at_settings(r);
    r->settings_changed = false; /* channel_open reads them */
    setenv("CARES_HOSTS", options->hosts_file != NULL ? options->hosts_file : "/etc/hosts", 1);
    map_init(&r->entries, entry_name);
    list_init(&r->idle);
    list_init(&r->answered);
    list_init(&r->sockets);
    r->deliver.run = on_deliver;
    timer_init(&r->tick, on_tick);
    if (status == ARES_SUCCESS)
        status = channel_open(r, &r->channel);
    if (status != ARES_SUCCESS) {
        resolver_free(r);
        return ERR(ERR_UNKNOWN, "NameServers: '%s': %s",
                   options->servers != NULL ? options->servers : "the system's",
                   ares_strerror(status));
    }
    *out_resolver = r;
    return NULL;
}

static void entry_drop(void *item, void *arg)
{
    struct resolve_entry *e = item;
    struct list_link *link;

    timer_stop(arg, &e->deadline);
    while ((link = list_pop_front(&e->waiting)) != NULL)
        CONTAINER_OF(link, struct resolve_query, link)->entry = NULL;
    entry_free(e);
}

void resolver_free(struct resolver *r)
{
    if (r == NULL)
        return;
    if (r->channel != NULL)
        ares_destroy(r->channel);
    ares_library_cleanup();
    loop_unpost(r->loop, &r->deliver);
    timer_stop(r->loop, &r->tick);
    map_each(&r->entries, entry_drop, r->loop);
    map_done(&r->entries);
    mem_free(r->settings_path);
    mem_free(r->servers);
    mem_free(r);
}
