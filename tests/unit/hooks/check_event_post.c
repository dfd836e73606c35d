/* POST on Svc.Event: the forms that an event comes in, what is refused, and that what is refused
 * raises nothing. */
#include "asking.h"
#include "base/header_field.h"

#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "store/once.h"
#include "store/turn.h"

static const char resources[] =
    "[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Shop.Picture\",\"Kind\":\"EventResource\",\"Payload\":{\"ContentType\":"
    "\"image/png\"}},"
    "{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"Name\","
    "\"Type\":\"string\",\"Required\":true},{\"Name\":\"Age\",\"Type\":\"integer\"}]},"
    "{\"Name\":\"Shop.Born\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":"
    "\"Shop.Person\"}}]";

static void begin(void)
{
    asking_open(resources);
}

static struct hooks *hooks(void)
{
    return &asking.service->hooks;
}

static size_t kept(void)
{
    return events_count(hooks()->events);
}

static size_t pending(void)
{
    return deliveries_count(hooks()->deliveries, DELIVERY_PENDING);
}

static const char *webhook(const char *selector)
{
    ck_asks(
        201, "POST", "/Webhook",
        asking_printf("{\"Destination\":\"http://a.test/\",\"EventSelector\":\"%s\"}", selector));
    return answered_text("0.Id");
}

/* ---- described ---- */

#define GOOD "{\"Resource\":\"Placed\",\"Payload\":{}}"

static const struct {
    const char *body;
    enum err_code code;
    const char *text;
} bad[] = {
    {"", ERR_NO_DATA_SOURCE, "POST on 'Svc.Event' needs a body"},
    {"{", ERR_FAILED_JSON, "line 1"},
    {"5", ERR_INVALID_ENTITY, "it must be a JSON object"},
    {"[5]", ERR_INVALID_ENTITY, "entity 0: it must be a JSON object"},
    {"{}", ERR_INVALID_ENTITY, "Resource is missing"},
    {"{\"Resource\":null,\"Payload\":{}}", ERR_INVALID_ENTITY, "Resource is missing"},
    {"{\"Resource\":5,\"Payload\":{}}", ERR_INVALID_ENTITY, "Resource: must be of type string"},
    {"{\"Resource\":\"Placed\"}", ERR_INVALID_ENTITY, "Payload is missing"},
    {"{\"Resource\":\"Placed\",\"Payload\":null}", ERR_INVALID_ENTITY, ""},
    {"{\"Resource\":\"Placed\",\"Payload\":\"x\"}", ERR_INVALID_ENTITY, ""},
    {"{\"Resource\":\"Placed\",\"Payload\":[{},5]}", ERR_INVALID_ENTITY, "1"},
    {"{\"Resource\":\"Placed\",\"Payload\":{\"a\":1,\"a\":2}}", ERR_FAILED_JSON, "a"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"PAYLOAD\":{}}", ERR_FAILED_JSON, "PAYLOAD"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"WebhokId\":1}", ERR_UNKNOWN_MEMBER, "'WebhookId'"},
    {"{\"Resource\":\"\",\"Payload\":{}}", ERR_UNKNOWN_RESOURCE, "by ''"},
    {"{\"Resource\":\"Nobody\",\"Payload\":{}}", ERR_UNKNOWN_RESOURCE, "'Nobody'"},
    {"{\"Resource\":\"Person\",\"Payload\":{}}", ERR_WRONG_RESOURCE_KIND,
     "'Shop.Person' is of kind EntityResource, not EventResource"},
    {"{\"Resource\":\"Svc.Metrics\",\"Payload\":{}}", ERR_WRONG_RESOURCE_KIND, "BinaryResource"},
    {"{\"Resource\":\"Picture\",\"Payload\":{}}", ERR_INVALID_ENTITY,
     "'Shop.Picture' has a binary payload: POST its bytes to /Svc.Event/Resource=Shop.Picture"},
    {"{\"Resource\":\"Born\",\"Payload\":{\"Nme\":1}}", ERR_UNKNOWN_MEMBER, "Nme"},
    {"{\"Resource\":\"Born\",\"Payload\":[{},{\"Age\":\"x\"}]}", ERR_INVALID_ENTITY,
     "Payload, entity 1: Age: must be of type integer"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"ClientId\":\"\"}", ERR_INVALID_ENTITY,
     "Id: is 0 characters long"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"ClientId\":\"a b\"}", ERR_INVALID_ENTITY,
     "Id: character 2 is a blank"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"ClientId\":5}", ERR_INVALID_ENTITY, "Id"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"WebhookId\":5}", ERR_INVALID_ENTITY,
     "WebhookId: must be of type string"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"WebhookId\":\"x\"}", ERR_INVALID_ENTITY,
     "WebhookId: there is no webhook 'x'"},
    {"{\"Resource\":\"Placed\",\"Payload\":{},\"WebhookId\":"
     "\"01999999-0000-7000-8000-000000000000\"}",
     ERR_INVALID_ENTITY, "WebhookId: there is no webhook '01999999"},
};

