"""The effects of random graphs: assignments to variables, slices and placeholders, in some order.

A value that is assigned keeps to the bound and the error of the leaf, so that what is known of
values that read the leaf holds after it was assigned too.
"""

import numpy as np

import geon

from .random_graphs import Value
from .random_moves import item


def add_effects(b):
    """A list of (effect or ordered value, its error) that may be run together."""
    free = b.some(b.variables, least=len(b.variables))
    inputs = [v for v in b.values if v.op in {leaf for leaf, _ in b.placeholders}]
    found = []
    while free and (not found or b.flag()):
        own = [free.pop() for _ in range(b.integer(1, len(free)))]
        structure = b.choice(["one", "doall", "sequential", "sequential", "loop", "branch"])
        if structure == "one":
            found.append((assignment(b, own[0], []), None))
        elif structure == "doall":
            found.append((geon.doall([assignment(b, v, b.variables) for v in own]), None))
        elif structure == "loop":
            found.append((looped(b, own), None))
        elif structure == "branch":
            found.append((chosen(b, own), None))
        else:
            targets = own + (inputs if not found else [])
            found.append(ordered(b, own, targets))
            inputs = []
    return found


def ordered(b, own, targets):
    """A ``sequential``, with the value of its last element where that is a tensor."""
    first = b.choice(own)
    steps = [assignment(b, first, [first])]
    for _ in range(b.integer(0, 3)):
        steps.append(assignment(b, b.choice(targets), own))
    if len({id(target) for target in own}) > 1 and b.flag():
        steps.insert(1, geon.doall([assignment(b, v, own) for v in own]))
    if b.flag():
        last = b.pick()
        return geon.sequential([*steps, last.op]), last.error
    return geon.sequential(steps), None


def grouped(b, own):
    """Assignments to variables in any order, or in one."""
    effects = [assignment(b, v, own) for v in own]
    return geon.sequential(effects) if b.flag() else geon.doall(effects)


def looped(b, own):
    """A loop whose steps assign to variables, which later steps read."""
    effect, axis = grouped(b, own), geon.Axis("steps", b.integer(0, 3))
    return geon.scan(lambda c, e: (c, effect), (), geon.iota(axis))[1]


def chosen(b, own):
    """A branch that assigns to variables, beside one that does not."""
    effect, truth = grouped(b, own), b.flag()
    return geon.cond(geon.constant(truth), lambda: effect, lambda: None)


def assignment(b, leaf, near):
    """A new value for a leaf or a part of it, made of the leaf itself or of other values."""
    target = leaf.op
    for _ in range(b.choice([0, 1, 2])):
        if len(target.axes):
            target = target[{axis: item(b, axis) for axis in b.some(target.axes, least=1)}]

    def fits(value):
        return (
            value.op.dtype is target.dtype
            and value.error <= leaf.error
            and all(
                a in target.axes and target.axes[a.name].expression == a.expression
                for a in value.axes
            )
        )

    options = [v for v in near if fits(v)]
    value = b.choice(options) if options and b.flag() else b.pick(fits)
    new = held(b, value, leaf)
    if value is not None and leaf.kind != "b" and target is leaf.op and b.flag():
        # Something that needs the old value and the new one.
        b.rounded(new + leaf.op, 2 * leaf.bound, 2 * leaf.error, 1.0 if leaf.error else 0.0)
    return geon.assign(target, new)


def held(b, value, leaf):
    """The value, changed where it is the leaf's own, within the leaf's bound."""
    kinds = {"f": 0.5, "i": 1, "b": True}
    if value is None:
        return kinds[leaf.kind]
    made = value.op
    if leaf.kind == "b":
        return geon.logical_not(made) if b.flag() else made
    if leaf.kind == "i":
        made = made + 1 if b.flag() and value.bound + 1 <= np.iinfo(made.dtype).max else made
        return geon.mod(made, 7) if b.flag() or value.bound + 1 > leaf.bound else made
    halved = made * 0.5 if b.flag() else made
    if value.bound > leaf.bound:
        halved = geon.minimum(geon.maximum(halved, -leaf.bound), leaf.bound)
    return halved


__all__ = ["Value", "add_effects"]
