"""What building a graph refuses: each message says what, both values, both places and the cure."""

import copy
import inspect
import pickle
from contextlib import suppress

import numpy as np
import pytest

import geon
from tests.places import here

C, N, K = geon.Axis("C", 3), geon.Axis("N"), geon.Axis("K", 4)


def says(caught, *parts):
    """Every part is in the message."""
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


# Axes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "build"),
    [
        ("add", lambda x, y: x + y),
        ("dot", lambda x, y: geon.dot(x, y)),
        ("where", lambda x, y: geon.where(x, y, 0)),
        ("concat", lambda x, y: geon.concat([x, y], N)),
        ("stack", lambda x, y: geon.stack([x, y], geon.Axis("M"))),
        ("gather", lambda x, y: geon.gather(x, geon.cast(y, "int64"), N)),
    ],
)
def test_axes_of_two_lengths(what, build):
    x, first = geon.placeholder([C, N], "bool" if what == "where" else "float32", name="x"), here()
    y, second = geon.placeholder([geon.Axis("C", 5), N], name="y"), here()
    with pytest.raises(geon.AxisError) as caught:
        build(x, y)
    says(caught, what, "axis 'C' has length 3", "and 5", first, "geon.rename")
    assert second in str(caught.value) or "cast(C:5, N) made at" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_lengths_that_differ_by_a_constant():
    x, first = geon.placeholder(N, name="x"), here()
    y, second = geon.placeholder(geon.Axis("N", N.expression + 1), name="y"), here()
    with pytest.raises(geon.AxisError) as caught:
        x * y
    says(caught, "length N in x(N)", "N + 1 in y(N:N + 1)", first, second)


def test_a_length_that_is_asked_for_and_is_not_there():
    x, first = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.AxisError) as caught:
        geon.broadcast(x, geon.Axis("C", 9))
    says(caught, "broadcast", here(-1), "has length 3 in x(C:3)", "should have 9", first)
    with pytest.raises(geon.AxisError) as caught:
        geon.unflatten(x, C, [geon.Axis("A", 2), geon.Axis("B", 2)])
    says(caught, "has length 3", "should have 4", first, here(-1))


@pytest.mark.parametrize(
    "build",
    [
        lambda: geon.Axes(C, N, C),
        lambda: geon.placeholder([C, geon.Axis("C", 7)]),
        lambda: geon.rename(geon.placeholder([C, N]), {N: C}),
    ],
)
def test_a_duplicate_axis_name(build):
    with pytest.raises(geon.AxisError, match="axis 'C' is there twice in .*C.prime") as caught:
        build()
    says(caught, "geon.rename")


@pytest.mark.parametrize(
    ("build", "cure"),
    [
        (lambda x, y: x + y, "geon.outer(add, x, y)"),
        (lambda x, y: geon.maximum(x, y), "geon.outer(maximum, x, y)"),
        (lambda x, y: geon.dot(x, y), "geon.outer(geon.multiply, x, y)"),
        (lambda x, y: x @ y, "geon.outer(geon.multiply, x, y)"),
    ],
)
def test_no_shared_axis(build, cure):
    x, first = geon.placeholder(C, name="x"), here()
    y, second = geon.placeholder(N, name="y"), here()
    with pytest.raises(geon.AxisError) as caught:
        build(x, y)
    says(caught, "share no axis", "x(C:3)", "y(N)", first, second, cure)
    assert str(caught.value).count("test_errors_build.py:") == 3, "and the line of the call itself"


def test_matmul_that_is_ambiguous():
    x, first = geon.placeholder([N, C, K], name="x"), here()
    y, second = geon.placeholder([C, K], name="y"), here()
    with pytest.raises(geon.AxisError) as caught:
        x @ y
    says(caught, "ambiguous", first, second, "C, K", "geon.dot(x, y, over=K)")


def test_an_axis_that_is_not_there():
    x, first = geon.placeholder(C, name="x"), here()
    y, second = geon.placeholder([C, N], name="y"), here()
    with pytest.raises(geon.AxisError) as caught:
        geon.sum(x, reduction_axes=N)
    says(caught, "'N' is no axis of x(C:3)", first, "it has C")
    with pytest.raises(geon.AxisError) as caught:
        geon.dot(x, y, over=N)
    says(caught, "dot over 'N'", first, second, "they share C")
    with pytest.raises(geon.AxisError) as caught:
        x[{N: 0}]
    says(caught, "'N' is no axis of x(C:3)", first, "it has C")
    with pytest.raises(geon.AxisError, match="not both"):
        geon.sum(x, reduction_axes=C, out_axes=C)
    with pytest.raises(geon.AxisError, match="normalization_axes=N"):
        geon.softmax(y)
    with pytest.raises(geon.AxisError, match="name the axis"):
        geon.cumsum(y)


