"""Random bits where loops use them: no mask in memory, and the bits of Philox at every place."""

import numpy as np
import pytest

import geon
from geon.op_graph.random.philox import philox, random_bits
from geon.testing import assert_agrees
from geon.transformers.kernels.analysis.loop_depth import Depths
from geon.transformers.kernels.ir.nest import Call
from geon.transformers.kernels.ir.scalar_code import RandomBits, walk
from geon.transformers.kernels.nests.random_runs import runs
from geon.transformers.loops.values_ahead import MAX_BUFFERED_TURNS, MAX_BUFFERED_WORDS
from tests.golden.emitting import Native

N, C = geon.Axis("N"), geon.Axis("C", 24)
SIZES = [
    0,
    1,
    3,
    4,
    5,
    63,
    64,
    65,
    MAX_BUFFERED_WORDS - 1,
    MAX_BUFFERED_WORDS,
    MAX_BUFFERED_WORDS + 1,
    3 * MAX_BUFFERED_WORDS + 7,
]


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def native(request):
    with geon.NativeTransformer(threads=request.param) as transformer:
        yield transformer


def kernels(results, *placeholders):
    """The kernels of a computation, less the one that counts calls."""
    found = Native().computation(results, *placeholders).plan.schedule.kernels
    return [kernel for kernel in found if len(kernel.op.axes)]


def dropout(axes):
    x, seed = geon.placeholder(axes), geon.placeholder(axes)
    y = x * geon.Random(1).bernoulli(axes, 0.9) * (1 / 0.9)
    return y, geon.deriv(y, x, seed=seed), x, seed


def test_dropout_and_its_step_are_one_nest_each_with_no_mask_in_memory():
    y, slope, x, seed = dropout([N, C])
    (forward,) = kernels(y, x)
    assert forward.kind == "nest" and forward.results == (forward.op,)
    both = kernels([y, slope], x, seed)
    assert [kernel.kind for kernel in both] == ["nest"]
    assert len(both[0].results) == 2
    assert Native().computation([y, slope], x, seed).peak_bytes({N: 1000}) < 3 * 4 * 24 * 1000


def test_noise_and_what_sums_it_are_one_nest():
    x = geon.placeholder([N, C])
    for result in (
        x + geon.Random(2).normal([N, C]),
        geon.sum(x * geon.Random(2).uniform([N, C]), C),
    ):
        (kernel,) = kernels(result, x)
        assert kernel.kind == "nest"


@pytest.mark.parametrize("width", [1, 3, 4])
def test_loads_that_are_read_ahead_beside_draws(native, width):
    """Both cut the innermost loop, one inside of the other."""
    part, code = geon.Axis("part", 2), geon.Axis("code", width)
    x = geon.placeholder([N, part, code])
    for draw in (geon.Random(2).normal([N, code]), geon.Random(2).uniform([N, code])):
        f = native.computation(x[{part: 0}] + draw, x)
        with geon.NumPyTransformer() as other:
            g = other.computation(x[{part: 0}] + draw, x)
            for size in (
                0,
                1,
                3,
                MAX_BUFFERED_TURNS // 4,
                MAX_BUFFERED_TURNS - 1,
                MAX_BUFFERED_TURNS,
                MAX_BUFFERED_TURNS + 1,
                MAX_BUFFERED_WORDS,
                MAX_BUFFERED_WORDS + 1,
                3000,
            ):
                data = np.random.default_rng(size).normal(size=(size, 2, width))
                np.testing.assert_allclose(f(data), g(data), rtol=2e-6, atol=2e-6)


def test_bits_that_many_elements_share_are_made_once():
    x = geon.placeholder([N, C])
    first, second = kernels(x * geon.Random(2).bernoulli([C], 0.5), x)
    assert first.op.axes.names == ("C",) and second.op.axes.names == ("N", "C")


def test_bits_that_many_kernels_need_are_stored():
    many = geon.Axis("Many", 1000)
    bits = geon.Random(2).normal([many, C])
    made = kernels([geon.sum(bits, many), geon.sum(bits, C), geon.cumsum(bits, many)])
    assert len(made) > 2
    assert sum(any(isinstance(node, RandomBits) for node in nodes(k.work)) for k in made) == 1


def nodes(work):
    if isinstance(work, Call):
        return []
    stores = [store for each in work.passes for store in each.stores]
    elements = [x for each in work.passes for r in each.reductions for x in r.elements]
    return list(walk(*[store.value for store in stores], *elements))


