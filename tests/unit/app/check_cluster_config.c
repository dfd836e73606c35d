/* The member `Cluster`. Files are made for each row: a good one, an open one, an empty one. */
#include "testing.h"

#include "app/cluster_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[TESTING_PATH_BYTES];

static void write_file(const char *name, const char *text, mode_t mode)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void make_files(void)
{
    char *long_text = malloc(CLUSTER_PASSWORD_MOST + 2);

    memset(long_text, 'x', CLUSTER_PASSWORD_MOST + 1);
    long_text[CLUSTER_PASSWORD_MOST + 1] = '\0';
    testing_make_directory(directory);
    write_file("good", "secret", 0640);
    write_file("open", "secret", 0644);
    write_file("written", "secret", 0660);
    write_file("empty", "", 0600);
    write_file("long", long_text, 0600);
    free(long_text);
}

static void remove_files(void)
{
    testing_remove_directory(directory);
}

/* `$` stands for the directory. */
static struct span with_directory(const char *text, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    for (; *text != '\0'; text++) {
        if (*text == '$')
            buf_add_str(&b, directory);
        else
            buf_add_char(&b, *text);
    }
    return buf_span(&b);
}

static struct err *read_text(const char *text, struct arena *a, struct cluster_config *out)
{
    static const struct json_limits limits = {10, 1000};
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    ck_ok(json_parse(with_directory(text, a), &limits, a, doc));
    return cluster_config_read(json_root(doc), a, out);
}

#define LEAST                                                                                      \
    "\"Name\":\"prod\",\"Node\":\"a\",\"Url\":\"http://a:8080\",\"Etcd\":[\"http://e1:2379\"]"

START_TEST(the_least)
{
    struct cluster_config c;
    struct arena a;

    arena_init(&a);
    ck_ok(read_text("{" LEAST "}", &a, &c));
    ck_assert_str_eq(c.name, "prod");
    ck_assert_str_eq(c.node, "a");
    ck_assert_str_eq(c.url, "http://a:8080");
    ck_assert_uint_eq(c.etcd_count, 1);
    ck_assert_str_eq(c.etcd[0], "http://e1:2379");
    ck_assert(c.ca_file == NULL && c.cert_file == NULL && c.key_file == NULL);
    ck_assert(c.user == NULL && c.password_file == NULL);
    ck_assert_int_eq(c.lease_seconds, 5);
    ck_assert_int_eq(c.commit_seconds, 10);
    ck_assert_int_eq(c.tail_bytes, 268435456);
    ck_assert(!c.redirects && !c.adopts);
    arena_done(&a);
}
END_TEST

START_TEST(everything)
{
    struct cluster_config c;
    struct arena a;

    make_files();
    arena_init(&a);
    ck_ok(read_text("{\"name\":\"A-1_b.c\",\"Node\":\"n\",\"Url\":\"https://[::1]:7\","
                    "\"Etcd\":[\"https://e1\",\"HTTP://10.0.0.1:1\"],\"CaFile\":\"$/open\","
                    "\"CertFile\":\"$/open\",\"KeyFile\":\"$/good\",\"User\":\"u\","
                    "\"PasswordFile\":\"$/good\",\"LeaseSeconds\":2e0,\"CommitSeconds\":300,"
                    "\"TailBytes\":1048576,\"Redirect\":true,\"Adopt\":true}",
                    &a, &c));
    ck_assert_str_eq(c.name, "A-1_b.c");
    ck_assert_uint_eq(c.etcd_count, 2);
    ck_assert_str_eq(c.etcd[1], "HTTP://10.0.0.1:1");
    ck_assert_ptr_nonnull(strstr(c.key_file, "/good"));
    ck_assert_str_eq(c.user, "u");
    ck_assert_int_eq(c.lease_seconds, 2);
    ck_assert_int_eq(c.commit_seconds, 300);
    ck_assert_int_eq(c.tail_bytes, 1048576);
    ck_assert(c.redirects && c.adopts);
    arena_done(&a);
    remove_files();
}
END_TEST

#define NAMES_SHOULD "must have 1 to 64 letters, digits, '-', '.' and '_'"
#define X16                                                                                        \
    "\"http://e\",\"http://e\",\"http://e\",\"http://e\",\"http://e\",\"http://e\","               \
    "\"http://e\",\"http://e\",\"http://e\",\"http://e\",\"http://e\",\"http://e\","               \
    "\"http://e\",\"http://e\",\"http://e\",\"http://e\""

