/* What the tests of this floor share: the shape of a person, some of its entities, and parsing. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "query/shape.h"
#include "json/json.h"

extern const struct enumeration sample_kind;
extern const struct shape sample_person, sample_dynamic;
extern const struct shape sample_account; /* of the person's Account */

/* The sample shape that a table row asks for. */
enum sample { PERSON, DYNAMIC };

const struct shape *sample_shape(enum sample sample);

/* An entity of each shape. */
#define SAMPLE_PERSON                                                                              \
    "{\"Id\":\"p1\",\"Name\":\"J\xc3\xb6rg \xf0\x9f\x98\x80\",\"Age\":42,\"Height\":1.80,"         \
    "\"IsActive\":true,\"Born\":\"1983-04-05T23:30:08.25-02:00\",\"Kind\":\"Staff\","              \
    "\"Account\":{\"Number\":\"A-17\",\"Balance\":-0.50,\"Opened\":null,"                          \
    "\"Owner\":{\"Name\":\"Ada\",\"Length\":7.5}},"                                                \
    "\"Lines\":[{\"Sku\":\"x\\u002f1\",\"Count\":3},{\"Sku\":\"y\",\"Count\":"                     \
    "12345678901234567890}],"                                                                      \
    "\"Tags\":[\"red\",7,null],\"Headers\":{\"X-Length\":\"5\",\"length\":\"member\"},"            \
    "\"Extra\":null,\"ObjectNo\":17}"

#define SAMPLE_NOTE                                                                                \
    "{\"Text\":\"2026-11-01\",\"text\":\"lower\",\"Zip\":\"12345\",\"Count\":5,\"Flag\":true,"     \
    "\"Flags\":\"true\",\"Nothing\":null,\"List\":[1,\"two\",[3]],"                                \
    "\"Box\":{\"Year\":1999,\"0\":\"zero\",\"Deep\":{\"Er\":\"\\\"q\\\"\"}},\"Empty\":\"\"}"

/* Parses text that the test knows to be JSON. */
struct json_value sample_json(struct span text, struct arena *a);
/* A random text of up to `most` bytes: ordinary letters, everything with a meaning in targets and
 * in JSON, and characters of two to four bytes. */
struct span sample_random_text(struct arena *a, size_t most);

#endif
