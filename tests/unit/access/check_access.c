#include "testing.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "access/account.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/json.h"

#include <stdio.h>

/* SHA-256 of "alpha" and "beta". */
#define ALPHA "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"
#define BETA "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"

static struct arena arena;
static struct access access_of_test;

static struct err *add(const char *json)
{
    struct json_doc doc;

    ck_ok(json_parse(span_str(json), NULL, &arena, &doc));
    return access_add(&access_of_test, json_root(&doc), &arena);
}

static struct access_key *key_named(const char *name)
{
    return access_find(&access_of_test, span_of(NULL, 0), span_str(name));
}

static void begin(void)
{
    arena_init(&arena);
    access_init(&access_of_test);
}

static void end(void)
{
    access_done(&access_of_test);
    arena_done(&arena);
}

/* ---- declarations ---- */

START_TEST(a_declaration_becomes_a_key)
{
    const struct access_key *key;

    begin();
    ck_ok(add("{\"name\":\"admin\",\"KeySha256\":\"" ALPHA "\",\"AllowAccess\":["
              "{\"Resources\":[\"Svc.*\",\"Shop.Person\"],\"Methods\":[\"get\",\"PUT\"]},"
              "{\"methods\":[\"*\"],\"resources\":[\"*\"]},{\"Resources\":[],\"Methods\":[]}]}"));
    ck_ok(add("{\"Name\":\"none\",\"KeySha256\":\"" BETA "\",\"AllowAccess\":[]}"));
    ck_assert_uint_eq(access_count(&access_of_test), 2);
    key = key_named("admin");
    ck_span_eq(key->name, "admin");
    ck_span_eq(key->title, "/admin");
    ck_span_eq(key->root, "admin");
    ck_assert_uint_eq(key->entry_count, 3);
    ck_span_eq(key->entries[0].resources[0], "svc.*");
    ck_span_eq(key->entries[0].resources[1], "shop.person");
    ck_assert_uint_eq(key->entries[0].methods, METHODS_READ | METHOD_BIT(METHOD_PUT));
    ck_assert_uint_eq(key->entries[1].methods, METHODS_ALL);
    ck_assert_uint_eq(key->entries[2].methods, 0);
    end();
}
END_TEST

START_TEST(a_key_may_have_a_tenant)
{
    begin();
    ck_ok(add("{\"Name\":\"a\",\"KeySha256\":\"" ALPHA
              "\",\"Tenant\":\"Acme_1.de-x\",\"AllowAccess\":[]}"));
    ck_ok(add("{\"Name\":\"b\",\"KeySha256\":\"" BETA "\",\"Tenant\":null,\"AllowAccess\":[]}"));
    ck_span_eq(access_find(&access_of_test, SPAN("Acme_1.de-x"), SPAN("a"))->tenant, "Acme_1.de-x");
    ck_assert_ptr_null(key_named("a"));
    ck_assert_ptr_null(key_named("b")->tenant.p);
    end();
}
END_TEST

START_TEST(a_tenant_is_a_short_name)
{
    char most[ACCESS_TENANT_BYTES + 1];

    for (size_t i = 0; i < sizeof(most); i++)
        most[i] = 'x';
    ck_assert(access_is_tenant(span_of(most, ACCESS_TENANT_BYTES)));
    ck_assert(!access_is_tenant(span_of(most, sizeof(most))));
    ck_assert(!access_is_tenant(SPAN("")));
    ck_assert(!access_is_tenant(SPAN("a b")));
    ck_assert(!access_is_tenant(span_of("a\0", 2)));
    ck_assert(!access_is_tenant(SPAN("\xc3\xa4")));
}
END_TEST

#define KEY(members) "{\"Name\":\"n\",\"KeySha256\":\"" BETA "\"," members "}"
#define ENTRY(resources, methods)                                                                  \
    KEY("\"AllowAccess\":[{\"Resources\":" resources ",\"Methods\":" methods "}]")

#define DIGEST(digest) "{\"Name\":\"n\",\"KeySha256\":" digest ",\"AllowAccess\":[]}"