/* Alone, and behind one that is good. */
START_TEST(a_bad_event_raises_nothing)
{
    uint64_t serial;

    webhook("/Placed");
    serial = asking_serial();
    ck_refuses(bad[_i].code, bad[_i].text, "POST", "/Svc.Event", bad[_i].body);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_uint_eq(asking_serial(), serial + 1); /* the error */
    if (bad[_i].body[0] != '{' || bad[_i].body[1] == 0)
        return;
    ask("POST", "/Svc.Event",
        asking_printf("[{\"Resource\":\"Placed\",\"Payload\":{},\"ClientId\":\"first\"},%s]",
                      bad[_i].body));
    ck_problem(bad[_i].code, "entity 1: ");
    ck_problem(bad[_i].code, bad[_i].text);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_uint_eq(pending(), 0);
    ck_assert_uint_eq(once_count(hooks()->once), 0);
    ck_assert_uint_eq(asking_serial(), serial + 2);
}
END_TEST

START_TEST(several_are_raised_in_one_change)
{
    uint64_t serial;

    webhook("/Placed");
    webhook("/Placed/a=1");
    serial = asking_serial();
    ck_asks(201, "POST", "/Svc.Event",
            "[{\"Resource\":\"placed\",\"Payload\":{\"a\":1}},{\"RESOURCE\":\"Shop.Placed\","
            "\"payload\":[]},{\"Resource\":\"Born\",\"Payload\":{}}]");
    ck_header_eq("Svc-info", "3 entities inserted into 'Svc.Event'");
    ck_span_is(answered("0.ObjectNo"), arena_u64(&asking.arena, serial));
    ck_span_is(answered("1.ObjectNo"), arena_u64(&asking.arena, serial + 3));
    ck_span_is(answered("2.ObjectNo"), arena_u64(&asking.arena, serial + 5));
    ck_member_eq("0.Webhooks", "2");
    ck_member_eq("1.Webhooks", "1");
    ck_member_eq("2.Webhooks", "0");
    ck_member_eq("1.Resource", "\"Shop.Placed\"");
    ck_assert_uint_eq(asking_serial(), serial + 6);
    ck_assert_uint_eq(asking.answer.serial, serial + 5);
    ck_assert(!turn_is_committed(asking.service->turn, asking.answer.serial));
    ck_assert_uint_eq(pending(), 3);
}
END_TEST

START_TEST(an_answer_is_in_the_form_that_was_asked_for)
{
    ask_with("Prefer: return=minimal", "POST", "/Svc.Event", GOOD);
    ck_status(201);
    ck_body_eq("");
    ask_with("Accept: application/x-ndjson", "POST", "/Svc.Event", "[" GOOD "," GOOD "]");
    ck_status(201);
    ck_assert(span_starts(answered_body(), SPAN("{\"Id\":\"")));
    ck_assert(span_find(answered_body(), SPAN("}\n{\"Id\":\"")) != SIZE_MAX);
    ask_with("Accept: image/png", "POST", "/Svc.Event", GOOD);
    ck_problem(ERR_NOT_ACCEPTABLE, "");
    ask_with("Content-Type: text/csv", "POST", "/Svc.Event", GOOD);
    ck_problem(ERR_UNSUPPORTED_CONTENT, "text/csv");
    ck_assert_uint_eq(kept(), 3);
}
END_TEST

