"""``==`` and ``!=`` of tensors: what they build, compute and refuse."""

import weakref

import ml_dtypes
import numpy as np
import pytest

import geon
from tests.places import here

N, C, K = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("K", 4)
DTYPES = "bool int8 uint8 int32 uint64 int64 float16 bfloat16 float32 float64".split()
PAIRS = {
    "==": (lambda a, b: a == b, geon.equal, np.equal),
    "!=": (lambda a, b: a != b, geon.not_equal, np.not_equal),
}
both = pytest.mark.parametrize("sign", PAIRS)


def numpy_dtype(name):
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


# Values -----------------------------------------------------------------------------------------


def test_masks_are_computed(transformer):
    tokens, h = geon.placeholder(N, "int64"), geon.placeholder(N)
    masked = transformer.computation(geon.sum(h * (tokens != 0)), tokens, h)
    assert masked([3, 0, 7, 0, 9], [1, 2, 3, 3, 9]) == 13
    prediction, label = geon.placeholder(N, "int64"), geon.placeholder(N, "int64")
    accuracy = transformer.computation(geon.mean(prediction == label), prediction, label)
    assert accuracy([1, 2, 3, 4], [1, 0, 3, 0]) == 0.5


@both
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_on_both_sides(transformer, sign, dtype):
    compare, function, reference = PAIRS[sign]
    a = np.array([0, 1, 1, 0, 1], numpy_dtype(dtype))
    b = np.array([0, 1, 0, 1, 1], numpy_dtype(dtype))
    x, y = geon.placeholder(N, dtype), geon.placeholder(N, dtype)
    made = [compare(x, y), compare(x, 1), compare(1, x), compare(x, True), compare(np.bool_(1), x)]
    assert all(op.dtype == bool for op in made)
    assert made[0] is function(x, y) and made[1] is made[2] is function(x, 1)
    expected = [reference(a, b), *[reference(a, a.dtype.type(1))] * 4]
    for got, value in zip(transformer.computation(made, x, y)(a, b), expected, strict=True):
        np.testing.assert_array_equal(got, value, strict=True)


@both
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_unequal_to_itself_and_zeros_are_equal(transformer, sign, dtype):
    compare, _, reference = PAIRS[sign]
    a = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], numpy_dtype(dtype))
    x, y = geon.placeholder(N, dtype), geon.placeholder(N, dtype)
    f = transformer.computation([compare(x, x), compare(x, y), compare(x, float("nan"))], x, y)
    for b in (a, -a):
        same, other, constant = f(a, b)
        np.testing.assert_array_equal(same, reference(a, a))
        np.testing.assert_array_equal(other, reference(a, b))
        np.testing.assert_array_equal(constant, [sign == "!="] * 6)


@both
def test_arrays_and_their_scalars_on_either_side(transformer, sign):
    compare, function, reference = PAIRS[sign]
    z, array = geon.placeholder(C), np.array([1, 2, 3], np.float32)
    made = [compare(array, z), compare(z, array), compare([1.0, 2.0, 3.0], z)]
    made += [compare(np.float32(2), z), compare(z, np.float32(2)), compare(np.array(2.0), z)]
    assert all(isinstance(op, geon.Tensor) and op.axes is geon.Axes(C) for op in made)
    assert made[0] is function(array, z) and made[3] is function(np.float32(2), z)
    data = np.array([1, 2, 5], np.float32)
    expected = [reference(array, data)] * 3 + [reference(data, 2)] * 3
    for got, value in zip(transformer.computation(made, z)(data), expected, strict=True):
        np.testing.assert_array_equal(got, value, strict=True)


# What they share with the other comparisons -----------------------------------------------------


@both
def test_axes_are_joined_as_by_less(sign):
    compare, _, _ = PAIRS[sign]
    open_x, other = geon.placeholder([N, C]), geon.placeholder([C])
    derived = geon.placeholder([geon.Axis("N", geon.Axis("M").length)])
    for x, y in [(open_x, other), (other, open_x), (open_x, geon.placeholder()), (open_x, derived)]:
        made, less = compare(x, y), x < y
        assert made.axes is less.axes and made.dtype == less.dtype
        assert [(g.relation, g.left, g.right) for g in made.guards] == [
            (g.relation, g.left, g.right) for g in less.guards
        ]
    assert len(compare(open_x, derived).guards) == 1


REFUSED = {
    "two lengths": lambda: (geon.placeholder(C), geon.placeholder(geon.Axis("C", 5))),
    "no shared axis": lambda: (geon.placeholder(C), geon.placeholder(K)),
    "an array of another shape": lambda: (geon.placeholder(C), np.zeros(4)),
    "a number out of range": lambda: (geon.placeholder(C, "int8"), 300),
    "uint64 and int64": lambda: (geon.placeholder(C, "uint64"), geon.placeholder(C, "int64")),
    "None": lambda: (geon.placeholder(C), None),
    "a string": lambda: (geon.placeholder(C), "C"),
    "an object": lambda: (geon.placeholder(C), object()),
    "an axis": lambda: (geon.placeholder(C), C),
    "axes": lambda: (geon.placeholder(C), geon.Axes(C)),
    "an effect": lambda: (geon.placeholder(C), geon.assign(geon.Variable(), 1)),
}
NO_TENSORS = {"None", "a string", "an object", "an axis", "axes", "an effect"}


def test_a_length_is_a_number(transformer):
    x = geon.placeholder(N)
    build = [x == N.length, x != N.length, N.length == x]
    found = transformer.computation(build, x)([1.0, 2.0])
    np.testing.assert_array_equal(found, [[False, True], [True, False], [False, True]])


