/* A batch is checked as a whole before anything of it is applied: what was applied of a batch that
 * turns out to be bad could not be taken back. */
#include "store/turn_batch.h"

#include "base/must.h"
#include "base/reader.h"

enum { MORE = 1 };

void turn_batch_add(struct buf *b, const struct turn_batch_record *record)
{
    MUST(record->serials > 0 && record->body.n <= UINT32_MAX);
    buf_add_le16(b, record->kind);
    buf_add_le16(b, record->more ? MORE : 0);
    buf_add_le32(b, record->serials);
    buf_add_le32(b, (uint32_t)record->body.n);
    buf_add(b, record->body);
}

struct err *turn_batch_next(struct span *content, struct turn_batch_record *out_record)
{
    struct reader r = {.rest = *content};
    uint16_t flags;

    out_record->kind = reader_le16(&r);
    flags = reader_le16(&r);
    out_record->more = (flags & MORE) != 0;
    out_record->serials = reader_le32(&r);
    out_record->body = reader_bytes(&r, reader_le32(&r));
    if (r.failed)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log ends within a record");
    if ((flags & ~MORE) != 0)
        return ERR(ERR_STORAGE_FAILURE, "a record of the log has flags that this version does not "
                                        "know: a newer one wrote it");
    if (out_record->serials == 0)
        return ERR(ERR_STORAGE_FAILURE, "a record of the log takes no serial");
    *content = r.rest;
    return NULL;
}

struct err *turn_batch_check(struct span content, uint32_t count, unsigned kind_end)
{
    uint64_t serials = 0;
    bool more = false;

    while (content.n > 0) {
        struct turn_batch_record record;

        TRY(turn_batch_next(&content, &record));
        if (record.kind == 0 || record.kind >= kind_end)
            return ERR(ERR_STORAGE_FAILURE,
                       "a record of the log is of kind %u, which this version does not know: a "
                       "newer one wrote it",
                       (unsigned)record.kind);
        serials += record.serials;
        more = record.more;
    }
    if (more)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log ends within a change");
    if (serials != count)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log has %llu serials and says %lu",
                   (unsigned long long)serials, (unsigned long)count);
    return NULL;
}
