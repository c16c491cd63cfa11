"""The memory plan: what is computed in place, in which order, and how many bytes it takes."""

import re
import tracemalloc

import numpy as np
import pytest

import geon
from geon.transformers.native.runtime import result_pool
from geon.transformers.runtime.arena import place
from tests.kinds import numpy_only

A, B, C, H, K, N = (geon.Axis(name) for name in "ABCHKN")


def lines_of(f):
    """The statements of ``run``, without comments."""
    body = f.source.split("def run(")[1].splitlines()[1:]
    return [line.split("  #")[0].strip() for line in body if line.strip()]


def kernels_of(f, name):
    return [k for k in f.plan.schedule.kernels if k.op.primitive.name == name]


def arena_of(f, **lengths):
    """The bytes of the arena that hold values, without what kernels work in."""
    values = [buffer for buffer in f.plan.buffers if not buffer.scratch]
    sizes = [buffer.bytes(lengths, 1) for buffer in values]
    return place(sizes, [(buffer.first, buffer.last) for buffer in values], 64)[1]


# In place ---------------------------------------------------------------------------------------


@numpy_only
def test_a_chain_uses_one_buffer(transformer):
    x = geon.placeholder(axes=N)
    x1 = x + x
    f = transformer.computation(x1 * x1 - x, x)
    assert f.plan.buffers == ()
    assert [line for line in lines_of(f) if line.startswith("np.")] == [
        "np.add(x0, x0, out=r0)",
        "np.square(r0, out=r0)" if "np.square" in f.source else "np.multiply(r0, r0, out=r0)",
        "np.subtract(r0, x0, out=r0)",
    ]
    np.testing.assert_array_equal(f([1, 2]), [3, 14])


@numpy_only
def test_an_intermediate_that_is_requested_is_kept(transformer):
    x = geon.placeholder(axes=N)
    x1 = x + x
    f = transformer.computation([x1 * x1 - x, x1], x)
    assert f.plan.buffers == ()
    assert len({(home.kind, home.number) for home in f.plan.homes.values()}) == 2
    y, twice = f([1, 2])
    np.testing.assert_array_equal(y, [3, 14])
    np.testing.assert_array_equal(twice, [2, 4])


@numpy_only
def test_an_update_is_made_in_place(transformer):
    w = geon.Variable(axes=C, initial_value=np.ones(3, np.float32))
    g, a = geon.placeholder(axes=C), geon.placeholder()
    f = transformer.computation(geon.assign(w, w - a * g), a, g)
    assert "np.copyto" not in f.source
    assert re.search(r"np\.subtract\(v0, b0\w*, out=v0\)", f.source)
    f(2, [1, 2, 3])
    np.testing.assert_array_equal(transformer.get(w), [-1, -3, -5])


@numpy_only
def test_momentum_in_place(transformer):
    w = geon.Variable(axes=C, initial_value=np.ones(2, np.float32))
    m = geon.Variable(axes=C, initial_value=np.ones(2, np.float32))
    g = geon.placeholder(axes=C)
    new = 0.5 * m - g
    f = transformer.computation(geon.doall([geon.assign(m, new), geon.assign(w, w + new)]), g)
    assert "np.copyto" not in f.source
    f([1, 2])
    np.testing.assert_array_equal(transformer.get(m), [-0.5, -1.5])
    np.testing.assert_array_equal(transformer.get(w), [0.5, -0.5])


def test_a_swap_swaps(transformer):
    p = geon.Variable(axes=C, initial_value=np.zeros(3, np.float32))
    q = geon.Variable(axes=C, initial_value=np.ones(3, np.float32))
    f = transformer.computation([geon.doall([geon.assign(p, q), geon.assign(q, p)]), p, q])
    for turn in range(3):
        _, before_p, before_q = f()
        np.testing.assert_array_equal(before_p, np.full(3, turn % 2))
        np.testing.assert_array_equal(before_q, np.full(3, 1 - turn % 2))
        np.testing.assert_array_equal(transformer.get(p), np.full(3, 1 - turn % 2))
        np.testing.assert_array_equal(transformer.get(q), np.full(3, turn % 2))


def test_a_rotation_of_three(transformer):
    vs = [geon.Variable(axes=C, initial_value=np.full(2, k, np.float32)) for k in range(3)]
    turned = geon.doall([geon.assign(vs[k], vs[k - 1] + 10) for k in range(3)])
    f = transformer.computation(turned)
    f()
    assert [transformer.get(v)[0] for v in vs] == [12, 10, 11]


def test_a_shift_within_one_variable(transformer):
    v = geon.Variable(axes=geon.Axis("C", 5), initial_value=np.arange(5, dtype=np.float32))
    f = transformer.computation(geon.assign(v[1:], v[:-1]))
    f()
    np.testing.assert_array_equal(transformer.get(v), [0, 0, 1, 2, 3])