def test_an_array_without_axes():
    x, first = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.AxisError) as caught:
        x + np.ones(4)
    says(caught, "shape (4,)", "x(C:3)", first, "geon.constant(array, axes=[...])")
    with pytest.raises(geon.AxisError, match=r"shape \(2, 2\) does not fit the axes \(C:3\)"):
        geon.constant(np.ones((2, 2)), axes=C)


@pytest.mark.parametrize(
    ("build", "part"),
    [
        (lambda: geon.Axis("a", -1), "not -1"),
        (lambda: geon.Axis("a", 2.5), "not 2.5"),
        (lambda: geon.Axis(""), "non-empty"),
        (lambda: geon.placeholder("C"), "geon.Axis"),
        (lambda: geon.placeholder(["C"]), "geon.Axis"),
        (lambda: setattr(C, "length", 4), "is fixed and cannot be set to 4"),
        (lambda: setattr(N, "length", -1), "not -1"),
    ],
)
def test_axes_that_are_none(build, part):
    with pytest.raises(geon.AxisError) as caught:
        build()
    says(caught, part)


def test_reductions_without_identity_over_length_0():
    x, first = geon.placeholder(geon.Axis("E", 0), name="x"), here()
    for build in (geon.max, geon.min, geon.argmax, geon.argmin, geon.logsumexp):
        with pytest.raises(geon.AxisError) as caught:
            build(x)
        says(caught, "over E of x(E:0)", first, "0 elements", "at least one element")


# Slices -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [slice(1, 7), slice(-4, None), slice(2, 1), slice(None, 5, 2)])
def test_a_slice_outside_its_axis(at):
    x, first = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.IndexRangeError) as caught:
        x[at]
    says(caught, "axis C:3 of x(C:3)", first, here(-1), "never clamps", "give bounds that fit")
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("at", [3, -4])
def test_a_position_outside_its_axis(at):
    x, first = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.IndexRangeError) as caught:
        x[at]
    says(caught, f"position {at}", here(-1), "axis C:3 of x(C:3)", first, "from -3 to 2")


@pytest.mark.parametrize(
    ("at", "part"),
    [
        (slice(None, None, 0), "the step 0"),
        (0.5, "geon.gather"),
        ([0, 1], "geon.gather"),
        (None, "geon.expand(x, axis)"),
        (True, "geon.gather"),
        ("C", "x[{'C': position}]"),
        ((0, 0), "2 positions"),
        ((..., ...), "one ... at most"),
        (slice("a", None), "no bound of a slice"),
    ],
)
def test_an_index_that_is_none(at, part):
    x = geon.placeholder(C, name="x")
    with pytest.raises(geon.IndexRangeError) as caught:
        x[at]
    says(caught, part)


def test_a_mask_as_an_index():
    x, first = geon.placeholder(C, name="x"), here()
    mask, second = geon.greater(x, 0, name="mask"), here()
    with pytest.raises(geon.IndexRangeError) as caught:
        x[mask]
    says(caught, "mask(C:3) bool", second, "geon.where")
    with pytest.raises(geon.DTypeError) as caught:
        geon.gather(x, x, C)
    says(caught, first, "float32", "geon.cast")


# dtypes -----------------------------------------------------------------------------------------


def test_dtypes_that_do_not_meet():
    x, first = geon.placeholder(C, "uint64", name="x"), here()
    y, second = geon.placeholder(C, "int64", name="y"), here()
    with pytest.raises(geon.DTypeError) as caught:
        x + y
    says(caught, "add of x(C:3) uint64", first, "y(C:3) int64", second, "geon.cast one of them")
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("dtype", "build", "parts"),
    [
        ("int8", lambda x: x + 300, ("add of x(C:3) int8", "300", "-128 to 127")),
        ("uint8", lambda x: x * -1, ("multiply of x(C:3) uint8", "-1", "0 to 255")),
        ("float16", lambda x: x + 1e9, ("add of x(C:3) float16", "1000000000.0", "too large")),
    ],
)
def test_numbers_that_do_not_fit(dtype, build, parts):
    x, first = geon.placeholder(C, dtype, name="x"), here()
    with pytest.raises(geon.DTypeError) as caught:
        build(x)
    says(caught, *parts, first, "geon.cast")


