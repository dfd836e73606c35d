/* A height-balanced tree (Adelson-Velsky and Landis) ordered by low end, then high end. Each node
 * knows which interval shown in its subtree reaches highest: a subtree whose highest one ends
 * before the point is left out, and so is everything to the right of an interval that begins after
 * it. What is walked to the left of an interval that has begun therefore has an answer in it.
 *
 * Functions call themselves once a level; there are at most 1.44 log2(n) + 2 levels. */
#include "match/interval.h"

#include "base/macros.h"
#include "base/must.h"

/* ---- cuts ---- */

struct cut cut_at(uint64_t rank, struct span bytes, enum cut_side side)
{
    MUST(bytes.n <= UINT32_MAX);
    return (struct cut){rank, bytes.p, (uint32_t)bytes.n, (uint8_t)side};
}

struct cut cut_least(void)
{
    return (struct cut){.rank = 0, .side = CUT_LEAST};
}

struct cut cut_most(void)
{
    return (struct cut){.rank = UINT64_MAX, .side = CUT_MOST};
}

static bool is_beyond(const struct cut *c)
{
    return c->side == CUT_LEAST || c->side == CUT_MOST;
}

int cut_cmp(const struct interval_tree *tree, const struct cut *a, const struct cut *b)
{
    int order = 0;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (!is_beyond(a) && !is_beyond(b))
        order = tree->cmp(span_of(a->bytes, a->count), span_of(b->bytes, b->count));
    return order != 0 ? order : (a->side > b->side) - (a->side < b->side);
}

/* The cut lies before the point. One that does not lies after it. */
static bool precedes(const struct interval_tree *tree, const struct cut *c, const struct cut *point)
{
    return cut_cmp(tree, c, point) <= 0;
}

bool interval_holds(const struct interval_tree *tree, const struct interval *i,
                    const struct cut *point)
{
    return precedes(tree, &i->low, point) && !precedes(tree, &i->high, point);
}

/* ---- balance ---- */

static int height_of(const struct interval *node)
{
    return node != NULL ? node->height : 0;
}

static struct interval *higher(const struct interval_tree *tree, struct interval *a,
                               struct interval *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    return cut_cmp(tree, &a->high, &b->high) >= 0 ? a : b;
}

static struct interval *top_of(const struct interval *node)
{
    return node != NULL ? node->top : NULL;
}

/* After something below changed. */
static void refresh(const struct interval_tree *tree, struct interval *node)
{
    struct interval *top = higher(tree, top_of(node->child[0]), top_of(node->child[1]));

    node->top = node->shown ? higher(tree, node, top) : top;
    node->height = (uint8_t)(1 + MAX(height_of(node->child[0]), height_of(node->child[1])));
}

/* The child on that side becomes the root of the subtree. */
static struct interval *rotate(const struct interval_tree *tree, struct interval *node, int side)
{
    struct interval *root = node->child[side];

    node->child[side] = root->child[!side];
    root->child[!side] = node;
    refresh(tree, node);
    refresh(tree, root);
    return root;
}

/* Balances a subtree whose sides differ in height by two at most; returns its root. */
static struct interval *balance(const struct interval_tree *tree, struct interval *node)
{
    int lean = height_of(node->child[1]) - height_of(node->child[0]);
    int side = lean > 0; /* the higher one */

    if (lean >= -1 && lean <= 1) {
        refresh(tree, node);
        return node;
    }
    if (height_of(node->child[side]->child[side]) < height_of(node->child[side]->child[!side]))
        node->child[side] = rotate(tree, node->child[side], !side);
    return rotate(tree, node, side);
}

/* ---- changes ---- */

static int cmp(const struct interval_tree *tree, const struct cut *low, const struct cut *high,
               const struct interval *node)
{
    int order = cut_cmp(tree, low, &node->low);

    return order != 0 ? order : cut_cmp(tree, high, &node->high);
}

struct interval *interval_find(const struct interval_tree *tree, const struct cut *low,
                               const struct cut *high)
{
    struct interval *node = tree->root;
    int order;

    while (node != NULL && (order = cmp(tree, low, high, node)) != 0)
        node = node->child[order > 0];
    return node;
}

/* On which side of the node the interval stands, or belongs: 0 left, 1 right. */
static int side_of(const struct interval_tree *tree, const struct interval *i,
                   const struct interval *node)
{
    return cmp(tree, &i->low, &i->high, node) >= 0;
}

static struct interval *add_below(const struct interval_tree *tree, struct interval *node,
                                  struct interval *added)
{
    int side;

    if (node == NULL)
        return added;
    side = side_of(tree, added, node);
    node->child[side] = add_below(tree, node->child[side], added);
    return balance(tree, node);
}

void interval_add(struct interval_tree *tree, struct interval *added)
{
    added->child[0] = added->child[1] = NULL;
    added->shown = false;
    refresh(tree, added);
    tree->root = add_below(tree, tree->root, added);
}

/* Takes the least out of a subtree. */
static struct interval *take_first(const struct interval_tree *tree, struct interval *node,
                                   struct interval **out_first)
{
    if (node->child[0] == NULL) {
        *out_first = node;
        return node->child[1];
    }
    node->child[0] = take_first(tree, node->child[0], out_first);
    return balance(tree, node);
}

/* What stands in place of a node that goes. */
static struct interval *replace(const struct interval_tree *tree, struct interval *node)
{
    struct interval *next, *right;

    if (node->child[0] == NULL || node->child[1] == NULL)
        return node->child[node->child[0] == NULL];
    right = take_first(tree, node->child[1], &next);
    next->child[0] = node->child[0];
    next->child[1] = right;
    return balance(tree, next);
}

static struct interval *remove_below(const struct interval_tree *tree, struct interval *node,
                                     struct interval *removed)
{
    int side;

    MUST(node != NULL);
    if (node == removed)
        return replace(tree, node);
    side = side_of(tree, removed, node);
    node->child[side] = remove_below(tree, node->child[side], removed);
    return balance(tree, node);
}

void interval_remove(struct interval_tree *tree, struct interval *removed)
{
    tree->root = remove_below(tree, tree->root, removed);
}

static void refresh_down_to(const struct interval_tree *tree, struct interval *node,
                            const struct interval *changed)
{
    if (node != changed)
        refresh_down_to(tree, node->child[side_of(tree, changed, node)], changed);
    refresh(tree, node);
}

void interval_show(struct interval_tree *tree, struct interval *i, bool shown)
{
    i->shown = shown;
    refresh_down_to(tree, tree->root, i);
}

/* ---- the question ---- */

static void stab_below(const struct interval_tree *tree, struct interval *node,
                       const struct cut *point, interval_found_fn *on_found, void *context)
{
    while (top_of(node) != NULL && !precedes(tree, &node->top->high, point)) {
        bool begun = precedes(tree, &node->low, point);

        stab_below(tree, node->child[0], point, on_found, context);
        if (!begun)
            return;
        if (node->shown && !precedes(tree, &node->high, point))
            on_found(context, node);
        node = node->child[1];
    }
}

void interval_stab(const struct interval_tree *tree, const struct cut *point,
                   interval_found_fn *on_found, void *context)
{
    stab_below(tree, tree->root, point, on_found, context);
}