START_TEST(what_cannot_be_answered_is_not_raised)
{
    response_done(&asking.answer);
    response_init(&asking.answer, 250);
    ask("POST", "/Svc.Event", "[" GOOD "," GOOD "]");
    ck_assert_int_eq(asking.answer.error, ERR_PAYLOAD_TOO_LARGE);
    ck_assert_uint_eq(kept(), 0);
    ask("POST", "/Svc.Event", GOOD);
    ck_status(201);
    ck_assert_uint_eq(kept(), 1);
}
END_TEST

/* ---- the payload as the body ---- */

START_TEST(a_body_is_kept_to_the_byte)
{
    ck_asks(201, "POST", "/Svc.Event/Resource=placed", " [ {\"a\": 1.0} ,\n{} ] ");
    ck_asks(201, "POST", "/Svc.Event/resource='Shop.Placed'", "{ \"a\":1 }");
    ask_with("Content-Type: application/x-ndjson", "POST", "/Svc.Event/Resource=Placed",
             "{\"a\":1}\n\n {\"a\": 2}\n");
    ck_status(201);
    ck_asks(200, "GET", "/Svc.Event/_/select=Payload", NULL);
    ck_body_eq("[{\"Payload\":[ {\"a\": 1.0} ,\n{} ]},{\"Payload\":[{ \"a\":1 }]},"
               "{\"Payload\":[{\"a\":1},{\"a\": 2}]}]");
}
END_TEST

static const struct {
    const char *headers, *target, *body;
    enum err_code code;
    const char *text;
} bad_bodies[] = {
    {NULL, "/Svc.Event/Resource=Placed", "", ERR_NO_DATA_SOURCE, "needs a body"},
    {NULL, "/Svc.Event/Resource=Placed", "5", ERR_INVALID_ENTITY, ""},
    {NULL, "/Svc.Event/Resource=Placed", "[[]]", ERR_INVALID_ENTITY, "0"},
    {NULL, "/Svc.Event/Resource=Placed", "{\"a\":1", ERR_FAILED_JSON, "line 1"},
    {NULL, "/Svc.Event/Resource=Born", "[{\"Age\":1},{\"Age\":\"1\"}]", ERR_INVALID_ENTITY,
     "Payload, entity 1: Age"},
    {NULL, "/Svc.Event/Resource=Nobody", "{}", ERR_UNKNOWN_RESOURCE, "'Nobody'"},
    {NULL, "/Svc.Event/Resource=Person", "{}", ERR_WRONG_RESOURCE_KIND, "'Shop.Person'"},
    {NULL, "/Svc.Event/Resource=Placed&WebhookId=x", "{}", ERR_INVALID_ENTITY,
     "WebhookId: there is no webhook 'x'"},
    {"Content-Type: image/png", "/Svc.Event/Resource=Placed", "{}", ERR_UNSUPPORTED_CONTENT,
     "image/png"},
    {"Content-Type: image", "/Svc.Event/Resource=Picture", "x", ERR_UNSUPPORTED_CONTENT,
     "Content-Type 'image' is no media type"},
    {"Content-Type: ", "/Svc.Event/Resource=Picture", "x", ERR_UNSUPPORTED_CONTENT, "no media"},
    {"Content-Type: image/gif", "/Svc.Event/Resource=Picture", "x", ERR_UNSUPPORTED_CONTENT,
     "Content-Type 'image/gif' is not what 'Shop.Picture' is declared to carry, which is "
     "'image/png'"},
    {"Idempotency-Key: a b", "/Svc.Event/Resource=Placed", "{}", ERR_INVALID_ENTITY,
     "Idempotency-Key: character 2"},
    {"Idempotency-Key: a\nIdempotency-Key: b", "/Svc.Event/Resource=Placed", "{}",
     ERR_INVALID_ENTITY, "Idempotency-Key: character 3"},
    {"Idempotency-Key: ", "/Svc.Event/Resource=Placed", "{}", ERR_INVALID_ENTITY,
     "Idempotency-Key: is 0 characters long"},
};

