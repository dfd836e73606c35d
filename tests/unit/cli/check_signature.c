#include "testing.h"

#include "cli/signature.h"

/* The example of the Standard Webhooks specification. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
/* RFC 8032, section 7.1, test 1. */
#define SEED "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
#define PUBLIC "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

enum { NOW = 1614265330 };

static struct buf made;

static struct signed_request sample(void)
{
    return (struct signed_request){
        .id = SPAN("msg_p5jXN8AQM9LWM0D4loKWxJek"),
        .timestamp = SPAN("1614265330"),
        .signature = SPAN(SIGNATURE),
        .body = SPAN("{\"test\": 2432232314}"),
    };
}

static void set_up(void)
{
    buf_init(&made, BUF_NO_CAP);
}

static void tear_down(void)
{
    buf_done(&made);
}

START_TEST(the_published_example_is_signed_and_verified)
{
    struct signed_request request = sample();

    ck_ok(signature_add(&made, SPAN(SECRET), &request));
    ck_span_eq(buf_span(&made), SIGNATURE);
    ck_ok(signature_verify(SPAN(SECRET), &request, NOW, false));
}
END_TEST

START_TEST(a_pair_signs_and_its_public_half_verifies)
{
    struct signed_request request = sample();

    ck_ok(signature_add(&made, SPAN(SEED), &request));
    ck_assert(span_starts(buf_span(&made), SPAN("v1a,")));
    request.signature = buf_span(&made);
    ck_ok(signature_verify(SPAN(PUBLIC), &request, NOW, false));
    ck_ok(signature_verify(SPAN(SEED), &request, NOW, false));
    request.body = SPAN("{}");
    ck_fails(signature_verify(SPAN(PUBLIC), &request, NOW, false), ERR_UNKNOWN, "no signature");
}
END_TEST

START_TEST(one_of_several_is_enough)
{
    struct signed_request request = sample();

    request.signature = SPAN("v1,bm9uZQ== v2,x " SIGNATURE);
    ck_ok(signature_verify(SPAN(SECRET), &request, NOW, false));
}
END_TEST

static const struct {
    size_t field; /* 0 id, 1 timestamp, 2 signature, 3 body */
    const char *value;
    int64_t now;
    const char *why;
} bad[] = {
    {0, "", NOW, "webhook-id"},
    {1, "", NOW, "webhook-timestamp"},
    {2, "", NOW, "webhook-signature"},
    {1, "yesterday", NOW, "seconds"},
    {0, "msg_other", NOW, "no signature"},
    {1, "1614265331", NOW, "no signature"},
    {2, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1Oe=", NOW, "no signature"},
    {2, "v1", NOW, "no signature"},
    {3, "{\"test\": 2432232315}", NOW, "no signature"},
    {3, "{\"test\": 2432232314}", NOW + SIGNATURE_AGE_S + 1, "301 s old"},
    {3, "{\"test\": 2432232314}", NOW - SIGNATURE_AGE_S - 1, "301 s ahead"},
};

START_TEST(what_was_changed_is_refused)
{
    struct signed_request request = sample();
    struct span *fields[] = {&request.id, &request.timestamp, &request.signature, &request.body};

    *fields[bad[_i].field] = span_str(bad[_i].value);
    ck_fails(signature_verify(SPAN(SECRET), &request, bad[_i].now, false), ERR_UNKNOWN,
             bad[_i].why);
}
END_TEST

START_TEST(age_may_be_left_out_of_it)
{
    struct signed_request request = sample();

    ck_ok(signature_verify(SPAN(SECRET), &request, NOW + SIGNATURE_AGE_S, false));
    ck_ok(signature_verify(SPAN(SECRET), &request, NOW - SIGNATURE_AGE_S, false));
    ck_ok(signature_verify(SPAN(SECRET), &request, 4 * (int64_t)NOW, true));
}
END_TEST

static const struct {
    const char *secret, *why;
} secrets[] = {
    {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begins with"},
    {"whsec_!", "base64"},
    {"whsec_AAAA", "3 bytes"},
    {"whpk_AAAA", "3 bytes"},
};

START_TEST(bad_secrets_are_refused)
{
    ck_fails(signature_check_secret(span_str(secrets[_i].secret)), ERR_UNKNOWN, secrets[_i].why);
}
END_TEST

START_TEST(a_public_key_signs_nothing)
{
    struct signed_request request = sample();

    ck_fails(signature_add(&made, SPAN(PUBLIC), &request), ERR_UNKNOWN, "checks");
}
END_TEST

START_TEST(a_new_secret_is_good_and_another_each_time)
{
    struct buf other;

    buf_init(&other, BUF_NO_CAP);
    signature_add_secret(&made);
    signature_add_secret(&other);
    ck_ok(signature_check_secret(buf_span(&made)));
    ck_assert(!span_eq(buf_span(&made), buf_span(&other)));
    buf_done(&other);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_published_example_is_signed_and_verified);
    tcase_add_test(tc, a_pair_signs_and_its_public_half_verifies);
    tcase_add_test(tc, one_of_several_is_enough);
    tcase_add_loop_test(tc, what_was_changed_is_refused, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, age_may_be_left_out_of_it);
    tcase_add_loop_test(tc, bad_secrets_are_refused, 0, ARRAY_LEN(secrets));
    tcase_add_test(tc, a_public_key_signs_nothing);
    tcase_add_test(tc, a_new_secret_is_good_and_another_each_time);
}