static const struct {
    const char *json;
    enum err_code code;
    const char *text;
} bad[] = {
    {"[]", ERR_INVALID_ENTITY, "must be a JSON object"},
    {"{}", ERR_INVALID_ENTITY, "Name: is required"},
    {"{\"Name\":\"x\",\"AllowAccess\":[]}", ERR_INVALID_ENTITY, "KeySha256: is required"},
    {"{\"Name\":\"x\",\"KeySha256\":\"" BETA "\"}", ERR_INVALID_ENTITY, "AllowAccess: is required"},
    {"{\"Nmae\":\"x\"}", ERR_UNKNOWN_MEMBER, "Nmae: there is no such member, is 'Name' meant?"},
    {"{\"Colour\":1}", ERR_UNKNOWN_MEMBER, "Colour: there is no such member"},
    {KEY("\"Id\":\"x\""), ERR_UNKNOWN_MEMBER, "Id: there is no such member"},
    {"{\"Name\":\"x\",\"NAME\":\"x\"}", ERR_FAILED_JSON, "NAME"},
    {"{\"Name\":1}", ERR_INVALID_ENTITY, "Name: must be of type string"},
    {"{\"Name\":\"\",\"KeySha256\":\"\",\"AllowAccess\":[]}", ERR_INVALID_ENTITY,
     "Name: must be 1 to 64 visible characters"},
    {DIGEST("\"abc\""), ERR_INVALID_ENTITY,
     "KeySha256: must be a SHA-256 in 64 hexadecimal digits"},
    {DIGEST("\"ged3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\""),
     ERR_INVALID_ENTITY, "KeySha256: must be a SHA-256"},
    {DIGEST("null"), ERR_INVALID_ENTITY, "KeySha256: is required"},
    {DIGEST("7"), ERR_INVALID_ENTITY, "KeySha256: must be of type string"},
    {KEY("\"AllowAccess\":{}"), ERR_INVALID_ENTITY, "AllowAccess: must be of type array"},
    {KEY("\"AllowAccess\":[1]"), ERR_INVALID_ENTITY, "AllowAccess[0]: must be of type object"},
    {KEY("\"AllowAccess\":[{\"Resources\":[]}]"), ERR_INVALID_ENTITY,
     "AllowAccess[0].Methods: is required"},
    {KEY("\"AllowAccess\":[{\"Resources\":[],\"Methods\":[]},{\"Method\":[]}]"), ERR_UNKNOWN_MEMBER,
     "AllowAccess[1].Method: there is no such member, is 'Methods' meant?"},
    {ENTRY("\"*\"", "[]"), ERR_INVALID_ENTITY, "AllowAccess[0].Resources: must be of type array"},
    {ENTRY("[\"*\",5]", "[]"), ERR_INVALID_ENTITY,
     "AllowAccess[0].Resources[1]: must be of type string"},
    {ENTRY("[null]", "[]"), ERR_INVALID_ENTITY, "Resources[0]: must be of type string"},
    {ENTRY("[\"Person\"]", "[]"), ERR_INVALID_ENTITY,
     "AllowAccess[0].Resources[0]: 'Person' is neither a resource's full name"},
    {ENTRY("[\"*\",\"Shop.\"]", "[]"), ERR_INVALID_ENTITY, "Resources[1]: 'Shop.' is neither"},
    {ENTRY("[\"Shop.Per*\"]", "[]"), ERR_INVALID_ENTITY, "'Shop.Per*' is neither"},
    {ENTRY("[\"*.*\"]", "[]"), ERR_INVALID_ENTITY, "'*.*' is neither"},
    {ENTRY("[\".*\"]", "[]"), ERR_INVALID_ENTITY, "'.*' is neither"},
    {ENTRY("[\"Shop..Person\"]", "[]"), ERR_INVALID_ENTITY, "'Shop..Person' is neither"},
    {ENTRY("[\"\"]", "[]"), ERR_INVALID_ENTITY, "'' is neither"},
    {ENTRY("[\"*\"]", "[\"OPTIONS\"]"), ERR_INVALID_ENTITY, "Methods[0]: 'OPTIONS' is no method"},
    {ENTRY("[\"*\"]", "[\"GET\",\"FETCH\"]"), ERR_INVALID_ENTITY,
     "Methods[1]: 'FETCH' is no method"},
    {ENTRY("[\"*\"]", "\"GET\""), ERR_INVALID_ENTITY, "Methods: must be of type array"},
    {"{\"Name\":\"first\",\"KeySha256\":\"" BETA "\",\"AllowAccess\":[]}", ERR_INVALID_ENTITY,
     "Name: there is an API key 'first' already"},
    {"{\"Name\":\"n\",\"KeySha256\":\"" ALPHA "\",\"AllowAccess\":[]}", ERR_INVALID_ENTITY,
     "KeySha256: the key 'n' is the same as 'first'"},
};

