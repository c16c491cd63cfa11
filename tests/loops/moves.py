"""Random transformations of loop trees: ``MOVES`` has at least one of each transformation.

A move chooses loops, buffers and values of which the transformation may be true, and raises
``IllegalScheduleError`` where a tree has none.
"""

from geon.op_graph.axes.affine import variable
from geon.op_graph.axes.index_map import InRange
from geon.op_graph.values.dtypes import FLOAT32, FLOAT64
from geon.transformers.kernels.ir.loop_variables import variables, variables_of
from geon.transformers.kernels.ir.nest import Store
from geon.transformers.kernels.ir.scalar_code import Apply, Load, Select
from geon.transformers.kernels.ir.scalar_code import walk as walk_scalars
from geon.transformers.loops import guarded_loops as g
from geon.transformers.loops import partial_states as p
from geon.transformers.loops import transformations as t
from geon.transformers.loops.access import private
from geon.transformers.loops.rules.streaming_copies import copied
from geon.transformers.loops.substitution import Substitution
from geon.transformers.loops.tree import (
    Choose,
    Fold,
    IllegalScheduleError,
    Kind,
    LoopNode,
    Role,
    VectorWidth,
    Write,
    constant,
    find,
    loops_of,
    values_of,
    walk,
)

ROLES = (Role.TASK, Role.THREAD, Role.SIMD, Role.VECTOR, Role.UNROLLED)
FACTORS = (2, 3, 4, 16)


def move(tree, random, done):
    """Return the name of a random move and the tree after it, None if it was refused.

    ``done`` has the numbers of successes and refusals by name. Moves that were done less often are
    chosen more often: the preconditions of some are rare.
    """
    weights = [1 / (1 + done[name][0] + done[name][1] / 8) for name in MOVES]
    name = str(random.choice(list(MOVES), p=[each / sum(weights) for each in weights]))
    try:
        return name, MOVES[name](tree, random)
    except IllegalScheduleError:
        return name, None


# Choices ------------------------------------------------------------------------------------------


def one(choices, random):
    """One of some choices."""
    choices = list(choices)
    if not choices:
        raise IllegalScheduleError("the tree has none")
    return choices[int(random.integers(len(choices)))]


def a_loop(tree, random, where=lambda loop: True):
    """One of the loops of a tree, of which a condition is true."""
    return one(filter(where, loops_of(tree.body)), random)


def nested(tree, random):
    """The variables of a loop and of a loop in its body."""
    outer = a_loop(tree, random, lambda loop: any(isinstance(x, LoopNode) for x in loop.body))
    inner = one([each for each in outer.body if isinstance(each, LoopNode)], random)
    return outer.variable, inner.variable


def perfectly_nested(tree, random):
    """The variables of a loop and of the loop that is all of its body."""
    outer = a_loop(
        tree, random, lambda loop: len(loop.body) == 1 and isinstance(loop.body[0], LoopNode)
    )
    return outer.variable, outer.body[0].variable


def in_turn(tree, random):
    """Two loops of one length in one body, of which the second one comes later."""
    pairs = []
    for body in bodies(tree.body):
        loops = [each for each in body if isinstance(each, LoopNode)]
        pairs += [
            (a, b) for k, a in enumerate(loops) for b in loops[k + 1 :] if a.extent == b.extent
        ]
    return one(pairs, random)


def bodies(body):
    """A body and all bodies of loops and choices inside of it."""
    yield body
    for each in body:
        if isinstance(each, LoopNode):
            yield from bodies(each.body)
        elif isinstance(each, Choose):
            yield from bodies(each.then)
            yield from bodies(each.otherwise)


def nodes_in(loop):
    """All scalar nodes of the statements in a loop."""
    return [node for each, _ in walk(loop.body) for node in walk_scalars(*values_of(each))]


def a_load(tree, random):
    """A load, with a loop around it and the loops inside of that one that it changes with."""
    found = []
    for each, above in walk(tree.body):
        for node in walk_scalars(*values_of(each)):
            if isinstance(node, Load):
                for k in range(len(above)):
                    inside = [x.variable for x in above[k + 1 :] if node.offset.step(x.variable)]
                    found += [(above[k].variable, node, inside)] if inside else []
    return one(found, random)


def factor(random):
    """The iterations of a block."""
    return one(FACTORS, random)


# Moves --------------------------------------------------------------------------------------------


def split(tree, random, **how):
    return t.split(tree, a_loop(tree, random).variable, factor(random), **how).tree


def split_lanes(tree, random):
    made = t.split(tree, a_loop(tree, random).variable, factor(random), Kind.LANES)
    return t.set_role(made.tree, made.inner, Role.VECTOR)


def split_parts(tree, random):
    name = a_loop(tree, random).variable
    return t.split_parts(tree, name, factor(random), int(random.integers(1, 4))).tree


def split_evenly(tree, random):
    return t.split_evenly(tree, a_loop(tree, random).variable, factor(random)).tree


def set_role(tree, random, roles=ROLES):
    return t.set_role(tree, a_loop(tree, random).variable, one(roles, random))


def sink_into(tree, random):
    name, _ = nested(tree, random)
    inner = one(loops_of(find(tree, name)[0].body), random)
    return t.sink(tree, name, [inner.variable])[0]


def unrolled(tree, random):
    loop = a_loop(tree, random, lambda loop: isinstance(loop.size, int) and loop.size < 9)
    return t.unrolled(tree, loop.variable)


