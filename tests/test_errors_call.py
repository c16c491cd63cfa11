"""What calls refuse: arguments, feeds, guards, indices, values, memory; and what they leave."""

import gc

import numpy as np
import pytest

import geon
from tests.places import here

C, N = geon.Axis("C", 3), geon.Axis("N")


def says(caught, *parts):
    """Every part is in the message."""
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


# Arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "keywords", "part"),
    [
        ((), {}, "placeholder 'x' was not given; 2 values are needed (x, #2), and 0 were given"),
        (([1, 2, 3],), {}, "placeholder number 2 was not given"),
        (([1, 2, 3], 1, 2), {}, "2 values are needed (x, #2), and 3 were given"),
        (([1, 2, 3], 1), {"z": 1}, "no placeholder named 'z'"),
        (([1, 2, 3], 1), {"x": 1}, "'x' was given twice"),
    ],
)
def test_wrong_number_or_name_of_arguments(transformer, args, keywords, part):
    x, first = geon.placeholder(C, name="x"), here()
    y, second = geon.placeholder(), here()
    f = transformer.computation(x * y, x, y)
    with pytest.raises(geon.ArgumentError) as caught:
        f(*args, **keywords)
    says(caught, part, "give", first, second)
    assert isinstance(caught.value, TypeError)


def test_a_placeholder_that_is_needed_but_not_given(transformer):
    x, first = geon.placeholder(C, name="x"), here()
    y = geon.placeholder(name="y")
    with pytest.raises(geon.ArgumentError) as caught:
        transformer.computation(y + geon.sum(x), y)
    says(caught, "x(C:3)", first, "add it to transformer.computation(results, ...)")


def test_what_is_no_placeholder(transformer):
    x, first = geon.placeholder(C, name="x"), here()
    v, second = geon.Variable(C, initial_value=0, name="v"), here()
    with pytest.raises(geon.ArgumentError) as caught:
        transformer.computation(x + v, x, v)
    says(caught, "<variable v(C:3)", second, "without being listed")
    with pytest.raises(geon.ArgumentError) as caught:
        transformer.computation(x, x, x)
    says(caught, "x(C:3)", first, "twice", "once")
    for option in ({"check": "inf"}, {"lengths": {C: 4}}):
        with pytest.raises(geon.ArgumentError):
            transformer.computation(x, x, **option)


# Feeds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "parts"),
    [
        (
            "float32",
            [1, 2],
            ("shape (2,)", "(3,)", "C has length 3 and dimension 0 of the data 2"),
        ),
        ("float32", [[1, 2, 3]], ("shape (1, 3)", "needs (3,)")),
        ("float32", 1, ("shape ()", "needs (3,)")),
        ("int8", [1.0, 2.0, 3.0], ("float64", "needs int8", "round")),
        ("int8", [1, 2, 300], ("from 1 to 300", "-128 to 127", "clip")),
        ("uint64", [-1, 2, 3], ("from -1 to 3", "0 to 18446744073709551615")),
        ("bool", [0, 1, 1], ("int64", "needs bool", "compare")),
        ("float32", [1, 1e39, 0], ("1e+39", "too large for float32", "wider dtype")),
        ("float16", np.float32([1, 70000, 0]), ("70000.0", "too large for float16")),
        ("bfloat16", [1, 3.3e38, 1e39], ("1e+39", "too large for bfloat16")),
        ("float32", ["a", "b", "c"], ("<U1", "needs float32")),
        ("float32", [1, None, 3], ("object", "needs float32")),
        ("float32", [[1], [2, 3], 4], ("no array",)),
        ("float32", np.ones(3, complex), ("complex128", "needs float32")),
    ],
)
def test_wrong_shape_or_dtype_fed(transformer, dtype, value, parts):
    x, line = geon.placeholder(C, dtype, name="x"), here()
    f = transformer.computation(geon.where(geon.not_equal(x, 0), x, x), x)
    with pytest.raises(geon.FeedError) as caught:
        f(value)
    says(caught, "placeholder x(C:3)", line, *parts)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 300), ("int8", 1.5), ("float16", 1e6), ("bool", 1)]
)
def test_wrong_scalar_fed(transformer, dtype, value):
    x, line = geon.placeholder((), dtype, name="x"), here()
    f = transformer.computation(geon.where(geon.not_equal(x, 0), x, x), x)
    with pytest.raises(geon.FeedError) as caught:
        f(value)
    says(caught, "placeholder x()", line, dtype)


