/* Batches there and back, by their offsets, and with each byte changed; keys. */
#include "journal/replica_batch.h"

#include "testing.h"

#include "base/macros.h"

#include <string.h>

#define CLUSTER SPAN("prod")

static struct replica_head head;
static struct buf stored, value, content;

static void begin(const char *p, size_t n, uint32_t parts)
{
    buf_init(&stored, BUF_NO_CAP);
    buf_init(&value, BUF_NO_CAP);
    buf_init(&content, BUF_NO_CAP);
    head = (struct replica_head){.epoch = 0x1122334455667788,
                                 .first = 7,
                                 .count = 3,
                                 .before_bytes = 1000,
                                 .node = SPAN("a")};
    replica_batch_pack(span_of(p, n), &head, &stored);
    head.parts = parts;
    replica_batch_add(&value, &head, buf_span(&stored));
}

static void end(void)
{
    buf_done(&stored);
    buf_done(&value);
    buf_done(&content);
}

START_TEST(there_and_back)
{
    static char zeros[100000];
    struct replica_head read;
    struct span rest;
    bool is_long = _i == 1;

    begin(is_long ? zeros : "xyz", is_long ? sizeof(zeros) : 3, 0);
    ck_assert_int_eq(head.is_compressed, is_long);
    ck_assert(!is_long || stored.n < 1000);
    ck_ok(replica_batch_parse(buf_span(&value), &read, &rest));
    ck_assert(replica_batch_is_same(&head, &read));
    ck_assert_uint_eq(read.first, 7);
    ck_assert_uint_eq(read.count, 3);
    ck_assert_uint_eq(read.before_bytes, 1000);
    ck_span_eq(read.node, "a");
    ck_ok(replica_batch_unpack(&read, rest, sizeof(zeros), &content));
    ck_span_is(buf_span(&content), is_long ? span_of(zeros, sizeof(zeros)) : SPAN("xyz"));
    end();
}
END_TEST

START_TEST(offsets_are_as_described)
{
    static const char start[] = "SVCB\1\0\1\0\x88\x77\x66\x55\x44\x33\x22\x11\7\0\0\0\0\0\0\0"
                                "\3\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\xe8\3\0\0\0\0\0";

    begin("xyz", 3, 0);
    ck_assert_uint_eq(value.n, 88 + 1 + 3);
    ck_assert_int_eq(memcmp(value.p, start, sizeof(start)), 0);
    ck_assert_int_eq(memcmp(value.p + 56, head.digest, DIGEST_BYTES), 0);
    ck_assert_int_eq(memcmp(value.p + 88, "axyz", 4), 0);
    end();
}
END_TEST

START_TEST(in_parts)
{
    struct replica_head read;
    struct span rest;

    begin("xyz", 3, 2);
    ck_assert_uint_eq(value.n, 88 + 1);
    ck_ok(replica_batch_parse(buf_span(&value), &read, &rest));
    ck_assert_uint_eq(read.parts, 2);
    ck_ok(replica_batch_unpack(&read, SPAN("xyz"), 3, &content));
    ck_fails(replica_batch_unpack(&read, SPAN("xy"), 3, &content), ERR_STORAGE_FAILURE,
             "lacks parts");
    ck_fails(replica_batch_unpack(&read, SPAN("xyy"), 3, &content), ERR_STORAGE_FAILURE,
             "not what its digest says");
    ck_fails(replica_batch_unpack(&read, SPAN("xyz"), 2, &content), ERR_STORAGE_FAILURE,
             "at most 2 are read");
    end();
}
END_TEST

/* What is shorter or changed is refused, or reads as another batch, or none of its content. */
START_TEST(nothing_damaged_is_taken_for_it)
{
    struct replica_head read;
    struct span rest;

    begin("xyz", 3, 0);
    for (size_t n = 0; n < value.n; n++)
        ck_fails(replica_batch_parse(span_of(value.p, n), &read, &rest), ERR_STORAGE_FAILURE,
                 "the log");
    for (size_t i = 0; i < value.n; i++) {
        struct err *e;

        value.p[i] ^= 0x5a;
        e = replica_batch_parse(buf_span(&value), &read, &rest);
        if (e == NULL && replica_batch_is_same(&head, &read))
            e = replica_batch_unpack(&read, rest, 3, &content);
        /* The bytes that were before it are nobody's to compare. */
        ck_assert_msg(e != NULL || !replica_batch_is_same(&head, &read) || (i >= 48 && i < 56),
                      "byte %zu", i);
        err_free(e);
        value.p[i] ^= 0x5a;
    }
    end();
}
END_TEST

START_TEST(wrong_heads)
{
    struct replica_head read;
    struct span rest;

    begin("xyz", 3, 0);
    value.p[4] = 2;
    ck_fails(replica_batch_parse(buf_span(&value), &read, &rest), ERR_STORAGE_FAILURE, "version 2");
    value.p[4] = 1;
    value.p[5] = 8;
    ck_fails(replica_batch_parse(buf_span(&value), &read, &rest), ERR_STORAGE_FAILURE, "flags 8");
    value.p[5] = 2;
    ck_fails(replica_batch_parse(buf_span(&value), &read, &rest), ERR_STORAGE_FAILURE, "parts");
    value.p[5] = 0;
    memset(value.p + 24, 0, 4);
    ck_fails(replica_batch_parse(buf_span(&value), &read, &rest), ERR_STORAGE_FAILURE,
             "no serials");
    end();
}
END_TEST

START_TEST(keys)
{
    uint64_t epoch = 0, serial = 0;

    buf_init(&value, BUF_NO_CAP);
    buf_add_str(&value, "/svcd/prod/log/0000000000000abc");
    ck_assert(replica_key_is_log(buf_span(&value), CLUSTER, &serial));
    ck_assert_uint_eq(serial, 0xabc);
    ck_assert(!replica_key_is_log(buf_span(&value), SPAN("pro"), &serial));
    ck_assert(!replica_key_is_part(buf_span(&value), CLUSTER, &epoch, &serial));
    buf_clear(&value);
    buf_add_str(&value, "/svcd/prod/part/0000000000000002/ffffffffffffffff/0000000a");
    ck_assert(replica_key_is_part(buf_span(&value), CLUSTER, &epoch, &serial));
    ck_assert(epoch == 2 && serial == UINT64_MAX);
    ck_assert(!replica_key_is_log(SPAN("/svcd/prod/log/0000000000000abcd"), CLUSTER, &serial));
    ck_assert(!replica_key_is_log(SPAN("/svcd/prod/log/0000000000000ab"), CLUSTER, &serial));
    ck_assert(!replica_key_is_log(SPAN("/svcd/prod/log/0000000000000abg"), CLUSTER, &serial));
    buf_done(&value);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, there_and_back, 0, 2);
    tcase_add_test(tc, offsets_are_as_described);
    tcase_add_test(tc, in_parts);
    tcase_add_test(tc, nothing_damaged_is_taken_for_it);
    tcase_add_test(tc, wrong_heads);
    tcase_add_test(tc, keys);
}
