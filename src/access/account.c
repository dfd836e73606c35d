/* Accounts are found by their name and counted by those who refer to them. The one of everybody is
 * as the others, and as often made and freed: it costs nobody a special case. */
#include "access/account.h"

#include "base/macros.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"

#include <string.h>

struct accounts {
    struct map by_name;
};

static struct span name_of(const void *account)
{
    return ((const struct account *)account)->name;
}

struct accounts *accounts_new(void)
{
    struct accounts *a = NEW(struct accounts);

    map_init(&a->by_name, name_of);
    return a;
}

void accounts_free(struct accounts *a)
{
    if (a == NULL)
        return;
    MUST(map_count(&a->by_name) == 0);
    map_done(&a->by_name);
    mem_free(a);
}

size_t accounts_count(const struct accounts *a)
{
    return map_count(&a->by_name);
}

static struct account *make(struct accounts *a, struct span name)
{
    struct account *account = mem_alloc(sizeof(*account) + name.n);
    char *text = (char *)(account + 1);

    memcpy(text, name.p, name.n);
    *account = (struct account){.name = span_of(text, name.n)};
    list_init(&account->coming);
    list_init(&account->going);
    list_init(&account->signing);
    list_init(&account->passing);
    map_add(&a->by_name, account);
    return account;
}

/* Written to `room`, of ACCOUNT_NAME_BYTES. */
static struct span name_for(struct span tenant, struct span key, char *room)
{
    struct span owner = tenant.n > 0 ? tenant : key;

    MUST(owner.n < ACCOUNT_NAME_BYTES);
    if (owner.n == 0)
        return span_of(room, 0);
    room[0] = tenant.n > 0 ? 't' : 'k';
    memcpy(room + 1, owner.p, owner.n);
    return span_of(room, owner.n + 1);
}

struct account *account_find(struct accounts *a, struct span tenant, struct span key)
{
    char room[ACCOUNT_NAME_BYTES];

    return map_find(&a->by_name, name_for(tenant, key, room));
}

struct account *account_ref(struct accounts *a, struct span tenant, struct span key)
{
    char room[ACCOUNT_NAME_BYTES];
    struct span name = name_for(tenant, key, room);
    struct account *account = map_find(&a->by_name, name);

    if (account == NULL)
        account = make(a, name);
    account->refs++;
    return account;
}

/* The bucket is kept as the time at which it will be full: each request moves that on, and may move
 * it to a second from now. */
unsigned account_take_request(struct account *account, int64_t per_second, uint64_t now_ms)
{
    const uint64_t second_ns = 1000000000;
    uint64_t now_ns = now_ms * 1000000;
    uint64_t paid_ns = MAX(account->paid_until_ns, now_ns) + second_ns / (uint64_t)per_second;

    if (paid_ns <= now_ns + second_ns) {
        account->paid_until_ns = paid_ns;
        return 0;
    }
    return (unsigned)((paid_ns - now_ns - second_ns + second_ns - 1) / second_ns);
}

struct account *account_keep(struct account *account)
{
    account->refs++;
    return account;
}

void account_unref(struct accounts *a, struct account *account)
{
    if (account == NULL || --account->refs > 0)
        return;
    map_remove(&a->by_name, account->name);
    mem_free(account);
}
