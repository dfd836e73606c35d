/* Batches and keys as bytes: see the header. What is read comes from etcd, where any node of any
 * version may have written it: every length is looked at before it is used. */
#include "journal/replica_batch.h"

#include "base/reader.h"
#include "base/text.h"

#include <string.h>
#include <zstd.h>

enum {
    VERSION = 1,
    FLAG_COMPRESSED = 1,
    FLAG_PARTS = 2,
    FLAG_BASE = 4,
    FLAGS = FLAG_COMPRESSED | FLAG_PARTS | FLAG_BASE,
    COMPRESSION_LEVEL = 1, /* JSON to a third at some hundred MB a second */
    HEX_U64 = 16,
    HEX_U32 = 8,
};

static const struct span magic = SPAN_INIT("SVCB");

void replica_batch_pack(struct span content, struct replica_head *head, struct buf *stored)
{
    size_t from = stored->n, n = 0;
    char *room = content.n > 0 ? buf_reserve(stored, ZSTD_compressBound(content.n)) : NULL;

    if (room != NULL)
        n = ZSTD_compress(room, ZSTD_compressBound(content.n), content.p, content.n,
                          COMPRESSION_LEVEL);
    head->is_compressed = n > 0 && !ZSTD_isError(n) && n < content.n;
    if (head->is_compressed)
        buf_commit(stored, n);
    else
        buf_add(stored, content);
    head->content_bytes = content.n;
    head->stored_bytes = stored->n - from;
    digest_sha256(content, head->digest);
}

void replica_batch_add(struct buf *b, const struct replica_head *head, struct span stored)
{
    unsigned flags = (head->is_compressed ? FLAG_COMPRESSED : 0u) |
                     (head->parts > 0 ? FLAG_PARTS : 0u) | (head->is_base ? FLAG_BASE : 0u);

    buf_add(b, magic);
    buf_add_char(b, VERSION);
    buf_add_char(b, (char)flags);
    buf_add_le16(b, (uint16_t)head->node.n);
    buf_add_le64(b, head->epoch);
    buf_add_le64(b, head->first);
    buf_add_le32(b, head->count);
    buf_add_le32(b, head->parts);
    buf_add_le64(b, head->stored_bytes);
    buf_add_le64(b, head->content_bytes);
    buf_add_le64(b, head->before_bytes);
    buf_add(b, span_of((const char *)head->digest, DIGEST_BYTES));
    buf_add(b, head->node);
    if (head->parts == 0)
        buf_add(b, stored);
}

static struct err *check_head(const struct replica_head *h, unsigned flags, uint64_t stored_bytes)
{
    if (h->count == 0 || h->first > UINT64_MAX - h->count)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log has no serials");
    if (((flags & FLAG_PARTS) != 0) != (h->parts > 0))
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log has a wrong number of parts");
    if (h->parts > 0 ? stored_bytes != 0 || h->stored_bytes < h->parts
                     : stored_bytes != h->stored_bytes)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log has a wrong length");
    if (!h->is_compressed && h->content_bytes != h->stored_bytes)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log has a wrong length of its content");
    return NULL;
}

struct err *replica_batch_parse(struct span value, struct replica_head *out_head,
                                struct span *out_stored)
{
    struct reader r = {.rest = value};
    struct replica_head h = {0};
    struct span mark, digest;
    uint8_t version, flags;
    uint16_t name_bytes;

    mark = reader_bytes(&r, magic.n);
    version = reader_u8(&r);
    flags = reader_u8(&r);
    name_bytes = reader_le16(&r);
    h.epoch = reader_le64(&r);
    h.first = reader_le64(&r);
    h.count = reader_le32(&r);
    h.parts = reader_le32(&r);
    h.stored_bytes = reader_le64(&r);
    h.content_bytes = reader_le64(&r);
    h.before_bytes = reader_le64(&r);
    digest = reader_bytes(&r, DIGEST_BYTES);
    h.node = reader_bytes(&r, name_bytes);
    if (r.failed || !span_eq(mark, magic) || name_bytes > REPLICA_NAME_BYTES)
        return ERR(ERR_STORAGE_FAILURE, "a key of the log holds no batch");
    if (version != VERSION || (flags & ~(unsigned)FLAGS) != 0)
        return ERR(ERR_STORAGE_FAILURE,
                   "a batch of the log has version %u and flags %u, which "
                   "this version does not know",
                   version, flags);
    memcpy(h.digest, digest.p, DIGEST_BYTES);
    h.is_compressed = (flags & FLAG_COMPRESSED) != 0;
    h.is_base = (flags & FLAG_BASE) != 0;
    TRY(check_head(&h, flags, r.rest.n));
    *out_head = h;
    *out_stored = r.rest;
    return NULL;
}

