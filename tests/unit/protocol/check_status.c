#include "testing.h"

#include "protocol/status.h"

#include <limits.h>

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {304, "Not Modified"},
    {404, "Not Found"},
    {413, "Content Too Large"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {503, "Service Unavailable"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
    {0, "Unknown"},
    {-1, "Unknown"},
    {99, "Unknown"},
    {299, "Unknown"},
    {306, "Unknown"},
    {512, "Unknown"},
    {1000, "Unknown"},
    {INT_MAX, "Unknown"},
    {INT_MIN, "Unknown"},
};

START_TEST(codes_have_reasons)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        ck_assert_msg(strcmp(status_reason(reasons[i].status), reasons[i].reason) == 0, "%d",
                      reasons[i].status);
}
END_TEST

/* Every status that an error of ours is answered with. */
START_TEST(every_error_has_one)
{
    for (enum err_code code = 0; code < ERR_CODE_COUNT; code++)
        ck_assert_str_ne(status_reason(err_info(code)->status), "Unknown");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, codes_have_reasons);
    tcase_add_test(tc, every_error_has_one);
}