START_TEST(a_bad_body_raises_nothing)
{
    ask_with(bad_bodies[_i].headers, "POST", bad_bodies[_i].target, bad_bodies[_i].body);
    ck_problem(bad_bodies[_i].code, bad_bodies[_i].text);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_uint_eq(once_count(hooks()->once), 0);
}
END_TEST

static const struct {
    const char *type, *shown;
} types[] = {
    {NULL, "image/png"},
    {"image/png", "image/png"},
    {"Image/PNG; a=\"b\"", "Image/PNG; a=\"b\""},
};

START_TEST(bytes_are_kept_with_their_type)
{
    const char bytes[] = "\0{\"a\r\n\xff";
    const struct header_field type = {SPAN("Content-Type"), span_str(types[_i].type)};
    struct request request = {
        .method = SPAN("POST"),
        .target = SPAN("/Svc.Event/Resource=Picture"),
        .headers = &type,
        .header_count = types[_i].type != NULL,
        .body = span_of(bytes, sizeof(bytes) - 1),
    };

    webhook("/Picture");
    ask_request(&request);
    ck_status(201);
    ck_member_eq("0.Webhooks", "1");
    request.body = (struct span){NULL, 0};
    ask_request(&request);
    ck_status(201); /* none are bytes too */
    for (int again = 0; again < 2; again++) {
        ck_asks(200, "GET", "/Svc.Event/_/select=ContentType,Payload", NULL);
        ck_assert_str_eq(answered_text("0.ContentType"), types[_i].shown);
        ck_member_eq("0.Payload", "\"AHsiYQ0K/w==\"");
        ck_member_eq("1.Payload", "\"\"");
        asking_reload();
    }
}
END_TEST

/* ---- to one webhook ---- */

/* In both forms. */
static void raise_for(const char *id, bool is_described)
{
    if (is_described)
        ask("POST", "/Svc.Event",
            asking_printf("{\"Resource\":\"Placed\",\"Payload\":{\"a\":1},\"WebhookId\":\"%s\"}",
                          id));
    else
        ask("POST", asking_printf("/Svc.Event/WebhookId=%s&Resource=Placed", id), "{\"a\":1}");
}

START_TEST(an_event_may_be_for_one_webhook)
{
    const char *one, *other, *unmatched;

    webhook("/Placed");
    one = webhook("/Placed/a=1");
    unmatched = webhook("/Placed/a=2");
    other = webhook("/Born");
    raise_for(one, _i);
    ck_status(201);
    ck_member_eq("0.Webhooks", "1");
    ck_asks(200, "GET", "/Svc.Admin.Delivery", NULL);
    ck_assert_str_eq(answered_text("0.WebhookId"), one);
    ck_assert_ptr_null(answered("1").p);
    raise_for(unmatched, _i);
    ck_status(201);
    ck_member_eq("0.Webhooks", "0");
    raise_for(other, _i);
    ck_problem(ERR_INVALID_ENTITY, "WebhookId: the EventSelector of '");
    ck_problem(ERR_INVALID_ENTITY, "is not on 'Shop.Placed'");
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", one), "{\"IsPaused\":true}");
    raise_for(one, _i);
    ck_problem(ERR_CONFLICT, "is paused, its deliveries wait");
    ck_assert_uint_eq(kept(), 2);
    ck_assert_uint_eq(pending(), 1);
}
END_TEST

/* ---- rights ---- */

#define KEY(name) "Authorization: apikey " name