def partition(tree, random):
    points = [int(each) for each in random.integers(0, 9, 2)]
    return t.partition(tree, a_loop(tree, random).variable, points)


def specialise(tree, random):
    size = one([loop.size for loop in loops_of(tree.body) if loop.size is not None], random)
    return t.specialise(tree, (InRange(constant(size), 0, int(random.integers(1, 20))),))


def is_guarded(loop):
    """Whether there are selections in a loop."""
    return any(isinstance(node, Select) for node in nodes_in(loop))


def unswitch(tree, random):
    """A loop in which a guard does not change."""

    def is_decided(loop):
        inside = {each.variable for each in loops_of((loop,))}
        found = [node.guards for node in nodes_in(loop) if isinstance(node, Select)]
        return any(not any(variables(x.index) & inside for x in guards) for guards in found)

    return g.unswitch(tree, a_loop(tree, random, is_decided).variable)


def clip(tree, random):
    """One or two loops around a statement."""
    inner = a_loop(tree, random, lambda loop: not loops_of(loop.body) and is_guarded(loop)).variable
    around = [x.variable for x in find(tree, inner)[1]]
    return g.clip(tree, [*around[len(around) - int(random.integers(2)) :], inner])


def expand(tree, random):
    loop = a_loop(tree, random, lambda loop: private(tree, loop.variable))
    own = private(tree, loop.variable)
    numbers = own if random.integers(2) else [one(own, random)]
    return t.expand(tree, loop.variable, numbers, adjacent=bool(random.integers(2)))


def folding(tree, random):
    """A loop that folds, perhaps in loops inside of it."""
    return a_loop(tree, random, lambda loop: any(isinstance(x, Fold) for x, _ in walk(loop.body)))


def rfactor(tree, random):
    outer = folding(tree, random)
    return p.rfactor(tree, outer.variable, one(loops_of((outer,)), random).variable)


def rfactor_lanes(tree, random):
    name = folding(tree, random).variable
    made = t.split(tree, name, factor(random), Kind.LANES)
    tree = p.rfactor(made.tree, name, made.inner)
    return t.set_role(tree, made.inner, Role.VECTOR)


def widened(tree, random):
    numbers = [n for n, each in enumerate(tree.buffers) if each.dtype is FLOAT32]
    return p.widened(tree, [one(numbers, random)], FLOAT64)


def promoted(tree, random):
    loop = folding(tree, random)
    folds = [each for each, _ in walk(loop.body) if isinstance(each, Fold)]
    return p.promoted(tree, loop.variable, one(folds, random).into)


def hoist(tree, random):
    loop = a_loop(tree, random)
    inside = {each.variable for each in loops_of((loop,))}
    values = {id(x): x for x in nodes_in(loop) if not variables_of(x) & inside}
    return p.hoist(tree, loop.variable, [one(values.values(), random), *values.values()])


def hold(tree, random):
    first, later = in_turn(tree, random)
    change = Substitution(tree.code, {first.variable: variable(later.variable)})
    again = set(map(id, nodes_in(later)))
    values = [x for x in nodes_in(first) if isinstance(x, Apply) and id(change.value(x)) in again]
    return p.hold(tree, one(values, random), first.variable, later.variable)


def stage(tree, random):
    return p.stage(tree, *a_load(tree, random), padding=int(random.integers(2)))


def fuse(tree, random):
    first, second = in_turn(tree, random)
    return p.fuse(tree, first.variable, second.variable)


def copied_past(tree, random):
    """Stores of a loop in a buffer that another one copies past the caches."""
    straight = lambda loop: all(isinstance(each, Write) for each in loop.body)  # noqa: E731
    loop = a_loop(tree, random, straight)
    stored = {x.operand for each in loop.body for x in each.stores if isinstance(x, Store)}
    return copied(tree, loop.variable, VectorWidth(64, 4, past=frozenset(stored)))


MOVES = {
    "split": split,
    "split short": lambda tree, random: split(tree, random, short=True),
    "split guarded": lambda tree, random: split(tree, random, guarded=True),
    "split lanes": split_lanes,
    "split_parts": split_parts,
    "split_evenly": split_evenly,
    "collapse": lambda tree, random: t.collapse(tree, *perfectly_nested(tree, random)),
    "reorder": lambda tree, random: t.reorder(tree, *perfectly_nested(tree, random)),
    "distribute": lambda tree, random: t.distribute(tree, a_loop(tree, random).variable)[0],
    "sink": lambda tree, random: t.sink(tree, a_loop(tree, random).variable)[0],
    "sink into": sink_into,
    "fission": lambda tree, random: t.fission(
        tree, *nested(tree, random), adjacent=bool(random.integers(2))
    )[0],
    "set_role": set_role,
    "set_role task": lambda tree, random: set_role(tree, random, [Role.TASK]),
    "unroll": lambda tree, random: t.unroll(tree, a_loop(tree, random).variable, factor(random)),
    "unrolled": unrolled,
    "jam": lambda tree, random: t.jam(tree, nested(tree, random)[0], factor(random)),
    "partition": partition,
    "specialise": specialise,
    "unswitch": unswitch,
    "clip": clip,
    "expand": expand,
    "rfactor": rfactor,
    "rfactor alone": lambda tree, random: p.rfactor(tree, folding(tree, random).variable),
    "rfactor lanes": rfactor_lanes,
    "widened": widened,
    "promoted": promoted,
    "hoist": hoist,
    "hold": hold,
    "stage": stage,
    "fuse": fuse,
    "copied": copied_past,
}
