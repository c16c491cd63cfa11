"""Random streams: known answers, counters, and what each distribution promises."""

import copy
import pickle
import threading

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import post_order
from geon.op_graph.random.normal import normal_from_bits, uniform_from_bits
from geon.op_graph.random.philox import philox
from geon.op_graph.rewriting.driver import rewrite
from geon.op_graph.rewriting.simplify import simplify_rules
from geon.op_graph.transforms.functionalize import functional
from tests.op_graph.evaluation import NUMPY_OPS

A, B, MANY = geon.Axis("A", 3), geon.Axis("B", 4), geon.Axis("many", 20_000)
SEED = 0x299F31D0A4093822


def run(stream, *ops, call=0, **leaves):
    """The values of ``ops`` in the call of this number, and the counter after it."""
    made = functional(ops)
    found = interpret(made.roots, {stream.counter: call, **leaves}, {})
    after = found[made.updates[stream.counter]] if made.updates else call
    return [found[op] for op in made.outputs], int(after)


def sample(stream, op, call=0):
    return run(stream, op, call=call)[0][0]


def draws(op):
    return [below for below in post_order([op]) if below.primitive.name == "random_bits"]


# Bits and counters ------------------------------------------------------------------------------


def test_the_published_answer_for_zero():
    stream = geon.Random(0)
    got = sample(stream, stream.bits(B))
    assert [f"{word:08x}" for word in got] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize(("draw", "call"), [(0, 0), (2, 0), (0, 7), (3, 5)])