START_TEST(bad_declarations_add_nothing)
{
    begin();
    ck_ok(add("{\"Name\":\"first\",\"KeySha256\":\"" ALPHA "\",\"AllowAccess\":[]}"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_fails(add(bad[i].json), bad[i].code, bad[i].text);
    ck_assert_uint_eq(access_count(&access_of_test), 1);
    end();
}
END_TEST

/* ---- signing in ---- */

static void add_two(void)
{
    ck_ok(add("{\"Name\":\"a\",\"KeySha256\":\"" ALPHA "\",\"AllowAccess\":[]}"));
    ck_ok(add("{\"Name\":\"b\",\"KeySha256\":\"" BETA "\",\"AllowAccess\":[]}"));
}

static const struct {
    const char *authorization, *name;
} good[] = {
    {"apikey alpha", "a"},        {"apikey beta", "b"},
    {"APIKEY beta", "b"},         {"ApiKey   beta  ", "b"},
    {" apikey beta", "b"},        {"Basic dXNlcjpiZXRh", "b"}, /* user:beta */
    {"basic OmFscGhh", "a"},                                   /* :alpha */
    {"BASIC  dXNlcjpiZXRh", "b"}, {"Bearer alpha", "a"},
    {"bearer  beta", "b"},
};

START_TEST(keys_sign_in)
{
    begin();
    add_two();
    for (int required = 0; required <= 1; required++) {
        access_of_test.required = required;
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
            struct access_key *key = NULL;

            ck_ok(access_sign_in(&access_of_test, span_str(good[i].authorization), &arena, &key));
            ck_assert_ptr_nonnull(key);
            ck_span_is(key->name, span_str(good[i].name));
        }
    }
    end();
}
END_TEST

static const struct {
    const char *authorization, *text;
} refused[] = {
    {"apikey gamma", "There is no such API key."},
    {"apikey Alpha", "no such"},
    {"apikey alpha beta", "no such"},
    {"apikey", "must be 'apikey <KEY>'"},
    {"apikey ", "must be 'apikey <KEY>'"},
    {"alpha", "must be 'apikey <KEY>'"},
    {"Bearer", "must be 'apikey <KEY>'"},
    {"Bearer gamma", "no such"},
    {"apikeyalpha", "must be 'apikey <KEY>'"},
    {"apikey:alpha", "must be 'apikey <KEY>'"},
    {"Basic dXNlcjpnYW1tYQ==", "no such"}, /* user:gamma */
    {"Basic YWxwaGE=", "must be"},         /* alpha, no colon */
    {"Basic dXNlcjo=", "must be"},         /* user: */
    {"Basic YTpiOmJldGE=", "no such"},     /* a:b:beta, the password is b:beta */
    {"Basic dXNlcjpiZXRh!", "must be"},
    {"Basic", "must be"},
};

START_TEST(others_do_not)
{
    struct access_key *key = NULL;

    begin();
    add_two();
    for (int required = 0; required <= 1; required++) {
        access_of_test.required = required;
        for (size_t i = 0; i < ARRAY_LEN(refused); i++)
            ck_fails(
                access_sign_in(&access_of_test, span_str(refused[i].authorization), &arena, &key),
                ERR_NOT_SIGNED_IN, refused[i].text);
    }
    ck_assert_ptr_null(key);
    end();
}
END_TEST

START_TEST(nobody_may_do_all_unless_a_key_is_required)
{
    static struct access_key other;
    struct access_key *key = &other;

    begin();
    add_two();
    ck_ok(access_sign_in(&access_of_test, span_of(NULL, 0), &arena, &key));
    ck_assert_ptr_null(key);
    ck_assert(access_allows(key, SPAN("Svc.Admin.Webhook"), METHOD_DELETE));
    ck_assert_uint_eq(access_methods(key, SPAN("X.Y"), METHODS_ALL), METHODS_ALL);
    access_of_test.required = true;
    ck_fails(access_sign_in(&access_of_test, span_of(NULL, 0), &arena, &key), ERR_NOT_SIGNED_IN,
             "An API key is required");
    ck_fails(access_sign_in(&access_of_test, SPAN("  "), &arena, &key), ERR_NOT_SIGNED_IN,
             "An API key is required");
    end();
}
END_TEST

START_TEST(messages_do_not_repeat_the_key)
{
    struct access_key *key;
    struct err *e;

    begin();
    add_two();
    e = access_sign_in(&access_of_test, SPAN("apikey topsecret"), &arena, &key);
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(span_find(err_message(e), SPAN("topsecret")), SIZE_MAX);
    err_free(e);
    e = access_sign_in(&access_of_test, SPAN("Digest topsecret"), &arena, &key);
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(span_find(err_message(e), SPAN("topsecret")), SIZE_MAX);
    err_free(e);
    end();
}
END_TEST

/* ---- rights ---- */

static const struct {
    const char *pattern, *resource;
    bool covered;
} coverage[] = {
    {"Shop.Person", "Shop.Person", true},
    {"Shop.Person", "shop.PERSON", true},
    {"SHOP.PERSON", "Shop.Person", true},
    {"Shop.Person", "Shop.Persons", false},
    {"Shop.Person", "Shop.Perso", false},
    {"Shop.Person", "X.Shop.Person", false},
    {"Shop.*", "Shop.Person", true},
    {"Shop.*", "sHOP.person", true},
    {"Shop.*", "Shop.Inner.Person", false},
    {"Shop.*", "Shops.Person", false},
    {"Shop.*", "Shop", false},
    {"Svc.*", "Svc.Admin.Webhook", false},
    {"Svc.Admin.*", "Svc.Admin.Webhook", true},
    {"Svc.Admin.*", "Svc.Event", false},
    {"*", "Shop.Inner.Person", true},
    {"*", "Svc.Admin.Webhook", true},
};

START_TEST(patterns_cover_names)
{
    begin();
    for (size_t i = 0; i < ARRAY_LEN(coverage); i++) {
        struct span pattern = text_fold(&arena, span_str(coverage[i].pattern));
        struct access_entry entry = {&pattern, 1, METHOD_BIT(METHOD_PUT)};
        struct access_key key = {.entries = &entry, .entry_count = 1};
        struct span resource = span_str(coverage[i].resource);

        ck_assert_msg(access_allows(&key, resource, METHOD_PUT) == coverage[i].covered, "%s, %s",
                      coverage[i].pattern, coverage[i].resource);
        ck_assert(!access_allows(&key, resource, METHOD_GET));
        ck_assert(!access_allows(&key, resource, METHOD_OPTIONS));
        ck_assert(!access_allows(&key, resource, METHOD_OTHER));
    }
    end();
}
END_TEST

static const struct {
    const char *pattern;
    unsigned methods;
    bool covered;
} of_backup[] = {
    {"Svc.Admin.Backup", METHODS_READ, true},
    {"svc.admin.BACKUP", METHODS_ALL, true},
    {"*", METHODS_ALL, true},
    {"*", METHODS_READ, false},
    {"Svc.Admin.*", METHODS_ALL, false},
    {"Svc.Admin.*", METHODS_READ, false},
};

START_TEST(what_holds_every_secret_is_given_by_name_or_with_all)
{
    begin();
    for (size_t i = 0; i < ARRAY_LEN(of_backup); i++) {
        struct span pattern = text_fold(&arena, span_str(of_backup[i].pattern));
        struct access_entry entry = {&pattern, 1, of_backup[i].methods};
        struct access_key key = {.entries = &entry, .entry_count = 1};

        ck_assert_msg(access_allows(&key, SPAN("Svc.Admin.Backup"), METHOD_GET) ==
                          of_backup[i].covered,
                      "%s, %u", of_backup[i].pattern, of_backup[i].methods);
    }
    end();
}
END_TEST

START_TEST(rights_are_the_union_of_entries)
{
    const struct access_key *key;

    begin();
    ck_ok(add("{\"Name\":\"n\",\"KeySha256\":\"" ALPHA "\",\"AllowAccess\":["
              "{\"Resources\":[\"Shop.*\"],\"Methods\":[\"GET\"]},"
              "{\"Resources\":[\"Other.Thing\",\"Shop.Person\"],\"Methods\":[\"POST\"]}]}"));
    key = key_named("n");
    ck_assert_uint_eq(access_methods(key, SPAN("Shop.Person"), METHODS_ALL),
                      METHODS_READ | METHOD_BIT(METHOD_POST));
    ck_assert_uint_eq(access_methods(key, SPAN("Shop.Person"), METHOD_BIT(METHOD_POST)),
                      METHOD_BIT(METHOD_POST));
    ck_assert_uint_eq(access_methods(key, SPAN("Shop.Order"), METHODS_ALL), METHODS_READ);
    ck_assert_uint_eq(access_methods(key, SPAN("Other.Thing"), METHODS_ALL),
                      METHOD_BIT(METHOD_POST));
    ck_assert_uint_eq(access_methods(key, SPAN("Other.Else"), METHODS_ALL), 0);
    end();
}
END_TEST

#define ALLOWS(resource) "[{\"Resources\":[\"" resource "\"],\"Methods\":[\"GET\"]}]"
#define OF_TENANT(name, digit, tenant, allow)                                                      \
    "{\"Name\":\"" name "\",\"KeySha256\":\"" digit                                                \
    "000000000000000000000000000000000000000000000000000000000000000\",\"Tenant\":" tenant         \
    ",\"AllowAccess\":" allow "}"

START_TEST(who_reads_all)
{
    begin();
    ck_ok(add(OF_TENANT("a", "1", "null", ALLOWS("*"))));
    ck_ok(add(OF_TENANT("b", "2", "null", ALLOWS("A.*"))));
    ck_assert(access_reads_all(NULL) && access_reads_all(key_named("a")));
    ck_assert(!access_reads_all(key_named("b")));
    end();
}
END_TEST

START_TEST(a_name_shows_all_of_its_characters)
{
    static const char *const names[] = {"a", "a/b:c", "\xc3\xa4\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static const char *const none[] = {"",
                                       "a b",
                                       "a\n",
                                       "\x7f",
                                       "\xc2\x85",     /* a control of Latin-1 */
                                       "\xc2\xa0",     /* a blank */
                                       "\xe2\x80\x8b", /* no width */
                                       "\xe2\x80\xae", /* right to left from here */
                                       "\xff"};
    char most[4 * ACCESS_NAME_SCALARS + 4];

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_msg(access_is_name(span_str(names[i])), "%s", names[i]);
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        ck_assert_msg(!access_is_name(span_str(none[i])), "%zu", i);
    for (size_t i = 0; i < sizeof(most); i += 4)
        memcpy(most + i, "\xf0\x9f\x98\x80", 4);
    ck_assert(access_is_name(span_of(most, sizeof(most) - 4)));
    ck_assert(!access_is_name(span_of(most, sizeof(most))));
}
END_TEST

/* ---- keys that come and go ---- */

static struct access_key *put(const char *tenant, const char *name, const char *key,
                              int64_t expires_unix_ns)
{
    struct access_key made = {.name = span_str(name),
                              .tenant = span_str(tenant),
                              .root = SPAN("root"),
                              .expires_unix_ns = expires_unix_ns};

    digest_sha256(span_str(key), made.sha256);
    return access_put(&access_of_test, &made);
}

static struct err *sign_in(const char *authorization, struct access_key **out_key)
{
    return access_sign_in(&access_of_test, span_str(authorization), &arena, out_key);
}

START_TEST(a_key_is_there_until_nobody_refers_to_it)
{
    struct accounts *accounts = accounts_new();
    struct access_key *key, *found;

    begin();
    access_of_test.accounts = accounts;
    key = put(NULL, "made", "secret", ACCESS_FOREVER);
    ck_ok(sign_in("apikey secret", &found));
    ck_assert_ptr_eq(found, key);
    ck_span_eq(key->account->name, "kroot");
    access_key_ref(key);
    access_remove(&access_of_test, key);
    ck_fails(sign_in("apikey secret", &found), ERR_NOT_SIGNED_IN, "There is no such API key.");
    ck_assert_ptr_null(key_named("made"));
    ck_span_eq(key->name, "made");
    ck_assert_uint_eq(accounts_count(accounts), 1);
    access_key_unref(&access_of_test, key);
    access_key_unref(&access_of_test, NULL);
    ck_assert_uint_eq(accounts_count(accounts), 0);
    end();
    accounts_free(accounts);
}
END_TEST

START_TEST(a_key_expires)
{
    struct access_key *key, *found;

    begin();
    clock_fake(1000, 0);
    key = put("t", "made", "secret", 2000);
    ck_ok(sign_in("apikey secret", &found));
    ck_assert(!access_has_expired(key));
    clock_advance(999);
    ck_ok(sign_in("apikey secret", &found));
    clock_advance(1);
    ck_fails(sign_in("apikey secret", &found), ERR_NOT_SIGNED_IN, "The API key has expired.");
    ck_assert(access_has_expired(key));
    ck_assert_ptr_eq(access_find(&access_of_test, SPAN("t"), SPAN("made")), key);
    access_remove(&access_of_test, key);
    clock_real();
    end();
}
END_TEST

START_TEST(the_configuration_is_read_anew_beside_others)
{
    struct access with;
    struct access_key *made, *found;

    begin();
    add_two();
    made = put(NULL, "made", "secret", ACCESS_FOREVER);
    access_init(&with);
    with.required = true;
    struct access_key other = {
        .name = SPAN("c"), .root = SPAN("c"), .expires_unix_ns = ACCESS_FOREVER};
    digest_sha256(SPAN("gamma"), other.sha256);
    struct access_key *c = access_put(&with, &other);

    list_push_back(&with.configured, &c->configured);
    ck_ok(access_check_beside(&access_of_test, &with));
    access_replace(&access_of_test, &with);
    ck_assert_uint_eq(access_count(&with), 0);
    ck_assert_uint_eq(access_count(&access_of_test), 2);
    ck_assert(access_of_test.required);
    ck_fails(sign_in("apikey alpha", &found), ERR_NOT_SIGNED_IN, "no such");
    ck_ok(sign_in("apikey gamma", &found));
    ck_assert_ptr_eq(found, c);
    ck_ok(sign_in("apikey secret", &found));
    ck_assert_ptr_eq(found, made);
    other.name = SPAN("made");
    list_push_back(&with.configured, &access_put(&with, &other)->configured);
    ck_fails(access_check_beside(&access_of_test, &with), ERR_INVALID_ENTITY,
             "ApiKeys[0].Name: 'made' is the name of a key that was made at run time");
    access_done(&with);
    other.name = SPAN("d");
    digest_sha256(SPAN("secret"), other.sha256);
    list_push_back(&with.configured, &access_put(&with, &other)->configured);
    ck_fails(access_check_beside(&access_of_test, &with), ERR_INVALID_ENTITY,
             "ApiKeys[0].KeySha256: the key 'd' was made at run time, as 'made'");
    access_done(&with);
    access_remove(&access_of_test, made);
    end();
}
END_TEST

static size_t looks;

static struct span looked_at(const void *item)
{
    looks++;
    return span_of((const char *)((const struct access_key *)item)->sha256, DIGEST_BYTES / 2);
}

/* Of a hundred thousand keys only the one that is found is looked at, and of those with another
 * digest none. */
START_TEST(the_number_of_keys_does_not_matter)
{
    enum { MANY = 100000 };
    struct access_key **keys = mem_alloc(MANY * sizeof(*keys));
    struct access_key *found;
    char text[32];

    begin();
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "apikey %d", i);
        keys[i] = put(NULL, text + 7, text + 7, ACCESS_FOREVER);
    }
    access_of_test.by_digest.key_of = looked_at;
    for (int i = 0; i < MANY; i += 1000) {
        snprintf(text, sizeof(text), "apikey %d", i);
        looks = 0;
        ck_ok(sign_in(text, &found));
        ck_assert_ptr_eq(found, keys[i]);
        ck_assert_uint_eq(looks, 1);
        text[7] = 'x';
        looks = 0;
        ck_fails(sign_in(text, &found), ERR_NOT_SIGNED_IN, "no such");
        ck_assert_uint_eq(looks, 0);
    }
    for (int i = 0; i < MANY; i++)
        access_remove(&access_of_test, keys[i]);
    mem_free(keys);
    end();
}
END_TEST

