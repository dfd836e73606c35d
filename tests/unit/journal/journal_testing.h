/* A journal under test beside a plain list of what was appended. After each reopening what was
 * replayed is compared with that list: it must be a prefix of whole changes, and hold all that was
 * committed. A record's body follows from its serial and its length. */
#ifndef JOURNAL_TESTING_H
#define JOURNAL_TESTING_H

#include "journal/journal.h"
#include "journal/journal_options.h"
#include "journal/place.h"

#define FX_SEGMENT_BYTES (64u << 10)

struct fx_record {
    uint64_t serial;
    uint32_t serials;
    uint16_t kind;
    size_t n;
    bool more;
    bool body_holds; /* replayed: the body is what it should be */
    struct journal_place place;
};

struct fx_list {
    struct fx_record *records;
    size_t count, size;
};

struct fixture {
    struct loop loop;
    char directory[64];
    struct journal_options options;
    struct journal *j;
    struct fx_list appended;
    struct fx_list replayed; /* by the last open */
    uint64_t committed;      /* last serial of on_commit */
    unsigned commits, failures;
    int error_number;                /* of on_failed */
    uint64_t refuse_serial;          /* on_replay fails there */
    bool drafts;                     /* what is appended is handed over in pieces */
    bool moves;                      /* some changes take no serials, as those of cleaning */
    void (*then)(struct fixture *f); /* last thing in on_commit and on_failed */
};

void fx_add(struct fx_list *list, const struct fx_record *record);
bool fx_body_holds(struct span body, uint64_t serial);
/* On a disk, where there is one. */
void fx_init(struct fixture *f, enum journal_fsync fsync, enum disk_engine engine);
/* In memory, where that takes direct writes: for what opens hundreds of journals. */
void fx_init_fast(struct fixture *f, enum journal_fsync fsync, enum disk_engine engine);
struct err *fx_try_open(struct fixture *f);
void fx_open(struct fixture *f);
/* Turns that do not wait for anything. */
void fx_turns(struct fixture *f, int count);
void fx_close(struct fixture *f);
void fx_done(struct fixture *f);
/* Appends a change of `count` records of n bytes each, without asking for room. */
void fx_append_blindly(struct fixture *f, size_t count, size_t n);
size_t fx_bytes(size_t count, size_t n);
void fx_append(struct fixture *f, size_t count, size_t n);
/* Asks for a commit and runs until nothing is left to be committed. */
void fx_commit(struct fixture *f);
/* `count` commits of one change each. */
void fx_commit_many(struct fixture *f, size_t count);
/* What the last open replayed is what was appended, from record `from` on: at least up to serial
 * `committed`, in whole changes. */
void fx_check_replayed(const struct fixture *f, size_t from, uint64_t committed);
/* What was not replayed is forgotten, so that appending can go on. */
void fx_forget_lost(struct fixture *f);
void fx_reopen(struct fixture *f);
/* The same, and nothing at all is missing. */
void fx_reopen_whole(struct fixture *f);
const char *fx_path(const struct fixture *f, uint64_t number, char out_path[128]);
bool fx_exists(const struct fixture *f, uint64_t number);
/* The bytes of a segment file (mem_free). */
char *fx_read_file(const struct fixture *f, uint64_t number, size_t *out_n);
void fx_write_file(const struct fixture *f, uint64_t number, const char *p, size_t n);
/* Overwrites bytes of a segment file. */
void fx_patch(const struct fixture *f, uint64_t number, size_t at, const char *p, size_t n);
void fx_flip(const struct fixture *f, uint64_t number, size_t at);

#endif
