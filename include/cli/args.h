/* The words of a command line: options with their values, and operands, in any order. What options
 * there are is one table, of all commands: help, completion and manual come from it. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/macros.h"
#include "base/span.h"

/* symbol, name, its value (NULL: it has none), may it come several times, what it is for. */
#define ARGS_OPTIONS(X)                                                                            \
    X(OPTION_URL, "url", "URL", false, "the server; also SVC_URL (http://127.0.0.1:8080)")         \
    X(OPTION_KEY_FILE, "key-file", "FILE", false, "file with the API key; also SVC_KEY")           \
    X(OPTION_JSON, "json", NULL, false, "print what the server said, for scripts")                 \
    X(OPTION_HELP, "help", NULL, false, "tell about the command")                                  \
    X(OPTION_EVENTS, "events", "SELECTOR", true, "event selector, as of a webhook")                \
    X(OPTION_FORWARD, "forward", "URL", false, "send each event there")                            \
    X(OPTION_SECRET_FILE, "secret-file", "FILE", false, "file with the signing secret")            \
    X(OPTION_AFTER, "after", "SERIAL", false, "begin behind the event of this ObjectNo")           \
    X(OPTION_DATA, "data", "JSON", false, "the body: JSON, @FILE, or @- for standard input")       \
    X(OPTION_WEBHOOK, "webhook", "ID", false, "the webhook, by its Id or Label")                   \
    X(OPTION_FAILING, "failing", NULL, false, "only those that fail, or that the server paused")   \
    X(OPTION_LABEL, "label", "LABEL", false, "a label for people")                                 \
    X(OPTION_SIGN, "sign", NULL, false, "sign its requests with a new secret, shown once")         \
    X(OPTION_SINCE, "since", "TIME", false, "raised then or later: a date, a datetime, or 2h ago") \
    X(OPTION_UNTIL, "until", "TIME", false, "raised before that")                                  \
    X(OPTION_STATE, "state", "STATE", false, "state of the deliveries (Dead)")                     \
    X(OPTION_DRY_RUN, "dry-run", NULL, false, "change nothing, say what would be done")            \
    X(OPTION_ALLOW, "allow", "RESOURCES:METHODS", true, "a right: names with commas, or *")        \
    X(OPTION_TENANT, "tenant", "TENANT", false, "the tenant whose entities it is for")             \
    X(OPTION_EXPIRES, "expires", "TIME", false, "when it ends: a date, a datetime, or 30d")        \
    X(OPTION_PORT, "port", "N", false, "port on 127.0.0.1 (8081); 0: any")                         \
    X(OPTION_FAIL, "fail", "PERCENT", false, "answer 500 to so many requests in a hundred")        \
    X(OPTION_VERIFY, "verify", "SECRET", false, "check signatures: a secret, or @FILE")            \
    X(OPTION_SECRET, "secret", "SECRET", false, "whsec_, whsk_ or whpk_, or @FILE")                \
    X(OPTION_ANY_TIME, "any-time", NULL, false, "however old or new the request is")               \
    X(OPTION_WAIT, "wait", NULL, false, "until another node leads, and say which")                 \
    X(OPTION_YES, "yes", NULL, false, "without asking")

enum option { ARGS_OPTIONS(AS_SYMBOL) OPTION_COUNT };

#define OPTION_BIT(option) (UINT64_C(1) << (option))

struct option_info {
    const char *name;
    const char *value; /* NULL: a flag */
    bool repeats;
    const char *about;
};

const struct option_info *args_option(enum option option);

enum { ARGS_MOST = 256 };

struct args_given {
    enum option option;
    struct span value;
};

struct args {
    struct span operands[ARGS_MOST];
    size_t operand_count;
    struct args_given given[ARGS_MOST];
    size_t given_count;
};

/* `words` outlive *out. `--name value` and `--name=value`; an option that may come several times
 * takes all words up to the next option, and `--` ends that: what follows are operands. `-` alone
 * is an operand. Errors (of any code) name the word. */
struct err *args_parse(char *const *words, size_t count, struct args *out) MUST_USE;

bool args_has(const struct args *args, enum option option);
/* The absent span when it was not given. */
struct span args_value(const struct args *args, enum option option);
size_t args_count(const struct args *args, enum option option);
/* All values of an option that may come several times; an array in the arena. */
const struct span *args_values(const struct args *args, enum option option, struct arena *a);
/* The first option that is not among `allowed`, bits; OPTION_COUNT: there is none. */
enum option args_first_beyond(const struct args *args, uint64_t allowed);

#endif
