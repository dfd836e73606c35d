/* Words become options and operands by one table. Not getopt: options may stand behind operands
 * and before the command, a command's own options are known only when all words are read, and a
 * misspelt one is answered with the nearest that there is. */
#include "cli/args.h"

#include "base/text.h"

static const struct option_info infos[] = {
#define ARGS_AS_INFO(symbol, name, value, repeats, about) {name, value, repeats, about},
    ARGS_OPTIONS(ARGS_AS_INFO)
#undef ARGS_AS_INFO
};

const struct option_info *args_option(enum option option)
{
    return &infos[option];
}

static enum option find(struct span name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (span_eq(name, span_str(infos[i].name)))
            return (enum option)i;
    return OPTION_COUNT;
}

static struct err *unknown(struct span name)
{
    struct span names[OPTION_COUNT];
    struct span nearest;

    if (span_eq(name, SPAN("key")))
        return ERR(ERR_UNKNOWN, "--key: others can see the words of a command; give the key by "
                                "--key-file, SVC_KEY or the configuration file");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        names[i] = span_str(infos[i].name);
    nearest = text_nearest(name, names, OPTION_COUNT);
    if (nearest.p != NULL)
        return ERR(ERR_UNKNOWN, "there is no option --%.*s; is --%.*s meant?", SPAN_FMT(name),
                   SPAN_FMT(nearest));
    return ERR(ERR_UNKNOWN, "there is no option --%.*s", SPAN_FMT(name));
}

static struct err *too_many(void)
{
    return ERR(ERR_UNKNOWN, "more than %d words", ARGS_MOST);
}

static struct err *give(struct args *args, enum option option, struct span value)
{
    if (!infos[option].repeats && args_has(args, option))
        return ERR(ERR_UNKNOWN, "--%s is there twice", infos[option].name);
    if (args->given_count == ARGS_MOST)
        return too_many();
    args->given[args->given_count++] = (struct args_given){option, value};
    return NULL;
}

static bool is_option(struct span word)
{
    return word.n > 1 && word.p[0] == '-';
}

/* words[*at] is an option; *at moves to its last word. */
static struct err *parse_option(char *const *words, size_t count, size_t *at, struct args *out)
{
    struct span word = span_str(words[*at]);
    struct span rest = span_sub(word, 2, word.n);
    bool has_value = span_find_char(rest, '=', 0) < rest.n;
    struct span name = span_split(&rest, '=');
    enum option option = span_starts(word, SPAN("--")) ? find(name) : OPTION_COUNT;

    if (span_eq(word, SPAN("-h")))
        option = OPTION_HELP;
    else if (!span_starts(word, SPAN("--")))
        return ERR(ERR_UNKNOWN, "there is no option %.*s; all are written with --", SPAN_FMT(word));
    if (option == OPTION_COUNT)
        return unknown(name);
    if (infos[option].value == NULL) {
        if (has_value)
            return ERR(ERR_UNKNOWN, "--%s takes no value", infos[option].name);
        return give(out, option, SPAN(""));
    }
    if (has_value)
        return give(out, option, rest);
    if (*at + 1 == count || is_option(span_str(words[*at + 1])))
        return ERR(ERR_UNKNOWN, "--%s needs a value: %s", infos[option].name, infos[option].value);
    do {
        ++*at;
        TRY(give(out, option, span_str(words[*at])));
    } while (infos[option].repeats && *at + 1 < count && !is_option(span_str(words[*at + 1])));
    return NULL;
}

static struct err *add_operand(struct args *out, struct span word)
{
    if (out->operand_count == ARGS_MOST)
        return too_many();
    out->operands[out->operand_count++] = word;
    return NULL;
}

struct err *args_parse(char *const *words, size_t count, struct args *out)
{
    bool ended = false;

    out->operand_count = out->given_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct span word = span_str(words[i]);

        if (!ended && span_eq(word, SPAN("--")))
            ended = true;
        else if (!ended && is_option(word))
            TRY(parse_option(words, count, &i, out));
        else
            TRY(add_operand(out, word));
    }
    return NULL;
}

bool args_has(const struct args *args, enum option option)
{
    return args_count(args, option) > 0;
}

struct span args_value(const struct args *args, enum option option)
{
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == option)
            return args->given[i].value;
    return span_of(NULL, 0);
}

size_t args_count(const struct args *args, enum option option)
{
    size_t count = 0;

    for (size_t i = 0; i < args->given_count; i++)
        count += args->given[i].option == option;
    return count;
}

const struct span *args_values(const struct args *args, enum option option, struct arena *a)
{
    struct span *values = ARENA_ARRAY(a, struct span, args->given_count + 1);
    size_t count = 0;

    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == option)
            values[count++] = args->given[i].value;
    return values;
}

enum option args_first_beyond(const struct args *args, uint64_t allowed)
{
    for (size_t i = 0; i < args->given_count; i++)
        if ((allowed & OPTION_BIT(args->given[i].option)) == 0)
            return args->given[i].option;
    return OPTION_COUNT;
}
