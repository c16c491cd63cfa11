"""check="nan": the first value that is not finite is named, and variables stay as they were."""

import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, NonFiniteError
from tests.kinds import numpy_only
from tests.places import here

C3 = geon.Axis("C", 3)


def checked(transformer, results, *placeholders, **options):
    return transformer.computation(results, *placeholders, check="nan", **options)


def test_the_first_value_that_is_not_finite_is_named(transformer):
    x = geon.placeholder(axes=C3)
    ratio = geon.log(x)
    place = here(-1)
    f = checked(transformer, geon.sum(geon.exp(ratio * 2)), x)
    assert np.isfinite(f([1, 2, 3]))
    with pytest.raises(NonFiniteError, match=r"log\(C:3\) .* forward pass: 2 of 3") as caught:
        f([1, 0, -1])
    assert place in str(caught.value)


def test_a_named_op_is_called_by_its_name(transformer):
    x = geon.placeholder(axes=C3)
    y = geon.sqrt(x)
    y.name = "root"
    with pytest.raises(NonFiniteError, match=r"root\(C:3\) \(sqrt\) made at"):
        checked(transformer, geon.sum(y) + 1, x)([-1, 0, 1])


def test_a_derivative_is_named_as_one(transformer):
    x = geon.placeholder(axes=C3)
    y = geon.sqrt(x)
    place = here(-1)
    f = checked(transformer, [geon.sum(y), geon.deriv(geon.sum(y), x)], x)
    f([1, 2, 3])
    with pytest.raises(NonFiniteError, match="derivative of sqrt.* derivative pass") as caught:
        f([1, 0, 2])
    assert place in str(caught.value)


def test_data_that_are_not_finite(transformer):
    x = geon.placeholder(axes=C3)
    f = checked(transformer, [x + 1, geon.isnan(x)], x)
    with pytest.raises(NonFiniteError, match=r"add\(C:3\)"):
        f([np.nan, 0, 0])


def test_both_parts_of_complex_values_are_checked(transformer):
    z = geon.placeholder(C3, "complex128", name="z")
    mask = geon.where(geon.real(z) > 2, complex(-np.inf, 0), z)
    results = [geon.log(z), geon.imag(geon.log(z)), geon.exp(z), z * z, geon.prod(z), mask]
    place = here(-1)
    f = checked(transformer, results, z)
    assert np.isinf(f([1, 1j, 3])[-1]).sum() == 1  # an infinity that was written
    for data, message in [
        ([1, 0, 1], r"log\(C:3\) made at .*\(complex log\).*the first is -inf"),
        ([800, 1, 1], r"exp\(C:3\) made at .*\(complex exp\).*the first is inf"),
        ([complex(0, 1e200), 1, 1], r"\(complex multiply\)"),
        ([complex(1, np.nan), 1, 1], r"placeholder z\(C:3\) .* was fed 1 of 3 values.*\+nanj"),
        ([complex(np.inf, 1), 1, 1], r"placeholder z\(C:3\) .* was fed 1 of 3 values.*inf"),
    ]:
        with pytest.raises(NonFiniteError, match=message) as caught:
            f(data)
        assert place in str(caught.value)


def test_without_check_nothing_is_raised(transformer):
    x = geon.placeholder(axes=C3)
    f = transformer.computation(geon.log(x), x)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(f([1, 0, -1]), [0, -np.inf, np.nan])


def test_integers_and_truth_values_are_not_checked(transformer):
    x = geon.placeholder(axes=C3, dtype="int32")
    f = checked(transformer, [x * 2, geon.argmax(x), x > 1], x)
    np.testing.assert_array_equal(f([1, 2, 3])[0], [2, 4, 6])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_float_dtype_is_checked(transformer, dtype):
    x = geon.placeholder(axes=C3, dtype=dtype)
    f = checked(transformer, x / (x - 1), x)
    f([2, 3, 4])
    with pytest.raises(NonFiniteError, match="1 of 3"):
        f([1, 2, 3])


@pytest.mark.parametrize("plan", [True, False])
def test_variables_stay_as_they_were(transformer, plan):
    stream = geon.Random(4)
    x = geon.placeholder(axes=C3)
    w = geon.Variable(axes=C3, initial_value=[1, 2, 3], name="w")
    m = geon.Variable(axes=C3, initial_value=0, name="m")
    count = geon.Variable(initial_value=0, name="count")
    loss = geon.sum(geon.log(w * x) * stream.bernoulli([C3], 0.5))
    slope = geon.deriv(loss, w)
    step = geon.sequential(
        [
            geon.assign(m, m * 0.9 + slope),
            geon.assign(w, w - 0.1 * m),
            geon.assign(count, count + 1),
        ]
    )
    f = checked(transformer, [loss, step, w], x, plan=plan)
    kept = [w, m, count, stream.counter]
    f([1, 1, 1])
    before = [transformer.get(v) for v in kept]
    for bad in ([1, 0, 1], [1, -1, 1], [np.inf, 1, 1]):
        with pytest.raises(NonFiniteError):
            f(bad)
    for old, v in zip(before, kept, strict=True):
        np.testing.assert_array_equal(transformer.get(v), old)
    f([1, 1, 1])
    assert transformer.get(count) == 2


