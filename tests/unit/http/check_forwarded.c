#include "base/header_field.h"
#include "testing.h"

#include "http/forwarded.h"
#include "io/ip.h"

#include <netinet/in.h>
#include <string.h>

#define TRUSTED "10.0.0.0/8 192.168.1.1 fd00::/8"

static const struct {
    const char *headers; /* values; several headers are separated by `;` */
    const char *client;  /* NULL: none is found */
} rows[] = {
    {"", NULL},
    {"192.0.2.1", "192.0.2.1"},
    {" 192.0.2.1\t", "192.0.2.1"},
    {"192.0.2.1, 10.0.0.1", "192.0.2.1"},
    {"192.0.2.1,10.0.0.1,fd00::2", "192.0.2.1"},
    {"192.0.2.9, 192.0.2.1, 10.0.0.1", "192.0.2.1"},
    {"10.0.0.1, 192.0.2.1", "192.0.2.1"},
    {"10.0.0.1, 10.0.0.2", NULL},
    {"nonsense, 192.0.2.1", "192.0.2.1"},
    {"192.0.2.1, nonsense", NULL},
    {"192.0.2.1, nonsense, 10.0.0.1", NULL},
    {"192.0.2.1, unknown", NULL},
    {"192.0.2.1, _hidden", NULL},
    {"192.0.2.1, , ,10.0.0.1,", "192.0.2.1"},
    {",", NULL},
    {"192.0.2.9;192.0.2.1", "192.0.2.1"},
    {"192.0.2.1;10.0.0.1", "192.0.2.1"},
    {"192.0.2.1;nonsense;10.0.0.1", NULL},
    {"192.0.2.1;", "192.0.2.1"},
    {"192.0.2.1:8080", "192.0.2.1"},
    {"192.0.2.1, 10.0.0.1:443", "192.0.2.1"},
    {"2001:db8::1", "2001:db8::1"},
    {"[2001:db8::1]", "2001:db8::1"},
    {"[2001:db8::1]:443", "2001:db8::1"},
    {"[fd00::1]:443", NULL},
    {"::ffff:192.0.2.1", "192.0.2.1"},
    {"::ffff:10.0.0.1", NULL},
    {"192.0.2.1:", "192.0.2.1"},
    {"[", NULL},
    {"[]", NULL},
    {":", NULL},
    {"192.0.2.1.5", NULL},
    {"192.168.1.2, 192.168.1.1", "192.168.1.2"},
};

static struct ip_ranges trusted_ranges(void)
{
    struct ip_ranges trusted = {NULL, 0};
    struct span list = SPAN(TRUSTED);

    while (list.p != NULL)
        ck_ok(ip_ranges_add(&trusted, span_split(&list, ' ')));
    return trusted;
}

static void expect(const struct header_field *headers, size_t count, const char *client)
{
    struct ip_ranges trusted = trusted_ranges();
    char text[INET6_ADDRSTRLEN];
    struct in6_addr found;

    ck_assert(forwarded_client(headers, count, &trusted, &found) == (client != NULL));
    if (client != NULL)
        ck_assert_str_eq(ip_text(&found, text), client);
    ip_ranges_done(&trusted);
}

START_TEST(the_rightmost_that_is_no_proxy)
{
    struct header_field headers[8] = {{SPAN_INIT("Host"), SPAN_INIT("192.0.2.77")}};
    struct span values = span_str(rows[_i].headers);
    size_t count = 1;

    while (values.p != NULL) {
        headers[count++] =
            (struct header_field){SPAN("x-forwarded-FOR"), span_trim(span_split(&values, ';'))};
        headers[count++] = (struct header_field){SPAN("Forwarded"), SPAN("for=192.0.2.66")};
    }
    expect(headers, count, rows[_i].client);
}
END_TEST

START_TEST(no_headers)
{
    expect(NULL, 0, NULL);
}
END_TEST

START_TEST(proxies_in_a_row_are_bounded)
{
    char value[1000] = "192.0.2.1";
    struct header_field header = {SPAN_INIT("X-Forwarded-For"), {NULL, 0}};

    for (unsigned hops = 1; hops < 40; hops++) {
        header.value = span_str(value);
        expect(&header, 1, hops <= 32 ? "192.0.2.1" : NULL);
        memcpy(value + strlen(value), ", 10.0.0.1", sizeof(", 10.0.0.1"));
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, the_rightmost_that_is_no_proxy, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, no_headers);
    tcase_add_test(tc, proxies_in_a_row_are_bounded);
}
