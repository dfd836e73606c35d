/* What is secret, and what is shown instead (docs/specification.md, sections 5 and 6). All that
 * leaves the server and may hold a secret passes here: entities, stored errors, messages, the log
 * of attempts, the dump of a journal.
 *
 * A value is secret by its place: that of a member or a header field with a secret name, and of
 * each element of a member named Secrets; or by itself: a text that begins as keys, signing secrets
 * and credentials do. Which names there are besides the usual ones, the configuration says
 * (Limits.SecretHeaders). */
#ifndef ACCESS_MASK_H
#define ACCESS_MASK_H

#include "base/span.h"

struct arena;
struct buf;
struct json_limits;
struct json_value;

#define MASK "*******"

/* The names that the configuration adds; NULL-terminated, or NULL. */
struct mask {
    const char *const *header_names;
};

/* Authorization, Proxy-Authorization, Cookie, X-Api-Key, and those of the configuration; any case.
 */
bool mask_is_secret_header(const struct mask *m, struct span name);
/* Secrets, whose value is a list of them; any case. */
bool mask_is_secret_list(struct span name);
/* Does it begin with `whsec_`, `whsk_`, `svck_`, `apikey `, `Bearer ` or `Basic `, in any case? */
bool mask_is_secret_text(struct span text);
/* Is this value exactly "*******"? Writing that keeps what is stored. */
bool mask_is(struct json_value value, struct arena *a);

/* Appends a JSON value, compact, with what is secret in it replaced by "*******", however deep:
 * strings as a whole, lists of secrets element by element. null stays null. The rest is as written.
 */
void mask_add_value(struct buf *b, const struct mask *m, struct json_value value, struct arena *a);

/* The same as a text in the arena. */
struct span mask_value(const struct mask *m, struct json_value value, struct arena *a);

/* May there be a secret in this JSON text? Where not, mask_add_value would change nothing: most
 * entities hold none, and need not be read for that. */
bool mask_may_find(const struct mask *m, struct span json);

/* Running text, in which secrets may stand anywhere: `Authorization: x`, `"api-key":"x"`,
 * `cookie=x`, `whsec_x`, `Bearer x`, `//user:password@host`. The text itself when there is nothing
 * secret in it, else a copy in the arena. It need not be UTF-8. */
struct span mask_text(const struct mask *m, struct span text, struct arena *a);
/* The same for a message of the server's, which may quote such text, and names members itself:
 * `Signing.Secrets: is missing` tells none. */
struct span mask_message(const struct mask *m, struct span message, struct arena *a);
/* A body of whatever kind. Of JSON, what is secret is replaced as in mask_add_value, and inside of
 * strings as in mask_text; the rest is running text. A body without secrets stays byte for byte. */
struct span mask_body(const struct mask *m, struct span body, const struct json_limits *limits,
                      struct arena *a);
/* What a stored error shows of a header field: `apikey *******` for Authorization, `*******` for
 * the other secret ones; of the others, running text. */
struct span mask_header_value(const struct mask *m, struct span name, struct span value,
                              struct arena *a);

#endif
