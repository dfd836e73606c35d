/* The interval tree beside a list of the same intervals. Each step is four bytes: what to do, two
 * ends, and a point. Ranks and texts of the ends come from few bits, so that they meet often. */
#include "fuzzing.h"
#include "match/interval.h"

enum { INTERVALS = 48, STEPS_MOST = 400 };

struct item {
    struct interval interval;
    bool is_in, is_found;
};

struct crowd {
    struct interval_tree tree;
    struct item items[INTERVALS];
    size_t count; /* of the tree */
};

static const char letters[] = "abcdefgh";

static int compare(struct span a, struct span b)
{
    return span_cmp(a, b);
}

/* A rank of two, a text of eight, before it or after it; or beyond all. */
static struct cut cut_of(unsigned bits, struct cut beyond)
{
    if (bits % 32 == 31)
        return beyond;
    return cut_at(bits & 1, span_of(letters + (bits >> 1 & 7), 1),
                  bits & 16 ? CUT_AFTER : CUT_BEFORE);
}

static bool is_same(const struct crowd *c, const struct cut *a, const struct cut *b)
{
    return cut_cmp(&c->tree, a, b) == 0;
}

/* The one from `low` to `high` in the list, or NULL. */
static struct item *find(struct crowd *c, const struct cut *low, const struct cut *high)
{
    for (size_t i = 0; i < INTERVALS; i++)
        if (c->items[i].is_in && is_same(c, &c->items[i].interval.low, low) &&
            is_same(c, &c->items[i].interval.high, high))
            return &c->items[i];
    return NULL;
}

static void add(struct crowd *c, struct item *item, struct cut low, struct cut high)
{
    if (item->is_in || find(c, &low, &high) != NULL)
        return;
    *item = (struct item){.interval = {.low = low, .high = high}, .is_in = true};
    interval_add(&c->tree, &item->interval);
    c->count++;
}

static void take_away(struct crowd *c, struct item *item)
{
    if (!item->is_in)
        return;
    interval_remove(&c->tree, &item->interval);
    item->is_in = false;
    c->count--;
}

static void on_found(void *context, struct interval *i)
{
    struct item *item = CONTAINER_OF(i, struct item, interval);

    (void)context;
    MUST(!item->is_found);
    item->is_found = true;
}

static void check_point(struct crowd *c, const struct cut *point)
{
    for (size_t i = 0; i < INTERVALS; i++)
        c->items[i].is_found = false;
    interval_stab(&c->tree, point, on_found, NULL);
    for (size_t i = 0; i < INTERVALS; i++) {
        const struct interval *interval = &c->items[i].interval;
        bool holds = cut_cmp(&c->tree, &interval->low, point) <= 0 &&
                     cut_cmp(&c->tree, &interval->high, point) > 0;

        MUST(c->items[i].is_found == (c->items[i].is_in && interval->shown && holds));
    }
}

/* Returns the height; each side is as high as the other, or one higher. */
static int check_node(const struct interval *node, size_t *count)
{
    int left, right;

    if (node == NULL)
        return 0;
    left = check_node(node->child[0], count);
    right = check_node(node->child[1], count);
    ++*count;
    MUST(left - right <= 1 && right - left <= 1 && node->height == 1 + MAX(left, right));
    return node->height;
}

static void run_step(struct crowd *c, struct input *in)
{
    unsigned what = input_byte(in);
    struct item *item = &c->items[(what >> 2) % INTERVALS];
    struct cut low = cut_of(input_byte(in), cut_least());
    struct cut high = cut_of(input_byte(in), cut_most());
    unsigned at = input_byte(in);
    struct cut point = cut_at(at & 1, span_of(letters + (at >> 1 & 7), 1), CUT_BEFORE);
    struct interval *found;

    if (what % 4 == 0)
        take_away(c, item);
    else if (what % 4 == 1 && item->is_in)
        interval_show(&c->tree, &item->interval, !item->interval.shown);
    else
        add(c, item, low, high);
    found = interval_find(&c->tree, &low, &high);
    MUST((found != NULL) == (find(c, &low, &high) != NULL));
    MUST(found == NULL || &find(c, &low, &high)->interval == found);
    check_point(c, &point);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    struct crowd c = {.tree = {.cmp = compare}};
    size_t count = 0;

    for (size_t i = 0; i < STEPS_MOST && in.n > 0; i++)
        run_step(&c, &in);
    check_node(c.tree.root, &count);
    MUST(count == c.count);
    return 0;
}