/* ---- what one may grant ---- */

static const struct {
    const char *own, *granted;
    const char *lacks; /* NULL: nothing */
} grants[] = {
    {"[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]",
     "[{\"Resources\":[\"*\",\"A.B\",\"A.*\"],\"Methods\":[\"*\"]}]", NULL},
    {"[{\"Resources\":[\"*\"],\"Methods\":[\"GET\"]}]",
     "[{\"Resources\":[\"*\"],\"Methods\":[\"HEAD\",\"REPORT\"]}]", NULL},
    {"[{\"Resources\":[\"*\"],\"Methods\":[\"GET\"]}]",
     "[{\"Resources\":[\"A.B\"],\"Methods\":[\"POST\"]}]", "a.b"},
    {"[{\"Resources\":[\"A.*\"],\"Methods\":[\"*\"]}]",
     "[{\"Resources\":[\"a.*\",\"A.b\"],\"Methods\":[\"*\"]}]", NULL},
    {"[{\"Resources\":[\"A.*\"],\"Methods\":[\"*\"]}]",
     "[{\"Resources\":[\"A.B.*\"],\"Methods\":[\"GET\"]}]", "a.b.*"},
    {"[{\"Resources\":[\"A.*\"],\"Methods\":[\"*\"]}]",
     "[{\"Resources\":[\"A.B\",\"*\"],\"Methods\":[\"GET\"]}]", "*"},
    {"[{\"Resources\":[\"A.B\"],\"Methods\":[\"*\"]}]",
     "[{\"Resources\":[\"A.*\"],\"Methods\":[\"GET\"]}]", "a.*"},
    {"[{\"Resources\":[\"A.B\"],\"Methods\":[\"GET\"]},{\"Resources\":[\"A.*\"],\"Methods\":["
     "\"POST\"]}]",
     "[{\"Resources\":[\"A.B\"],\"Methods\":[\"GET\",\"POST\"]}]", NULL},
    {"[]", "[{\"Resources\":[\"A.B\"],\"Methods\":[]}]", NULL},
    {"[]", "[{\"Resources\":[\"A.B\"],\"Methods\":[\"HEAD\"]}]", "a.b"},
    {"[]", "[]", NULL},
};