/* Members come last and so replace nothing: each row has the others that are required. */
static const struct {
    const char *text, *says;
} bad[] = {
    {"{}", "Name: is required"},
    {"{\"Name\":\"p\"}", "Node: is required"},
    {"{\"Name\":\"p\",\"Node\":\"a\"}", "Url: is required"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a\"}", "Etcd: is required"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[]}", "Etcd: must have 1 to 16"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[" X16 ",\"http://e\"]}",
     "Etcd: must have 1 to 16"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[\"http://e\",\"e2:2379\"]}",
     "Etcd[1]: 'e2:2379' should be http://"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[\"http://e/\"]}",
     "Etcd[0]: 'http://e/' should be http://"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[7]}",
     "Etcd[0]: must be of type"},
    {"{\"Name\":\"p/q\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[\"http://e\"]}",
     "Name: " NAMES_SHOULD},
    {"{\"Name\":\"\",\"Node\":\"a\",\"Url\":\"http://a\",\"Etcd\":[\"http://e\"]}", "Name: must"},
    {"{\"Name\":\"p\",\"Node\":\"a b\",\"Url\":\"http://a\",\"Etcd\":[\"http://e\"]}",
     "Node: " NAMES_SHOULD},
    {"{\"Name\":\"p\",\"Node\":"
     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
     "\"Url\":\"http://a\",\"Etcd\":[\"http://e\"]}",
     "Node: " NAMES_SHOULD},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"a:8080\",\"Etcd\":[\"http://e\"]}",
     "Url: 'a:8080' should be http://"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"ftp://a\",\"Etcd\":[\"http://e\"]}",
     "Url: 'ftp://a'"},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://u@a\",\"Etcd\":[\"http://e\"]}", "Url: "},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a:0\",\"Etcd\":[\"http://e\"]}", "Url: "},
    {"{\"Name\":\"p\",\"Node\":\"a\",\"Url\":\"http://a/x\",\"Etcd\":[\"http://e\"]}", "Url: "},
    {"{" LEAST ",\"LeaseSeconds\":1}", "LeaseSeconds: is 1, it must be between 2 and 60"},
    {"{" LEAST ",\"LeaseSeconds\":61}", "LeaseSeconds: is 61, it must be between 2 and 60"},
    {"{" LEAST ",\"LeaseSeconds\":2.5}", "LeaseSeconds: must be of type integer"},
    {"{" LEAST ",\"CommitSeconds\":0}", "CommitSeconds: is 0, it must be between 1 and 300"},
    {"{" LEAST ",\"TailBytes\":1}", "TailBytes: is 1, it must be between 1048576 and"},
    {"{" LEAST ",\"Redirect\":1}", "Redirect: must be of type boolean"},
    {"{" LEAST ",\"Nod\":1}", "Nod: there is no such member, is 'Node'"},
    {"{" LEAST ",\"CaFile\":\"\"}", "CaFile: must neither be empty"},
    {"{" LEAST ",\"CaFile\":\"$/none\"}", "CaFile: file '"},
    {"{" LEAST ",\"CaFile\":\"$\"}", "it is no file"},
    {"{" LEAST ",\"CaFile\":\"$/empty\"}", "it is empty"},
    {"{" LEAST ",\"CertFile\":\"$/good\"}", "KeyFile: is missing, CertFile is of no use"},
    {"{" LEAST ",\"KeyFile\":\"$/good\"}", "CertFile: is missing, KeyFile is of no use"},
    {"{" LEAST ",\"CertFile\":\"$/good\",\"KeyFile\":\"$/open\"}", "/open': it is secret"},
    {"{" LEAST ",\"User\":\"u\"}", "PasswordFile: is missing, User is of no use"},
    {"{" LEAST ",\"PasswordFile\":\"$/good\"}", "User: is missing, PasswordFile is of no use"},
    {"{" LEAST ",\"User\":\"u\",\"PasswordFile\":\"$/open\"}", "its mode is 0644"},
    {"{" LEAST ",\"User\":\"u\",\"PasswordFile\":\"$/written\"}", "its mode is 0660"},
    {"{" LEAST ",\"User\":\"u\",\"PasswordFile\":\"$/empty\"}", "it is empty"},
    {"{" LEAST ",\"User\":\"u\",\"PasswordFile\":\"$/long\"}", "has at most 1024 bytes"},
};

START_TEST(what_is_wrong_is_named)
{
    struct cluster_config c;
    struct arena a;

    make_files();
    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err *e = read_text(bad[i].text, &a, &c);

        ck_assert_msg(e != NULL, "row %zu was taken", i);
        ck_assert_msg(span_find(err_message(e), span_str(bad[i].says)) != SIZE_MAX, "row %zu: %.*s",
                      i, SPAN_FMT(err_message(e)));
        err_free(e);
    }
    arena_done(&a);
    remove_files();
}
END_TEST

START_TEST(it_needs_each_sync)
{
    ck_ok(cluster_config_check_fsync(JOURNAL_ALWAYS));
    ck_fails(cluster_config_check_fsync(JOURNAL_EVERYSEC), ERR_INVALID_ENTITY,
             "Cluster: needs Fsync 'always', and Fsync is 'everysec'");
    ck_fails(cluster_config_check_fsync(JOURNAL_NO), ERR_INVALID_ENTITY, "Fsync is 'no'");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, the_least);
    tcase_add_test(tc, everything);
    tcase_add_test(tc, what_is_wrong_is_named);
    tcase_add_test(tc, it_needs_each_sync);
}
