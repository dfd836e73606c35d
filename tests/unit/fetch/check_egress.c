#include "testing.h"

#include "base/rng.h"
#include "fetch/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(443)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(443)};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memcpy(&storage, &v4, sizeof(v4));
        return storage;
    }
    ck_assert_msg(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1, "'%s' is no address", text);
    memcpy(&storage, &v6, sizeof(v6));
    return storage;
}

static char why[EGRESS_WHY_BYTES];

static const char *refuses(const struct egress_rules *rules, const char *text)
{
    struct sockaddr_storage storage = address_of(text);

    return egress_refuses(rules, (const struct sockaddr *)&storage, why);
}

/* `words` NULL: it must pass. Otherwise the answer names the address and ends in them. */
static void expect(const struct egress_rules *rules, const char *text, const char *words)
{
    const char *answer = refuses(rules, text);

    if (words == NULL) {
        ck_assert_msg(answer == NULL, "%s: %s", text, answer);
        return;
    }
    ck_assert_msg(answer != NULL, "%s passed", text);
    ck_assert_msg(span_ends(span_str(answer), span_str(words)), "%s: %s", text, answer);
    ck_assert_ptr_nonnull(strstr(answer, " is "));
}

#define METADATA "a cloud metadata address"
#define PRIVATE "a private address"
#define LINK_LOCAL "a link-local address"
#define LOOPBACK "a loopback address"
#define MULTICAST "a multicast address"
#define RESERVED "a reserved address"
#define DOCUMENTATION "a documentation address"
#define THIS_NETWORK "an address of 0.0.0.0/8"

