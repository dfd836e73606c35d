/* Requests to the server, one at a time. What it refuses is told in its own words. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/cli.h"
#include "cli/settings.h"

#include <curl/curl.h>

struct client *client_new(const struct settings *settings, struct arena *a);
/* Of another server, with the same key. */
struct client *client_beside(const struct cli *cli, struct span url);
/* NULL is allowed. */
void client_free(struct client *client);

struct ask {
    const char *method;
    struct span target;       /* below the base path */
    struct span body;         /* absent: none */
    struct span content_type; /* absent: application/json */
    bool minimal;             /* an answer without entities will do */
};

struct answer {
    int status;
    struct span body, info, pager, content_type, location;
    struct json_value json; /* absent: the body is no JSON */
};

/* It was answered, however. A change that a node of a cluster sends on to its leader (307) is asked
 * there, with the key: if that is the Url of a node, as the node that was asked says, and the key
 * is not in plain text there where it was not before. Else the answer's words say why not. False:
 * it was not, *out_why says why, and nothing has been told. */
bool client_try(struct cli *cli, const struct ask *ask, struct answer *out, struct span *out_why);
/* CLI_DONE: it was answered, however. */
int client_send(struct cli *cli, const struct ask *ask, struct answer *out);
/* CLI_DONE: 2xx. Everything else has been told. */
int client_ask(struct cli *cli, const struct ask *ask, struct answer *out);
/* The same for a GET of the target. */
int client_get(struct cli *cli, struct span target, struct answer *out);
/* Tells what an answer that is not 2xx says; returns CLI_REFUSED. */
int client_refuse(struct cli *cli, const struct answer *answer);
/* The words of such an answer, in the arena. */
struct span client_words(struct cli *cli, const struct answer *answer);

struct entities {
    struct json_value *items;
    size_t count, room;
};

/* The elements of an array behind what is there. */
void client_add_entities(struct cli *cli, struct json_value array, struct entities *out);

/* All that a GET finds, page by page. The target has conditions, or `_`. */
int client_get_all(struct cli *cli, struct span target, struct entities *out);
/* One entity, or CLI_REFUSED with a word that there is none. */
int client_get_one(struct cli *cli, struct span target, const char *what, struct span name,
                   struct json_value *out_entity);

/* A text member; the absent span when it is null or not there. */
struct span client_text(struct cli *cli, struct json_value entity, const char *name);

/* For streams: a handle set up for a GET of the target, with the key, whose header fields are
 * *out_fields. The caller frees both. */
CURL *client_handle(struct cli *cli, struct span target, struct curl_slist **out_fields);
/* The server's address for messages. */
struct span client_address(const struct cli *cli);
/* An entry more; aborts when there is no memory. */
void client_add_field(struct curl_slist **fields, const char *text);

#endif