START_TEST(a_key_needs_a_right_on_the_event_too)
{
    const char *id = webhook("/Placed"), *to_one;

    asking_add_key("poster", "[{\"Resources\":[\"Svc.Event\"],\"Methods\":[\"POST\"]},"
                             "{\"Resources\":[\"Shop.Placed\"],\"Methods\":[\"GET\"]}]");
    asking_add_key("tester", "[{\"Resources\":[\"Svc.Event\"],\"Methods\":[\"POST\"]},"
                             "{\"Resources\":[\"Svc.Admin.Webhook\",\"Shop.*\"],\"Methods\":"
                             "[\"GET\"]}]");
    ask_with(KEY("poster"), "POST", "/Svc.Event", GOOD);
    ck_status(201);
    ask_with(KEY("poster"), "POST", "/Svc.Event",
             "[" GOOD ",{\"Resource\":\"Born\",\"Payload\":{}}]");
    ck_problem(ERR_NOT_AUTHORIZED, "entity 1: the API key has no right on 'Shop.Born'");
    ask_with(KEY("poster"), "POST", "/Svc.Event/Resource=Picture", "x");
    ck_problem(ERR_NOT_AUTHORIZED, "no right on 'Shop.Picture'");
    to_one = asking_printf("/Svc.Event/Resource=Placed&WebhookId=%s", id);
    ask_with(KEY("poster"), "POST", to_one, "{}");
    ck_problem(ERR_NOT_AUTHORIZED, "WebhookId: the API key may not use GET on 'Svc.Admin.Webhook'");
    ask_with(KEY("tester"), "POST", to_one, "{}");
    ck_status(201);
    ck_assert_uint_eq(kept(), 2);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
}
END_TEST

/* ---- repetitions ---- */

static const struct {
    const char *headers, *target, *body;
    size_t count; /* of events */
} named[] = {
    {NULL, "/Svc.Event", "{\"ClientId\":\"x\",\"Resource\":\"Placed\",\"Payload\":{}}", 1},
    {NULL, "/Svc.Event",
     "[{\"ClientId\":\"x\",\"Resource\":\"Placed\",\"Payload\":{}},"
     "{\"ClientId\":\"y\",\"Resource\":\"Placed\",\"Payload\":{\"a\":1}}]",
     2},
    {"Idempotency-Key: x", "/Svc.Event", GOOD, 1},
    {"Idempotency-Key: x", "/Svc.Event", "[" GOOD "," GOOD "]", 2},
    {"Idempotency-Key: x", "/Svc.Event/Resource=Placed", "[{},{}]", 1},
    {"Idempotency-Key: x", "/Svc.Event/Resource=Picture", "bytes", 1},
};

START_TEST(a_repetition_is_answered_as_the_first)
{
    struct span first;
    uint64_t serial;
    size_t count;

    ask_with(named[_i].headers, "POST", named[_i].target, named[_i].body);
    ck_status(201);
    first = arena_copy(&asking.arena, answered_body());
    count = kept();
    ck_assert_uint_eq(count, named[_i].count);
    asking_reload();
    /* Whoever would get it now, and whether it could still be raised at all. */
    webhook("/Placed");
    asking.service->limits.pending_deliveries = 0;
    serial = asking_serial();
    ask_with(named[_i].headers, "POST", named[_i].target, named[_i].body);
    ck_status(201);
    ck_span_is(answered_body(), first);
    ck_assert_uint_eq(kept(), count);
    ck_assert_uint_eq(pending(), 0);
    ck_assert_uint_eq(asking_serial(), serial);
}
END_TEST

START_TEST(one_request_may_repeat_itself)
{
    ck_asks(201, "POST", "/Svc.Event",
            "[{\"ClientId\":\"x\",\"Resource\":\"Placed\",\"Payload\":{}},"
            "{\"ClientId\":\"y\",\"Resource\":\"Placed\",\"Payload\":{}},"
            "{\"ClientId\":\"x\",\"Resource\":\"Placed\",\"Payload\":{}}]");
    ck_assert_uint_eq(kept(), 2);
    ck_assert_uint_eq(once_count(hooks()->once), 2);
    ck_assert_str_eq(answered_text("0.Id"), answered_text("2.Id"));
    ck_assert_str_ne(answered_text("0.Id"), answered_text("1.Id"));
    ck_refuses(ERR_CONFLICT, "entity 1: ClientId: event ", "POST", "/Svc.Event",
               "[{\"ClientId\":\"z\",\"Resource\":\"Placed\",\"Payload\":{}},"
               "{\"ClientId\":\"z\",\"Resource\":\"Placed\",\"Payload\":[]}]");
    ck_assert_uint_eq(kept(), 2);
    ck_assert_uint_eq(once_count(hooks()->once), 2);
}
END_TEST

