/* What decides between two values is worked out once for each, since a sort compares it many times:
 * a rank, which keeps values of different kinds apart, and what is compared within one. */
#include "query/value_key.h"

#include "query/path.h"
#include "json/decimal.h"

enum { RANK_NULL, RANK_FALSE, RANK_TRUE, RANK_NUMBER, RANK_STRING, RANK_INSTANT, RANK_STRUCTURE };

struct value_key value_key(const struct value *value, enum value_type type)
{
    static const int ranks[] = {
        [VALUE_NULL] = RANK_NULL,        [VALUE_BOOLEAN] = RANK_FALSE,
        [VALUE_NUMBER] = RANK_NUMBER,    [VALUE_STRING] = RANK_STRING,
        [VALUE_OBJECT] = RANK_STRUCTURE, [VALUE_ARRAY] = RANK_STRUCTURE,
    };
    struct value_key key = {.rank = ranks[value->kind], .text = value->text};

    if (value->kind == VALUE_BOOLEAN && value->boolean)
        key.rank = RANK_TRUE;
    /* Ranks of their own: otherwise a string between two datetimes would make the order circular.
     */
    if (value->kind == VALUE_STRING && type == TYPE_DATETIME &&
        datetime_parse(value->text, &key.instant))
        key.rank = RANK_INSTANT;
    return key;
}

int value_key_cmp(const struct value_key *a, const struct value_key *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    switch (a->rank) {
    case RANK_NULL:
    case RANK_FALSE:
    case RANK_TRUE:
        return 0;
    case RANK_NUMBER:
        return decimal_cmp(a->text, b->text);
    case RANK_INSTANT:
        return datetime_cmp(a->instant, b->instant);
    default:
        return span_cmp(a->text, b->text);
    }
}
