/* What `svc-journal dump` shows of records. Their bytes are check_record.c's. */
#include "testing.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/record.h"

/* What `svc-journal dump` shows of entities: a line of JSON, whatever their text is. */
static const struct {
    const char *text, *shown;
} entities[] = {
    {"{\"A\":1e400}", "\"json\":{\"A\":1e400}}"},      {"[]", "\"json\":[]}"},
    {"{\"A\":\n1}", "\"text\":\"{\\\"A\\\":\\n1}\"}"}, {"", "\"text\":\"\"}"},
    {"{\"A\":", "\"text\":\"{\\\"A\\\":\"}"},          {"{}}", "\"text\":\"{}}\"}"},
    {"\"\xff\"", "\"text\":\"base64:Iv8i\"}"},
};

START_TEST(text_of_entities)
{
    const struct record_entity entity = {.resource = SPAN("A.B"),
                                         .json = span_str(entities[_i].text)};
    struct buf body, dump;

    buf_init(&body, BUF_NO_CAP);
    buf_init(&dump, BUF_NO_CAP);
    record_add_entity(&body, &entity);
    record_add_dump(&dump, RECORD_ENTITY, buf_span(&body));
    ck_assert_msg(span_ends(buf_span(&dump), span_str(entities[_i].shown)), "%s", buf_text(&dump));
    ck_ok(record_check(RECORD_ENTITY, buf_span(&body)));
    buf_done(&dump);
    buf_done(&body);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, text_of_entities, 0, ARRAY_LEN(entities));
}