def test_a_variable_reversed_onto_itself(transformer):
    v = geon.Variable(axes=geon.Axis("C", 4), initial_value=np.arange(4, dtype=np.float32))
    transformer.computation(geon.assign(v, v[::-1] + v))()
    np.testing.assert_array_equal(transformer.get(v), [3, 3, 3, 3])
    w = geon.Variable(axes=geon.Axis("C", 4), initial_value=np.arange(4, dtype=np.float32))
    transformer.computation(geon.assign(w, geon.flip(w, w.axes)))()
    np.testing.assert_array_equal(transformer.get(w), [3, 2, 1, 0])


PARTS = {
    "a part of one reversed": lambda v: v[::-1][1:3],
    "a part of steps backwards": lambda v: v[5:0:-2][0:2],
    "reversed twice": lambda v: v[::-2][::-1][1:],
    "an element of one reversed": lambda v: v[::-1][2:3],
    "steps of steps": lambda v: v[1:7:2][::2],
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_part_is_assigned(transformer, name):
    axis = geon.Axis("C", 7)
    v = geon.Variable(axes=axis, initial_value=0)
    part = PARTS[name](v)
    count = part.axes[0].length
    value = geon.constant(np.arange(1, count + 1, dtype=np.float32), axes=part.axes)
    transformer.computation(geon.assign(part, value))()
    expected = np.zeros(7, np.float32)
    PARTS[name](expected)[...] = np.arange(1, count + 1)
    np.testing.assert_array_equal(transformer.get(v), expected)


@pytest.mark.parametrize("at", range(-7, 7))
def test_a_position_of_one_reversed_is_assigned(transformer, at):
    v = geon.Variable(axes=geon.Axis("C", 7), initial_value=0)
    place = geon.placeholder(dtype="int64")
    transformer.computation(geon.assign(v[::-1][place], 5.0), place)(at)
    assert transformer.get(v)[::-1][at] == 5 and transformer.get(v).sum() == 5


def test_a_transposed_onto_itself(transformer):
    R = geon.Axis("R", 3)
    v = geon.Variable(axes=[R, R.prime], initial_value=np.arange(9, dtype=np.float32).reshape(3, 3))
    turned = geon.cast_axes(geon.reorder(v, [R.prime, R]), v.axes)
    transformer.computation(geon.assign(v, turned + v * 0.5))()
    before = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(transformer.get(v), before.T + before / 2)


def test_a_reader_of_the_new_and_the_old_value(transformer):
    """The new value must wait: what reads the old one needs the new one first."""
    v = geon.Variable(axes=C, initial_value=np.arange(3, dtype=np.float32))
    new = v * 2 + 1
    late = v * geon.sum(new)
    f = transformer.computation([geon.assign(v, new), late])
    _, got = f()
    np.testing.assert_array_equal(got, np.arange(3) * 9)
    np.testing.assert_array_equal(transformer.get(v), [1, 3, 5])


def test_a_value_that_a_library_reads_is_not_overwritten(transformer):
    w = geon.Variable(axes=[H, H.prime], initial_value=np.full((2, 2), 2, np.float32))
    square = geon.dot(w, geon.cast_axes(w, [H.prime, geon.Axis("G", H.expression)]))
    f = transformer.computation(geon.assign(w, geon.cast_axes(square, w.axes)))
    f()
    np.testing.assert_array_equal(transformer.get(w), np.full((2, 2), 8))


# What can raise comes first ---------------------------------------------------------------------


def gathering():
    """A computation that writes two variables and gathers, at positions that may be outside."""
    table = geon.Variable(axes=[N, C], initial_value=np.ones((3, 2), np.float32))
    count = geon.Variable(initial_value=0, dtype="int64")
    index = geon.placeholder(axes=K, dtype="int64")
    rows = geon.gather(table, index, N)
    updates = geon.doall(
        [geon.assign(table, table * 2), geon.assign(count, count + geon.tensor_size(index))]
    )
    return [updates, geon.sum(rows)], index, [table, count]


@pytest.mark.parametrize("plan", [True, False])
def test_a_position_outside_leaves_variables_untouched(transformer, plan):
    results, index, variables = gathering()
    f = transformer.computation(results, index, plan=plan)
    raising = [k for k, kernel in enumerate(f.plan.schedule.kernels) if kernel.raises]
    writing = [k for k, kernel in enumerate(f.plan.schedule.kernels) if kernel.writes]
    assert raising and writing and max(raising) < min(writing)
    f([0, -3])
    with pytest.raises(geon.IndexRangeError):
        f([0, 3])
    table, count = map(transformer.get, variables)
    assert count == 2
    np.testing.assert_array_equal(table, np.full((3, 2), 2))
    f([2])
    assert transformer.get(variables[1]) == 3


def test_positions_that_depend_on_the_new_value(transformer):
    """The new value is computed beside the variable and stored once nothing can raise."""
    v = geon.Variable(axes=geon.Axis("C", 4), dtype="int64", initial_value=[0, 1, 2, 3])
    new = v + 1
    picked = geon.gather(geon.constant(np.arange(5.0), axes=K), new, K)
    f = transformer.computation([geon.assign(v, new), picked])
    np.testing.assert_array_equal(f()[1], [1, 2, 3, 4])
    for _ in range(2):
        with pytest.raises(geon.IndexRangeError):
            f()
        np.testing.assert_array_equal(transformer.get(v), [1, 2, 3, 4])


# Bytes ------------------------------------------------------------------------------------------


def layers(x, count):
    for k in range(count):
        x = geon.tanh(geon.dot(x, geon.Variable(axes=[H, H.prime], initial_value=0.1)))
        x = geon.cast_axes(x, [N, H]) * (1 + 0.01 * k)
    return x


def test_a_deep_chain_takes_two_buffers(transformer, make):
    x = geon.placeholder(axes=[N, H])
    f = transformer.computation(layers(x, 50), x)
    each = make().computation(layers(x, 50), x, plan=False)
    lengths = {"N": 10, "H": 16}
    assert arena_of(f, **lengths) <= 2 * 640
    assert arena_of(each, **lengths) >= 50 * 640
    values = np.random.default_rng(0).normal(size=(10, 16)).astype(np.float32)
    assert f(values).tobytes() == each(values).tobytes()


def test_a_training_step_shares_memory(transformer, make):
    x = geon.placeholder(axes=[N, H])
    loss = geon.sum(geon.square(layers(x, 8)))
    steps = [geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in loss.variables()]
    f = transformer.computation([loss, geon.doall(steps)], x)
    each = make().computation([loss, geon.doall(steps)], x, plan=False)
    lengths = {"N": 64, "H": 16}
    assert arena_of(f, **lengths) < 0.5 * arena_of(each, **lengths)


MEASURED = {
    "elementwise": lambda x: geon.tanh(x) * x + geon.exp(-x),
    "requested twice": lambda x: [x * 2, geon.sum(x * 2)],
    "product": lambda x: geon.dot(x, geon.rename(x, {A: C}), over=B),
    "sort": lambda x: geon.sort(x, A),
    "argsort": lambda x: geon.argsort(x, B),
    "argmax": lambda x: geon.argmax(x, A),
    "top_k": lambda x: list(geon.top_k(x, 2, A)),
    "cast": lambda x: geon.cast(geon.floor(x), "int32") + 1,
    "softmax": lambda x: geon.softmax(x, normalization_axes=B),
    "transposed": lambda x: geon.reorder(x + 1, [B, A]),
    "cumulative": lambda x: geon.cumsum(x, A, reverse=True),
    "halves": lambda x: geon.exp(geon.cast(x, "float16")),
    "concat": lambda x: geon.concat([x, x * 2], A),
    "derivative": lambda x: geon.deriv(geon.sum(geon.sigmoid(x) * x), x),
}


BLOCKS = 300_000  # work by blocks, and Python's own


@pytest.mark.parametrize("name", MEASURED)
def test_peak_bytes_is_what_a_call_takes(transformer, name):
    if not transformer.memory.on_host:
        pytest.skip("tests/cuda measures what is taken of a device")
    x = geon.placeholder(axes=[A, B])
    f = transformer.computation(MEASURED[name](x), x)
    random = np.random.default_rng(0)
    f(random.random((3, 2), np.float32))
    values = random.random((900, 700), np.float32)
    result_pool.clear()  # what native code keeps of earlier results
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = f(values)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    del kept
    said = f.peak_bytes({A: 900, B: 700})
    assert abs(peak - said) < BLOCKS, f"{peak} bytes were taken, {said} were said"


def test_peak_bytes_with_open_lengths_is_an_upper_bound(transformer):
    x = geon.placeholder(axes=[A, B])
    f = transformer.computation(geon.softmax(x, normalization_axes=B), x)
    bound = f.peak_bytes()
    for a, b in [(1, 1), (100, 3), (1000, 100)]:
        assert f.peak_bytes({A: a, B: b}) <= bound.evaluate({"A": a, "B": b}) + 64 * 8


# With and without the plan ----------------------------------------------------------------------


def test_bits_are_the_same_without_a_plan(make):
    x = geon.placeholder(axes=[N, H])
    w = geon.Variable(axes=[H, C], initial_value=np.linspace(-1, 1, 12).reshape(4, 3))
    y = geon.softmax(geon.tanh(x @ w), normalization_axes=C)
    loss = geon.sum(geon.log(y)[{C: 0}])
    step = geon.assign(w, w - 0.1 * geon.deriv(loss, w))
    values = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    found = []
    for plan in (True, False):
        transformer = make()
        f = transformer.computation([y, loss, step], x, plan=plan)
        results = [f(values)[:2] for _ in range(3)]
        found.append([a.tobytes() for pair in results for a in pair])
        found[-1].append(transformer.get(w).tobytes())
    assert found[0] == found[1]
