/* Text: UTF-8, tokens, hexadecimal, base64, ASCII case, nearest names. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/span.h"

struct buf;
struct arena;

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool text_is_utf8(struct span s);
/* Bytes of the well-formed character that s begins with, 1 to 4; 0 when there is none. */
size_t text_utf8_bytes(struct span s);
/* The scalar value of a well-formed character. */
uint32_t text_scalar(struct span character);
/* Number of Unicode scalar values of valid UTF-8. */
size_t text_scalar_count(struct span s);
/* The longest prefix with at most max scalar values, cut on a character boundary. */
struct span text_cut(struct span s, size_t max_scalars);
/* The same with at most max_bytes; what is no UTF-8 is cut where it falls. */
struct span text_cut_bytes(struct span s, size_t max_bytes);
/* Appends, or writes to `out`, one scalar value as UTF-8; what is no scalar value as U+FFFD.
 * text_put_scalar returns the number of bytes, 1 to 4. */
void text_add_scalar(struct buf *b, uint32_t scalar);
size_t text_put_scalar(char out[4], uint32_t scalar);

/* Is the well-formed character `c` one that moves a terminal's cursor or turns the direction of
 * what is shown: a control of ASCII or Latin-1, a separator of lines, a mark or an override of
 * direction (Unicode, UAX 9)? Shown to people, it is escaped. */
bool text_is_control(struct span c);
/* `\u202e`: how such a character is shown, in JSON too. */
void text_add_escape(struct buf *b, struct span c);
/* Appends the text, with those characters escaped, and what is no UTF-8 as U+FFFD. */
void text_add_shown(struct buf *b, struct span s);

/* RFC 9110 section 5.6.2: names of methods, fields, parameters. One or more characters. */
bool text_is_token(struct span s);
bool text_is_token_char(char c);

/* Is it of ASCII letters, digits and characters of `others`, one at least? */
bool text_is_made_of(struct span s, const char *others);
/* Appends the text with everything else percent-encoded (RFC 3986, section 2.1). */
void text_add_percent(struct buf *b, struct span s, const char *others);
/* Decodes that, in the arena where there is anything to decode. False: some '%' is not followed by
 * two hexadecimal digits, and stays as it is. */
bool text_from_percent(struct span s, struct arena *a, struct span *out_text);

/* Of a digit in either case; -1 when it is none. */
int text_hex_value(char c);
void text_add_hex(struct buf *b, struct span bytes); /* lower case */
/* Both cases accepted. `out` takes s.n / 2 bytes. False unless s is whole pairs of hex digits. */
bool text_from_hex(struct span s, uint8_t *out);
/* RFC 4648 section 4, with padding. */
void text_add_base64(struct buf *b, struct span bytes);
/* Padding required, no other characters, unused bits zero. False when malformed; out is then
 * untouched. */
bool text_from_base64(struct span s, struct arena *a, struct span *out_bytes);

/* ASCII letters in lower case, the rest as it is. */
struct span text_fold(struct arena *a, struct span s);
void text_fold_into(char *out, struct span s); /* s.n bytes */

#define TEXT_NEAREST_BYTES 128

/* Of `count` names, the one most like `name`, ASCII case folded, by Damerau-Levenshtein distance
 * (optimal string alignment); the absent span when none is within max(2, n / 3) edits. The first
 * wins among equals. Names longer than TEXT_NEAREST_BYTES are like nothing. */
struct span text_nearest(struct span name, const struct span *names, size_t count);

#endif