START_TEST(what_one_lacks_is_found)
{
    begin();
    for (size_t i = 0; i < ARRAY_LEN(grants); i++) {
        struct access_key own, granted;
        struct json_doc doc;

        ck_ok(json_parse(span_str(grants[i].own), NULL, &arena, &doc));
        ck_ok(access_read_rights(json_root(&doc), &arena, &own));
        ck_ok(json_parse(span_str(grants[i].granted), NULL, &arena, &doc));
        ck_ok(access_read_rights(json_root(&doc), &arena, &granted));
        ck_span_is(access_lacks(&own, &granted), span_str(grants[i].lacks));
        ck_assert_ptr_null(access_lacks(NULL, &granted).p);
    }
    end();
}
END_TEST

static const struct {
    const char *rights, *pattern;
    const char *parts; /* joined by a blank */
} narrowed[] = {
    {"[{\"Resources\":[\"*\"],\"Methods\":[\"GET\"]}]", "*", "*"},
    {"[{\"Resources\":[\"*\"],\"Methods\":[\"GET\"]}]", "a.*", "a.*"},
    {"[{\"Resources\":[\"A.*\",\"B.C\"],\"Methods\":[\"*\"]}]", "*", "a.* b.c"},
    {"[{\"Resources\":[\"A.*\",\"B.C\"],\"Methods\":[\"*\"]}]", "a.*", "a.*"},
    {"[{\"Resources\":[\"A.*\",\"B.C\"],\"Methods\":[\"*\"]}]", "b.*", "b.c"},
    {"[{\"Resources\":[\"A.B.*\",\"A.B.C\"],\"Methods\":[\"GET\"]}]", "a.*", ""},
    {"[{\"Resources\":[\"*\"],\"Methods\":[\"POST\"]},{\"Resources\":[\"A.B\"],\"Methods\":["
     "\"GET\"]}]",
     "a.*", "a.b"},
    {"[]", "*", ""},
};

