/* Ranges are put to a naive model, bit by bit, in check_egress.c, which reads its lists by them. */
#include "testing.h"

#include "io/ip.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static struct in6_addr ip(const char *text)
{
    struct in6_addr a;

    ck_assert_msg(ip_parse(span_str(text), &a), "'%s' is no address", text);
    return a;
}

static const struct {
    const char *text, *canonical; /* NULL: no address */
} texts[] = {
    {"192.0.2.1", "192.0.2.1"},
    {"0.0.0.0", "0.0.0.0"},
    {"::", "::"},
    {"2001:DB8::0:1", "2001:db8::1"},
    {"::ffff:192.0.2.1", "192.0.2.1"},
    {"", NULL},
    {"192.0.2", NULL},
    {"192.0.2.256", NULL},
    {"192.0.2.1 ", NULL},
    {" ::1", NULL},
    {"[::1]", NULL},
    {"::1%lo", NULL},
    {"192.0.2.1:80", NULL},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc", NULL},
};

START_TEST(addresses_are_read_and_shown)
{
    char shown[INET6_ADDRSTRLEN];
    struct in6_addr a;

    ck_assert(ip_parse(span_str(texts[_i].text), &a) == (texts[_i].canonical != NULL));
    if (texts[_i].canonical != NULL)
        ck_assert_str_eq(ip_text(&a, shown), texts[_i].canonical);
}
END_TEST

START_TEST(no_byte_is_overlooked)
{
    struct in6_addr a;

    ck_assert(!ip_parse(SPAN("::1\0"), &a));
    ck_assert(!ip_parse(SPAN("::1\0::2"), &a));
}
END_TEST

START_TEST(addresses_of_sockets)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct in6_addr a, expected = ip("192.0.2.1");

    ck_assert_int_eq(inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr), 1);
    ck_assert(ip_of_sockaddr((const struct sockaddr *)&v4, &a));
    ck_assert_mem_eq(&a, &expected, sizeof(a));
    a = ip_of_v4(&v4.sin_addr);
    ck_assert_mem_eq(&a, &expected, sizeof(a));
    v6.sin6_addr = expected = ip("2001:db8::1");
    ck_assert(ip_of_sockaddr((const struct sockaddr *)&v6, &a));
    ck_assert_mem_eq(&a, &expected, sizeof(a));
    ck_assert(!ip_of_sockaddr((const struct sockaddr *)&local, &a));
}
END_TEST

START_TEST(a_list_holds_what_one_of_its_ranges_holds)
{
    struct ip_ranges ranges = {NULL, 0};
    struct in6_addr inside[] = {ip("10.1.2.3"), ip("::ffff:10.0.0.0"), ip("fd00::1"), ip("::1")};
    struct in6_addr outside[] = {ip("11.0.0.0"), ip("fe00::"), ip("::2"), ip("::10.1.2.3")};

    ck_assert(!ip_ranges_contain(&ranges, &inside[0]));
    ck_ok(ip_ranges_add(&ranges, SPAN("10.0.0.0/8")));
    ck_ok(ip_ranges_add(&ranges, SPAN("fd00::/8")));
    ck_ok(ip_ranges_add(&ranges, SPAN("::1")));
    ck_fails(ip_ranges_add(&ranges, SPAN("10.0.0.1/8")), ERR_UNKNOWN, "first 8 bits");
    ck_assert_uint_eq(ranges.count, 3);
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        ck_assert(ip_ranges_contain(&ranges, &inside[i]));
        ck_assert(!ip_ranges_contain(&ranges, &outside[i]));
    }
    ip_ranges_done(&ranges);
    ck_assert(!ip_ranges_contain(&ranges, &inside[0]));
    ip_ranges_done(NULL);
}
END_TEST

START_TEST(both_ends_know_a_connection)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    int accepted;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    struct ip_ends ours, theirs, reversed;

    ck_assert(!ip_ends_of(client, &ours));
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, bytes), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, bytes), 0);
    accepted = accept(listener, NULL, NULL);
    ck_assert(ip_ends_of(client, &ours));
    ck_assert(ip_ends_of(accepted, &theirs));
    ck_assert_uint_eq(ours.remote_port, ntohs(address.sin_port));
    reversed = ip_ends_reversed(&theirs);
    ck_assert_int_eq(memcmp(&reversed, &ours, sizeof(ours)), 0);
    close(accepted);
    close(client);
    close(listener);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, addresses_are_read_and_shown, 0, ARRAY_LEN(texts));
    tcase_add_test(tc, no_byte_is_overlooked);
    tcase_add_test(tc, addresses_of_sockets);
    tcase_add_test(tc, a_list_holds_what_one_of_its_ranges_holds);
    tcase_add_test(tc, both_ends_know_a_connection);
}
