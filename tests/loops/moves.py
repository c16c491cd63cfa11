"""Random transformations of loop trees."""

from geon.op_graph.values.dtypes import FLOAT32, FLOAT64
from geon.transformers.kernels.ir.loop_variables import variables_of
from geon.transformers.kernels.ir.scalar_code import Apply, Load
from geon.transformers.kernels.ir.scalar_code import walk as walk_scalars
from geon.transformers.loops import partial_states as p
from geon.transformers.loops import transformations as t
from geon.transformers.loops.tree import (
    Choose,
    Fold,
    IllegalScheduleError,
    Kind,
    LoopNode,
    Role,
    loops_of,
    values_of,
    walk,
)


def move(tree, random):
    """The name of a transformation, and the function that does it to a tree."""
    loops = loops_of(tree.body)
    if not loops:
        return "nothing", lambda tree: tree
    loop = loops[int(random.integers(len(loops)))]
    name, by = loop.variable, int(random.choice([2, 3, 4, 16]))
    inner = next((each.variable for each in loop.body if isinstance(each, LoopNode)), name)
    other = loops[int(random.integers(len(loops)))].variable
    points = [int(each) for each in random.integers(0, 9, 2)]
    role = random.choice([Role.TASK, Role.THREAD, Role.SIMD, Role.VECTOR, Role.UNROLLED])
    moves = {
        "split": lambda tree: t.split(tree, name, by).tree,
        "split short": lambda tree: t.split(tree, name, by, short=True).tree,
        "split guarded": lambda tree: t.split(tree, name, by, guarded=True).tree,
        "lanes": lambda tree: _lanes(tree, name, by),
        "split parts": lambda tree: t.split_parts(tree, name, by, 1 + len(loops) % 3).tree,
        "split evenly": lambda tree: t.split_evenly(tree, name, by).tree,
        "fission": lambda tree: t.fission(tree, name, inner, adjacent=by == 2)[0],
        "promote": lambda tree: p.promoted(tree, name, states_of(loop)),
        "collapse": lambda tree: t.collapse(tree, name, inner),
        "reorder": lambda tree: t.reorder(tree, name, inner),
        "role": lambda tree: t.set_role(tree, name, role),
        "task": lambda tree: t.set_role(tree, name, Role.TASK),
        "distribute": lambda tree: t.distribute(tree, name)[0],
        "sink": lambda tree: t.sink(tree, name)[0],
        "sink into": lambda tree: t.sink(tree, name, [other])[0],
        "unroll": lambda tree: t.unroll(tree, name, by),
        "unrolled": lambda tree: t.unrolled(tree, name) if is_short(loop) else tree,
        "jam": lambda tree: t.jam(tree, name, by),
        "rfactor": lambda tree: p.rfactor(tree, other, name),
        "rfactor alone": lambda tree: p.rfactor(tree, name),
        "rfactor lanes": lambda tree: _partial_lanes(tree, name, by),
        "hoist": lambda tree: p.hoist(tree, name, invariants(loop)),
        "hold": lambda tree: _held(tree, loop, random),
        "stage": lambda tree: p.stage(tree, other, first_load(tree, name), [name]),
        "fuse": lambda tree: p.fuse(tree, name, behind(tree, loop)),
        "widen": lambda tree: p.widened(tree, [0], FLOAT64) if is_float(tree) else tree,
        "partition": lambda tree: t.partition(tree, name, points),
    }
    chosen = str(random.choice(list(moves)))
    return chosen, moves[chosen]


def bodies(body):
    """A body and all bodies of loops and choices inside of it."""
    yield body
    for each in body:
        if isinstance(each, LoopNode):
            yield from bodies(each.body)
        elif isinstance(each, Choose):
            yield from bodies(each.then)
            yield from bodies(each.otherwise)


def _held(tree, loop, random):
    """A value of a loop, kept for a later one in the same body."""
    nodes = [node for each, _ in walk(loop.body) for node in walk_scalars(*values_of(each))]
    values = [node for node in nodes if isinstance(node, Apply)]
    (body,) = [body for body in bodies(tree.body) if any(each is loop for each in body)]
    later = [x for x in body[body.index(loop) + 1 :] if isinstance(x, LoopNode)]
    if not values or not later:
        raise IllegalScheduleError("no later loop needs a value")
    value = values[int(random.integers(len(values)))]
    return p.hold(tree, value, loop.variable, later[-1].variable)


def invariants(loop):
    """The values in a loop that change with no loop inside of it."""
    inside = {each.variable for each in loops_of((loop,))}
    nodes = [node for each, _ in walk(loop.body) for node in walk_scalars(*values_of(each))]
    return list({id(x): x for x in nodes if not variables_of(x) & inside}.values())


def states_of(loop):
    """The buffers into which the first fold of a loop folds."""
    folds = [each for each, _ in walk(loop.body) if isinstance(each, Fold)]
    return folds[0].into if folds else ()


def first_load(tree, name):
    """A load of the tree that changes with a loop."""
    for each, _ in walk(tree.body):
        for node in walk_scalars(*values_of(each)):
            if isinstance(node, Load) and node.offset.step(name):
                return node
    raise IllegalScheduleError("nothing is loaded")


def behind(tree, loop):
    """The loop behind another one in the same body."""
    bodies = [tree.body, *(each.body for each in loops_of(tree.body))]
    for body in bodies:
        for one, two in zip(body, body[1:], strict=False):
            if one is loop and isinstance(two, LoopNode):
                return two.variable
    raise IllegalScheduleError("no loop follows")


def is_float(tree):
    """Whether buffer 0 is one float32."""
    return bool(tree.buffers) and tree.buffers[0].dtype is FLOAT32


def _partial_lanes(tree, name, by):
    """Partial states in lanes of a vector."""
    made = t.split(tree, name, by, Kind.LANES)
    tree = p.rfactor(made.tree, name, made.inner)
    return t.set_role(tree, made.inner, Role.VECTOR)


def is_short(loop):
    return isinstance(loop.size, int) and loop.size < 9


def _lanes(tree, name, by):
    made = t.split(tree, name, by, Kind.LANES)
    return t.set_role(made.tree, made.inner, Role.VECTOR)
