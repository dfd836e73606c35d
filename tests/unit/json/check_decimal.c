#include "testing.h"

#include "base/rng.h"
#include "json/decimal.h"

#include <math.h>
#include <string.h>

static struct buf buf;

static void set_up(void)
{
    buf_init(&buf, BUF_NO_CAP);
}

static void tear_down(void)
{
    buf_done(&buf);
}

static struct span canonical(struct buf *b, struct span s)
{
    buf_clear(b);
    decimal_add_canonical(b, s);
    return buf_span(b);
}

/* ---- grammar ---- */

START_TEST(numbers_are_recognised)
{
    static const char *const good[] = {
        "0",    "-0",      "+0",        "1",
        "01",   "-001",    "+1",        "1.0",
        "0.1",  "1e1",     "1E1",       "1e+1",
        "1e-1", "1.5e007", "00.00e-00", "123456789012345678901234567890.123456789e-9999999999999"};
    static const char *const bad[] = {
        "",     "-",   "+",        "--1",       "+-1",   ".",     ".5",      "5.", "1.e1",
        "e1",   "1e",  "1e+",      "1e1.5",     "1e1e1", "1.2.3", " 1",      "1 ", "1,5",
        "0x10", "NaN", "Infinity", "-Infinity", "1_000", "1f",    "\xd9\xa1"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        ck_assert_msg(decimal_valid(span_str(good[i])), "%s", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!decimal_valid(span_str(bad[i])), "%s", bad[i]);
    ck_assert(!decimal_valid(SPAN("1\0")));
}
END_TEST

static const struct {
    const char *text;
    bool whole;
} integer_cases[] = {
    {"0", true},
    {"-0", true},
    {"-0.000e-5", true},
    {"0e999999999999999999999", true},
    {"1", true},
    {"+1", true},
    {"-007", true},
    {"1.0", true},
    {"1e3", true},
    {"1.5e1", true},
    {"1500e-2", true},
    {"0.00015e5", true},
    {"999999999999999999", true},
    {"1000000000000000000", true},
    {"9223372036854775807", true},
    {"-9223372036854775808", true},
    {"9223372036854775807.000", true},
    {"922337203685477580.7e1", true},
    {"0000000000000000000000000000001", true},
    {"9223372036854775808", true},
    {"-9223372036854775809", true},
    {"10000000000000000000", true},
    {"99999999999999999999", true},
    {"1e19", true},
    {"1e999999999999999999999", true},
    {"1.5", false},
    {"1e-1", false},
    {"0.1", false},
    {"1.05e1", false},
    {"9223372036854775806.5", false},
    {"1e-999999999999999999999", false},
    {"abc", false},
    {"", false},
};

START_TEST(integers_are_recognised)
{
    for (size_t i = 0; i < ARRAY_LEN(integer_cases); i++) {
        struct span text = span_str(integer_cases[i].text);

        ck_assert_msg(decimal_is_integer(text) == integer_cases[i].whole, "%s", text.p);
    }
}
END_TEST

/* ---- order ---- */

/* Groups of equal numbers, ascending. */
static const char *const ladder[][5] = {
    {"-1e4611686018427387904", "-1e99999999999999999999999"},
    {"-1e99999999"},
    {"-123456789012345678901"},
    {"-123456789012345678900", "-1234567890123456789e2"},
    {"-10", "-1e1", "-1.0e1", "-0010"},
    {"-1.5", "-15e-1"},
    {"-1", "-1.000", "-10e-1"},
    {"-0.1"},
    {"-1e-99999999"},
    {"0", "-0", "0.0", "0e5", "-0e-99999999999999999999"},
    {"1e-99999999999999999999999"},
    {"1e-99999999"},
    {"0.1", "1e-1", "0.10", "+0.1"},
    {"0.10000000000000000000000000000000000001"},
    {"0.9999999999999999999"},
    {"1", "1.0", "10e-1", "+01", "0.1e1"},
    {"1.0000000000000000000000001"},
    {"9"},
    {"10", "1e1", "010", "100e-1"},
    {"9007199254740992"},
    {"9007199254740993"},
    {"999999999999999999"},
    {"1000000000000000000", "1e18"},
    {"9223372036854775807"},
    {"9223372036854775807.5"},
    {"9223372036854775808"},
    {"12345678901234567890", "12345678901234567890.0", "1234567890123456789e1"},
    {"12345678901234567891"},
    {"1e400"},
    {"1.1e400"},
    {"1e4611686018427387904", "1e99999999999999999999999"},
};

START_TEST(numbers_are_ordered)
{
    for (size_t i = 0; i < ARRAY_LEN(ladder); i++)
        for (size_t j = 0; j < ARRAY_LEN(ladder); j++)
            for (size_t k = 0; k < 25; k++) {
                const char *a = ladder[i][k / 5], *b = ladder[j][k % 5];
                int order;

                if (a == NULL || b == NULL)
                    continue;
                order = decimal_cmp(span_str(a), span_str(b));
                ck_assert_msg(i < j   ? order < 0
                              : i > j ? order > 0
                                      : order == 0,
                              "%s, %s: %d", a, b, order);
            }
}
END_TEST

START_TEST(equal_numbers_have_one_canonical_form)
{
    for (size_t i = 0; i < ARRAY_LEN(ladder); i++) {
        struct buf first;

        buf_init(&first, BUF_NO_CAP);
        canonical(&first, span_str(ladder[i][0]));
        for (size_t k = 1; k < 5 && ladder[i][k] != NULL; k++)
            ck_span_is(canonical(&buf, span_str(ladder[i][k])), buf_span(&first));
        if (i > 0)
            ck_assert(!span_eq(canonical(&buf, span_str(ladder[i - 1][0])), buf_span(&first)));
        buf_done(&first);
    }
    ck_span_eq(canonical(&buf, SPAN("-0")), "0");
    ck_span_eq(canonical(&buf, SPAN("1")), "1e0");
    ck_span_eq(canonical(&buf, SPAN("-1200")), "-12e2");
    ck_span_eq(canonical(&buf, SPAN("+0012.3400e5")), "1234e3");
    ck_span_eq(canonical(&buf, SPAN("0.0010")), "1e-3");
    ck_span_eq(canonical(&buf, SPAN("100.001")), "100001e-3");
}
END_TEST

/* Appends value as text, spelled at random: sign, zeros around it, the point moved by an exponent.
 */
static void add_spelling(struct buf *b, __int128 value, int scale)
{
    char digits[64];
    size_t n = 0, point;
    bool negative = value < 0;

    do {
        int digit = (int)(value % 10);

        digits[sizeof(digits) - ++n] = (char)('0' + (digit < 0 ? -digit : digit));
        value /= 10;
    } while (value != 0);
    if (negative)
        buf_add_char(b, '-');
    else if (rng_below(4) == 0)
        buf_add_char(b, '+');
    for (uint64_t zeros = rng_below(3); zeros > 0; zeros--)
        buf_add_char(b, '0');
    point = 1 + rng_below(n);
    buf_add(b, span_of(digits + sizeof(digits) - n, point));
    if (point < n || rng_below(2) == 0) {
        buf_add_char(b, '.');
        buf_add(b, span_of(digits + sizeof(digits) - n + point, n - point));
        for (uint64_t zeros = rng_below(3) + (point == n); zeros > 0; zeros--)
            buf_add_char(b, '0');
    }
    if (scale + (int)(n - point) != 0 || rng_below(4) == 0)
        buf_printf(b, "%c%d", rng_below(2) == 0 ? 'e' : 'E', scale + (int)(n - point));
}

static __int128 random_integer(void)
{
    unsigned __int128 bits = (unsigned __int128)rng_u64() << 64 | rng_u64();
    __int128 value = (__int128)(bits >> (4 + rng_below(123)));

    if (rng_below(4) == 0)
        value -= value % 1000;
    return rng_below(2) == 0 ? value : -value;
}

static int sign(__int128 value)
{
    return (value > 0) - (value < 0);
}

static int sign_of(int order)
{
    return (order > 0) - (order < 0);
}

START_TEST(order_agrees_with_integers)
{
    struct buf a, b;

    buf_init(&a, BUF_NO_CAP);
    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < 50000; i++) {
        __int128 x = random_integer(), y = rng_below(4) == 0 ? x : random_integer();

        if (rng_below(4) == 0)
            y = x + (rng_below(2) == 0 ? 1 : -1);
        buf_clear(&a);
        buf_clear(&b);
        add_spelling(&a, x, 0);
        add_spelling(&b, y, 0);
        ck_assert_msg(sign_of(decimal_cmp(buf_span(&a), buf_span(&b))) == (x > y) - (x < y),
                      "%s, %s", buf_text(&a), buf_text(&b));
        ck_assert(decimal_is_integer(buf_span(&a)));
    }
    buf_done(&a);
    buf_done(&b);
}
END_TEST

