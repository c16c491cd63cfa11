"""Recurrent nets: values and gradients, packed weights kept from step to step, bits and plans."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.transformers.kernels.ir.nest import Region
from geon.transformers.lowering.planning.plan_verifier import verify_plan

T, N, C = geon.Axis("T"), geon.Axis("N"), geon.Axis("C", 5)


def lstm(x, w, u, b, h):
    count = h.length

    def step(carry, each):
        old, c = carry
        z = geon.dot(each, w) + geon.dot(geon.cast_axes(old, [N, h.prime]), u) + b
        i, f, g, o = (geon.cast_axes(z[:, k * count : (k + 1) * count], [N, h]) for k in range(4))
        c = geon.sigmoid(f) * c + geon.sigmoid(i) * geon.tanh(g)
        new = geon.sigmoid(o) * geon.tanh(c)
        return (new, c), new

    zero = geon.broadcast(0.0, [N, h])
    return geon.scan(step, (zero, zero), x, over=T)[1]


def gru(x, w, u, b, h):
    count = h.length

    def step(old, each):
        a = geon.dot(each, w) + b
        z = geon.dot(geon.cast_axes(old, [N, h.prime]), u)
        (p, q, r), (s, t, v) = (
            [geon.cast_axes(y[:, k * count : (k + 1) * count], [N, h]) for k in range(3)]
            for y in (a, z)
        )
        keep = geon.sigmoid(q + t)
        new = (1 - keep) * geon.tanh(r + geon.sigmoid(p + s) * v) + keep * old
        return new, new

    return geon.scan(step, geon.broadcast(0.0, [N, h]), x, over=T)[1]


def made(kind, hidden):
    h = geon.Axis("H", hidden)
    gates = geon.Axis("G", (4 if kind is lstm else 3) * hidden)
    shapes = {"x": [T, N, C], "w": [C, gates], "u": [h.prime, gates], "b": [gates]}
    leaves = [geon.placeholder(axes, name=name) for name, axes in shapes.items()]
    seen = kind(*leaves, h)
    loss = geon.sum(geon.square(seen))
    return leaves, [seen, *(geon.deriv(loss, leaf) for leaf in leaves)]


def arrays(leaves, count, rows):
    random = np.random.default_rng(count + rows)
    lengths = {"T": count, "N": rows}
    sizes = [[lengths.get(axis.name, axis.length) for axis in leaf.axes] for leaf in leaves]
    return [(0.3 * random.normal(size=size)).astype(np.float32) for size in sizes]


@pytest.mark.parametrize("kind", [lstm, gru])
def test_values_and_gradients(transformer, kind):
    leaves, results = made(kind, 33)
    f = transformer.computation(results, *leaves)
    verify_plan(f.plan)
    regions = [kernel for kernel in f.plan.schedule.kernels if isinstance(kernel.work, Region)]
    assert len(regions) == 2
    apart = transformer.computation(results, *leaves, plan=False)
    for count, rows in [(3, 2), (0, 4), (1, 33), (2, 34), (3, 1), (2, 0)]:
        given = arrays(leaves, count, rows)
        feeds = {leaf: array.astype(np.float64) for leaf, array in zip(leaves, given, strict=True)}
        want = interpret(results, feeds, {"T": count, "N": rows})
        for op, found, other in zip(results, f(*given), apart(*given), strict=True):
            largest = np.abs(want[op]).max(initial=1e-3)
            np.testing.assert_allclose(found, want[op], rtol=1e-4, atol=1e-5 * largest)
            np.testing.assert_array_equal(found, other)


def kept(plan):
    return [
        plan.buffers[number]
        for inside in plan.inside.values()
        for number in inside.kept
    ]  # fmt: skip


@pytest.mark.parametrize("transformer_name", ["native"])
@pytest.mark.parametrize("rows", [1, 11, 12, 32, 33, 64, 480, 4097])
def test_weights_are_packed_once_for_all_steps(make, rows):
    leaves, results = made(lstm, 40)
    given = arrays(leaves, 3, rows)
    found = []
    for threads in (1, 2, 3):
        f = make(threads=threads).computation(results, *leaves)
        copies = [buffer.bytes({"T": 3, "N": rows}, threads) for buffer in kept(f.plan)]
        # Panels of 8, 16 or 32 columns have no gap behind 160 of them.
        assert copies == [160 * 40 * 4 if 12 <= rows <= 4096 else 0]
        found.append(f(*given))
        again = f(*given)
        for one, other in zip(found[0], [*found[-1]], strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(found[0], again, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("transformer_name", ["native"])
def test_each_run_of_a_loop_packs_its_own_weights(make):
    """An inner loop whose weights are others in each step of the outer one."""
    h, k = geon.Axis("H", 70), geon.Axis("K", 3)
    weights = geon.placeholder([T, h.prime, h], name="weights")
    begin = geon.placeholder([N, h], name="begin")

    def outer(c, w):
        def inner(d, _):
            return geon.tanh(geon.dot(geon.cast_axes(d, [N, h.prime]), w)), None

        return geon.scan(inner, c, over=k)[0], None

    last, _ = geon.scan(outer, begin, weights, over=T)
    results = [last, geon.deriv(geon.sum(last), weights)]
    f = make().computation(results, begin, weights)
    random = np.random.default_rng(0)
    for count in (1, 2, 4):
        c = random.normal(size=(40, 70)).astype(np.float32)
        w = (0.1 * random.normal(size=(count, 70, 70))).astype(np.float32)
        want = interpret(results, {begin: c, weights: w}, {"T": count, "N": 40})
        for op, found in zip(results, f(c, w), strict=True):
            np.testing.assert_allclose(found, want[op], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("transformer_name", ["native"])
def test_a_plan_whose_copy_lies_in_what_a_step_works_in_is_refused(make):
    leaves, results = made(lstm, 70)
    plan = make().computation(results, *leaves, specialize={T: 3, N: 40}).plan
    verify_plan(plan)
    op, inside = next(item for item in plan.inside.items() if item[1].kept)
    for wrong in (inside.first[0], *inside.spare[0]):
        moved = dataclasses.replace(inside, kept=(wrong,))
        with pytest.raises(geon.PlanError, match="which shares bytes with"):
            verify_plan(dataclasses.replace(plan, inside={**plan.inside, op: moved}))