def test_equal_layers_with_draws_of_their_own_are_one_function():
    """Seed and draw are an operand, so two masks differ in what is called, not in text."""
    inputs, stream = [geon.placeholder([N, C]) for _ in range(3)], geon.Random(3)
    made = [x * stream.bernoulli([N, C], 0.5) for x in inputs]
    assert len(kernels(made, *inputs)) == 3
    assert Native().computation(made, *inputs).source.count("geon_words_at(&") == 1


def run_of(result, *placeholders):
    """The runs of the only kernel."""
    (kernel,) = kernels(result, *placeholders)
    (step,) = kernel.work.passes
    return runs(kernel.work, step, Depths.of(kernel.work)), kernel.work


def test_neighbours_are_taken_together_and_what_jumps_by_itself():
    x, stream = geon.placeholder([N, C]), geon.Random(4)
    (run,), work = run_of(x * stream.bernoulli([N, C], 0.5), x)
    assert run.variable == work.passes[0].loops[-1].name
    wide = stream.bernoulli([N, C.with_length(60)], 0.5)
    part = wide[{C: slice(3, 27)}]
    (run,), work = run_of(x * part, x)
    assert run.base.constant == 3 and run.end == run.base + 24
    found, _ = run_of(x * wide[{C: slice(0, 48, 2)}], x)
    assert found == []
    found, _ = run_of(x * geon.flip(stream.bernoulli([N, C], 0.5), C), x)
    assert found == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_any_count_is_that_of_philox(native, size, dtype):
    n = geon.Axis("N", size)
    seed = 0xFEDCBA9876543210
    expected = np.zeros(size, dtype)
    random_bits(expected, seed, 0, 0)
    np.testing.assert_array_equal(
        native.computation(geon.Random(seed).bits([n], dtype))(), expected
    )


def forms(rows, columns):
    """Results that use draws in every form of loop, and their placeholders."""
    a, b = geon.Axis("A", rows), geon.Axis("B", columns)
    x, scale, stream = geon.placeholder([a, b]), geon.placeholder([b]), geon.Random(2**63 + 5)
    mask, turned = stream.bernoulli([a, b], 0.5), stream.bernoulli([b, a], 0.5)
    wide = stream.bits([a, b], "uint64")
    small = geon.cast(geon.bitwise_and(wide, 7), "float32")
    longer = stream.uniform([a, b.with_length(columns + 5)])
    third = geon.Axis("D", 3)
    thrice = stream.bernoulli([a, third, b], 0.5)
    results = {
        "as it lies": x * mask,
        "by rows": (x + scale) * mask,
        "turned": x * turned,
        "turned result": geon.reorder(x * mask, [b, a]) * 2,
        "wide": x + small,
        "several": x * mask + small,
        "slice": x * longer[{b.name: slice(3, columns + 3)}],
        "flipped": x * geon.flip(mask, b),
        "sum of a row": geon.sum(geon.round(x) * mask, b),
        "sum over rows": geon.sum(geon.round(x) * mask, a),
        "all": geon.sum(geon.round(x) * mask),
        "largest": geon.max(x + small, b) if columns else x,
        "state over rows": geon.argmax(x + small, a) if rows else x,
        "state of rows": geon.argmin(small, [a, b]) if rows * columns else x,
        "passes": geon.softmax(x * mask, b) * small if columns else x,
        "padded": geon.pad(mask, {a: (1, 2), b: (2, 0)}) * 3,
        "joined": geon.concat([mask, x], a.with_length(2 * rows)),
        "three axes": geon.sum(geon.broadcast(x, [a, third, b]) * thrice, third),
        "strided": x * longer[{b.name: slice(0, columns)}],
    }
    return results, [x, scale]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (0, 3),
        (3, 0),
        (1, 1),
        (2, 3),
        (5, 10),
        (7, 63),
        (3, 64),
        (65, 65),
        (4, 1025),
        (1100, 2),
        (70, 513),
    ],
)
def test_every_form_of_loop_has_the_bits_of_numpy(native, rows, columns):
    results, placeholders = forms(rows, columns)
    drawn = np.random.default_rng(rows * columns)
    feeds = [drawn.normal(size=p.axes.lengths).astype(np.float32) for p in placeholders]
    with geon.NumPyTransformer() as numpy:
        expected = numpy.computation(list(results.values()), *placeholders)(*feeds)
    for each in ({}, {"plan": False}):
        f = native.computation(list(results.values()), *placeholders, **each)
        native.initialize(force=True)
        found = f(*feeds)
        for name, wanted, value in zip(results, expected, found, strict=True):
            if name == "passes":
                np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-7, err_msg=name)
            else:
                np.testing.assert_array_equal(value, wanted, err_msg=name)