static struct err *unpack(const struct replica_head *h, struct span stored, struct buf *content)
{
    char *room;
    size_t n;

    if (!h->is_compressed) {
        buf_add(content, stored);
        return NULL;
    }
    room = buf_reserve(content, (size_t)h->content_bytes);
    n = room == NULL ? 0 : ZSTD_decompress(room, (size_t)h->content_bytes, stored.p, stored.n);
    if (room == NULL || ZSTD_isError(n) || n != h->content_bytes)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log cannot be decompressed");
    buf_commit(content, n);
    return NULL;
}

struct err *replica_batch_unpack(const struct replica_head *h, struct span stored,
                                 uint64_t most_bytes, struct buf *content)
{
    uint8_t digest[DIGEST_BYTES];
    size_t from = content->n;

    if (stored.n != h->stored_bytes)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log lacks parts");
    if (h->content_bytes > most_bytes)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log has %llu bytes, at most %llu are read",
                   (unsigned long long)h->content_bytes, (unsigned long long)most_bytes);
    TRY(unpack(h, stored, content));
    digest_sha256(span_sub(buf_span(content), from, content->n), digest);
    if (memcmp(digest, h->digest, DIGEST_BYTES) != 0)
        return ERR(ERR_STORAGE_FAILURE, "a batch of the log is not what its digest says");
    return NULL;
}

bool replica_batch_is_same(const struct replica_head *a, const struct replica_head *b)
{
    return a->epoch == b->epoch && a->first == b->first && a->count == b->count &&
           a->is_base == b->is_base && span_eq(a->node, b->node) &&
           memcmp(a->digest, b->digest, DIGEST_BYTES) == 0;
}

/* Keys. */

/* Takes so many digits and the character behind them, '\0' for the end, off *rest. */
static bool take_hex(struct span *rest, size_t digits, char then, uint64_t *out_value)
{
    uint64_t value = 0;

    if (rest->n < digits ||
        (then == '\0' ? rest->n != digits : rest->n == digits || rest->p[digits] != then))
        return false;
    for (size_t i = 0; i < digits; i++) {
        int digit = text_hex_value(rest->p[i]);

        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *rest = span_sub(*rest, digits + (then != '\0'), rest->n);
    *out_value = value;
    return true;
}

static bool take_text(struct span *rest, struct span text)
{
    if (!span_starts(*rest, text))
        return false;
    *rest = span_sub(*rest, text.n, rest->n);
    return true;
}

static bool take_place(struct span *rest, struct span cluster, struct span folder)
{
    return take_text(rest, SPAN("/svcd/")) && take_text(rest, cluster) &&
           take_text(rest, SPAN("/")) && take_text(rest, folder);
}

bool replica_key_is_log(struct span key, struct span cluster, uint64_t *out_serial)
{
    struct span rest = key;

    return take_place(&rest, cluster, SPAN("log/")) && take_hex(&rest, HEX_U64, '\0', out_serial);
}

bool replica_key_is_part(struct span key, struct span cluster, uint64_t *out_epoch,
                         uint64_t *out_serial)
{
    struct span rest = key;
    uint64_t n;

    return take_place(&rest, cluster, SPAN("part/")) && take_hex(&rest, HEX_U64, '/', out_epoch) &&
           take_hex(&rest, HEX_U64, '/', out_serial) && take_hex(&rest, HEX_U32, '\0', &n);
}
