#include "store_testing.h"

#include "journal/journal_options.h"
#include "testing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void store_fixture_init(struct store_fixture *f)
{
    memset(f, 0, sizeof(*f));
    testing_make_directory(f->directory);
    f->segment_bytes = 65536;
    arena_init(&f->arena);
}

static void each_file(const struct store_fixture *f, void (*visit)(const char *path, void *arg),
                      void *arg)
{
    DIR *directory = opendir(f->directory);
    struct dirent *entry;
    char path[512];

    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", f->directory, entry->d_name);
        visit(path, arg);
    }
    closedir(directory);
}

void store_fixture_done(struct store_fixture *f)
{
    if (f->store != NULL)
        store_fixture_close(f);
    arena_done(&f->arena);
    testing_remove_directory(f->directory);
}

void store_fixture_open(struct store_fixture *f)
{
    const struct journal_options journal = {.directory = f->directory,
                                            .segment_bytes = f->segment_bytes};
    const struct turn_options options = {.journal = &journal};

    ck_ok(loop_init(&f->loop));
    f->store = store_new();
    if (f->make_module != NULL)
        f->make_module(f->store);
    f->turn = turn_new(&f->loop, f->store);
    ck_ok(turn_open(f->turn, &options));
}

void store_fixture_close(struct store_fixture *f)
{
    turn_free(f->turn);
    if (f->free_module != NULL)
        f->free_module();
    store_free(f->store);
    loop_run(&f->loop);
    loop_done(&f->loop);
    f->turn = NULL;
    f->store = NULL;
}

void store_fixture_turn(struct store_fixture *f)
{
    loop_wake(&f->loop);
    loop_run_once(&f->loop);
}

void store_fixture_commit(struct store_fixture *f)
{
    const struct journal *journal = turn_journal(f->turn);
    uint64_t last = journal_sequence(journal);

    while (journal_committed_sequence(journal) < last)
        loop_run_once(&f->loop);
}

static void put(struct store_fixture *f, const char *resource, const struct uuid *id,
                uint64_t object_no, const char *members)
{
    struct change change;
    char text[UUID_TEXT_BYTES + 1];
    struct span json;
    uint64_t serial;

    change_init(&change, f->turn, &f->arena);
    if (object_no == 0)
        object_no = change_next_serial(&change);
    uuid_text(id, text);
    json = arena_printf(&f->arena, "{\"Id\":\"%s\",%s,\"ObjectNo\":%llu}", text, members,
                        (unsigned long long)object_no);
    change_put_entity(&change, span_str(resource), id, object_no, json);
    ck_ok(turn_apply(f->turn, &change, &serial));
    change_done(&change);
    arena_reset(&f->arena);
}

struct entity *store_fixture_insert(struct store_fixture *f, const char *resource,
                                    const char *members)
{
    struct uuid id = uuid_new();

    put(f, resource, &id, 0, members);
    return collection_find(store_collection(f->store, span_str(resource)), &id);
}

void store_fixture_update(struct store_fixture *f, struct entity *e, const char *members)
{
    char name[128];
    struct uuid id = e->id;

    snprintf(name, sizeof(name), "%.*s", SPAN_FMT(collection_name(e->collection)));
    put(f, name, &id, e->object_no, members);
}

void store_fixture_delete(struct store_fixture *f, struct entity *e)
{
    struct change change;
    uint64_t serial;

    change_init(&change, f->turn, &f->arena);
    change.frees_space = true;
    change_delete_entity(&change, collection_name(e->collection), &e->id);
    ck_ok(turn_apply(f->turn, &change, &serial));
    change_done(&change);
    arena_reset(&f->arena);
}

struct tally {
    size_t files;
    uint64_t bytes;
};

static void add_segment(const char *path, void *arg)
{
    struct tally *tally = arg;
    struct stat st;

    if (strstr(path, ".seg") == NULL || stat(path, &st) != 0)
        return;
    tally->files++;
    tally->bytes += (uint64_t)st.st_size;
}

size_t store_fixture_segments(const struct store_fixture *f, uint64_t *out_bytes)
{
    struct tally tally = {0, 0};

    each_file(f, add_segment, &tally);
    *out_bytes = tally.bytes;
    return tally.files;
}