def test_open_lengths_and_one_computation_for_each_form(native):
    """By themselves fusion sees other users: each form alone, with both axes open."""
    a, b = geon.Axis("A"), geon.Axis("B")
    x, stream = geon.placeholder([a, b]), geon.Random(9)
    mask, wide = stream.bernoulli([a, b], 0.5), stream.bits([b, a], "uint64")
    small = geon.cast(geon.bitwise_and(wide, 7), "float32")
    for result in (
        x * mask,
        x + small,
        geon.sum(geon.round(x) * mask, a),
        geon.argmax(x + small, b),
    ):
        for rows, columns in ((1, 1), (3, 17), (33, 1030), (1030, 3)):
            feed = np.random.default_rng(rows).normal(size=(rows, columns)).astype(np.float32)
            with geon.NumPyTransformer() as numpy:
                expected = numpy.computation(result, x)(feed)
            fresh = native.computation(result, x)
            native.initialize(force=True)
            np.testing.assert_array_equal(fresh(feed), expected)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_the_last_places_of_a_draw_that_no_memory_holds(native, dtype):
    """Positions beyond 2^32 have bits of their own; only those that are used are made."""
    words = np.dtype(dtype).itemsize // 4
    size = (1 << 34) // words
    n = geon.Axis("N", size)
    drawn = geon.Random(77).bits([n], dtype)
    found = native.computation(drawn[{n: slice(size - 9, None)}])()
    first = size * words - 9 * words
    expected = [philox((k // 4, 0, 0, 0), (77, 0))[k % 4] for k in range(first, first + 9 * words)]
    np.testing.assert_array_equal(found.view(np.uint32), np.array(expected, np.uint32))


def test_a_draw_of_more_words_than_counters_give_is_refused():
    n = geon.Axis("N", (1 << 33) + 1)
    with pytest.raises(geon.SizeError, match="at most 2.*34 words.*uint64 over .*17,179,869,186"):
        geon.Random(77).bits([n], "uint64")


def test_a_draw_over_an_open_axis_is_refused_where_it_would_repeat_itself(native):
    x, stream = geon.placeholder(geon.Axis("B")), geon.Random(77)
    wide = geon.Axis("N", 1 << 32)
    drawn = geon.sum(stream.bits([x.axes["B"], wide])[{wide: 0}]) + geon.sum(x)
    f = native.computation(drawn, x)
    assert f(np.zeros(4, np.float32)) > 0
    with pytest.raises(geon.GuardError, match=r"at most 2.*34 words(.|\n)*B: 5|B = 5"):
        f(np.zeros(5, np.float32))


def test_a_training_step_with_draws_is_that_of_the_interpreter():
    y, slope, x, seed = dropout([geon.Axis("A", 33), C])
    with geon.NativeTransformer() as transformer:
        feeds = {p: np.random.default_rng(1).normal(size=(33, 24)) for p in (x, seed)}
        assert_agrees(transformer, [y, slope, geon.sum(slope, C)], feeds)


WIDE, E = geon.Axis("wide", 64), geon.Axis("E", 300)
IN_PIECES = {
    "a pad": lambda y, x, a: geon.pad(y, {a: 1}),
    "one behind the other": lambda y, x, a: geon.concat([y, x], a),
    "a roll": lambda y, x, a: geon.roll(y, {a: 3}),
    "a stack": lambda y, x, a: geon.stack([y, x], geon.Axis("two", 2)),
}


@pytest.mark.parametrize("what", IN_PIECES)
@pytest.mark.parametrize("axes", [(N, WIDE), (N, geon.Axis("M")), (E,)], ids=str)
def test_draws_of_what_is_computed_in_pieces(what, axes, native):
    """Dropout before a pad, say: each piece of a nest may draw."""
    x = geon.placeholder(axes)
    y = x * geon.Random(1).bernoulli(axes, 0.5)
    result = IN_PIECES[what](y, x, axes[-1])
    sizes = {"N": 5, "M": 130, "wide": 64, "E": 300}
    shape = [sizes[axis.name] for axis in axes]
    given = np.random.default_rng(0).random(shape).astype(np.float32)
    with geon.NumPyTransformer() as other:
        wanted = other.computation(result, x)(given)
    np.testing.assert_array_equal(native.computation(result, x)(given), wanted)
