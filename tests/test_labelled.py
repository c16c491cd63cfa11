"""Labelled data at every entrance: matched by the names of their dims, or refused."""

import importlib.util
import operator
import subprocess
import sys

import numpy as np
import pytest
import xarray

import geon
from geon.op_graph.text.loads import loads_case
from tests.op_graph.computing import compute

C, N = geon.Axis("C", 3), geon.Axis("N")
VALUES = np.random.default_rng(0).normal(size=(3, 4))
TURNED = xarray.DataArray(VALUES.T.copy(), dims=("N", "C"), coords={"N": [4, 5, 6, 7]})
STRAIGHT = TURNED.transpose("C", "N")
OTHER = TURNED.rename({"C": "K"})
FLAT = TURNED.isel(N=0)
ORDERS = {"turned": TURNED, "straight": STRAIGHT, "variable": TURNED.variable}


def placeholder(dtype="float64"):
    return geon.placeholder([C, N], dtype, name="x")


@pytest.mark.parametrize("data", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_feeds_go_by_name(data, dtype, transformer):
    x = placeholder(dtype)
    f = transformer.computation(2 * x, x)
    wanted = 2 * VALUES.astype(dtype)
    for _ in range(4):  # the later calls take a shorter way in
        np.testing.assert_array_equal(f(VALUES), wanted)
        np.testing.assert_array_equal(f(data), wanted)
        np.testing.assert_array_equal(f(x=data), wanted)


def test_a_square_array_is_not_taken_by_position(transformer):
    square = np.arange(9.0).reshape(3, 3)
    x = geon.placeholder([C, C.prime], "float64")
    f = transformer.computation(x + 0, x)
    for _ in range(3):
        np.testing.assert_array_equal(f(square), square)
        np.testing.assert_array_equal(f(xarray.DataArray(square.T, dims=("C'", "C"))), square)
        with pytest.raises(geon.FeedError, match=r'no dim "C\'"'):
            f(xarray.DataArray(square, dims=("C", "D")))


def test_a_scalar_has_no_dims(transformer):
    s = geon.placeholder(dtype="float64")
    f = transformer.computation(s + 1, s)
    assert f(xarray.DataArray(2.5)) == 3.5
    assert geon.constant(xarray.DataArray(2.5)).axes is geon.Axes()
    assert geon.constant(xarray.DataArray(2.5), C).axes is geon.Axes(C)
    with pytest.raises(geon.FeedError, match="there is no axis 'N'"):
        f(xarray.DataArray([1.0], dims="N"))


def test_lengths_that_differ_raise_as_for_other_arrays(transformer):
    x = placeholder()
    f = transformer.computation(x + 0, x)
    with pytest.raises(geon.FeedError, match=r"an array of shape \(2, 4\); it needs \(3, N\)"):
        f(TURNED.isel(C=slice(2)))


def test_variables_are_set_by_name(transformer):
    v = geon.Variable([C, N], "float64", initial_value=0, name="v")
    transformer.set(v, TURNED)
    np.testing.assert_array_equal(transformer.get(v), VALUES)
    with pytest.raises(geon.FeedError, match=r"variable v\(C:3, N\) \(made at .*\.rename"):
        transformer.set(v, OTHER)


FIRST = {
    "data": lambda: TURNED,
    "callable": lambda: lambda axes: TURNED,
    "constant": lambda: geon.constant(TURNED),
    "constant over axes": lambda: geon.constant(TURNED, [C, N]),
}


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_first_values_go_by_name(first, transformer):
    v = geon.Variable([C, N.with_length(4)], "float64", initial_value=first())
    np.testing.assert_array_equal(transformer.get(v), VALUES)


def test_a_variable_has_the_axes_and_the_dtype_of_labelled_data(transformer):
    v = geon.Variable(initial_value=TURNED.astype("float32"))
    assert (v.axes, v.dtype.name) == (geon.Axes(geon.Axis("N", 4), C), "float32")
    np.testing.assert_array_equal(transformer.get(v), VALUES.T.astype("float32"))


def test_a_constant_has_axes_of_the_names_of_dims():
    assert geon.constant(TURNED).axes is geon.Axes(geon.Axis("N", 4), C)
    ordered = geon.constant(TURNED, [C, N])
    assert ordered.axes is geon.Axes(C, geon.Axis("N", 4))
    np.testing.assert_array_equal(compute(ordered, {}), VALUES)


EXPRESSIONS = {
    "operator": lambda x, data: x * data,
    "function": lambda x, data: geon.multiply(data, x),
    "ufunc": lambda x, data: np.multiply(data, x),
    "where": lambda x, data: x * geon.where(x > 9, x, data),
    "outer": lambda x, data: geon.outer(geon.multiply, x, data),
    "clip": lambda x, data: geon.clip(x, data, data) * x,
    "assign": lambda x, data: geon.sequential([geon.assign(x, x * data), x]),
    "data first": lambda x, data: data * x,
    "sums": lambda x, data: (data + 0 * x) - 0 * x,
    "power": lambda x, data: data**x,
    "variable": lambda x, data: data.variable * x,
}


@pytest.mark.parametrize("build", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions_go_by_name(build, transformer):
    x = placeholder()
    made = geon.reorder(build(x, TURNED), [C, N])
    found = transformer.computation(made, x)(np.ones((3, 4)))
    np.testing.assert_array_equal(found, VALUES)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne", "mod", "floordiv", "truediv"])
def test_operators_with_the_data_first_build_ops(name, transformer):
    apply = getattr(operator, name)
    x = placeholder()
    for data in (TURNED, STRAIGHT):
        made = geon.reorder(apply(data, x), [C, N])
        found = transformer.computation(made, x)(np.full((3, 4), 0.5))
        np.testing.assert_allclose(found, apply(VALUES, 0.5), rtol=1e-12)


LATE = """
import numpy
import geon
C = geon.Axis("C", 3)
x = geon.placeholder(C)
import xarray
data = xarray.DataArray(numpy.ones(3), dims="C")
print((data + {other}).axes)
"""


@pytest.mark.parametrize("other", ["geon.placeholder(C)", "(x + geon.constant(data))"])
def test_leaves_made_after_xarray_was_imported_count(other):
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(other=other)], capture_output=True, text=True
    )
    assert done.stdout == "(C:3)\n", done.stderr