static const struct {
    const char *headers, *target, *body;
} others[] = {
    {"Idempotency-Key: x", "/Svc.Event/Resource=Placed", "{\"a\":2}"},
    {"Idempotency-Key: x", "/Svc.Event/Resource=Born", "{\"a\":1}"},
    {"Idempotency-Key: x\nContent-Type: application/json", "/Svc.Event/Resource=Placed",
     "{\"a\":1}"},
    {"Idempotency-Key: x", "/Svc.Event", "{\"a\":1}"},
    {"Idempotency-Key: x", "/Svc.Event/Resource=Placed&WebhookId=y", "{\"a\":1}"},
};

START_TEST(another_request_under_the_same_name_is_a_conflict)
{
    ask_with("Idempotency-Key: x", "POST", "/Svc.Event/Resource=Placed", "{\"a\":1}");
    ck_status(201);
    ask_with(others[_i].headers, "POST", others[_i].target, others[_i].body);
    ck_assert(asking.answer.error == ERR_CONFLICT || asking.answer.error == ERR_UNKNOWN_MEMBER);
    ck_assert_uint_eq(kept(), 1);
}
END_TEST

START_TEST(names_belong_to_a_key)
{
    const char body[] = "{\"ClientId\":\"x\",\"Resource\":\"Placed\",\"Payload\":{}}";

    asking_add_key("one", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("two", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    ask_with(KEY("one"), "POST", "/Svc.Event", body);
    ck_status(201);
    ask_with(KEY("two"), "POST", "/Svc.Event", body);
    ck_status(201);
    ck_assert_uint_eq(kept(), 2);
    ask_with(KEY("one"), "POST", "/Svc.Event", body);
    ck_status(201);
    ck_assert_uint_eq(kept(), 2);
}
END_TEST

/* The header names a whole request, an Id one event: they are different names. */
START_TEST(both_kinds_of_names_stand_beside_one_another)
{
    ask_with("Idempotency-Key: x", "POST", "/Svc.Event", GOOD);
    ck_status(201);
    ck_asks(201, "POST", "/Svc.Event",
            "{\"ClientId\":\"x\",\"Resource\":\"Placed\",\"Payload\":{}}");
    ck_assert_uint_eq(kept(), 2);
    ask_with("Idempotency-Key: y", "POST", "/Svc.Event",
             "{\"ClientId\":\"y\",\"Resource\":\"Placed\",\"Payload\":{}}");
    ck_problem(ERR_INVALID_ENTITY, "ClientId: the request has an Idempotency-Key already");
    ask_with("Idempotency-Key: y", "POST", "/Svc.Event",
             "{\"ClientId\":null,\"Resource\":\"Placed\",\"Payload\":{}}");
    ck_status(201);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, a_bad_event_raises_nothing, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, several_are_raised_in_one_change);
    tcase_add_test(tc, an_answer_is_in_the_form_that_was_asked_for);
    tcase_add_test(tc, what_cannot_be_answered_is_not_raised);
    tcase_add_test(tc, a_body_is_kept_to_the_byte);
    tcase_add_loop_test(tc, a_bad_body_raises_nothing, 0, ARRAY_LEN(bad_bodies));
    tcase_add_loop_test(tc, bytes_are_kept_with_their_type, 0, ARRAY_LEN(types));
    tcase_add_loop_test(tc, an_event_may_be_for_one_webhook, 0, 2);
    tcase_add_test(tc, a_key_needs_a_right_on_the_event_too);
    tcase_add_loop_test(tc, a_repetition_is_answered_as_the_first, 0, ARRAY_LEN(named));
    tcase_add_test(tc, one_request_may_repeat_itself);
    tcase_add_loop_test(tc, another_request_under_the_same_name_is_a_conflict, 0,
                        ARRAY_LEN(others));
    tcase_add_test(tc, names_belong_to_a_key);
    tcase_add_test(tc, both_kinds_of_names_stand_beside_one_another);
}
