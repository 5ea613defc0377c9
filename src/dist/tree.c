/* Tree sums. */
#include "dist/tree.h"

double *grvi_tree_top(grvi_tree_stack *stack)
{
    GRV_ASSERT(stack->n < stack->capacity);
    return stack->vectors == NULL ? NULL : stack->vectors + stack->n * stack->n_values;
}

static void add_top_to_below(grvi_tree_stack *stack)
{
    stack->n--;
    if (stack->vectors == NULL) return;
    double *const left = stack->vectors + (stack->n - 1) * stack->n_values;
    const double *const right = left + stack->n_values;
    for (int64_t i = 0; i < stack->n_values; i++) left[i] += right[i];
}

static bool are_siblings(grvi_tree_node left, grvi_tree_node right)
{
    const int64_t width = (int64_t)1 << left.level;
    return left.level == right.level && left.first + width == right.first && (left.first & (2 * width - 1)) == 0;
}

void grvi_tree_push(grvi_tree_stack *stack, grvi_tree_node node)
{
    GRV_ASSERT(stack->n == 0 || stack->nodes[stack->n - 1].first < node.first);
    stack->nodes[stack->n++] = node;
    if (stack->n > stack->most) stack->most = stack->n;
    while (stack->n > 1 && are_siblings(stack->nodes[stack->n - 2], stack->nodes[stack->n - 1])) {
        add_top_to_below(stack);
        stack->nodes[stack->n - 1].level++;
    }
}

void grvi_tree_finish(grvi_tree_stack *stack)
{
    while (stack->n > 1) add_top_to_below(stack);
}
