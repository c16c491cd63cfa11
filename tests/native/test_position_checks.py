"""Bounds of run-time positions: reductions, and a comparison before anything is written."""

import numpy as np
import pytest

import geon
from geon.op_graph.values.dtypes import SIGNED, UNSIGNED
from tests.golden.emitting import Native

V, N = geon.Axis("V", 100), geon.Axis("N")
SIZES = [0, 1, 5, 63, 1000, 70_001, 300_007]


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def native(request):
    with geon.NativeTransformer(threads=request.param) as transformer:
        yield transformer


def kernels(result, *placeholders):
    return Native().computation(result, *placeholders).plan.schedule.kernels


def test_a_check_is_a_nest_of_two_reductions_and_a_comparison():
    index = geon.placeholder([N], "int64")
    x = geon.placeholder([V])
    found = kernels(geon.gather(x, index, V), x, index)
    assert [kernel.kind for kernel in found] == ["nest", "call", "nest"]
    (step,) = found[0].work.passes
    assert sorted(each.folds for each in step.reductions) == ["maximum", "minimum"]
    assert [kernel.raises for kernel in found] == [False, True, False]
    assert all(not len(op.axes) for op in found[1].reads)


def test_the_pass_that_computes_positions_checks_them():
    index, x = geon.placeholder([N]), geon.placeholder([V])
    positions = geon.cast(geon.exp(index) * geon.exp(-index / 2), "int64")
    first, check, last = kernels(geon.gather(x, positions, V), x, index)
    assert check.raises and any(op.axes.names == ("N",) for op in first.results)
    (step,) = first.work.passes
    assert len(step.reductions) == 2 and len(step.stores) == 1
    assert set(last.reads) & set(first.results)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_every_dtype_is_checked_at_both_ends(native, dtype):
    info = np.iinfo(dtype)
    index, x = geon.placeholder([N], dtype), geon.placeholder([V])
    f = native.computation(geon.gather(x, index, V), x, index)
    table = np.arange(100, dtype=np.float32)
    for size in (1, 5, 1000):
        drawn = np.random.default_rng(size).integers(0, 100, size).astype(dtype)
        np.testing.assert_array_equal(f(table, drawn), table[drawn.astype(np.int64)])
        for wrong in (100, -101, min(info.max, 2**63 - 1), info.min):
            if not info.min <= wrong <= info.max or 0 <= wrong < 100:
                continue
            given = drawn.copy()
            given[size // 2] = wrong
            low, high = int(given.min()), int(given.max())
            if -100 <= low and high < 100:
                continue  # the smallest of an int8 may lie inside
            shown = f"{low} to {high}" if low < high else str(low)
            if high == 2**63 - 1:
                shown += " or more" if dtype == "uint64" else ""
            with pytest.raises(
                geon.IndexRangeError, match=f": {shown} where the axis has length 100"
            ):
                f(table, given)


@pytest.mark.parametrize("size", SIZES)
def test_the_first_and_the_last_of_any_number_are_looked_at(native, size):
    index, x = geon.placeholder([N], "int64"), geon.placeholder([V])
    f = native.computation(geon.gather(x, index, V), x, index)
    table, good = np.arange(100, dtype=np.float32), np.arange(size) % 200 - 100
    np.testing.assert_array_equal(f(table, good), table[good])
    for place in {0, size // 2, size - 1} if size else ():
        wrong = good.copy()
        wrong[place] = 100
        with pytest.raises(geon.IndexRangeError, match="to 100 where|: 100 where"):
            f(table, wrong)


def test_a_variable_stays_as_it_was_also_where_the_check_is_part_of_a_sum(native):
    """The pass over positions has other reductions; what writes a variable comes later."""
    index = geon.placeholder([N], "int64")
    table, count = (
        geon.Variable([V], initial_value=1.0),
        geon.Variable([], "int64", initial_value=0),
    )
    step = [
        geon.assign(count, count + geon.sum(index)),
        geon.assign(table, geon.scatter(table, index, geon.cast(index, "float32"), V, mode="add")),
    ]
    f = native.computation([geon.sum(index), geon.doall(step)], index)
    f(np.arange(50))
    before = native.get(table).copy(), native.get(count).copy()
    with pytest.raises(geon.IndexRangeError):
        f(np.array([3, 4, 100]))
    np.testing.assert_array_equal(native.get(table), before[0])
    np.testing.assert_array_equal(native.get(count), before[1])
    f(np.arange(10))
    assert native.get(count) == 50 * 49 // 2 + 45


def test_scalars_and_positions_of_slices_and_updates(native):
    at, x = geon.placeholder([], "int64"), geon.placeholder([V])
    f = native.computation([x[{V: at}], geon.gather(x, at, V)], x, at)
    table = np.arange(100, dtype=np.float32)
    for place in (0, 99, -1, -100):
        assert [float(each) for each in f(table, place)] == [table[place]] * 2
    for place in (100, -101):
        with pytest.raises(geon.IndexRangeError, match=f": {place} where the axis has length 100"):
            f(table, place)


@pytest.mark.parametrize("make", [geon.NumPyTransformer, geon.NativeTransformer])
def test_positions_in_a_loop_are_called_as_outside(make):
    """By the name and the line of what is walked along or read; a carry by the line of its loop."""
    n, t, c = geon.Axis("N"), geon.Axis("T"), geon.Axis("C", 8)
    walked = geon.placeholder([n, t], "int64", name="walked")
    first = geon.placeholder([n], "int64", name="first")
    w = geon.Variable([c], initial_value=1, name="w")

    _, y = geon.scan(lambda k, at: (k + 1, geon.gather(w, at, c)), 0.0, walked, over=t)
    _, z = geon.scan(lambda k, at: (k + at, geon.gather(w, k, c)), first, walked, over=t)
    with make() as transformer:
        f, g = transformer.computation(y, walked), transformer.computation(z, first, walked)
        with pytest.raises(geon.IndexRangeError) as caught:
            f([[1, 2], [3, 99]])
        assert f"walked(N) (made at {walked.file_info}) used as positions" in str(caught.value)
        assert "at step 1 along T: 2 to 99" in str(caught.value)
        with pytest.raises(geon.IndexRangeError) as caught:
            g([0, 0], [[70, 2], [3, 4]])
        assert "first" not in str(caught.value) and "walked" not in str(caught.value)
        assert "at step 1 along T: 3 to 70" in str(caught.value)
