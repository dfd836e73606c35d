#include "testing.h"

#include "cli/args.h"

static struct args args;

static void parse(const char *const *words)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    ck_ok(args_parse((char *const *)(uintptr_t)words, count, &args));
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

START_TEST(options_and_operands_stand_in_any_order)
{
    PARSE("--json", "get", "--url=http://x", "/A", "--key-file", "f");
    ck_assert_uint_eq(args.operand_count, 2);
    ck_span_eq(args.operands[0], "get");
    ck_span_eq(args.operands[1], "/A");
    ck_assert(args_has(&args, OPTION_JSON));
    ck_span_eq(args_value(&args, OPTION_URL), "http://x");
    ck_span_eq(args_value(&args, OPTION_KEY_FILE), "f");
    ck_assert(!args_has(&args, OPTION_DATA));
    ck_assert_ptr_null(args_value(&args, OPTION_DATA).p);
}
END_TEST

START_TEST(some_options_take_all_words_up_to_the_next)
{
    struct arena a;
    const struct span *values;

    arena_init(&a);
    PARSE("add", "d", "--events", "/A", "/B", "--label", "l", "--events", "/C");
    ck_assert_uint_eq(args_count(&args, OPTION_EVENTS), 3);
    values = args_values(&args, OPTION_EVENTS, &a);
    ck_span_eq(values[0], "/A");
    ck_span_eq(values[1], "/B");
    ck_span_eq(values[2], "/C");
    ck_assert_uint_eq(args.operand_count, 2);
    arena_done(&a);
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    PARSE("get", "--", "--json");
    ck_assert_uint_eq(args.operand_count, 2);
    ck_span_eq(args.operands[1], "--json");
    PARSE("import", "-");
    ck_span_eq(args.operands[1], "-");
}
END_TEST

START_TEST(help_has_a_short_name)
{
    PARSE("-h");
    ck_assert(args_has(&args, OPTION_HELP));
}
END_TEST

static const struct {
    const char *words[4];
    const char *why;
} bad[] = {
    {{"--lable", "x"}, "is --label meant?"},
    {{"--zzzzzzzzzz"}, "there is no option --zzzzzzzzzz"},
    {{"--url"}, "--url needs a value: URL"},
    {{"--url", "--json"}, "--url needs a value"},
    {{"--json=1"}, "--json takes no value"},
    {{"--url=a", "--url=b"}, "--url is there twice"},
    {{"-x"}, "there is no option -x"},
    {{"--key", "secret"}, "--key-file, SVC_KEY or the configuration file"},
};

START_TEST(misuse_is_named)
{
    size_t count = 0;

    while (bad[_i].words[count] != NULL)
        count++;
    ck_fails(args_parse((char *const *)(uintptr_t)bad[_i].words, count, &args), ERR_UNKNOWN,
             bad[_i].why);
}
END_TEST

START_TEST(there_is_an_end_to_words)
{
    char *words[ARGS_MOST + 1];
    char word[] = "x";

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        words[i] = word;
    ck_ok(args_parse(words, ARGS_MOST, &args));
    ck_fails(args_parse(words, ARGS_MOST + 1, &args), ERR_UNKNOWN, "words");
}
END_TEST

START_TEST(options_of_other_commands_are_found)
{
    PARSE("--json", "--label", "l", "--sign");
    ck_assert_int_eq(args_first_beyond(&args, OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_LABEL)),
                     OPTION_SIGN);
    ck_assert_int_eq(args_first_beyond(&args, UINT64_MAX), OPTION_COUNT);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, options_and_operands_stand_in_any_order);
    tcase_add_test(tc, some_options_take_all_words_up_to_the_next);
    tcase_add_test(tc, two_dashes_end_the_options);
    tcase_add_test(tc, help_has_a_short_name);
    tcase_add_loop_test(tc, misuse_is_named, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, there_is_an_end_to_words);
    tcase_add_test(tc, options_of_other_commands_are_found);
}