def test_what_is_no_array_is_refused_on_either_side():
    x = placeholder()
    whole = xarray.Dataset({"v": TURNED})
    for build in (lambda: whole + x, lambda: x + whole):
        with pytest.raises(geon.DTypeError, match="Dataset, which is no array"):
            build()
    with pytest.raises(TypeError):
        whole["v"] += x


def test_holes_of_labelled_data_stay_what_they_are(transformer):
    f = transformer.computation(x := placeholder(), x)
    holes = TURNED.where(TURNED < 1)
    np.testing.assert_array_equal(f(holes), np.where(VALUES < 1, VALUES, np.nan))


def test_sums_of_products_go_by_name(transformer):
    x = placeholder()
    made = [geon.dot(x, TURNED), x @ TURNED.isel(N=0), geon.update(x, TURNED.isel(N=1), {N: 1})]
    whole, row, changed = transformer.computation(made, x)(np.ones((3, 4)))
    np.testing.assert_allclose(whole, VALUES.sum(), rtol=1e-14)
    np.testing.assert_allclose(row, np.full(4, VALUES[:, 0].sum()), rtol=1e-14)
    np.testing.assert_array_equal(changed[:, 1], VALUES[:, 1])


def test_overrides_traces_and_dumps_go_by_name(transformer):
    x = placeholder()
    kept = x + 1
    f = transformer.computation(2 * kept, x, keep=[kept])
    f.override(kept, TURNED)
    np.testing.assert_array_equal(f(np.zeros((3, 4))), 2 * VALUES)
    traced = {entry.op: entry.value for entry in f.trace(np.zeros((3, 4)))}
    np.testing.assert_array_equal(traced[kept], VALUES)
    case = loads_case(geon.dumps(kept, feeds={x: TURNED}))
    (fed,) = case.feeds.values()
    np.testing.assert_array_equal(fed, VALUES)


