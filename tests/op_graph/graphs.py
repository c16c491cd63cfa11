"""Graphs that together have every kind of leaf, attribute, effect and row with attributes."""

import numpy as np

import geon
from geon.op_graph.rewriting.driver import rewrite
from geon.op_graph.rewriting.simplify import simplify_rules
from geon.op_graph.transforms.functionalize import functional

N, C, H = geon.Axis("N"), geon.Axis("C", 4), geon.Axis("H")


def training():
    x, t = geon.placeholder([N, C], name="x"), geon.placeholder([N], name="t")
    w = geon.Variable([C], initial_value=np.linspace(0, 1, 4), dtype="float32", name="w")
    b = geon.Variable(initial_value=0, name="b", tags=["bias", "affine"])
    loss = geon.mean(geon.square(geon.sigmoid(geon.dot(x, w) + b) - t), name="loss")
    steps = [geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in loss.variables()]
    return [loss, geon.doall(steps, name="train")]


def leaves():
    stream = geon.Random(2**64 - 1, name="noise")
    first = stream.normal([C], std=0.1)
    w = geon.Variable(initial_value=first, name="w")
    kept = geon.persistent_tensor([N], initial_value=1)
    temporary = geon.temporary_tensor([C], dtype="int8", initializers=[geon.assign(kept, 2)])
    unset = geon.Variable([N, C], dtype="bfloat16")
    x = geon.placeholder([C], "uint16", name="x", tags=["fed"], initializers=[w])
    later = geon.Variable([C], initial_value=w + 1)
    counted = geon.iota(C) + temporary
    used = counted + x
    return [
        used,
        w * later,
        kept,
        unset,
        geon.tensor_size(unset),
        geon.sum(geon.cast(used, "bool")),
    ]


def movement():
    x = geon.placeholder([N, C])
    at = geon.placeholder([], "int64")
    square = geon.placeholder([H, H.prime])
    flat = geon.flatten(x)
    return [
        x[1:-1:2, ::-1],
        x[::3, at],
        x[{C: slice(3, 0, -1)}][..., 1],
        geon.update(x, 7, (slice(0, 4), at)),
        geon.concat([x, x[2:]], N),
        geon.stack([x, x], geon.Axis("S")),
        geon.pad(x, {C: (1, 2), N: 1}, value=2),
        geon.pad(x, {N: 2}, mode="reflect"),
        flat,
        geon.unflatten(x, C, [geon.Axis("A", 2), geon.Axis("B", 2)]),
        geon.rename(x, {N: H}) + geon.Variable([H, C]),
        geon.dot(square, geon.rename(square, {H.prime: "K"}), over=H),
        geon.flip(geon.reorder(x, [C, N]), C),
        geon.broadcast(x, [C, H, N]),
    ]


def indexing():
    x = geon.placeholder([N, C], "float64")
    index = geon.placeholder([N, H], "int32")
    values, positions = geon.top_k(x, 2, C)
    return [
        geon.gather(x, index, C),
        geon.scatter(x, index, 1.5, C, mode="add"),
        geon.argsort(x, N) + geon.argmax(x),
        geon.sort(x, C, descending=True),
        geon.cumprod(geon.cumsum(x, N, reverse=True), C, exclusive=True),
        geon.sum(values * positions),
        geon.max(x, N),
        geon.any(geon.isnan(x), out_axes=C),
        geon.polygamma(3, x),
        geon.stop_gradient(geon.where(x > 0, x, -0.0)),
    ]


def constants():
    rng = np.random.default_rng(3)
    large = geon.constant(rng.normal(size=(30, 4)), [geon.Axis("R", 30), C], name="table")
    numbers = [geon.constant(v, dtype=d) for v, d in ((1, "int8"), (True, "bool"), (1, "bfloat16"))]
    special = geon.constant([np.nan, -0.0, np.inf], [geon.Axis("T", 3)])
    empty = geon.constant(np.zeros((0, 4)), [geon.Axis("Z"), C])
    return [large * 2, *numbers, special, empty, geon.constant(1, name="one"), large + large]


def ordered():
    v = geon.Variable([C], initial_value=1, name="v")
    x = geon.placeholder([C])
    once = geon.assign(v, v + 1)
    part = geon.assign(v[1:3][0], 5)
    return [
        geon.sequential([once, part, once, v * 2]),
        geon.sequential([geon.assign(x, x + v), geon.doall([once])]),
        geon.add(x, v, follows=[once], name="late"),
        geon.print(x * v, label='a "label"\n'),
        geon.assign(x[::2], geon.Random(5).uniform([C])[::2]),
    ]


def second_derivatives():
    x = geon.placeholder([N, C], "float64")
    y = geon.sum(geon.softmax(x, normalization_axes=C) * geon.tanh(x[:, ::-1]))
    return [geon.deriv(geon.sum(geon.square(geon.deriv(y, x))), x)]


def simplified():
    made = functional(training() + second_derivatives())
    return rewrite(made.roots, simplify_rules(), {})


def regions():
    x, t = geon.placeholder([N, C], name="x"), geon.Variable([C], initial_value=1, name="t")

    def step(carry, each):
        grown = geon.while_loop(lambda s: geon.sum(s) < 10, lambda s: s + each + 1, carry, 5)
        return geon.cond(geon.sum(grown) > 3, lambda: grown, lambda: grown * t), geon.sum(each)

    last, sums = geon.scan(step, t, x, over=N, name="loop")
    both = geon.scan(lambda c, e: (c + e, geon.assign(t, t + e)), geon.sum(x, N), x, over=N)
    which = geon.placeholder([], "int32")
    taken = geon.case_of(which, [lambda: (x, sums), lambda: (x * x, sums + 1)], lambda: (-x, sums))
    prefixes = geon.associative_scan(lambda a, b: a * b + 1, x, over=N)
    return [last, *both, *taken, prefixes, geon.deriv(geon.sum(last), x)]


GRAPHS = (
    training,
    leaves,
    movement,
    indexing,
    constants,
    ordered,
    second_derivatives,
    regions,
    simplified,
)
