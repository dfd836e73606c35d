/* The body is the event's: `[{"N":number,...}]`. */
#include "receivers.h"

#include "machine.h"
#include "operations.h"
#include "simulated.h"

#include "base/must.h"
#include "base/rng.h"
#include "json/json.h"

static bool are_well;
static uint64_t count;

static struct span header_of(const struct exchange *x, struct span name)
{
    for (size_t i = 0; i < x->header_count; i++)
        if (span_ieq(x->headers[i].name, name))
            return x->headers[i].value;
    return span_of(NULL, 0);
}

static uint64_t number_of(const struct exchange *x)
{
    struct json_doc doc;
    struct arena a;
    uint64_t n;

    arena_init(&a);
    MUST(json_parse(x->body, NULL, &a, &doc) == NULL);
    MUST(span_to_u64(json_text(json_member(json_first(json_root(&doc)), SPAN("N"))), &n));
    arena_done(&a);
    return n;
}

void receivers_check_start(const struct exchange *x)
{
    operations_check_confirmed(number_of(x));
    if (!machine_leads(&machines[x->client]))
        sim_broken(DELIVERED, "node %s delivers, and does not lead", machines[x->client].name);
}

void receivers_take(struct exchange *x)
{
    static const int statuses[] = {200, 204, 500, 503, 200, 200};
    int status = are_well ? 200 : statuses[rng_below(ARRAY_LEN(statuses))];
    uint64_t n = number_of(x);
    struct uuid event;

    if (!uuid_parse(header_of(x, SPAN("webhook-id")), &event))
        sim_broken(DELIVERED, "operation %llu is delivered without an Id", (unsigned long long)n);
    operations_note_delivery(&event, n, status < 300);
    count++;
    if (are_well || !sim_chance(20))
        network_answer(x, status, NULL, 0, span_of("", 0));
}

void receivers_be_well(bool well)
{
    are_well = well;
    if (!well)
        count = 0;
}

uint64_t receivers_count(void)
{
    return count;
}