def test_what_is_no_dtype_or_no_number():
    x, first = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.DTypeError, match="complex256.*it has bool"):
        geon.placeholder(C, "complex256")
    with pytest.raises(geon.DTypeError) as caught:
        x & 1
    says(caught, "bitwise_and of x(C:3) float32", first, "integers", "geon.cast")
    for wrong in ("a", None, object()):
        with pytest.raises(geon.DTypeError, match="no tensor, number, array or list"):
            x + wrong


# State ------------------------------------------------------------------------------------------


def test_assigning_to_a_constant():
    constant, first = geon.constant(0.8125, name="one"), here()  # unlike any other test's
    with pytest.raises(geon.AssignError) as caught:
        geon.assign(constant, 2)
    says(caught, "cannot assign to one()", first, "geon.Variable")
    x, second = geon.exp(geon.placeholder(C), name="y"), here()
    part, third = x[0:2], here()
    for target, line in ((x, second), (part, third)):
        with pytest.raises(geon.AssignError) as caught:
            geon.assign(target, 2)
        says(caught, "cannot assign to", line, "geon.Variable")
    with pytest.raises(geon.AssignError, match="cannot assign to 3"):
        geon.assign(3, 2)


def test_assigning_what_does_not_fit():
    v, first = geon.Variable(C, initial_value=0, name="v"), here()
    x, second = geon.placeholder(C, "int32", name="x"), here()
    with pytest.raises(geon.DTypeError) as caught:
        geon.assign(v, x)
    says(caught, "x(C:3)", second, "int32", "v(C:3)", first, "float32", "geon.cast the value")
    y, third = geon.placeholder([C, N], name="y"), here()
    with pytest.raises(geon.AxisError) as caught:
        geon.assign(v, y)
    says(caught, "y(C:3, N)", third, "axis 'N'", "v(C:3)", first, "geon.sum")


def test_two_unordered_assignments():
    v, made = geon.Variable(C, initial_value=0, name="v"), here()
    first, one = geon.assign(v[0:2], 1), here()
    second, other = geon.assign(v[1:3], 2), here()
    transformer = geon.NumPyTransformer()
    for results in ([first, second], geon.doall([first, second])):
        with pytest.raises(geon.OrderError) as caught:
            transformer.computation(results)
        says(caught, "v(C:3)", made, one, other, "geon.sequential([first, second])")
    transformer.computation([geon.assign(v[0:1], 1), geon.assign(v[1:3], 2)])()
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 2])


def test_lists_of_effects():
    effect, line = geon.assign(geon.Variable(), 1), here()
    with pytest.raises(geon.AssignError) as caught:
        geon.doall(effect)
    says(caught, "a list of ops", line, "[op]")
    with pytest.raises(geon.AssignError, match="not 1 of type int"):
        geon.sequential([1])
    with pytest.raises(geon.AssignError, match="at least one"):
        geon.sequential([])


# Derivatives ------------------------------------------------------------------------------------


def test_derivatives_that_are_none():
    x, first = geon.placeholder(C, name="x"), here()
    v, second = geon.Variable(initial_value=0, name="v"), here()
    i, third = geon.placeholder(C, "int64", name="i"), here()
    y, fourth = geon.sum(geon.square(x), name="y"), here()
    with pytest.raises(geon.DerivativeError) as caught:
        geon.deriv(y, v)
    says(caught, "v()", second, "not reached", "y()", fourth, 'unreached="zero"')
    assert isinstance(caught.value, NotImplementedError)
    with pytest.raises(geon.DerivativeError) as caught:
        geon.deriv(y, geon.constant(1.0))
    says(caught, "a constant", fourth, 'unreached="zero"')
    with pytest.raises(geon.DerivativeError) as caught:
        geon.deriv(geon.sum(geon.cast(i, "float32")), i)
    says(caught, "i(C:3)", third, "int64", "geon.cast")
    with pytest.raises(geon.DerivativeError) as caught:
        geon.deriv(x * 2, x)
    says(caught, "not a scalar", "seed=", "geon.sum(y)")
    with pytest.raises(geon.AxisError) as caught:
        geon.deriv(y, x, seed=geon.placeholder(C, name="seed"))
    says(caught, "seed(C:3)", here(-1), "for many at once, and x", first, "geon.rename")
    with pytest.raises(geon.DerivativeError, match="unreached='no'"):
        geon.deriv(y, x, unreached="no")
    assert first