def test_a_written_module_feeds_by_name(tmp_path):
    x = placeholder()
    v = geon.Variable([C, N.with_length(4)], "float64", initial_value=lambda axes: TURNED, name="v")
    with geon.NumPyTransformer() as transformer:
        transformer.computation(x + v, x, name="f")
        transformer.write(tmp_path / "written.py")
    spec = importlib.util.spec_from_file_location("written", tmp_path / "written.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    np.testing.assert_array_equal(module.f(TURNED), 2 * VALUES)
    with pytest.raises(ValueError, match=r"no axis 'K'.*\.rename\(\{'K': 'C'\}\)"):
        module.f(OTHER)


REFUSED = {
    "feed": (lambda t: t.computation(x := placeholder(), x)(OTHER), geon.FeedError),
    "override": (lambda t: _overridden(t), geon.FeedError),
    "constant": (lambda t: geon.constant(OTHER, [C, N]), geon.AxisError),
    "initial value": (lambda t: geon.Variable([C, N], initial_value=OTHER), geon.AxisError),
    "callable": (
        lambda t: t.get(geon.Variable([C, N.with_length(4)], initial_value=lambda axes: OTHER)),
        geon.FeedError,
    ),
    "dumps": (lambda t: geon.dumps(x := placeholder(), feeds={x: OTHER}), geon.FeedError),
}


def _overridden(transformer):
    x = placeholder()
    f = transformer.computation(x + 1, x, keep=[kept := x * 2])
    f.override(kept, OTHER)
    return f(VALUES)


@pytest.mark.parametrize(("enter", "error"), REFUSED.values(), ids=REFUSED)
def test_dims_that_are_not_the_axes_raise_with_both_sides_and_the_cure(enter, error, transformer):
    with pytest.raises(error) as caught:
        enter(transformer)
    text = str(caught.value)
    assert "dims (N:4, K:3) for the axes (C, N)" in text
    assert "no axis 'K' and the data have no dim 'C'" in text
    assert ".rename({'K': 'C'})" in text
    assert ".values" in text


def test_other_mismatches_name_what_there_is_to_do():
    x = placeholder()
    f = geon.NumPyTransformer().computation(x, x)
    with pytest.raises(geon.FeedError, match=r"no dim 'N'; make them so with .*expand_dims") as e:
        f(FLAT)
    assert f"made at {x.file_info}" in str(e.value)
    with pytest.raises(geon.FeedError, match="there is no axis 'T'; make them so"):
        f(TURNED.expand_dims(T=2))
    with pytest.raises(geon.FeedError, match="a dim is there twice"):
        f(Duck(("C", "N", "C"), np.ones((3, 4, 3))))


def test_what_shares_no_name_is_refused_in_expressions():
    x = placeholder()
    apart = TURNED.rename({"C": "K", "N": "M"})
    with pytest.raises(geon.AxisError, match="share no axis"):
        x * apart
    with pytest.raises(geon.AxisError, match="'C' has length 3 in .* and 2 in"):
        x + TURNED.isel(C=slice(2))
    with pytest.raises(geon.AxisError, match=r"lacks; reduce it first"):
        geon.assign(x, apart)


def test_lists_of_labelled_data_are_refused(transformer):
    x = placeholder()
    f = transformer.computation(x + 0, x)
    rows = [TURNED.isel(C=k) for k in range(3)]
    for enter in (
        lambda: f(rows),
        lambda: geon.constant(rows, [C, N]),
        lambda: x * rows,
        lambda: geon.Variable([C, N], initial_value=rows),
    ):
        with pytest.raises((geon.FeedError, geon.AxisError), match=r"list of DataArray.*concat"):
            enter()
    stacked = geon.stack(rows, C)
    np.testing.assert_array_equal(compute(stacked, {}), VALUES)


def test_out_goes_by_position_and_so_refuses_labels(transformer):
    x = placeholder()
    f = transformer.computation(x + 0, x)
    with pytest.raises(geon.ArgumentError, match=r"dims \(N:4, C:3\).*the dims \(C, N\), in that"):
        f(VALUES, out=TURNED)
    into = np.empty((3, 4))
    assert f(TURNED, out=into) is into
    np.testing.assert_array_equal(into, VALUES)


class Duck:
    """Labelled data of no library: what counts are the attributes."""

    def __init__(self, dims, values):
        self.dims, self.values = dims, values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def test_attributes_alone_make_data_labelled(transformer):
    x = placeholder()
    f = transformer.computation(x + 0, x)
    np.testing.assert_array_equal(f(Duck(("N", "C"), VALUES.T)), VALUES)
    assert (x * Duck(("N", "C"), VALUES.T)).axes is x.axes


def test_names_must_be_strings_to_become_axes():
    with pytest.raises(geon.AxisError, match="not all strings"):
        geon.constant(Duck((0, 1), VALUES))
