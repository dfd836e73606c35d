/* Accounts are found by their name and counted by those who refer to them. The one of everybody is
 * as the others, and as often made and freed: it costs nobody a special case. */
#include "rest/account.h"

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
    map_add(&a->by_name, account);
    return account;
}

struct account *account_ref(struct accounts *a, struct span tenant, struct span key)
{
    char text[ACCOUNT_NAME_BYTES];
    struct span owner = tenant.n > 0 ? tenant : key;
    struct span name = {text, 0};
    struct account *account;

    MUST(owner.n < sizeof(text));
    if (owner.n > 0) {
        text[0] = tenant.n > 0 ? 't' : 'k';
        memcpy(text + 1, owner.p, owner.n);
        name.n = owner.n + 1;
    }
    account = map_find(&a->by_name, name);
    if (account == NULL)
        account = make(a, name);
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