START_TEST(a_pattern_is_narrowed_to_what_may_be_read)
{
    begin();
    for (size_t i = 0; i < ARRAY_LEN(narrowed); i++) {
        struct access_key key;
        struct json_doc doc;
        struct span *parts;
        struct buf b;
        size_t count;

        ck_ok(json_parse(span_str(narrowed[i].rights), NULL, &arena, &doc));
        ck_ok(access_read_rights(json_root(&doc), &arena, &key));
        access_narrow(&key, span_str(narrowed[i].pattern), &arena, &parts, &count);
        buf_init_arena(&b, &arena);
        for (size_t p = 0; p < count; p++) {
            if (p > 0)
                buf_add_char(&b, ' ');
            buf_add(&b, parts[p]);
        }
        ck_span_is(buf_span(&b), span_str(narrowed[i].parts));
        access_narrow(NULL, span_str(narrowed[i].pattern), &arena, &parts, &count);
        ck_assert_uint_eq(count, 1);
        ck_span_is(parts[0], span_str(narrowed[i].pattern));
    }
    end();
}
END_TEST

START_TEST(rights_have_one_spelling)
{
    struct json_doc doc;
    struct buf b;

    begin();
    buf_init_arena(&b, &arena);
    ck_ok(json_parse(SPAN("[ {\"methods\":[\"get\",\"*\"], \"RESOURCES\":[\"A.b\",\"*\"]},"
                          "{\"Resources\":[],\"Methods\":[]}]"),
                     NULL, &arena, &doc));
    access_add_rights(&b, json_root(&doc), &arena);
    ck_span_eq(buf_span(&b), "[{\"Resources\":[\"A.b\",\"*\"],\"Methods\":[\"GET\",\"*\"]},"
                             "{\"Resources\":[],\"Methods\":[]}]");
    end();
}
END_TEST