/* x * 10^s against y * 10^t, computed by scaling up the one of the higher power. */
START_TEST(order_agrees_with_scaled_integers)
{
    struct buf a, b;

    buf_init(&a, BUF_NO_CAP);
    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < 50000; i++) {
        __int128 x = (int64_t)rng_u64() >> rng_below(63), y = (int64_t)rng_u64() >> rng_below(63);
        int s = (int)rng_below(18), t = (int)rng_below(18), base = (int)rng_below(4000) - 2000;
        __int128 scaled_x = x, scaled_y;

        if (rng_below(3) == 0)
            y = x;
        scaled_y = y;
        for (int k = t; k < s; k++)
            scaled_x *= 10;
        for (int k = s; k < t; k++)
            scaled_y *= 10;
        buf_clear(&a);
        buf_clear(&b);
        add_spelling(&a, x, base + s);
        add_spelling(&b, y, base + t);
        ck_assert_msg(sign_of(decimal_cmp(buf_span(&a), buf_span(&b))) == sign(scaled_x - scaled_y),
                      "%s, %s", buf_text(&a), buf_text(&b));
    }
    buf_done(&a);
    buf_done(&b);
}
END_TEST

START_TEST(canonical_forms_agree_with_order)
{
    struct buf a, b, other;

    buf_init(&a, BUF_NO_CAP);
    buf_init(&b, BUF_NO_CAP);
    buf_init(&other, BUF_NO_CAP);
    for (int i = 0; i < 20000; i++) {
        __int128 x = rng_below(2000), y = rng_below(2) == 0 ? x : rng_below(2000);
        int s = (int)rng_below(3) - 1;

        buf_clear(&a);
        buf_clear(&b);
        add_spelling(&a, x, s);
        add_spelling(&b, y * 10, s - 1);
        ck_assert_msg(span_eq(canonical(&buf, buf_span(&a)), canonical(&other, buf_span(&b))) ==
                          (x == y),
                      "%s, %s", buf_text(&a), buf_text(&b));
        ck_assert(decimal_valid(buf_span(&buf)));
        ck_assert_int_eq(decimal_cmp(buf_span(&a), buf_span(&buf)), 0);
    }
    buf_done(&a);
    buf_done(&b);
    buf_done(&other);
}
END_TEST

