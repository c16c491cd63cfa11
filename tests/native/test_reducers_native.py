"""Reductions whose state is several scalars, in nests: positions of extremes, and rows of a test.

Sizes are those at which the loops change their way: a vector's lanes, eight of them, a row that is
divided over tasks.
"""

import dataclasses
import itertools
import re

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES, Primitive
from geon.op_graph.rows import reducers
from geon.op_graph.rows.reductions import ReducedAxes, own_dtype, reduce, reducing
from geon.op_graph.values.dtypes import DTYPES, FLOAT64, FLOATS, HALVES, named_dtype
from geon.transformers.kernels.ir.nest import Call, Nest
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.op_graph.several_states import LOG_SUM_EXP, MOMENTS

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
SIZES = [1, 15, 16, 17, 127, 128, 129]
LONG = 100_001
A, B, N = geon.Axis("A"), geon.Axis("B"), geon.Axis("N")
EXTREMES = [(geon.argmax, np.argmax), (geon.argmin, np.argmin)]


# Positions of extremes ----------------------------------------------------------------------------


def drawn(shapes, dtype):
    """Arrays of few values, so that they tie: limits of integers, infinities, NaN in every third.

    One is nothing but the value that loses against all others.
    """
    random = np.random.default_rng(7)
    kind = named_dtype(dtype)
    if dtype == "bool":
        values = [False, True]
    elif dtype in FLOATS:
        values = [-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf]
    else:
        limits = np.iinfo(kind)
        values = [limits.min, limits.min + 1, 3, limits.max]
    for number, shape in enumerate(shapes):
        chosen = [*values, np.nan] if dtype in FLOATS and number % 3 == 0 else values
        x = random.choice(np.array(chosen, kind), shape)
        if number % 7 == 5:
            x[:] = values[0]
        yield x


def wide(x):
    """An array with the same order of elements, which NumPy finds extremes of."""
    return x.astype(np.float32) if x.dtype.name in HALVES else x


def expected(find, x, over):
    """The positions of extremes over some dimensions, row-major over them."""
    kept = [k for k in range(x.ndim) if k not in over]
    moved = wide(x).transpose([*kept, *over])
    return find(moved.reshape([*(x.shape[k] for k in kept), -1]), axis=-1)


