"""Tables of pandas at every entrance: by the names of index and columns, where they have any."""

import operator

import numpy as np
import pandas
import pytest

import geon
from geon.testing.cases import for_each
from tests.op_graph.computing import compute

C, N = geon.Axis("C", 3), geon.Axis("N")
VALUES = np.random.default_rng(1).normal(size=(3, 4))
ROWS = pandas.Index(["a", "b", "c"], name="C")
COLUMNS = pandas.Index([10, 20, 30, 40], name="N")
FRAME = pandas.DataFrame(VALUES, index=ROWS, columns=COLUMNS)
SERIES = FRAME[10]
PLAIN = pandas.DataFrame(VALUES)
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]


def placeholder():
    return geon.placeholder([C, N], "float64", name="x")


def half_named(frame):
    return frame.rename_axis(columns=None)


@pytest.mark.parametrize("table", [FRAME, FRAME.T, half_named(FRAME), half_named(FRAME).T, PLAIN])
def test_feeds_variables_and_overrides_go_by_name(table, transformer):
    x = placeholder()
    kept = x * 1
    f = transformer.computation(2 * kept, x, keep=[kept])
    v = geon.Variable([C, N.with_length(4)], "float64", initial_value=lambda axes: table)
    w = geon.Variable([C, N.with_length(4)], "float64", initial_value=table)
    for _ in range(3):
        np.testing.assert_array_equal(f(table), 2 * VALUES)
    f.override(kept, table)
    np.testing.assert_array_equal(f(np.zeros((3, 4))), 2 * VALUES)
    for variable in (v, w):
        np.testing.assert_array_equal(transformer.get(variable), VALUES)
        transformer.set(variable, table * 0)
        transformer.set(variable, table)
        np.testing.assert_array_equal(transformer.get(variable), VALUES)


def test_a_series_goes_by_the_name_of_its_index(transformer):
    x = geon.placeholder(C, "float64")
    f = transformer.computation(x + 0, x)
    np.testing.assert_array_equal(f(SERIES), VALUES[:, 0])
    np.testing.assert_array_equal(f(SERIES.rename_axis(None)), VALUES[:, 0])
    with pytest.raises(geon.FeedError, match=r"no axis 'K'.*no dim 'C'.*rename_axis.*\.values"):
        f(SERIES.rename_axis("K"))


def test_a_constant_has_axes_of_the_names():
    made = geon.constant(FRAME)
    assert made.axes is geon.Axes(C, geon.Axis("N", 4))
    assert geon.constant(FRAME.T, [C, N]).axes is made.axes
    np.testing.assert_array_equal(compute(geon.constant(FRAME.T, [C, N]), {}), VALUES)
    assert geon.Variable(initial_value=FRAME).axes is made.axes
    with pytest.raises(geon.AxisError, match="not all strings.*rename_axis"):
        geon.constant(half_named(FRAME))
    with pytest.raises(geon.AxisError, match="needs axes"):
        geon.constant(PLAIN)
    assert geon.constant(PLAIN, [C, N]).axes is made.axes


@for_each("name", ARITHMETIC + COMPARISONS)
@for_each("table", [FRAME, FRAME.T, SERIES])
def test_operators_build_ops_from_either_side(name, table, transformer):
    x = placeholder()
    apply = getattr(operator, name)
    made = [geon.reorder(op, [C, N]) for op in (apply(table, x), apply(x, table))]
    left, right = transformer.computation(made, x)(np.abs(VALUES) + 1)
    values = VALUES if table is not SERIES else VALUES[:, :1]
    with np.errstate(invalid="ignore"):
        wanted = apply(values, np.abs(VALUES) + 1)
    np.testing.assert_allclose(left, wanted, rtol=1e-12)
    np.testing.assert_allclose(right, apply(np.abs(VALUES) + 1, values), rtol=1e-12)


def test_what_has_other_names_raises_with_both_sides_and_the_cure(transformer):
    f = transformer.computation(x := placeholder(), x)
    with pytest.raises(geon.FeedError) as caught:
        f(FRAME.rename_axis(columns="M"))
    text = str(caught.value)
    assert "dims (C:3, M:4) for the axes (C, N)" in text
    assert "no axis 'M' and the data have no dim 'N'" in text
    assert x.file_info in text and ".rename_axis(columns=...)" in text
    with pytest.raises(geon.FeedError, match=r"several levels.*\.to_xarray\(\)"):
        f(FRAME.stack())
    with pytest.raises(geon.FeedError, match=r"shape \(4,\)"):
        f(pandas.Series(range(4)))


def test_lists_of_named_series_are_refused(transformer):
    f = transformer.computation(x := placeholder(), x)
    with pytest.raises(geon.FeedError, match=r"list of Series.*concat"):
        f([SERIES, SERIES])
    rows = [pandas.Series(row) for row in VALUES]
    np.testing.assert_array_equal(f(rows), VALUES)
    with pytest.raises(geon.FeedError, match="dtype object with 'a' at"):
        f(pandas.DataFrame({"u": [1, 2, 3], "v": ["a", "b", "c"]}))