/* Linear in the length, however long. */
START_TEST(long_numbers_are_compared)
{
    enum { DIGITS = 1000000 };
    char *a = mem_alloc(DIGITS), *b = mem_alloc(DIGITS);

    memset(a, '7', DIGITS);
    memset(b, '7', DIGITS);
    ck_assert_int_eq(decimal_cmp(span_of(a, DIGITS), span_of(b, DIGITS)), 0);
    b[DIGITS - 1] = '8';
    ck_assert_int_lt(decimal_cmp(span_of(a, DIGITS), span_of(b, DIGITS)), 0);
    a[1] = b[1] = '.';
    ck_assert_int_gt(decimal_cmp(span_of(b, DIGITS), span_of(a, DIGITS)), 0);
    memset(a, '0', DIGITS);
    a[1] = '.';
    ck_assert_int_eq(decimal_cmp(span_of(a, DIGITS), SPAN("0")), 0);
    mem_free(a);
    mem_free(b);
}
END_TEST

/* ---- doubles ---- */

START_TEST(the_nearest_double_is_taken)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"-0.0", 0},
        {"1", 1},
        {"-2.5", -2.5},
        {"0.1", 0.1},
        {"+0012.50e1", 125},
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740993.0000000000000000000000001", 9007199254740994.0},
        {"1.00000000000000011102230246251565404236316680908203125", 1},
        {"1.000000000000000111022302462515654042363166809082031250000001", 1.0000000000000002},
        {"1e308", 1e308},
        {"1e309", HUGE_VAL},
        {"-1e99999999999999999999", -HUGE_VAL},
        {"4.9e-324", 4.9e-324},
        {"1e-400", 0},
        {"1e-99999999999999999999", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_msg(decimal_to_double(span_str(cases[i].text)) == cases[i].value, "%s",
                      cases[i].text);
}
END_TEST

/* A digit far behind decides between two neighbours. */
START_TEST(digits_far_behind_count)
{
    buf_add_str(&buf, "9007199254740993.");
    for (int i = 0; i < 5000; i++)
        buf_add_char(&buf, '0');
    ck_assert(decimal_to_double(buf_span(&buf)) == 9007199254740992.0);
    buf_add_char(&buf, '1');
    ck_assert(decimal_to_double(buf_span(&buf)) == 9007199254740994.0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, numbers_are_recognised);
    tcase_add_test(tc, integers_are_recognised);
    tcase_add_test(tc, numbers_are_ordered);
    tcase_add_test(tc, equal_numbers_have_one_canonical_form);
    tcase_add_test(tc, order_agrees_with_integers);
    tcase_add_test(tc, order_agrees_with_scaled_integers);
    tcase_add_test(tc, canonical_forms_agree_with_order);
    tcase_add_test(tc, long_numbers_are_compared);
    tcase_add_test(tc, the_nearest_double_is_taken);
    tcase_add_test(tc, digits_far_behind_count);
}
