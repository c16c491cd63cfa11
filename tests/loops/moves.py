"""Random transformations of loop trees."""

from geon.transformers.loops import transformations as t
from geon.transformers.loops.tree import Kind, LoopNode, Role, loops_of


def move(tree, random):
    """The name of a transformation, and the function that does it to a tree."""
    loops = loops_of(tree.body)
    if not loops:
        return "nothing", lambda tree: tree
    loop = loops[int(random.integers(len(loops)))]
    name, by = loop.variable, int(random.choice([2, 3, 4, 16]))
    inner = next((each.variable for each in loop.body if isinstance(each, LoopNode)), name)
    points = [int(each) for each in random.integers(0, 9, 2)]
    role = random.choice([Role.TASK, Role.VECTOR, Role.UNROLLED])
    moves = {
        "split": lambda tree: t.split(tree, name, by).tree,
        "split short": lambda tree: t.split(tree, name, by, short=True).tree,
        "lanes": lambda tree: _lanes(tree, name, by),
        "collapse": lambda tree: t.collapse(tree, name, inner),
        "reorder": lambda tree: t.reorder(tree, name, inner),
        "role": lambda tree: t.set_role(tree, name, role),
        "task": lambda tree: t.set_role(tree, name, Role.TASK),
        "distribute": lambda tree: t.distribute(tree, name)[0],
        "sink": lambda tree: t.sink(tree, name)[0],
        "unroll": lambda tree: t.unroll(tree, name, by),
        "unrolled": lambda tree: t.unrolled(tree, name) if is_short(loop) else tree,
        "jam": lambda tree: t.jam(tree, name, by),
        "partition": lambda tree: t.partition(tree, name, points),
    }
    chosen = str(random.choice(list(moves)))
    return chosen, moves[chosen]


def is_short(loop):
    return isinstance(loop.size, int) and loop.size < 9


def _lanes(tree, name, by):
    made = t.split(tree, name, by, Kind.LANES)
    return t.set_role(made.tree, made.inner, Role.VECTOR)