def test_a_rule_that_is_missing():
    row = geon.op_graph.core.primitive.PRIMITIVES["exp"]
    without = geon.op_graph.building.elementwise_build.elementwise(
        "ruleless", "No derivative.", row.reference
    )
    try:
        x = geon.placeholder(C, name="x")
        y, line = without(x, name="y"), here()
        with pytest.raises(geon.DerivativeError) as caught:
            geon.deriv(geon.sum(y), x)
        says(caught, "ruleless has no derivative", "y(C:3)", line, "geon.custom_deriv")
    finally:
        del geon.op_graph.core.primitive.PRIMITIVES["ruleless"]


# Ops as Python objects --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (pickle.dumps, "geon.dumps"),
        (copy.copy, "use the same one again"),
        (copy.deepcopy, "use the same one again"),
    ],
)
def test_pickling_and_copying_ops(call, cure):
    x, line = geon.placeholder(C, name="x"), here()
    for op in (x, geon.exp(x, name="x"), geon.assign(x, 1, name="x")):
        with pytest.raises(geon.SymbolicError) as caught:
            call(op)
        says(caught, "x(", line.split(":")[0], cure)


def test_axes_pickle_and_copy():
    axes = geon.Axes(C, geon.Axis("M", 2 * N.expression + 1))
    assert pickle.loads(pickle.dumps(axes)) is axes
    assert copy.deepcopy(axes) is axes


def test_wrong_numbers_of_operands():
    x = geon.placeholder(C)
    with pytest.raises(geon.ArgumentError, match="tanh takes 1 operand, not 2"):
        geon.tanh(x, x)
    with pytest.raises(geon.ArgumentError, match="add takes 2 operands, not 1"):
        geon.add(x)
    with pytest.raises(TypeError, match="foo"):
        geon.add(x, x, foo=1)


def test_arrays_lose_no_values_silently():
    axis = geon.Axis("A", 3)
    for values, dtype in (([300, 1, 2], "int8"), ([1.7, -1.7, np.nan], "int8")):
        with pytest.raises(geon.DTypeError, match="int8"):
            geon.Variable([axis], dtype=dtype, initial_value=values)
    with pytest.raises(geon.DTypeError, match="1e\\+300"):
        geon.constant([1e300, 1, 2], [axis], dtype="float32")
    with pytest.raises(geon.DTypeError, match="rectangular"):
        geon.constant([[1], [1, 2]], [axis, geon.Axis("B")])
    with pytest.raises(geon.DTypeError, match="filled"):
        geon.constant(np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), [axis])


def test_nothing_of_an_axis_can_be_deleted():
    axis = geon.Axis("A", 3)
    for value, attribute in ((axis, "name"), (geon.Axes(axis), "names"), (geon.exp(1.0), "args")):
        with pytest.raises(AttributeError, match="immutable"):
            delattr(value, attribute)


def test_a_new_name_of_another_length_is_refused():
    axis = geon.Axis("A", 3)
    with pytest.raises(geon.AxisError, match="4"):
        geon.rename(geon.placeholder([axis]), {axis: geon.Axis("Q", 4)})


NO_AXES = ("D", 3, 2.5, [geon.Axis("A"), "B"], {"A": 1}, object(), b"A", np.int64(2), [None])


def functions_of_axes():
    """Public functions that take an axis or several, with the name of that parameter."""
    for name in dir(geon):
        function = getattr(geon, name)
        if inspect.isfunction(function) and not name.startswith("_"):
            for parameter in inspect.signature(function).parameters:
                if parameter in ("axis", "axes", "over", "along", "normalization_axes"):
                    yield pytest.param(function, parameter, id=f"{name}-{parameter}")


@pytest.mark.parametrize(("function", "parameter"), list(functions_of_axes()))
def test_what_is_no_axis_is_refused_as_such(function, parameter):
    a, b = geon.Axis("A", 3), geon.Axis("B", 4)
    x, index = geon.placeholder([a, b]), geon.placeholder([b], "int64")
    known = {"tensors": [x, x], "index": index, "axis": a, "axes": a, "normalization_axes": a}
    given = {}
    for name, each in inspect.signature(function).parameters.items():
        several = each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if each.default is inspect.Parameter.empty and not several:
            given[name] = known.get(name, x)
    for value in NO_AXES:
        with suppress(geon.GeonError):  # no other error
            function(**{**given, parameter: value})
