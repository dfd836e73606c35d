/* A loop of the test's own, turn by turn. */
#include "testing.h"

#include "access/account.h"
#include "base/buf.h"
#include "base/limits.h"
#include "io/loop.h"
#include "rest/rest.h"
#include "webhook/sign.h"
#include "webhook/signings.h"

#define HMAC_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SEED_SECRET "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="

/* What is read in a turn, and what is signed at once. */
enum { STEP = 512 << 10, AT_ONCE = 256 << 10, MOST = 4 << 20 };

static char large[MOST];
static const struct limits limits = {.ed25519_bytes = STEP};

static struct {
    struct loop loop;
    struct rest rest;
    struct account *account, *other;
    struct signings *all;
    struct signer *signer; /* HMAC */
    struct buf at_once;
} t;

/* One that is waited for. */
struct waiting {
    struct signing_job job;
    unsigned times;
    bool failed;
    struct buf value;
};

static void on_done(struct signing_job *job, struct err *e, struct span value)
{
    struct waiting *w = CONTAINER_OF(job, struct waiting, job);

    w->times++;
    w->failed = e != NULL;
    err_free(e);
    buf_add(&w->value, value);
    ck_assert_ptr_null(job->signing);
}

static struct signer *signer_of(struct span secret)
{
    struct signer *signer;

    ck_ok(signer_new(&secret, 1, &signer));
    return signer;
}

static void begin(void)
{
    ck_ok(loop_init(&t.loop));
    t.rest = (struct rest){.loop = &t.loop, .limits = &limits, .accounts = accounts_new()};
    t.account = account_ref(t.rest.accounts, SPAN("a"), SPAN(""));
    t.other = account_ref(t.rest.accounts, SPAN("b"), SPAN(""));
    t.all = signings_new(&t.rest);
    t.signer = signer_of(SPAN(HMAC_SECRET));
    buf_init(&t.at_once, BUF_NO_CAP);
}

static void end(void)
{
    signings_free(t.all);
    ck_assert_uint_eq(t.account->refs + t.other->refs, 2);
    account_unref(t.rest.accounts, t.account);
    account_unref(t.rest.accounts, t.other);
    accounts_free(t.rest.accounts);
    signer_unref(t.signer);
    loop_done(&t.loop);
    buf_done(&t.at_once);
}

static struct err *try_sign(struct waiting *w, struct account *account, struct signer *signer,
                            size_t n)
{
    *w = (struct waiting){.job.on_done = on_done};
    buf_init(&w->value, BUF_NO_CAP);
    buf_clear(&t.at_once);
    return signings_sign(t.all, &w->job, account, signer, SPAN("id"), 1, span_of(large, n),
                         &t.at_once);
}

static void sign(struct waiting *w, size_t n)
{
    ck_ok(try_sign(w, t.account, t.signer, n));
}

static void turn(void)
{
    loop_wake(&t.loop);
    loop_run_once(&t.loop);
}

static void check_value(struct waiting *w, size_t n)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    ck_ok(signer_add(t.signer, &b, SPAN("id"), 1, span_of(large, n)));
    ck_assert_uint_eq(w->times, 1);
    ck_assert(!w->failed);
    ck_span_is(buf_span(&w->value), buf_span(&b));
    buf_done(&b);
    buf_done(&w->value);
}

START_TEST(small_ones_at_once)
{
    struct waiting w;

    begin();
    for (size_t n = 0; n <= AT_ONCE; n += AT_ONCE) {
        sign(&w, n);
        ck_assert_ptr_null(w.job.signing);
        ck_assert_uint_eq(w.times, 0);
        buf_add(&w.value, buf_span(&t.at_once));
        w.times = 1;
        check_value(&w, n);
    }
    signings_cancel(&w.job); /* it is not under way */
    end();
}
END_TEST

START_TEST(a_large_one_a_piece_a_turn)
{
    struct waiting w;
    unsigned turns = 0;

    begin();
    sign(&w, 3 * STEP + 1);
    ck_assert_ptr_nonnull(w.job.signing);
    ck_assert_uint_eq(t.at_once.n, 0);
    for (; w.times == 0; turns++)
        turn();
    ck_assert_uint_eq(turns, 4);
    check_value(&w, 3 * STEP + 1);
    turn();
    end();
}
END_TEST

/* The small one is done after two turns, however much the other has before it. */
START_TEST(each_in_its_turn)
{
    struct waiting first, second;

    begin();
    sign(&first, MOST);
    sign(&second, AT_ONCE + 1);
    turn();
    ck_assert_uint_eq(second.times, 0);
    turn();
    check_value(&second, AT_ONCE + 1);
    for (unsigned i = 1; i < MOST / STEP; i++) {
        ck_assert_uint_eq(first.times, 0);
        turn();
    }
    check_value(&first, MOST);
    end();
}
END_TEST

/* The second account's three pieces are done after six turns, however many the first has. */
START_TEST(accounts_take_turns)
{
    struct waiting first[10], second;

    begin();
    for (unsigned i = 0; i < 10; i++)
        sign(&first[i], MOST);
    ck_ok(try_sign(&second, t.other, t.signer, 3 * STEP));
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(second.times, 0);
        turn();
    }
    check_value(&second, 3 * STEP);
    ck_assert_uint_eq(t.other->refs, 1);
    for (unsigned i = 3; i < 10 * MOST / STEP; i++)
        turn();
    for (unsigned i = 0; i < 10; i++)
        check_value(&first[i], MOST);
    end();
}
END_TEST

START_TEST(cancelled)
{
    struct waiting first, second;

    begin();
    sign(&first, MOST);
    sign(&second, MOST);
    turn();
    signings_cancel(&first.job);
    ck_assert_ptr_null(first.job.signing);
    signings_cancel(&second.job);
    for (int i = 0; i < 20; i++)
        turn();
    ck_assert_uint_eq(first.times + second.times, 0);
    end();
}
END_TEST

START_TEST(ed25519_signs_so_much)
{
    struct waiting w;
    struct signer *pair = signer_of(SPAN(SEED_SECRET));

    begin();
    ck_fails(try_sign(&w, t.account, pair, STEP + 1), ERR_PAYLOAD_TOO_LARGE,
             "the body has 524289 bytes, more than a whsk_ secret signs by the limit Ed25519Bytes "
             "(524288 bytes)");
    ck_assert_ptr_null(w.job.signing);
    ck_ok(try_sign(&w, t.account, pair, STEP));
    signer_unref(pair); /* the job has it */
    turn();
    ck_assert_uint_eq(w.times, 1);
    ck_assert(!w.failed && span_starts(buf_span(&w.value), SPAN("v1a,")));
    buf_done(&w.value);
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, small_ones_at_once);
    tcase_add_test(tc, a_large_one_a_piece_a_turn);
    tcase_add_test(tc, each_in_its_turn);
    tcase_add_test(tc, accounts_take_turns);
    tcase_add_test(tc, cancelled);
    tcase_add_test(tc, ed25519_signs_so_much);
}