def test_infinities_and_casts_within_a_kind_are_fed(transformer):
    x = geon.placeholder(C)
    f = transformer.computation(x + 0, x)
    np.testing.assert_array_equal(f([np.inf, -np.inf, np.nan]), [np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(f(np.array([1, 2, 3], np.int64)), [1, 2, 3])
    np.testing.assert_array_equal(f(np.array([True, False, True])), [1, 0, 1])


def test_data_of_two_lengths(transformer):
    x, first = geon.placeholder(N, name="x"), here()
    y, second = geon.placeholder(N, name="y"), here()
    f = transformer.computation(x + y, x, y)
    with pytest.raises(geon.FeedError) as caught:
        f([1, 2], [1, 2, 3])
    says(caught, "length N is 3 in placeholder y(N)", second, "2 in placeholder x(N)", first)


def test_data_that_contradict_lengths_or_a_default(transformer, monkeypatch):
    x, line = geon.placeholder(N, name="x"), here()
    f = transformer.computation(x + 1, x, lengths={N: 3})
    with pytest.raises(geon.FeedError) as caught:
        f([1, 2])
    says(caught, "N is 2 in placeholder x(N)", line, "3 in lengths=")
    monkeypatch.setattr(geon.op_graph.axes.length_defaults, "_set", {})
    N.length, set_at = 4, here()
    g = transformer.computation(x + 1, x)
    with pytest.raises(geon.FeedError) as caught:
        g([1, 2])
    says(caught, "N is 2 in placeholder x(N)", line)
    says(caught, "4 in the default that axis.length set at", set_at)


def test_a_variable_keeps_its_first_length(transformer):
    v, first = geon.Variable(N, initial_value=0, name="v"), here()
    x, second = geon.placeholder(N, name="x"), here()
    f = transformer.computation(geon.assign(v, x), x)
    f([1, 2])
    with pytest.raises(geon.FeedError) as caught:
        f([1, 2, 3])
    says(caught, "3 in placeholder x(N)", second, "2 in variable v(N)", first)
    np.testing.assert_array_equal(transformer.get(v), [1, 2])


def test_values_set_that_do_not_fit(transformer):
    v, line = geon.Variable(C, "int32", initial_value=0, name="v"), here()
    with pytest.raises(geon.FeedError) as caught:
        transformer.set(v, [1, 2])
    says(caught, "variable v(C:3)", line, "shape (2,)", "needs (3,)")
    with pytest.raises(geon.FeedError) as caught:
        transformer.set(v, [1.5, 2, 3])
    says(caught, "variable v(C:3)", line, "float64", "int32")


def test_variables_without_value_or_length(transformer):
    v, first = geon.Variable(C, name="v"), here()
    with pytest.raises(geon.ArgumentError) as caught:
        transformer.get(v)
    says(caught, "variable v(C:3)", first, "no value", "initial_value=", "transformer.set")
    w, second = geon.Variable(geon.Axis("W of w"), initial_value=0, name="w"), here()
    with pytest.raises(geon.AxisError) as caught:
        transformer.get(w)
    says(caught, "variable w(W of w)", second, "W of w", "set the axis's length", "lengths=")
    x, third = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.ArgumentError) as caught:
        transformer.get(x)
    says(caught, "<placeholder x(C:3)", third, "geon.Variable")


def test_an_open_length_that_nothing_gives(transformer):
    x, M = geon.placeholder(), geon.Axis("given by nothing")
    y, first = geon.broadcast(x, M, name="y"), here()
    size, second = geon.tensor_size(y), here()
    for results, line in ((y * 2, first), (geon.cast(size, "float32") + x, second)):
        with pytest.raises(geon.AxisError) as caught:
            transformer.computation(results, x)(1)
        says(caught, "open length given by nothing", "lengths={", line, "set the axis's length")


# Guards -----------------------------------------------------------------------------------------


def test_a_guard_that_fails(transformer):
    x, first = geon.placeholder(geon.Axis("N", "A"), name="x"), here()
    y, second = geon.placeholder(geon.Axis("N", "B"), name="y"), here()
    total, line = x + y, here()
    f = transformer.computation(total, x, y)
    np.testing.assert_array_equal(f([1, 2], [3, 4]), [4, 6])
    with pytest.raises(geon.GuardError) as caught:
        f([1, 2], [1, 2, 3])
    says(caught, "axis 'N'", "A in x(N:A)", "B in y(N:B)", first, second, line, "A = 2, B = 3")
    says(caught, "A == B is needed, and 2 == 3 is false", "geon.rename")
    assert isinstance(caught.value, geon.AxisError)
    np.testing.assert_array_equal(f([1, 2], [3, 4]), [4, 6])


def test_a_slice_of_an_open_axis_is_a_guard(transformer):
    x, first = geon.placeholder(N, name="x"), here()
    part, second = x[2:5], here()
    f = transformer.computation(part, x)
    np.testing.assert_array_equal(f(range(5)), [2, 3, 4])
    with pytest.raises(geon.GuardError) as caught:
        f([1, 2, 3])
    says(caught, "slice 2:5", second, "axis N of x(N)", first, "N = 3", "5 <= 3", "never clamps")


def test_a_reduction_without_identity_over_no_data(transformer):
    x, line = geon.placeholder(N, name="x"), here()
    f = transformer.computation(geon.max(x), x)
    with pytest.raises(geon.GuardError) as caught:
        f([])
    says(caught, "max over N of x(N)", line, "0 elements", "N = 0")
    assert transformer.computation(geon.sum(x), x)([]) == 0


# Indices ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [3, -4])
def test_positions_outside_an_axis(transformer, index):
    x = geon.placeholder(C, name="x")
    i, first = geon.placeholder((), "int64", name="i"), here()
    v = geon.Variable(C, initial_value=0, name="v")
    other = geon.Variable(initial_value=0, name="other")
    read, second = x[i], here()
    written, third = geon.assign(v[i], 1), here()
    for op, line in ((read, second), (written, third)):
        f = transformer.computation([op, geon.assign(other, 7)], x, i)
        with pytest.raises(geon.IndexRangeError) as caught:
            f([1, 2, 3], index)
        says(caught, "i()", first, line, f"{index} where the axis has length 3", "-3 to 2")
        assert isinstance(caught.value, IndexError)
        np.testing.assert_array_equal(transformer.get(v), [0, 0, 0])
        assert transformer.get(other) == 0


def test_index_tensors_outside_an_axis(transformer):
    x = geon.placeholder(C, name="x")
    index, first = geon.placeholder(N, "int64", name="index"), here()
    picked, second = geon.gather(x, index, C), here()
    placed, third = geon.scatter(x, index, 0, C), here()

    def refused(op, line):  # a function: nothing of the first is alive in the second
        f = transformer.computation(op, x, index)
        with pytest.raises(geon.IndexRangeError) as caught:
            f([1, 2, 3], [0, 5, 1])
        says(caught, "index(N)", first, line, "0 to 5", "length 3", "-3 to 2", "geon.clip")

    for op, line in ((picked, second), (placed, third)):
        refused(op, line)
        gc.collect()


@pytest.mark.parametrize("position", [2**64 - 1, 2**64 - 3, 2**63, 3])
def test_positions_that_no_int64_holds_are_outside_every_axis(transformer, position):
    x = geon.placeholder(C, name="x")
    index, i = geon.placeholder(N, "uint64", name="index"), geon.placeholder((), "uint64", name="i")
    for op in (geon.gather(x, index, C), geon.scatter(x, index, 0, C)):
        f = transformer.computation(op, x, index)
        with pytest.raises(geon.IndexRangeError, match=r"index\(N\) \(made at") as caught:
            f([1, 2, 3], np.array([0, position], np.uint64))
        assert "length 3" in str(caught.value)
    v = geon.Variable(C, initial_value=0, name="v")
    for op in (x[i], geon.assign(v[i], 1)):
        f = transformer.computation(op, x, i)
        with pytest.raises(geon.IndexRangeError, match=r"i\(\) \(made at"):
            f([1, 2, 3], np.uint64(position))
    np.testing.assert_array_equal(transformer.get(v), [0, 0, 0])


# Values that are not finite ---------------------------------------------------------------------


def test_the_check_names_op_line_and_pass(transformer):
    x = geon.placeholder(C, name="x")
    v = geon.Variable(initial_value=1, name="v")
    y, line = geon.log(x, name="y"), here()
    f = transformer.computation([geon.sum(y), geon.assign(v, v + 1)], x, check="nan")
    f([1, 2, 3])
    with pytest.raises(geon.NonFiniteError) as caught:
        f([1, -1, 0])
    says(caught, "y(C:3) (log)", line, "in the forward pass", "2 of 3 values", "nan", "trace")
    assert isinstance(caught.value, FloatingPointError)
    assert transformer.get(v) == 2


def test_the_check_in_a_derivative(transformer):
    v = geon.Variable(initial_value=0, name="v")
    y, line = geon.sqrt(v), here()
    step = geon.assign(v, v - geon.deriv(y, v))
    f = transformer.computation([y, step], check="nan")
    with pytest.raises(geon.NonFiniteError) as caught:
        f()
    says(caught, line, "derivative of sqrt", "in the derivative pass", "1 of 1 values", "inf")
    assert transformer.get(v) == 0
    transformer.computation([y, step])()
    assert transformer.get(v) == -np.inf


# Transformers -----------------------------------------------------------------------------------


def test_an_unknown_transformer():
    with pytest.raises(geon.UnavailableError) as caught:
        geon.make_transformer("nope")
    says(caught, "'nope'", "numpy", "python -m geon doctor")


def test_a_closed_transformer(tmp_path, make):
    x = geon.placeholder(C)
    v = geon.Variable(C, initial_value=0)
    transformer = make()
    f, g = transformer.computation(x + v, x), transformer.computation(x + 1, x)
    f([1, 2, 3]), g([1, 2, 3])
    transformer.close()
    writes = transformer.target.name == "numpy"
    for call in (
        lambda: f([1, 2, 3]),
        lambda: g([1, 2, 3]),
        lambda: transformer.computation(x, x),
        lambda: transformer.get(v),
        lambda: transformer.set(v, [1, 2, 3]),
        transformer.allocate,
        transformer.initialize,
        lambda: transformer.save(tmp_path / "file"),
        lambda: transformer.restore(tmp_path / "file"),
        *([lambda: transformer.write(tmp_path / "module.py")] if writes else []),
    ):
        with pytest.raises(geon.ClosedError, match="closed; make a new one"):
            call()
    transformer.close()
