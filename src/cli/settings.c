/* A file with a key is its owner's alone: one that others may read is refused, as ssh does, because
 * a warning would be read once and the key stay open. */
#include "cli/settings.h"

#include "base/must.h"
#include "cli/cli.h"
#include "json/json.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FILE_BYTES_MOST = 65536 };

struct span settings_path(struct arena *a, const char *name)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (base != NULL && base[0] == '/')
        return arena_printf(a, "%s/svc/%s", base, name);
    if (home == NULL || home[0] == '\0')
        return span_of(NULL, 0);
    return arena_printf(a, "%s/.config/svc/%s", home, name);
}

static struct err *check_mode(struct span path, struct arena *a)
{
    struct stat status;
    struct span name = arena_copy(a, path);

    if (stat(name.p, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0)
        return ERR(ERR_UNKNOWN, "%s: others may read the key in it; chmod 600 it", name.p);
    return NULL;
}

static struct err *read_key_file(struct span path, struct arena *a, struct span *out_key)
{
    struct span text;

    TRY(check_mode(path, a));
    TRY(cli_read_file(path, FILE_BYTES_MOST, a, &text));
    while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    if (text.n == 0)
        return ERR(ERR_UNKNOWN, "%.*s: is empty, where a key was expected", SPAN_FMT(path));
    *out_key = text;
    return NULL;
}

static struct err *take_member(struct json_member m, struct arena *a, struct settings *out)
{
    struct span name = json_string(m.name, a), value = json_string(m.value, a);

    if (json_type(m.value) != JSON_STRING)
        return ERR(ERR_UNKNOWN, "%.*s: is no text", SPAN_FMT(name));
    if (span_eq(name, SPAN("Url")))
        out->url = value;
    else if (span_eq(name, SPAN("Key")))
        out->key = value;
    else
        return ERR(ERR_UNKNOWN, "there is no member '%.*s'; Url and Key there are", SPAN_FMT(name));
    return NULL;
}

static struct err *parse_file(struct span text, struct arena *a, struct settings *out)
{
    struct json_doc doc;
    struct json_value root;

    TRY(json_parse(text, NULL, a, &doc));
    root = json_root(&doc);
    if (json_type(root) != JSON_OBJECT)
        return ERR(ERR_UNKNOWN, "is no JSON object");
    for (struct json_member m = json_first_member(root); json_exists(m.name);
         m = json_next_member(root, m))
        TRY(take_member(m, a, out));
    return NULL;
}

/* Without one, nothing is set. */
static struct err *read_file(struct arena *a, struct settings *out)
{
    struct span path = settings_path(a, "config.json"), text;
    struct stat status;
    struct err *e;

    if (path.p == NULL || stat(path.p, &status) != 0)
        return NULL;
    TRY(cli_read_file(path, FILE_BYTES_MOST, a, &text));
    e = parse_file(text, a, out);
    if (e != NULL)
        return err_prefix(e, "%.*s: ", SPAN_FMT(path));
    return out->key.p != NULL ? check_mode(path, a) : NULL;
}

static bool is_http(struct span url)
{
    return span_istarts(url, SPAN("http://")) || span_istarts(url, SPAN("https://"));
}

static bool has_part(CURLU *parsed, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(parsed, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return has;
}

static struct err *refuse_parts(CURLU *parsed, struct span url)
{
    if (has_part(parsed, CURLUPART_USER) || has_part(parsed, CURLUPART_PASSWORD))
        return ERR(ERR_UNKNOWN, "the server's URL has a name or password in it; give the API key "
                                "by --key-file, SVC_KEY or the configuration file");
    if (has_part(parsed, CURLUPART_QUERY) || has_part(parsed, CURLUPART_FRAGMENT))
        return ERR(ERR_UNKNOWN,
                   "the server's URL '%.*s' has a '?' or '#', but ends with the host "
                   "or the base path",
                   SPAN_FMT(url));
    return NULL;
}

/* libcurl judges, which will use it. */
static struct err *check(const char *what, struct span url, bool is_server)
{
    CURLU *parsed = curl_url();
    struct err *e = NULL;
    CURLUcode code;
    struct buf b;

    MUST(parsed != NULL);
    buf_init(&b, BUF_NO_CAP);
    buf_add(&b, url);
    code = curl_url_set(parsed, CURLUPART_URL, buf_text(&b), 0);
    if (code != CURLUE_OK)
        e = ERR(ERR_UNKNOWN, "%s '%.*s': %s", what, SPAN_FMT(url), curl_url_strerror(code));
    else if (is_server)
        e = refuse_parts(parsed, url);
    buf_done(&b);
    curl_url_cleanup(parsed);
    return e;
}

struct err *settings_check_url(struct span url)
{
    if (span_starts(url, SPAN("unix:")))
        return url.n > 5 ? NULL : ERR(ERR_UNKNOWN, "the server's URL 'unix:' names no socket");
    if (!is_http(url))
        return ERR(
            ERR_UNKNOWN,
            "the server's URL '%.*s' begins with none of http://, https://, unix:", SPAN_FMT(url));
    return check("the server's URL", url, true);
}

struct err *settings_check_receiver(const char *what, struct span url)
{
    if (!is_http(url))
        return ERR(ERR_UNKNOWN, "%s: '%.*s' begins with neither http:// nor https://", what,
                   SPAN_FMT(url));
    return check(what, url, false);
}

struct err *settings_read(const struct args *args, struct arena *a, struct settings *out)
{
    const char *url = getenv("SVC_URL"), *key = getenv("SVC_KEY");

    *out = (struct settings){.url = SPAN("http://127.0.0.1:8080")};
    TRY(read_file(a, out));
    if (url != NULL && url[0] != '\0')
        out->url = span_str(url);
    if (key != NULL && key[0] != '\0')
        out->key = span_str(key);
    if (args_has(args, OPTION_URL))
        out->url = args_value(args, OPTION_URL);
    if (args_has(args, OPTION_KEY_FILE))
        TRY(read_key_file(args_value(args, OPTION_KEY_FILE), a, &out->key));
    if (!span_holds_only(out->key, 0x21, 0x7e, '\0'))
        return ERR(ERR_UNKNOWN, "the API key holds blanks or other than visible ASCII characters");
    return settings_check_url(out->url);
}