def subsets(count):
    """Every subset of so many positions that is not empty."""
    sizes = range(1, count + 1)
    return [over for size in sizes for over in itertools.combinations(range(count), size)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_over_any_axes_in_any_order_of_any_length(dtype):
    """One program of open lengths; halves of the orders are enough for dtypes beside float32."""
    x = geon.placeholder([A, B, N], dtype=dtype)
    orders = list(itertools.permutations(range(3)))
    asked = [
        (extreme, order, over)
        for order in (orders if dtype == "float32" else orders[::5])
        for over in subsets(3)
        for extreme in (EXTREMES if dtype == "float32" else EXTREMES[len(over) % 2 :][:1])
    ]
    axes = [A, B, N]
    results = []
    for (find, _), order, over in asked:
        y = geon.reorder(x, [axes[k] for k in order])
        results.append(find(y, [axes[order[k]] for k in over]))
    shapes = [(3, 5, 4), (1, 1, 1), (2, 17, 16), (129, 2, 3), (2, 3, 1000), (1, 7, 128)]
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation(results, x)
        for data in drawn(shapes, dtype):
            for got, ((_, find), order, over) in zip(f(data), asked, strict=True):
                wanted = expected(find, data.transpose(order), over)
                np.testing.assert_array_equal(got, wanted, f"{find.__name__} {order} {over}")


# Axes with the reduced ones: side by side, each row in order, divided, by the library.
SHAPES = [("N3", "N"), ("3N2", "N2"), ("N2", "N2"), ("3N", "N")]


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_known_lengths(dtype):
    inputs, results, wanted = [], [], []
    for size in [*SIZES, LONG]:
        lengths = {"N": size, "2": 2, "3": 3}
        for letters, over in SHAPES:
            axes = [geon.Axis(f"A{c}", lengths[c]) for c in letters]
            x = geon.placeholder(axes, dtype=dtype)
            inputs.append(x)
            gone = [axis for axis, c in zip(axes, letters, strict=True) if c in over]
            results += [geon.argmax(x, gone), geon.argmin(x, gone)]
            wanted.append(tuple([k for k, c in enumerate(letters) if c in over]))
    data = list(drawn([tuple(axis.length for axis in x.axes) for x in inputs], dtype))
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation(results, *inputs)
        got = iter(f(*data))
        for x, over in zip(data, wanted, strict=True):
            for _, find in EXTREMES:
                said = f"{find.__name__} of {x.shape} over {over}"
                np.testing.assert_array_equal(next(got), expected(find, x, over), said)


def test_along_the_innermost_axis_a_library_finds_them():
    x = geon.placeholder([A, B])
    with geon.make_transformer("native") as transformer:
        for over, kind in (([B], Call), ([A], Nest), ([A, B], Nest)):
            f = transformer.computation(geon.argmax(x, over), x)
            assert [type(k.work) for k in f.plan.schedule.kernels] == [kind]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("sizes", [(3, 5, 4), (4, 30, 40), (2, 1, 600), (3, 3, 5)])
@pytest.mark.parametrize("is_open", [False, True])
def test_over_several_axes_that_adjoin_a_library_finds_them(dtype, sizes, is_open):
    axes = [geon.Axis(name, None if is_open else n) for name, n in zip("NAB", sizes, strict=True)]
    x = geon.placeholder(axes, dtype=dtype)
    data = np.random.default_rng(1).integers(0, 50, sizes).astype(dtype)
    with geon.make_transformer("native") as transformer:
        for find, wanted in ((geon.argmax, np.argmax), (geon.argmin, np.argmin)):
            f = transformer.computation(find(x, axes[1:]), x)
            got = f(data)
            np.testing.assert_array_equal(got, wanted(data.reshape(len(data), -1), -1))
            (kernel,) = f.plan.schedule.kernels
            short = not is_open and sizes[1] * sizes[2] <= 15
            assert type(kernel.work) is (Nest if short else Call)
        y = geon.reorder(x, [axes[0], axes[2], axes[1]])
        got = transformer.computation(geon.argmax(y, [axes[2], axes[1]]), x)(data)
        turned = data.transpose(0, 2, 1).reshape(len(data), -1)
        np.testing.assert_array_equal(got, np.argmax(turned, -1))


def test_positions_that_loops_go_up_along_are_not_compared():
    """In the order of memory; in another one, a later element may have a lower position."""
    x = geon.placeholder([geon.Axis("A", 30), geon.Axis("B", 40), geon.Axis("C", 50)])
    a, b, c = x.axes
    with geon.make_transformer("native") as transformer:
        for over in ([a, b, c], [a, c], [b, a]):
            for y, in_order in ((x, True), (geon.reorder(x, [c, b, a]), False)):
                f = transformer.computation(geon.argmax(y, over), x)
                (kernel,) = f.plan.schedule.kernels
                ((reduction,),) = [step.reductions for step in kernel.work.passes]
                assert (reduction.reducer == reducers.in_order(reducers.ARGMAX)) == in_order
                # Lanes count in as many bits as positions are held in.
                assert re.search(r"int32_t t\d+ = \(int32_t\)\(", f.source)
                assert not re.search(r"int64_t t\d+ = \(int64_t\)\(\w", f.source)


# Rows of a test -----------------------------------------------------------------------------------


def second(code, state):
    """The variance of moments."""
    return MOMENTS.finish(code, state)[1:]


REDUCERS = {
    "mean": (MOMENTS, lambda x: FLOAT64),
    "variance": (dataclasses.replace(MOMENTS, finish=second), lambda x: FLOAT64),
    "log_sum_exp": (LOG_SUM_EXP, own_dtype),
}
MEANINGS = {
    "mean": np.mean,
    "variance": np.var,
    "log_sum_exp": np.logaddexp.reduce,
}


@pytest.fixture(scope="module")
def rows():
    """A row for each reducer, gone after the tests."""
    made = {
        name: Primitive(
            f"test_{name}",
            "reduction",
            "A row of a test.",
            attributes=ReducedAxes,
            arity=1,
            infer=reducing(name, dtype),
            reducer=reducer,
            dtype_operands=(),
        )
        for name, (reducer, dtype) in REDUCERS.items()
    }
    yield made
    for row in made.values():
        del PRIMITIVES[row.name]


def of_rows(rows, x, axes):
    """Each row over one axis of two, over the other, and over both."""
    overs = (axes[:1], axes[1:], axes)
    return [reduce(row, x, list(over)) for row in rows.values() for over in overs]


def hold(results, x, rtol=2e-6):
    """What ``of_rows`` asked for is what the rows mean, in float64."""
    got = iter(results)
    for name in REDUCERS:
        for over in (0, 1, (0, 1)):
            y, axis = (x.reshape(-1), 0) if over == (0, 1) else (x, over)
            wanted = MEANINGS[name](y.astype(np.float64), axis=axis)
            np.testing.assert_allclose(next(got), wanted, rtol=rtol, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_several_states(rows, dtype):
    """Known and open lengths; one thread and three give the same bits."""
    random = np.random.default_rng(3)
    sizes = [*SIZES, LONG]
    known = [geon.placeholder([geon.Axis("M", n), geon.Axis("C", 3)], dtype) for n in sizes]
    x = geon.placeholder([N, A], dtype)
    asked = [each for leaf in known for each in of_rows(rows, leaf, list(leaf.axes))]
    given = [(random.normal(size=(n, 3)) * 3 + 5).astype(dtype) for n in sizes]
    found = []
    for threads in (1, 3):
        with geon.make_transformer("native", threads=threads) as transformer:
            f = transformer.computation(asked, *known)
            g = transformer.computation(of_rows(rows, x, [N, A]), x)
            found.append([*f(*given), *(each for data in given for each in g(data))])
            found[-1] += [each for data in given for each in g(np.ascontiguousarray(data.T))]
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three, strict=True)
    each = len(REDUCERS) * 3
    for k, data in enumerate([*given, *given, *(data.T for data in given)]):
        hold(found[0][k * each :][:each], data)


def test_special_values_of_several_states(rows):
    x = geon.placeholder([A, N])
    data = np.ones((4, 129), np.float32)
    data[0, 77], data[1, 128] = np.nan, np.inf
    data[2] = -np.inf
    with geon.make_transformer("native") as transformer:
        f = transformer.computation([reduce(row, x, N) for row in rows.values()], x)
        mean, variance, logarithm = f(data)
    assert not np.isfinite(mean[:3]).any() and not np.isfinite(variance[:3]).any()
    assert (mean[3], variance[3]) == (1, 0)
    np.testing.assert_allclose(logarithm, [np.nan, np.inf, -np.inf, 1 + np.log(129)], rtol=1e-6)


# Folds of rows that vector lanes do not keep ------------------------------------------------------


@pytest.fixture(scope="module")
def exclusive_or():
    """The row that folds ``bitwise_xor``, gone after the tests."""
    yield Primitive(
        "test_exclusive_or",
        "reduction",
        "A row of a test.",
        attributes=ReducedAxes,
        arity=1,
        infer=reducing("test_exclusive_or", own_dtype),
        reducer=reducers.folding(PRIMITIVES["bitwise_xor"], lambda dtype: 0),
        dtype_operands=(),
    )
    del PRIMITIVES["test_exclusive_or"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fold_with_a_state_shares_a_pass_with_folds_in_lanes(exclusive_or, threads):
    x = geon.placeholder([A, N], "int64")
    random = np.random.default_rng(5)
    with geon.make_transformer("native", threads=threads) as transformer:
        for over, axis in (([N], 1), ([A], 0), ([A, N], (0, 1))):
            results = [reduce(exclusive_or, x, over), geon.sum(x, over), geon.max(x, over)]
            f = transformer.computation(results, x)
            for size in [*SIZES, LONG]:
                data = random.integers(-(1 << 40), 1 << 40, (3, size))
                exclusive, total, highest = f(data)
                np.testing.assert_array_equal(exclusive, np.bitwise_xor.reduce(data, axis=axis))
                np.testing.assert_array_equal(total, data.sum(axis=axis))
                np.testing.assert_array_equal(highest, data.max(axis=axis))
