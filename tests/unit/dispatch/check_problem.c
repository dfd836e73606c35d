#include "asking.h"

#include "dispatch/problem.h"
#include "query/uri.h"
#include "rest/call.h"
#include "rest/request.h"
#include "rest/response.h"

static struct call call;
static struct request request;
static struct response response;
static struct uri uri;

static void setup(void)
{
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]");
    request = (struct request){.method = SPAN("GET"), .target = SPAN("/Person"), .is_local = true};
    response_init(&response, 1 << 20);
    uri = (struct uri){.is_plain = false};
    call = (struct call){
        .rest = &asking.service->rest,
        .request = &request,
        .response = &response,
        .arena = &response.arena,
        .account = asking.service->rest.everybody,
        .method = METHOD_GET,
        .uri = &uri,
    };
}

static void teardown(void)
{
    response_done(&response);
    asking_close();
}

static void answer(struct err *e)
{
    problem_answer(&call, e);
    err_free(e);
}

START_TEST(which_are_stored)
{
    struct err *kept = ERR(ERR_INVALID_ENTITY, "?"), *not_kept = ERR(ERR_NOT_SIGNED_IN, "?");

    ck_assert(problem_is_stored(&call, kept));
    ck_assert(!problem_is_stored(&call, not_kept));
    call.method = METHOD_OPTIONS;
    ck_assert(!problem_is_stored(&call, kept));
    err_free(kept);
    err_free(not_kept);
}
END_TEST

/* What there was of an answer is gone, but not what the error says. */
START_TEST(replaces_the_answer)
{
    response_add_header(&response, SPAN("ETag"), SPAN("\"1\""));
    buf_add_str(&response.body, "[1,2");
    answer(ERR(ERR_UNKNOWN_ENTITY, "there is none"));
    ck_assert_int_eq(response.status, 404);
    ck_assert_int_eq(response.error, ERR_UNKNOWN_ENTITY);
    ck_assert(response_header(&response, SPAN("ETag")).p == NULL);
    ck_assert(span_starts(buf_span(&response.body), SPAN("{\"type\":")));
    ck_assert_uint_lt(span_find(buf_span(&response.body), SPAN("there is none")), response.body.n);
}
END_TEST

START_TEST(says_how_to_sign_in)
{
    answer(ERR(ERR_NOT_SIGNED_IN, "no key"));
    ck_span_eq(response_header(&response, SPAN("WWW-Authenticate")), "apikey realm=\"Svc\"");
    ck_assert(response_header(&response, SPAN("ErrorInfo")).p == NULL);
}
END_TEST

START_TEST(says_when_to_come_back)
{
    answer(ERR(ERR_OVERLOADED, "too much"));
    ck_span_eq(response_header(&response, SPAN("Retry-After")), "1");
    response_reset(&response);
    answer(ERR(ERR_INVALID_ENTITY, "wrong"));
    ck_assert(response_header(&response, SPAN("Retry-After")).p == NULL);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, which_are_stored);
    tcase_add_test(tc, replaces_the_answer);
    tcase_add_test(tc, says_how_to_sign_in);
    tcase_add_test(tc, says_when_to_come_back);
}
