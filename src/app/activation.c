#include "app/activation.h"

#include <stdlib.h>
#include <unistd.h>

static struct span variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL ? (struct span){NULL, 0} : span_str(value);
}

const char *activation_name(enum tcp_passed_kind kind)
{
    static const char *const names[] = {
        [TCP_PASSED_BY_OTHERS] = "svcd.passed",
        [TCP_PASSED_OWN] = "svcd.own",
        [TCP_PASSED_OWN_ANY_PORT] = "svcd.own-any-port",
    };

    return names[kind];
}

static enum tcp_passed_kind kind_of(struct span name)
{
    enum tcp_passed_kind kind = TCP_PASSED_BY_OTHERS;

    for (unsigned i = 0; i < TCP_PASSED_KINDS; i++)
        if (span_eq(name, span_str(activation_name(i))))
            kind = i;
    return kind;
}

static struct err *take(struct tcp_passed *out_passed, uint64_t count, struct span names)
{
    for (uint64_t i = 0; i < count; i++) {
        struct span name = names.p == NULL ? SPAN("unknown") : span_split(&names, ':');
        struct err *e = tcp_passed_add(out_passed, ACTIVATION_FIRST_FD + (int)i, kind_of(name));

        if (e != NULL)
            return err_prefix(e, "LISTEN_FDS: '%.*s', descriptor %d: ", SPAN_FMT(name),
                              ACTIVATION_FIRST_FD + (int)i);
    }
    return NULL;
}

struct err *activation_take(struct tcp_passed *out_passed)
{
    uint64_t pid, count;
    struct err *e;

    *out_passed = (struct tcp_passed){.count = 0};
    if (!span_to_u64(variable("LISTEN_PID"), &pid) || pid != (uint64_t)getpid())
        return NULL;
    if (!span_to_u64(variable("LISTEN_FDS"), &count) || count > TCP_PASSED_MOST)
        return ERR(ERR_UNKNOWN, "LISTEN_FDS: must be a number up to %d", TCP_PASSED_MOST);
    e = take(out_passed, count, variable("LISTEN_FDNAMES"));
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return e;
}