/* What each preset says; NULL: nothing. */
static const struct {
    const char *address;
    const char *local_network;
    const char *public_only;
} cases[] = {
    /* Public. */
    {"1.1.1.1", NULL, NULL},
    {"8.8.8.8", NULL, NULL},
    {"93.184.216.34", NULL, NULL},
    {"192.31.196.1", NULL, NULL},
    {"192.52.193.1", NULL, NULL},
    {"192.175.48.1", NULL, NULL},
    {"223.255.255.255", NULL, NULL},
    {"2606:4700:4700::1111", NULL, NULL},
    {"2620:4f:8000::1", NULL, NULL},
    {"2001:200::1", NULL, NULL},
    {"2001:4860:4860::8888", NULL, NULL},
    {"3ffe:ffff::1", NULL, NULL},
    /* Private and loopback, with both neighbours of each range. */
    {"9.255.255.255", NULL, NULL},
    {"10.0.0.0", NULL, PRIVATE},
    {"10.255.255.255", NULL, PRIVATE},
    {"11.0.0.0", NULL, NULL},
    {"172.15.255.255", NULL, NULL},
    {"172.16.0.0", NULL, PRIVATE},
    {"172.31.255.255", NULL, PRIVATE},
    {"172.32.0.0", NULL, NULL},
    {"192.167.255.255", NULL, NULL},
    {"192.168.0.0", NULL, PRIVATE},
    {"192.168.255.255", NULL, PRIVATE},
    {"192.169.0.0", NULL, NULL},
    {"100.63.255.255", NULL, NULL},
    {"100.64.0.0", NULL, "a shared address"},
    {"100.127.255.255", NULL, "a shared address"},
    {"100.128.0.0", NULL, NULL},
    {"126.255.255.255", NULL, NULL},
    {"127.0.0.0", NULL, LOOPBACK},
    {"127.0.0.1", NULL, LOOPBACK},
    {"127.255.255.255", NULL, LOOPBACK},
    {"128.0.0.0", NULL, NULL},
    {"::1", NULL, LOOPBACK},
    {"fbff:ffff::", RESERVED, RESERVED},
    {"fc00::", NULL, PRIVATE},
    {"fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, PRIVATE},
    {"fe00::", RESERVED, RESERVED},
    {"fec0::1", NULL, "a site-local address"},
    /* Link-local, of this network, multicast, broadcast, reserved. */
    {"169.253.255.255", NULL, NULL},
    {"169.254.0.0", LINK_LOCAL, LINK_LOCAL},
    {"169.254.169.254", LINK_LOCAL, LINK_LOCAL},
    {"169.254.170.2", LINK_LOCAL, LINK_LOCAL},
    {"169.254.255.255", LINK_LOCAL, LINK_LOCAL},
    {"169.255.0.0", NULL, NULL},
    {"fe7f:ffff::", RESERVED, RESERVED},
    {"fe80::1", LINK_LOCAL, LINK_LOCAL},
    {"fe80::a9fe:a9fe", LINK_LOCAL, LINK_LOCAL},
    {"febf:ffff::1", LINK_LOCAL, LINK_LOCAL},
    {"0.0.0.0", THIS_NETWORK, THIS_NETWORK},
    {"0.255.255.255", THIS_NETWORK, THIS_NETWORK},
    {"1.0.0.0", NULL, NULL},
    {"::", "the unspecified address", "the unspecified address"},
    {"224.0.0.0", MULTICAST, MULTICAST},
    {"239.255.255.255", MULTICAST, MULTICAST},
    {"ff00::", MULTICAST, MULTICAST},
    {"ff02::1", MULTICAST, MULTICAST},
    {"240.0.0.0", RESERVED, RESERVED},
    {"255.255.255.254", RESERVED, RESERVED},
    {"255.255.255.255", "the broadcast address", "the broadcast address"},
    {"4000::1", RESERVED, RESERVED},
    {"1fff:ffff::", RESERVED, RESERVED},
    {"200::1", RESERVED, RESERVED},
    {"::ffff:0:127.0.0.1", RESERVED, RESERVED}, /* IPv4-translated, RFC 2765 */
    /* Metadata outside link-local. */
    {"168.63.129.15", NULL, NULL},
    {"168.63.129.16", METADATA, METADATA},
    {"168.63.129.17", NULL, NULL},
    {"100.100.100.200", METADATA, METADATA},
    {"100.100.100.201", NULL, "a shared address"},
    {"192.0.0.192", METADATA, METADATA},
    {"fd00:ec2::254", METADATA, METADATA},
    {"fd00:ec2::23", METADATA, METADATA},
    {"fd00:ec3::254", NULL, PRIVATE},
    {"fd20:ce::254", METADATA, METADATA},
    {"fd20:ce::255", NULL, PRIVATE},
    {"fd00:c1::a9fe:a9fe", METADATA, METADATA},
    {"fd00:42::42", METADATA, METADATA},
    {"fd00:a9fe:a9fe::1", METADATA, METADATA},
    {"fd00:100::100:200", METADATA, METADATA},
    /* The rest of the registries. */
    {"192.0.0.1", NULL, "a protocol assignment"},
    {"192.0.0.8", NULL, "a protocol assignment"},
    {"192.0.0.9", NULL, NULL},
    {"192.0.0.10", NULL, NULL},
    {"192.0.0.11", NULL, "a protocol assignment"},
    {"192.0.0.170", NULL, "a protocol assignment"},
    {"192.0.1.0", NULL, NULL},
    {"192.0.2.1", NULL, DOCUMENTATION},
    {"192.88.99.1", NULL, "a 6to4 relay address"},
    {"198.17.255.255", NULL, NULL},
    {"198.18.0.0", NULL, "a benchmarking address"},
    {"198.19.255.255", NULL, "a benchmarking address"},
    {"198.20.0.0", NULL, NULL},
    {"198.51.100.1", NULL, DOCUMENTATION},
    {"203.0.113.1", NULL, DOCUMENTATION},
    {"100::1", NULL, "a discard address"},
    {"100:0:0:2::1", RESERVED, RESERVED},
    {"2001:1::1", NULL, NULL},
    {"2001:1::2", NULL, NULL},
    {"2001:1::3", NULL, NULL},
    {"2001:1::4", NULL, "a protocol assignment"},
    {"2001:2::1", NULL, "a protocol assignment"},
    {"2001:3::1", NULL, NULL},
    {"2001:4:112::1", NULL, NULL},
    {"2001:4:113::1", NULL, "a protocol assignment"},
    {"2001:10::1", NULL, "a protocol assignment"},
    {"2001:20::1", NULL, NULL},
    {"2001:2f:ffff::1", NULL, NULL},
    {"2001:30::1", NULL, NULL},
    {"2001:40::1", NULL, "a protocol assignment"},
    {"2001:1ff:ffff::1", NULL, "a protocol assignment"},
    {"2001:db8::1", NULL, DOCUMENTATION},
    {"2001:db9::1", NULL, NULL},
    {"3fff::1", NULL, DOCUMENTATION},
    {"3fff:fff:ffff::1", NULL, DOCUMENTATION},
    {"3fff:1000::1", NULL, NULL},
    {"5f00::1", NULL, "a segment identifier"},
    /* IPv4-mapped: the IPv4 address itself. */
    {"::ffff:8.8.8.8", NULL, NULL},
    {"::ffff:10.0.0.1", NULL, PRIVATE},
    {"::ffff:127.0.0.1", NULL, LOOPBACK},
    {"::ffff:169.254.169.254", LINK_LOCAL, LINK_LOCAL},
    {"::ffff:0.0.0.0", THIS_NETWORK, THIS_NETWORK},
    {"::ffff:168.63.129.16", METADATA, METADATA},
    /* IPv4-compatible. */
    {"::8.8.8.8", NULL, "an IPv4-compatible address"},
    {"::127.0.0.1", NULL, "an IPv4-compatible address"},
    {"::169.254.169.254", LINK_LOCAL, "an IPv4-compatible address"},
    {"::2", THIS_NETWORK, "an IPv4-compatible address"},
    {"::224.0.0.1", MULTICAST, "an IPv4-compatible address"},
    /* NAT64. */
    {"64:ff9b::8.8.8.8", NULL, NULL},
    {"64:ff9b::10.0.0.1", NULL, PRIVATE},
    {"64:ff9b::127.0.0.1", NULL, LOOPBACK},
    {"64:ff9b::169.254.169.254", LINK_LOCAL, LINK_LOCAL},
    {"64:ff9b::0.0.0.0", THIS_NETWORK, THIS_NETWORK},
    {"64:ff9b::100.100.100.200", METADATA, METADATA},
    {"64:ff9b:0:1::1", RESERVED, RESERVED},
    {"64:ff9b:1::8.8.8.8", NULL, "a local NAT64 address"},
    {"64:ff9b:1::127.0.0.1", NULL, "a local NAT64 address"},
    {"64:ff9b:1::169.254.169.254", LINK_LOCAL, "a local NAT64 address"},
    {"64:ff9b:1:abcd:0:1234:169.254.169.254", LINK_LOCAL, "a local NAT64 address"},
    {"64:ff9b:1:808:8:800::", NULL, "a local NAT64 address"},          /* 48: 8.8.8.8 */
    {"64:ff9b:1:a9fe:a9:fe00::", LINK_LOCAL, "a local NAT64 address"}, /* 48: 169.254.169.254 */
    {"64:ff9b:1:aa08:8:808::", NULL, "a local NAT64 address"},         /* 56: 8.8.8.8 */
    {"64:ff9b:1:aaa9:fe:a9fe::", LINK_LOCAL, "a local NAT64 address"}, /* 56 */
    {"64:ff9b:1:aaaa:8:808:800:0", NULL, "a local NAT64 address"},     /* 64: 8.8.8.8 */
    {"64:ff9b:1:aaaa:a9:fea9:fe00:0", LINK_LOCAL, "a local NAT64 address"}, /* 64 */
    {"64:ff9b:1::", THIS_NETWORK, "a local NAT64 address"},
    {"64:ff9b:2::8.8.8.8", RESERVED, RESERVED},
    /* 6to4. */
    {"2002:808:808::1", NULL, NULL},
    {"2002:a00:1::1", NULL, PRIVATE},
    {"2002:7f00:1::", NULL, LOOPBACK},
    {"2002:a9fe:a9fe::1", LINK_LOCAL, LINK_LOCAL},
    {"2002:e000:1::1", MULTICAST, MULTICAST},
    {"2002::1", THIS_NETWORK, THIS_NETWORK},
    /* Teredo: the server 65.54.227.120, then the client, all its bits inverted. */
    {"2001:0:4136:e378:8000:63bf:f7f7:f7f7", NULL, NULL},             /* 8.8.8.8 */
    {"2001:0:4136:e378:8000:63bf:f5ff:fffe", NULL, PRIVATE},          /* 10.0.0.1 */
    {"2001:0:4136:e378:8000:63bf:80ff:fffe", NULL, LOOPBACK},         /* 127.0.0.1 */
    {"2001:0:4136:e378:8000:63bf:5601:5601", LINK_LOCAL, LINK_LOCAL}, /* 169.254.169.254 */
    {"2001:0:4136:e378:8000:63bf:a9fe:a9fe", NULL, NULL},             /* 86.1.86.1 */
    {"2001:0:7f00:1:8000:63bf:f7f7:f7f7", NULL, LOOPBACK},            /* the server */
    {"2001:0:a9fe:a9fe:8000:63bf:f7f7:f7f7", LINK_LOCAL, LINK_LOCAL},
};

START_TEST(presets)
{
    struct egress_rules rules;

    egress_init(&rules);
    ck_assert_int_eq(rules.preset, EGRESS_LOCAL_NETWORK);
    expect(&rules, cases[_i].address, cases[_i].local_network);
    rules.preset = EGRESS_PUBLIC_ONLY;
    expect(&rules, cases[_i].address, cases[_i].public_only);
    egress_done(&rules);
}
END_TEST

START_TEST(words)
{
    struct egress_rules rules;

    egress_init(&rules);
    ck_assert_str_eq(refuses(&rules, "169.254.169.254"), "169.254.169.254 is a link-local address");
    ck_assert_str_eq(refuses(&rules, "::ffff:a9fe:1"), "169.254.0.1 is a link-local address");
    ck_assert_str_eq(refuses(&rules, "FE80::1"), "fe80::1 is a link-local address");
    rules.preset = EGRESS_PUBLIC_ONLY;
    ck_assert_str_eq(refuses(&rules, "2002:7f00:1::"),
                     "2002:7f00:1:: holds 127.0.0.1, which is a loopback address");
    egress_done(&rules);
    egress_done(NULL);
}
END_TEST

START_TEST(longest_words_fit)
{
    struct egress_rules rules;

    egress_init(&rules);
    ck_ok(ip_ranges_add(&rules.deny, SPAN("64:ff9b:1::/48")));
    expect(&rules, "64:ff9b:1:1111:2222:3333:255.255.255.255", "on the Deny list");
    egress_done(&rules);
    egress_init(&rules);
    expect(&rules, "64:ff9b:1:1111:2222:3333:255.255.255.255", "the broadcast address");
    expect(&rules, "64:ff9b:1:1111:2222:3333:168.63.129.16", METADATA);
    egress_done(&rules);
}
END_TEST

START_TEST(other_families_are_refused)
{
    struct egress_rules rules;
    struct sockaddr_un local = {.sun_family = AF_UNIX};

    egress_init(&rules);
    ck_assert_str_eq(egress_refuses(&rules, (const struct sockaddr *)&local, why),
                     "the address is neither IPv4 nor IPv6");
    egress_done(&rules);
}
END_TEST

/* --- Lists --- */

static struct egress_rules rules_of(enum egress_preset preset, const char *allow, const char *deny)
{
    struct span lists[] = {span_str(deny), span_str(allow)};
    struct egress_rules rules;

    egress_init(&rules);
    rules.preset = preset;
    for (unsigned i = 0; i < 2; i++)
        while (lists[i].n > 0)
            ck_ok(ip_ranges_add(i == 1 ? &rules.allow : &rules.deny, span_split(&lists[i], ' ')));
    return rules;
}

static const struct {
    enum egress_preset preset;
    const char *allow, *deny;
    const char *address;
    const char *words;
} lists[] = {
    {EGRESS_PUBLIC_ONLY, "10.1.0.0/16", "", "10.1.2.3", NULL},
    {EGRESS_PUBLIC_ONLY, "10.1.0.0/16", "", "10.2.0.0", PRIVATE},
    {EGRESS_PUBLIC_ONLY, "10.1.0.0/16", "", "::ffff:10.1.2.3", NULL},
    {EGRESS_PUBLIC_ONLY, "10.1.0.0/16", "", "64:ff9b::10.1.2.3", NULL},
    {EGRESS_PUBLIC_ONLY, "10.1.0.0/16", "", "64:ff9b::10.2.2.3", PRIVATE},
    {EGRESS_PUBLIC_ONLY, "10.0.0.7 fd00::1", "", "10.0.0.7", NULL},
    {EGRESS_PUBLIC_ONLY, "10.0.0.7 fd00::1", "", "10.0.0.6", PRIVATE},
    {EGRESS_PUBLIC_ONLY, "10.0.0.7 fd00::1", "", "fd00::1", NULL},
    {EGRESS_PUBLIC_ONLY, "10.0.0.7 fd00::1", "", "fd00::2", PRIVATE},
    {EGRESS_PUBLIC_ONLY, "64:ff9b:1::/48", "", "64:ff9b:1::8.8.8.8", NULL},
    {EGRESS_PUBLIC_ONLY, "64:ff9b:1::/48", "", "64:ff9b:1::10.0.0.1", PRIVATE},
    {EGRESS_PUBLIC_ONLY, "0.0.0.0/0", "", "127.0.0.1", NULL},
    {EGRESS_PUBLIC_ONLY, "0.0.0.0/0", "", "::1", LOOPBACK},
    {EGRESS_PUBLIC_ONLY, "::/0", "", "::1", NULL},
    {EGRESS_PUBLIC_ONLY, "::/0", "", "127.0.0.1", LOOPBACK},
    {EGRESS_PUBLIC_ONLY, "::/0", "", "2002:7f00:1::", LOOPBACK},
    {EGRESS_PUBLIC_ONLY, "::ffff:10.0.0.0/104", "", "10.1.2.3", NULL},
    {EGRESS_LOCAL_NETWORK, "169.254.169.254", "", "169.254.169.254", NULL},
    {EGRESS_LOCAL_NETWORK, "169.254.169.254", "", "169.254.169.253", LINK_LOCAL},
    {EGRESS_LOCAL_NETWORK, "", "10.0.0.0/8 127.0.0.1", "10.9.9.9", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "", "10.0.0.0/8 127.0.0.1", "127.0.0.1", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "", "10.0.0.0/8 127.0.0.1", "127.0.0.2", NULL},
    {EGRESS_LOCAL_NETWORK, "", "10.0.0.0/8", "2002:a00:1::", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "10.0.0.0/8", "10.0.0.0/9", "10.127.0.1", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "10.0.0.0/9", "10.0.0.0/8", "10.127.0.1", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "10.0.0.0/8", "10.0.0.0/9", "10.128.0.1", NULL},
    {EGRESS_LOCAL_NETWORK, "", "0.0.0.0/0", "8.8.8.8", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "", "0.0.0.0/0", "2606:4700::1", NULL},
    {EGRESS_LOCAL_NETWORK, "", "::/0", "8.8.8.8", NULL},
    {EGRESS_LOCAL_NETWORK, "", "::/0", "2606:4700::1", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "", "2606:4700::/33", "2606:4700:7fff::1", "on the Deny list"},
    {EGRESS_LOCAL_NETWORK, "", "2606:4700::/33", "2606:4700:8000::1", NULL},
};

START_TEST(deny_over_allow_over_preset)
{
    struct egress_rules rules = rules_of(lists[_i].preset, lists[_i].allow, lists[_i].deny);

    expect(&rules, lists[_i].address, lists[_i].words);
    egress_done(&rules);
}
END_TEST

static const struct {
    struct span text;
    const char *message;
} wrong[] = {
    {SPAN_INIT(""), "'' is neither an IP address nor a range"},
    {SPAN_INIT("/8"), "neither"},
    {SPAN_INIT("10.0.0"), "neither"},
    {SPAN_INIT("10.0.0.256"), "neither"},
    {SPAN_INIT("10.0.0.0 /8"), "neither"},
    {SPAN_INIT("example.com"), "'example.com' is neither"},
    {SPAN_INIT("[::1]"), "neither"},
    {SPAN_INIT("fe80::1%eth0"), "neither"},
    {SPAN_INIT("10.0.0.1\0"), "neither"},
    {SPAN_INIT("1111:2222:3333:4444:5555:6666:255.255.255.2555555"), "neither"},
    {SPAN_INIT("10.0.0.0/"), "'10.0.0.0/' has no number from 0 to 32"},
    {SPAN_INIT("10.0.0.0/33"), "from 0 to 32"},
    {SPAN_INIT("10.0.0.0/-1"), "from 0 to 32"},
    {SPAN_INIT("10.0.0.0/8/8"), "from 0 to 32"},
    {SPAN_INIT("10.0.0.0/255.0.0.0"), "from 0 to 32"},
    {SPAN_INIT("fd00::/129"), "from 0 to 128"},
    {SPAN_INIT("fd00::/18446744073709551617"), "from 0 to 128"},
    {SPAN_INIT("10.0.0.1/8"), "'10.0.0.1/8' is no range"},
    {SPAN_INIT("10.0.0.1/31"), "after its first 31 bits"},
    {SPAN_INIT("128.0.0.0/0"), "after its first 0 bits"},
    {SPAN_INIT("fd00::1/127"), "after its first 127 bits"},
};

START_TEST(bad_ranges_are_refused)
{
    struct egress_rules rules;

    egress_init(&rules);
    ck_fails(ip_ranges_add(&rules.allow, wrong[_i].text), ERR_UNKNOWN, wrong[_i].message);
    ck_assert_uint_eq(rules.allow.count + rules.deny.count, 0);
    egress_done(&rules);
}
END_TEST

/* Every length of a range, against a comparison bit by bit. */
START_TEST(ranges_match_a_model)
{
    for (unsigned round = 0; round < 2000; round++) {
        struct egress_rules rules;
        struct in_addr range, inside;
        unsigned bits = (unsigned)rng_below(33);
        uint32_t mask = bits == 0 ? 0 : ~(uint32_t)0 << (32 - bits);
        uint32_t r = (uint32_t)rng_u64() & mask, ip = (uint32_t)rng_u64();
        char text[32], address[INET_ADDRSTRLEN];

        if (rng_below(2) == 0) /* a near miss or a hit */
            ip = r ^ ((uint32_t)1 << rng_below(32));
        range.s_addr = htonl(r);
        inside.s_addr = htonl(ip);
        snprintf(text, sizeof(text), "%s/%u", inet_ntoa(range), bits);
        inet_ntop(AF_INET, &inside, address, sizeof(address));
        rules = rules_of(EGRESS_LOCAL_NETWORK, "", text);
        ck_assert_int_eq(strstr(refuses(&rules, address) == NULL ? "" : why, "Deny") != NULL,
                         (ip & mask) == r);
        egress_done(&rules);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, presets, 0, ARRAY_LEN(cases));
    tcase_add_test(tc, words);
    tcase_add_test(tc, longest_words_fit);
    tcase_add_test(tc, other_families_are_refused);
    tcase_add_loop_test(tc, deny_over_allow_over_preset, 0, ARRAY_LEN(lists));
    tcase_add_loop_test(tc, bad_ranges_are_refused, 0, ARRAY_LEN(wrong));
    tcase_add_test(tc, ranges_match_a_model);
}