def test_words_are_philox_of_position_draw_call_and_seed(draw, call):
    stream = geon.Random(SEED)
    op = [stream.bits([A, B]) for _ in range(draw + 1)][-1]
    got = sample(stream, op, call).reshape(-1)
    key = (0xA4093822, 0x299F31D0)
    for i in range(12):
        assert got[i] == philox((i // 4, 0, draw, call), key)[i % 4]


def test_the_index_is_the_position_in_the_axes_of_the_draw():
    flat, rows, columns = (geon.Random(9) for _ in range(3))
    words = sample(flat, flat.bits(geon.Axis("flat", 12)))
    np.testing.assert_array_equal(sample(rows, rows.bits([A, B])), words.reshape(3, 4))
    np.testing.assert_array_equal(sample(columns, columns.bits([B, A])), words.reshape(4, 3))


def test_uint64_bits_are_two_words_low_first():
    narrow, wide = geon.Random(9), geon.Random(9)
    words = sample(narrow, narrow.bits(geon.Axis("twice", 8))).astype(np.uint64)
    got = sample(wide, wide.bits(B, "uint64"))
    np.testing.assert_array_equal(got, words[::2] | words[1::2] << np.uint64(32))


def test_two_calls_give_two_draws_and_a_third_repeats_with_its_counter():
    stream = geon.Random(3)
    op = stream.uniform([A, B])
    (first,), after = run(stream, op)
    (second,), last = run(stream, op, call=after)
    assert (after, last) == (1, 2)
    assert (first != second).all()
    np.testing.assert_array_equal(sample(stream, op), first)


def test_one_call_advances_the_counter_by_one_however_much_it_draws():
    stream = geon.Random(3)
    ops = [stream.uniform(A), stream.normal([A, B]), stream.bits()]
    assert run(stream, *ops, call=41)[1] == 42
    assert functional([geon.placeholder(axes=A)]).updates == {}


def test_draws_are_numbered_as_they_are_built():
    one, two = geon.Random(3), geon.Random(3)
    ours = [one.uniform(A), one.uniform(A)]
    theirs = [two.uniform(A), two.uniform(A)]
    assert ours[0] is not ours[1]
    assert ours[0] is not theirs[0]
    values = [run(one, *ours)[0], run(two, *theirs)[0]]
    np.testing.assert_array_equal(values[0], values[1])
    assert (values[0][0] != values[0][1]).all()


def test_another_seed_gives_other_bits():
    one, two = geon.Random(3), geon.Random(3 + (1 << 32))
    assert (sample(one, one.bits(B)) != sample(two, two.bits(B))).all()


def test_streams_have_their_own_counters():
    one, two = geon.Random(3), geon.Random(3)
    total = geon.sum(one.uniform(A) + two.uniform(A))
    assert set(functional([total]).updates) == {one.counter, two.counter}


def test_the_counter_is_a_persistent_variable_that_is_not_trained():
    stream = geon.Random(3, name="noise")
    counter = stream.counter
    assert counter is stream.counter
    assert (counter.dtype, counter.axes, counter.name) == (np.uint64, geon.Axes(), "noise.calls")
    assert counter.persistent
    assert not counter.trainable
    assert value_of_initial(counter) == 0
    assert geon.sum(stream.uniform(A)).variables() == []
    assert geon.Random(3).counter.name is None


def value_of_initial(variable):
    return interpret([variable.initial_value], {}, {})[variable.initial_value]


def test_draws_built_by_threads_have_different_numbers():
    stream, ops = geon.Random(3), []

    def build():
        for _ in range(200):
            ops.append(stream.bits(A))

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(op.attrs.draw for op in ops) == list(range(1600))
    assert {op.args[0] for op in ops} == {stream.counter}


def test_forward_and_backward_see_one_draw():
    stream = geon.Random(3)
    x = geon.placeholder(axes=[A, B], dtype="float64")
    mask = stream.bernoulli([A, B], 0.5, "float64")
    y = geon.sum(mask * x)
    slope = geon.deriv(y, x)
    assert draws(slope) == draws(y)
    kept, got = run(stream, mask, slope)[0]
    np.testing.assert_array_equal(got, kept)


def test_the_derivative_of_a_normal_draw_in_its_mean_and_deviation():
    stream = geon.Random(3)
    mean, std = geon.Variable(axes=[B]), geon.Variable(axes=[])
    op = stream.normal([A, B], mean, std)
    standard = draws(op)
    slopes = geon.deriv(geon.sum(op), [mean, std])
    assert draws(slopes[1]) == standard
    leaves = {mean: np.zeros(4, np.float32), std: np.float32(1)}
    made = functional([op, *slopes])
    found = interpret(made.roots, {stream.counter: 0, **leaves}, {})
    value, by_mean, by_std = (found[out] for out in made.outputs)
    np.testing.assert_array_equal(by_mean, 3)
    np.testing.assert_allclose(by_std, value.sum(), rtol=1e-5)


def test_an_initial_value_can_be_drawn():
    stream = geon.Random(3)
    w = geon.Variable(axes=[A, B], initial_value=stream.normal([A, B], 0, 0.1))
    assert functional(w.initializers).updates.keys() == {w, stream.counter}


# Distributions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "width"), [("float32", "uint32"), ("float64", "uint64")])
def test_ops_compute_what_the_formulas_say(dtype, width):
    bits = geon.Random(5)
    words = sample(bits, bits.bits(MANY, width))
    uniform, normal = geon.Random(5), geon.Random(5)
    got = sample(uniform, uniform.uniform(MANY, dtype=dtype))
    np.testing.assert_array_equal(got, uniform_from_bits(words, dtype, NUMPY_OPS))
    got = sample(normal, normal.normal(MANY, dtype=dtype))
    np.testing.assert_array_equal(got, normal_from_bits(words, dtype, NUMPY_OPS))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_is_uniform_below_1(dtype):
    stream = geon.Random(5)
    op = stream.uniform(MANY, dtype=dtype)
    assert op.dtype.name == dtype
    got = sample(stream, op).astype(np.float64)
    assert got.min() >= 0
    assert got.max() < 1
    assert stats.kstest(got + 2.0**-9 * (dtype == "bfloat16"), "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8)])
def test_uniform_halves_are_on_a_grid(dtype, bits):
    stream = geon.Random(5)
    got = sample(stream, stream.uniform(MANY, dtype=dtype)).astype(np.float64)
    np.testing.assert_array_equal(got * 2**bits % 1, 0)
    assert got.max() == 1 - 2.0**-bits


def test_uniform_between_bounds():
    unit, ranged = geon.Random(5), geon.Random(5)
    plain = sample(unit, unit.uniform(MANY))
    got = sample(ranged, ranged.uniform(MANY, -2, 3))
    np.testing.assert_array_equal(got, plain * np.float32(5) + np.float32(-2))
    bounds = geon.constant(np.array([0.0, 10, 20], np.float32), axes=A)
    within = sample(ranged, ranged.uniform([B, A], bounds, bounds + 1, name="within"))
    np.testing.assert_array_equal(np.floor(within), np.tile([0, 10, 20], (4, 1)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_normal_is_normal(dtype):
    stream = geon.Random(6)
    op = stream.normal(MANY, 3, 0.5, dtype)
    assert op.dtype.name == dtype
    got = sample(stream, op).astype(np.float64)
    assert abs(got.mean() - 3) < 0.02
    assert abs(got.std() - 0.5) < 0.02
    if dtype in ("float32", "float64"):
        assert stats.kstest(got, "norm", (3, 0.5)).pvalue > 1e-3


def test_bernoulli():
    stream = geon.Random(7)
    ones = [stream.bernoulli(MANY, p) for p in (0.0, 0.3, 1.0)]
    low, middle, high = run(stream, *ones)[0]
    assert (low.max(), high.min()) == (0, 1)
    assert set(middle) == {0, 1}
    assert abs(middle.mean() - 0.3) < 0.02
    assert ones[0].dtype == np.float32
    mask = stream.bernoulli([A, B], geon.constant([0.0, 1, 0], axes=A), "bool")
    assert mask.dtype == bool
    np.testing.assert_array_equal(sample(stream, mask), np.tile([[False], [True], [False]], 4))


def test_bernoulli_compares_the_unit_draw():
    unit, coin = geon.Random(5), geon.Random(5)
    plain = sample(unit, unit.uniform(MANY))
    np.testing.assert_array_equal(sample(coin, coin.bernoulli(MANY, 0.25)), plain < 0.25)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_simplifying_a_draw_keeps_its_bits(dtype):
    stream = geon.Random(5)
    ops = [stream.normal(MANY, 2, 3, dtype), stream.uniform(MANY, -1, 1, dtype)]
    simple = rewrite(ops, simplify_rules(), {})
    for plain, simplified in zip(run(stream, *ops)[0], run(stream, *simple)[0], strict=True):
        np.testing.assert_array_equal(simplified, plain)


def test_a_draw_over_an_open_axis_takes_its_length_from_the_call():
    batch = geon.Axis("batch")
    stream = geon.Random(8)
    x = geon.placeholder(axes=[batch])
    made = functional([x * stream.bernoulli([batch])])
    for length in (2, 5):
        feeds = {stream.counter: 0, x: np.ones(length)}
        got = interpret(made.roots, feeds, {"batch": length})[made.outputs[0]]
        assert got.shape == (length,)


def test_scalars_names_and_one_axis():
    stream = geon.Random(8)
    assert sample(stream, stream.uniform()).shape == ()
    assert stream.normal(A, name="noise").name == "noise"
    assert stream.bits(A).axes is geon.Axes(A)
    assert stream.uniform((A, B), name="u").filename == __file__


# Errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 1 << 64, 0.5, "one"])
def test_seeds_out_of_range(seed):
    with pytest.raises(geon.DTypeError, match="seed"):
        geon.Random(seed)


def test_numpy_integers_are_seeds():
    assert geon.Random(np.uint64((1 << 64) - 1)).seed == (1 << 64) - 1


def test_dtypes_that_cannot_be_drawn():
    stream = geon.Random(0)
    with pytest.raises(geon.DTypeError, match="uint32 or uint64, not int32"):
        stream.bits(A, "int32")
    with pytest.raises(geon.DTypeError, match="uniform draws floats, not int64"):
        stream.uniform(A, 0, 10, dtype="int64")
    with pytest.raises(geon.DTypeError, match="normal draws floats, not bool"):
        stream.normal(A, dtype=bool)
    assert stream.bits(A).attrs.draw == 0  # what was refused took no number


def test_parameters_with_other_axes_are_refused():
    mean = geon.placeholder(axes=[A, B])
    with pytest.raises(geon.AxisError, match="has the axis 'B'"):
        geon.Random(0).normal(A, mean)


def test_bfloat16_draws_are_of_ml_dtypes():
    assert geon.Random(0).uniform(A, dtype="bfloat16").dtype == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_is_no_copy_of_another(copied):
    """Both would draw the same numbers."""
    with pytest.raises(geon.SymbolicError, match=r"Random\(1, .*would draw the same numbers; use"):
        copied(geon.Random(1))
