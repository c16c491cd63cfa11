"""Reducers give what the rows' references compute, in whole and in parts, special values too."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.evaluation.eval_reducer import CODE, eval_reduction, start, step_states
from geon.op_graph.evaluation.interpreter import BoundOp, interpret
from geon.op_graph.op_graph import post_order
from geon.op_graph.rows import reducers
from geon.op_graph.rows.reductions import reduce
from geon.op_graph.values.dtypes import DTYPES, FLOATS, HALVES, named_dtype
from geon.testing.cases import for_each
from geon.testing.samples import SAMPLES
from tests.op_graph.several_states import LOG_SUM_EXP, MOMENTS
from tests.transformers.special_values import special_values

ROWS = {row.name: row for row in PRIMITIVES.values() if row.kind == "reduction"}
EXACT = ("max", "min", "any", "all", "argmax", "argmin")
A, N = geon.Axis("A"), geon.Axis("N")


def test_every_reduction_has_a_reducer():
    assert all(row.reducer is not None for row in ROWS.values())


def close(got, expected, exact):
    """Equal; sums of floats up to the order they are taken in."""
    got, expected = np.asarray(got), np.asarray(expected)
    if exact or expected.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=2e-5)


@for_each("sample", SAMPLES["reduction"], ids=str)
def test_a_reducer_says_what_the_reference_computes(sample):
    for dtype in sample.dtypes:
        results, feeds = sample.results(dtype)
        values = interpret(results, feeds, {})
        for op in post_order(results):
            if op.primitive.reducer is not None:
                bound = BoundOp(op, {}, tuple(BoundOp(arg, {}, ()) for arg in op.args))
                x = values[op.args[0]]
                wide = x.astype(np.float32) if x.dtype.name in HALVES else x
                got = eval_reduction(bound, wide).astype(op.dtype)
                rough = op.dtype.name in HALVES
                wanted = values[op]
                if rough:
                    np.testing.assert_allclose(
                        got.astype(float), wanted.astype(float), rtol=1e-2, atol=1e-2
                    )
                else:
                    close(got, wanted, op.primitive.name in EXACT)


def rows_of(dtype):
    """Rows of special values in several orders, some of one value, and some of plain numbers."""
    random = np.random.default_rng(5)
    special = special_values(dtype)
    rows = [random.permutation(np.resize(special, 24)) for _ in range(20)]
    if dtype in FLOATS:
        rows += [np.full(24, v, special.dtype) for v in (np.nan, np.inf, -np.inf, -0.0)]
        rows += [random.normal(size=24).astype(special.dtype)]
        rows += [np.where(np.arange(24) == 7, v, 1).astype(special.dtype) for v in (np.nan, np.inf)]
    return np.stack(rows)


def in_parts(reducer, x, dtype, cuts, order):
    """The results of a reducer for the rows of ``x``, cut into parts that are combined in order."""
    parts = []
    for low, high in itertools.pairwise([0, *cuts, x.shape[1]]):
        state = start(reducer, x.dtype, dtype, x.shape[:1])
        parts.append(step_states(reducer, state, x, range(low, high)))
    total = parts[order[0]]
    for number in order[1:]:
        total = reducer.combine(CODE, total, parts[number])
    return reducer.finish(CODE, total)


CUTS = [([], [0]), ([9], [0, 1]), ([9], [1, 0]), ([0, 5, 5, 20, 24], [3, 0, 5, 1, 4, 2])]


@for_each("cuts, order", CUTS, ids=str)
@for_each("dtype", [name for name in DTYPES if name not in HALVES])
@for_each("name", ROWS)
def test_parts_in_any_order_are_the_whole(name, dtype, cuts, order):
    x = rows_of(dtype)
    leaf = geon.placeholder([A, N], dtype)
    try:
        op = reduce(ROWS[name], leaf, N)
    except geon.DTypeError:
        pytest.skip(f"{name} does not take {dtype}")
    lengths = dict(zip("AN", x.shape, strict=True))
    expected = interpret([op], {leaf: x}, lengths)[op]
    x = interpret([op.args[0]], {leaf: x}, lengths)[op.args[0]]
    with np.errstate(all="ignore"):
        (got,) = in_parts(ROWS[name].reducer, x, op.dtype, cuts, order)
    if name in ("sum", "prod") and op.dtype.name in FLOATS:
        # Overflow on the way depends on the order.
        kept = np.isfinite(expected) & (np.abs(x).max(axis=1) < 1e6)
        got, expected = got[kept], expected[kept]
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-30)
    else:
        close(got, expected, True)


@for_each("cuts, order", CUTS, ids=str)
@for_each("dtype", [name for name in DTYPES if name not in HALVES])
@for_each("find", [np.argmax, np.argmin])
def test_positions_in_order_take_a_shorter_step(find, dtype, cuts, order):
    """It does not compare positions; parts still meet in any order."""
    x = rows_of(dtype)
    reducer = reducers.in_order(ROWS[find.__name__].reducer)
    assert reducer.step is reducer.further
    (got,) = in_parts(reducer, x, np.dtype("int64"), cuts, order)
    np.testing.assert_array_equal(got, find(x, 1))


@for_each("name", ["sum", "prod", "any", "all"])
def test_nothing_is_the_identity(name):
    op = getattr(geon, name)(geon.placeholder(geon.Axis("N", 0)))
    bound = BoundOp(op, {}, (BoundOp(op.args[0], {}, ()),))
    got = eval_reduction(bound, np.zeros(0, op.args[0].dtype))
    assert got == {"sum": 0, "prod": 1, "any": False, "all": True}[name]
    assert ROWS[name].reducer.empty


@for_each("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extreme(name):
    assert not ROWS[name].reducer.empty
    with pytest.raises(geon.AxisError, match="no value for 0"):
        getattr(geon, name)(geon.placeholder(geon.Axis("N", 0)))


# Reducers that are no rows ------------------------------------------------------------------------

FLOAT = ["float32", "float64"]


def finite(dtype):
    return np.random.default_rng(2).normal(size=(5, 24)).astype(dtype) * 10 + 30


@for_each("cuts, order", CUTS, ids=str)
@for_each("dtype", FLOAT)
def test_mean_and_variance_in_one_pass(dtype, cuts, order):
    x = finite(dtype)
    mean, variance = in_parts(MOMENTS, x, x.dtype, cuts, order)
    rtol = 1e-12 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(mean, x.mean(1), rtol=rtol)
    np.testing.assert_allclose(variance, x.var(1), rtol=20 * rtol)
    assert mean.dtype == variance.dtype == np.float64


def test_a_variance_far_from_zero_keeps_its_digits():
    x = (np.random.default_rng(3).normal(size=(1, 400)) + 1e8).astype(np.float64)
    _, variance = in_parts(MOMENTS, x, x.dtype, [150], [0, 1])
    np.testing.assert_allclose(variance, x.var(1), rtol=1e-6)


def test_moments_of_what_is_not_finite_and_of_nothing():
    x = finite("float32")[:3]
    x[0, 3], x[1, 4] = np.nan, np.inf
    with np.errstate(all="ignore"):
        mean, variance = in_parts(MOMENTS, x, x.dtype, [9], [0, 1])
        none = in_parts(MOMENTS, x[:, :0], x.dtype, [], [0])
    assert not np.isfinite(mean[:2]).any() and not np.isfinite(variance[:2]).any()
    assert np.isfinite(mean[2]) and np.isfinite(variance[2])
    assert np.isnan(none).all()


@for_each("cuts, order", CUTS, ids=str)
@for_each("dtype", FLOAT)
def test_log_sum_exp_in_one_pass(dtype, cuts, order):
    for x in (finite(dtype) * 20, rows_of(dtype)):
        with np.errstate(all="ignore"):
            (got,) = in_parts(LOG_SUM_EXP, x, x.dtype, cuts, order)
            expected = np.logaddexp.reduce(x, axis=1)
        np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_log_sum_exp_of_nothing():
    x = np.zeros((2, 0), np.float32)
    with np.errstate(all="ignore"):
        (got,) = in_parts(LOG_SUM_EXP, x, x.dtype, [], [0])
    np.testing.assert_array_equal(got, [-np.inf, -np.inf])


@for_each("cuts, order", CUTS, ids=str)
@for_each("dtype", ["float32", "float64", "int32"])
def test_any_nan(dtype, cuts, order):
    x = rows_of(dtype)
    (got,) = in_parts(reducers.ANY_NAN, x, named_dtype("bool"), cuts, order)
    np.testing.assert_array_equal(got, np.isnan(x.astype(np.float64)).any(1), strict=True)