START_TEST(every_key_may_list_what_there_is)
{
    const struct access_key none = {.entry_count = 0};

    ck_assert_uint_eq(access_methods(&none, SPAN("svc.availableresource"), METHODS_ALL),
                      METHODS_READ);
    ck_assert_uint_eq(access_methods(&none, SPAN("Svc.Event"), METHODS_ALL), 0);
}
END_TEST

START_TEST(a_name_stands_for_the_tenants_own_key_first)
{
    struct access_key *all, *own;

    begin();
    all = put(NULL, "same", "1", ACCESS_FOREVER);
    own = put("t", "same", "2", ACCESS_FOREVER);
    ck_assert_ptr_null(put("t", "same", "3", ACCESS_FOREVER));
    ck_assert_ptr_null(put("u", "same", "2", ACCESS_FOREVER));
    ck_assert_ptr_eq(access_find_named(&access_of_test, SPAN("t"), SPAN("same")), own);
    ck_assert_ptr_eq(access_find_named(&access_of_test, SPAN("u"), SPAN("same")), all);
    ck_assert_ptr_eq(access_find_named(&access_of_test, span_of(NULL, 0), SPAN("same")), all);
    ck_assert_ptr_null(access_find_named(&access_of_test, SPAN("t"), SPAN("other")));
    access_remove(&access_of_test, all);
    ck_assert_ptr_null(access_find_named(&access_of_test, SPAN("u"), SPAN("same")));
    access_remove(&access_of_test, own);
    end();
}
END_TEST

