"""Every public function in float64, to the last bits, where its arguments are Python numbers too.

A Python number is weak: beside a float64 it is the float64 nearest to it. Each case is computed
with all operands as float64 tensors, with each of them, and with all of them, as lists of numbers,
as numbers, and as what was made of numbers alone by choosing and joining.
"""

import mpmath
import numpy as np
import pytest

import geon
from geon.testing.cases import for_each
from tests.float64_cases import CASES, WHOLE, A, B, Case, precisely
from tests.float64_functions import FUNCTIONS

CASES = {**CASES, **FUNCTIONS}
FIRST_VALUES = ["Variable", "variable", "persistent_tensor", "temporary_tensor"]
# What has no value that a number could be rounded in.
WITHOUT_FLOATS = {
    *WHOLE,
    *"check_gradients placeholder doall find dumps loads make_transformer lengths text".split(),
    *"from_sympy to_sympy lcm".split(),
}


def public_functions():
    """The names of geon's functions, classes and modules left out."""
    found = {name: getattr(geon, name) for name in dir(geon) if not name.startswith("_")}
    return {n for n, value in found.items() if callable(value) and not isinstance(value, type)}


def test_every_public_function_has_a_case():
    tested = [*CASES, *FIRST_VALUES, *WITHOUT_FLOATS]
    assert sorted(tested) == sorted(public_functions())


ONE = geon.placeholder(dtype="float64", name="one")
YES = geon.placeholder(dtype="bool", name="yes")


def listed(array, axes):
    """Python numbers: a number, or a nested list."""
    return geon.constant(array.tolist(), axes) if axes else array.item()


def chosen(array, axes):
    """What chooses from numbers, element by element."""
    return geon.where(YES, listed(array, axes), geon.broadcast(0.9, list(axes)))


def joined(array, axes):
    """What joins parts made of numbers, computes with them, and moves the whole about."""
    if not axes:
        return geon.where(YES, array.item() / 4, 0.3) * 4
    first, *rest = axes
    parts = [
        geon.constant((array[at] / 2).tolist(), [first.with_length(len(array[at])), *rest])
        for at in (slice(1), slice(1, None))
    ]
    return 2 * geon.flip(geon.flip(geon.concat(parts, first), first), first)


FORMS = {"list": listed, "where": chosen, "join": joined}


def variants(case: Case):
    """(what is weak, how) for each way to give the operands."""
    yield "nothing", None, ()
    weakable = [
        i
        for i, (array, _) in enumerate(case.operands)
        if i not in case.strong and array.dtype.kind == "f"
    ]
    for form in FORMS:
        for i in weakable:
            yield f"{form} {i}", form, (i,)
        if len(weakable) > 1:
            yield f"{form} all", form, tuple(weakable)


def operands(case, form, weak):
    """The operands in this form, and what feeds those that stay float64 tensors."""
    feeds, given = {ONE: 1.0, YES: True}, []
    for i, (array, axes) in enumerate(case.operands):
        if i in weak:
            given.append(FORMS[form](array, axes))
        else:
            leaf = geon.placeholder(axes, array.dtype)
            feeds[leaf] = array
            given.append(leaf)
    return given, feeds


@pytest.mark.parametrize("name", sorted(CASES))
def test_float64_keeps_its_digits(name, transformer):
    for number, case in enumerate(CASES[name]):
        exact = [precisely(array) for array, _ in case.operands]
        wanted = np.asarray(case.expected(*exact))
        made, feeds, labels = [], {}, []
        for label, form, weak in variants(case):
            given, own = operands(case, form, weak)
            result = case.build(*given)
            if isinstance(result, geon.Tensor) and result.weak:
                result = result * ONE
            made.append(result)
            labels.append(f"{name} #{number}, weak: {label}")
            feeds |= own
        values = transformer.computation(made, *feeds)(*feeds.values())
        for label, value in zip(labels, values, strict=True):
            check(label, case, np.asarray(value), wanted)


def check(label, case, value, wanted):
    assert value.shape == wanted.shape, label
    if case.exact:
        assert value.dtype.kind in "bi", label
        np.testing.assert_array_equal(value, wanted.astype(value.dtype), label)
        return
    assert value.dtype == np.float64, label
    for got, want in zip(value.flat, wanted.flat, strict=True):
        error = abs(mpmath.mpf(float(got)) - want)
        assert error <= case.relative * abs(want), f"{label}: {got!r} is {float(error):.2e} off"


@for_each("name", FIRST_VALUES)
def test_first_values_keep_their_digits(name, transformer):
    values = [[0.1, 0.2, 0.3], [0.1] * 3, [0.7, 0.2, 0.7]]
    mask = geon.constant(np.array([True, False, True]), A)
    made = [
        getattr(geon, name)(A, "float64", initial_value=first)
        for first in (values[0], 0.1, geon.where(mask, 0.7, 0.2))
    ]
    for variable, wanted in zip(made, values, strict=True):
        np.testing.assert_array_equal(transformer.get(variable), np.array(wanted))


@for_each("low", [0.1, "list"])
def test_draws_have_float64_parameters(low, transformer):
    bound = geon.constant([0.1, 0.2, 0.3], A) if low == "list" else low
    low_row = np.array([[0.1], [0.2], [0.3]]) if low == "list" else low
    unit = geon.Random(3).uniform([A, B], dtype="float64")
    made = geon.Random(3).uniform([A, B], bound, geon.where(YES, 0.7, 0), dtype="float64")
    normal = geon.Random(4).normal([A, B], dtype="float64")
    moved = geon.Random(4).normal([A, B], geon.where(YES, 0.7, 0), bound, dtype="float64")
    yes = [True]
    plain, spread, bell, away = transformer.computation([unit, made, normal, moved], YES)(*yes)
    np.testing.assert_allclose(spread, plain * (0.7 - low_row) + low_row, rtol=1e-15)
    np.testing.assert_allclose(away, bell * low_row + 0.7, rtol=0, atol=1e-15)


LARGE = 2**53 + 1  # no float64 holds it
WHOLE_NUMBERS = geon.placeholder(A, "int64", name="i")
WHOLE_FORMS = {
    "number": LARGE,
    "list": [LARGE] * 3,
    "where": geon.where(YES, LARGE, 0),
    "stack": geon.stack([LARGE, geon.where(YES, LARGE, 1), LARGE], A),
    "pad": geon.pad(geon.constant([LARGE], A.with_length(1)), {A: 1}, value=LARGE),
    "computed": geon.where(YES, 2**52, 0) * 2 + geon.broadcast(1, A),
}


@for_each("form", WHOLE_FORMS)
def test_large_integers_are_exact(form, transformer):
    x, weak = WHOLE_NUMBERS, WHOLE_FORMS[form]
    made = [x + weak, geon.maximum(x, weak), geon.where(x > 0, x, weak)]
    for value in transformer.computation(made, x, YES)([0, 0, 0], True):
        assert value.dtype == np.int64
        np.testing.assert_array_equal(value, np.array([LARGE] * 3))


# What is computed of integers is an int64 that only data can tell.
@for_each("form", [form for form in WHOLE_FORMS if form != "computed"])
def test_integers_out_of_range_raise_where_they_meet_the_dtype(form):
    small = geon.placeholder(A, "int8")
    with pytest.raises(geon.DTypeError, match=f"{LARGE} does not fit int8"):
        small + WHOLE_FORMS[form]