def test_a_variable_in_place_stays_as_it_was(transformer):
    x = geon.placeholder(axes=C3)
    w = geon.Variable(axes=C3, initial_value=[1, 2, 3])
    f = checked(transformer, geon.assign(w, w / x), x)
    with pytest.raises(NonFiniteError, match="divide"):
        f([1, 0, 1])
    np.testing.assert_array_equal(transformer.get(w), [1, 2, 3])
    f([1, 2, 1])
    np.testing.assert_array_equal(transformer.get(w), [1, 1, 3])


@numpy_only
def test_a_new_value_is_checked_once_and_before_it_is_written(transformer):
    w = geon.Variable(axes=C3, initial_value=[1, 2, 3])
    f = checked(transformer, geon.assign(w, w * 2))
    f()
    lines = [line.split("  #")[0].strip() for line in f.source.splitlines()]
    assert sum("check_finite" in line for line in lines) == 1
    assert (
        lines.index("np.copyto(v0, b0)") > [k for k, line in enumerate(lines) if "check" in line][0]
    )


def test_an_overridden_value_is_explained_by_its_own_program(transformer):
    x = geon.placeholder(axes=C3)
    hidden = geon.exp(geon.tanh(x * 3) + 1)
    y = geon.log(hidden)
    f = checked(transformer, geon.sum(y), x, keep=[hidden])
    f([1, 2, 3])
    f.override(hidden, [1, 0, 1])
    with pytest.raises(NonFiniteError, match=r"^log\(C:3\) made at"):
        f([1, 2, 3])


def test_first_values_are_not_checked_by_the_call_that_needs_them(transformer):
    w = geon.Variable(axes=C3, initial_value=[1, np.nan, 2], name="w")
    f = checked(transformer, geon.sum(w))
    with pytest.raises(NonFiniteError, match=r"sum\(\)"):
        f()
    transformer.set(w, [1, 2, 3])
    assert f() == 6


def test_other_checks_do_not_exist(transformer):
    with pytest.raises(ArgumentError, match="check='inf'"):
        transformer.computation(geon.constant(1), check="inf")


T = geon.Axis("T")
INFINITE = {
    "softmax": lambda x: geon.softmax(geon.where(geon.iota(T) < 2, x, -np.inf), T),
    "scaled": lambda x: geon.exp(geon.where(x > 0, x, np.inf) * -2),
    "max of padding": lambda x: geon.max(geon.pad(x, {T: (1, 1)}, value=-np.inf), T),
    "max pool": lambda x: geon.max_pool(x, {T: geon.Window(3, stride=2, pad=1)}),
    "last pool": lambda x: geon.max_pool(x, {T: geon.Window(2, stride=2, ceil=True)}),
    "sorted": lambda x: 1 / geon.sort(geon.where(x > 0, x, np.inf), T),
    "joined": lambda x: geon.tanh(geon.concat([x, geon.constant([-np.inf], T.with_length(1))], T)),
}


@pytest.mark.parametrize("case", INFINITE)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_infinities_that_were_written_are_no_mistakes(transformer, case, dtype):
    x = geon.placeholder([T], dtype, name="x")
    y = INFINITE[case](x)
    results = [y, geon.deriv(geon.sum(geon.square(y)), x)]
    data = np.array([0.5, -1, 2, 0.25, -3])
    found = checked(transformer, results, x)(data)
    for value, wanted in zip(found, transformer.computation(results, x)(data), strict=True):
        tolerance = 0.02 if dtype == "bfloat16" else 1e-6
        np.testing.assert_allclose(np.float64(value), np.float64(wanted), rtol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_they_spoil_is_told(transformer, dtype):
    """A row without a real element, an infinity that is computed beside, and one that is summed."""
    x = geon.placeholder([T], dtype, name="x")
    masked = geon.where(x > 0, x, -np.inf)
    apart = masked - geon.max(x, T) * np.inf
    f = checked(transformer, apart, x)
    with pytest.raises(NonFiniteError, match=r"(subtract|multiply)\(.*\) made at .*test_check.py"):
        f([-1, 0, -2])
    with pytest.raises(NonFiniteError, match=r"log\(T\) made at .*the first is -inf"):
        checked(transformer, geon.exp(masked) + geon.log(geon.maximum(x, 0)), x)([1, -1])
    with pytest.raises(NonFiniteError, match=r"sum\(\) made at .*the first is -inf"):
        checked(transformer, geon.sum(masked), x)([1, -1])
    assert np.isneginf(checked(transformer, masked, x)([1, -1])[1])


def test_nan_among_infinities_that_were_written_is_told(transformer):
    x, y = geon.placeholder([T], name="x"), geon.placeholder([T], name="y")
    masked = geon.where(x > 0, x, -np.inf)
    f = checked(transformer, geon.exp(masked - geon.where(y > 0, y, -np.inf)), x, y)
    assert f([1, -1], [2, 2])[1] == 0
    with pytest.raises(NonFiniteError, match=r"subtract\(T\) .*1 of 2 .*the first is nan"):
        f([1, -1], [2, -2])