static struct span identity_of(const struct access_key *key)
{
    struct buf b;

    buf_init_arena(&b, &arena);
    access_add_identity(&b, key);
    return buf_span(&b);
}

/* One that was made at run time is not the next one of its name, nor the configuration's. */
START_TEST(an_identity_is_of_one_key_alone)
{
    struct access_key *configured, *made, *all;
    struct access_key later = {.name = SPAN("same"), .tenant = SPAN("t"), .root = SPAN("root")};
    struct span of_configured, of_made;

    begin();
    all = put(NULL, "same", "1", ACCESS_FOREVER);
    configured = put("t", "same", "2", ACCESS_FOREVER);
    of_configured = identity_of(configured);
    ck_span_eq(of_configured, "/t/same");
    ck_span_eq(identity_of(all), "//same");
    ck_assert_ptr_eq(access_find_identical(&access_of_test, of_configured), configured);
    ck_assert_ptr_eq(access_find_identical(&access_of_test, identity_of(all)), all);
    access_remove(&access_of_test, configured);
    ck_assert_ptr_null(access_find_identical(&access_of_test, of_configured));

    later.id = uuid_new();
    later.sha256[0] = 1;
    made = access_put(&access_of_test, &later);
    of_made = identity_of(made);
    ck_assert_ptr_null(access_find_identical(&access_of_test, of_configured));
    ck_assert_ptr_eq(access_find_identical(&access_of_test, of_made), made);
    access_remove(&access_of_test, made);
    later.id = uuid_new();
    made = access_put(&access_of_test, &later);
    ck_assert_ptr_null(access_find_identical(&access_of_test, of_made));
    ck_assert_ptr_null(access_find_identical(&access_of_test, SPAN("x/t/same")));
    ck_assert_ptr_null(access_find_identical(&access_of_test, SPAN("")));
    access_remove(&access_of_test, made);
    access_remove(&access_of_test, all);
    end();
}
END_TEST

START_TEST(done_twice_is_fine)
{
    access_init(&access_of_test);
    access_done(&access_of_test);
    access_done(&access_of_test);
    access_done(NULL);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_declaration_becomes_a_key);
    tcase_add_test(tc, a_key_may_have_a_tenant);
    tcase_add_test(tc, a_tenant_is_a_short_name);
    tcase_add_test(tc, bad_declarations_add_nothing);
    tcase_add_test(tc, keys_sign_in);
    tcase_add_test(tc, others_do_not);
    tcase_add_test(tc, nobody_may_do_all_unless_a_key_is_required);
    tcase_add_test(tc, messages_do_not_repeat_the_key);
    tcase_add_test(tc, patterns_cover_names);
    tcase_add_test(tc, what_holds_every_secret_is_given_by_name_or_with_all);
    tcase_add_test(tc, rights_are_the_union_of_entries);
    tcase_add_test(tc, who_reads_all);
    tcase_add_test(tc, a_name_shows_all_of_its_characters);
    tcase_add_test(tc, a_key_is_there_until_nobody_refers_to_it);
    tcase_add_test(tc, a_key_expires);
    tcase_add_test(tc, the_configuration_is_read_anew_beside_others);
    tcase_add_test(tc, the_number_of_keys_does_not_matter);
    tcase_add_test(tc, what_one_lacks_is_found);
    tcase_add_test(tc, a_pattern_is_narrowed_to_what_may_be_read);
    tcase_add_test(tc, rights_have_one_spelling);
    tcase_add_test(tc, every_key_may_list_what_there_is);
    tcase_add_test(tc, a_name_stands_for_the_tenants_own_key_first);
    tcase_add_test(tc, an_identity_is_of_one_key_alone);
    tcase_add_test(tc, done_twice_is_fine);
}