@both
@pytest.mark.parametrize("what", REFUSED)
def test_what_less_refuses_is_refused_with_the_same_words(sign, what):
    compare, function, _ = PAIRS[sign]
    x, y = REFUSED[what]()
    with pytest.raises((geon.AxisError, geon.DTypeError)) as expected:
        geon.less(x, y)
    with pytest.raises(expected.type) as caught:
        compare(x, y)
    said = str(expected.value).replace("less", function.name).split(" at tests")[0]
    assert str(caught.value).startswith(said.split("\n")[0][:60])
    assert ("`x is y`" in str(caught.value)) == (what != "a number out of range")
    if what in NO_TENSORS:
        with pytest.raises(geon.DTypeError, match="`x is y`"):
            compare(y, x)  # nothing that stands on the left has an answer of its own


@both
def test_an_operand_that_is_no_tensor_names_both_places(sign):
    compare, function, _ = PAIRS[sign]
    x, line = geon.placeholder(C, name="x"), here()
    with pytest.raises(geon.DTypeError) as caught:
        compare(x, None)
    for part in (function.name, "x(C:3) float32", line, "None of type NoneType", "`x is y`"):
        assert part in str(caught.value)


@both
def test_int8_and_300_raise_as_in_every_other_op(sign):
    compare, _, _ = PAIRS[sign]
    x = geon.placeholder(C, "int8")
    with pytest.raises(geon.DTypeError, match="300 does not fit int8"):
        compare(x, 300)
    assert compare(x, 127).args[1].dtype == np.int8
    assert compare(x, 0.5).args[0].dtype == np.float32  # a weak number of a higher kind


@both
def test_derivatives_are_those_of_other_comparisons(transformer, sign):
    compare, _, _ = PAIRS[sign]
    x, y = geon.placeholder(C, "float64"), geon.placeholder(C, "float64")
    loss = geon.sum(x * x * compare(x, y))
    f = transformer.computation(geon.deriv(loss, x), x, y)
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 3.0])
    np.testing.assert_array_equal(f(a, b), 2 * a * PAIRS[sign][2](a, b))
    for made in (compare(x, y), x < y):
        with pytest.raises(geon.DerivativeError, match="not reached"):
            geon.deriv(geon.sum(geon.cast(made, "float64")), y)


def test_the_line_is_the_users():
    x, y = geon.placeholder(N), geon.placeholder(N)
    first, line = x == y, here()
    again, other = x == y, here()
    assert again is first and first.sites == [f"tests/{at}" for at in (line, other)]


def test_open_axes_in_one_program(transformer):
    x, y = geon.placeholder([N, C]), geon.placeholder([N])
    f = transformer.computation([x == y, geon.all(x == y), geon.any(x != y)], x, y)
    for n in (1, 2, 17):
        a = np.arange(3.0 * n).reshape(n, 3) % 4
        b = np.arange(1.0 * n)
        same = a == b[:, None]
        for got, value in zip(f(a, b), (same, same.all(), (~same).any()), strict=True):
            np.testing.assert_array_equal(got, value)


# The truth of a comparison ----------------------------------------------------------------------


TRUTHS = {
    "if": lambda x, y: 1 if x == y else 2,
    "if not": lambda x, y: not x != y,
    "and": lambda x, y: x == y and y == x,
    "in a list": lambda x, y: x in [y, x],
    "in a tuple": lambda x, y: x in (y,),
    "index": lambda x, y: [y, x].index(x),
    "count": lambda x, y: [y].count(x),
    "remove": lambda x, y: [y, x].remove(x),
    "lists": lambda x, y: [x] == [y],
    "tuples": lambda x, y: (1, x) == (1, y),
    "weak references": lambda x, y: bool(weakref.ref(x) == weakref.ref(y)),
}


@pytest.mark.parametrize("what", TRUTHS)
def test_a_truth_raises_and_says_what_to_write(what):
    x, y = geon.placeholder(N, name="x"), geon.placeholder(N, name="y")
    with pytest.raises(geon.SymbolicError) as caught:
        TRUTHS[what](x, y)
    said = str(caught.value)
    assert "equal(N)" in said and "test_equality.py:" in said and "has no truth value" in said
    for part in ("compare elements", "in, index, remove", "`x is y`", "geon.all(x == y)"):
        assert part in said


def test_the_cure_works(transformer):
    x, y = geon.placeholder(N), geon.placeholder(N)
    assert any(x is other for other in [y, x]) and x in {y, x} and {x: 1}[x] == 1
    f = transformer.computation(geon.all(x == y), x, y)
    assert f([1, 2], [1, 2]) and not f([1, 2], [1, 3])


# Ops without elements ---------------------------------------------------------------------------


def test_effects_have_no_elements_to_compare():
    v = geon.Variable()
    step, line = geon.assign(v, 1), here()
    other = geon.doall([step])
    for compare in (lambda: step == other, lambda: step != step, lambda: step == None, # noqa: E711
                    lambda: 1 == step, lambda: other in [step]):  # fmt: skip
        with pytest.raises(geon.DTypeError, match="no elements to compare\n.*`x is y`"):
            compare()
    with pytest.raises(geon.DTypeError) as caught:
        step == other  # noqa: B015
    assert line in str(caught.value)
    assert step in {step} and {step: 1}[step] == 1 and step is geon.assign(v, 1)


def test_a_bool_that_the_user_wrote_is_a_constant(transformer):
    x = geon.placeholder(N)
    f = transformer.computation([x * True, x == True], x)  # noqa: E712
    np.testing.assert_array_equal(f([0, 1, 2]), [[0, 1, 2], [False, True, False]])
