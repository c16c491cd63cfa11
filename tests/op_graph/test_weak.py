"""Weak values: what has no dtype yet, what it becomes where it meets one, and what is shared."""

import gc

import numpy as np
import pytest

import geon
from geon.op_graph.building import weak
from geon.op_graph.core.interning import table as interned
from tests.op_graph.computing import compute

N, S = geon.Axis("N", 3), geon.Axis("S")
YES = geon.placeholder(N, "bool", name="yes")
X = {dtype: geon.placeholder(N, dtype, name=dtype) for dtype in ("float64", "float32", "float16")}
POSITIONS = geon.constant(np.array([2, 0]), [geon.Axis("P", 2)])


def chosen():
    return geon.where(YES, 0.1, 0.9)


def numbers():
    return geon.constant([0.1, 0.2, 0.3], N)


WEAK = {
    "number": lambda: geon.constant(0.1),
    "number over axes": lambda: geon.constant(0.1, N),
    "list": numbers,
    "where": chosen,
    "stack": lambda: geon.stack([0.1, geon.constant(2)], S),
    "concat": lambda: geon.concat([numbers(), chosen()], N),
    "pad": lambda: geon.pad(numbers(), {N: 1}, value=0.5),
    "edge": lambda: geon.pad(numbers(), {N: 1}, "edge"),
    "broadcast": lambda: geon.broadcast(0.1, N),
    "flatten": lambda: geon.flatten(geon.constant([[0.1], [0.2]], [N.with_length(2), S])),
    "slice": lambda: numbers()[1:],
    "gather": lambda: geon.gather(numbers(), POSITIONS, N),
    "scatter": lambda: geon.scatter(numbers(), POSITIONS, 0.7, N),
    "update": lambda: geon.update(numbers(), 0.7, 1),
    "sum": lambda: geon.sum(numbers()),
    "mean": lambda: geon.mean(geon.constant([1, 2], S)),
    "running": lambda: geon.cumprod(numbers(), N),
    "sorted": lambda: geon.sort(numbers()),
    "dot": lambda: geon.dot(numbers(), [1, 2, 3]),
    "arithmetic": lambda: 1 - geon.constant(0.1) * 2,
    "softmax": lambda: geon.softmax(geon.constant([1, 2, 3], N)),
    "sequential": lambda: geon.sequential([geon.print(0.2), chosen()]),
    "length": lambda: geon.tensor_size(geon.placeholder(geon.Axis("M"))) * 0.1,
}


@pytest.mark.parametrize("made", WEAK.values(), ids=WEAK)
def test_what_is_made_of_numbers_alone_stays_weak_and_shows_the_default(made):
    assert made().weak
    assert made().dtype.name == "float32"
    for dtype in ("float64", "float16"):
        met = geon.outer(geon.multiply, made(), geon.placeholder(dtype=dtype))
        assert not met.weak
        assert met.dtype.name == dtype


def test_integers_stay_integers_until_they_meet_a_float():
    made = geon.stack([1, 2], S)
    assert (made.weak, made.dtype.name) == (True, "int64")
    small = geon.placeholder(S.with_length(2), "int8")
    assert (small + made).dtype.name == "int8"
    assert (geon.placeholder(S.with_length(2), "float16") + made).dtype.name == "float16"
    assert geon.concat([small, made], S).dtype.name == "int8"


@pytest.mark.parametrize(
    ("value", "dtype", "stays"),
    [
        ([0.1, 0.2], "float32", True),
        ((0.1, 2), "float32", True),
        ([1, True], "int64", True),
        ([True, False], "bool", True),
        ([np.float64(0.1), 2], "float64", False),
        ([np.float32(0.1), 0.2], "float32", False),
        ([np.int8(1), 2], "int8", False),
        ([np.int8(1), 0.5], "float32", False),
        ([2**63, 1], "uint64", False),
        (np.array([0.1, 0.2]), "float64", False),
    ],
)
def test_a_list_is_what_its_elements_are(value, dtype, stays):
    made = geon.constant(value, geon.Axis("L"))
    assert (made.dtype.name, made.weak) == (dtype, stays)


@pytest.mark.parametrize("value", [[2**63, -1], [2**64, 1]])
def test_integers_that_no_dtype_holds_raise(value):
    with pytest.raises(geon.DTypeError, match="no integer dtype holds"):
        geon.constant(value, S)


def test_numpy_scalars_have_their_dtype():
    assert (X["float32"] * np.float64(0.1)).dtype.name == "float64"
    assert (X["float64"] * np.float32(0.1)).args[1].primitive.name == "cast"


def test_an_op_is_built_once_for_each_dtype_it_meets():
    values = [0.01 * i for i in range(100)]  # too large to be interned by value
    long = geon.constant(values, S)
    x = geon.placeholder(S.with_length(100), "float64")
    assert (x * (long + 1)).args[1] is (x - (long + 1)).args[1]
    product = X["float64"] * chosen()
    assert (X["float64"] + chosen()).args[1] is product.args[1]
    assert (X["float32"] + chosen()).args[1] is not product.args[1]
    assert product.args[1] is geon.where(
        YES, geon.constant(0.1, dtype="float64"), geon.constant(0.9, dtype="float64")
    )


def test_names_tags_and_lines_go_along():
    named = geon.where(YES, 0.11, 0.91, name="schedule", tags="rate")
    met = (X["float64"] * named).args[1]
    assert geon.find("schedule", X["float64"] * named) is met
    assert met.tags == {"rate"}
    assert met.file_info == named.file_info


def met():
    return X["float64"] * (geon.where(YES, 0.123, 0.321) * 3 + geon.constant([7.5] * 3, N))


def entries():
    """Return references to the ops that are interned, and to those that were rebuilt, by id."""
    return {id(entry): entry for entry in (*interned.values(), *weak._built.values())}


def test_nothing_is_kept_alive():
    met()  # numbers are kept for the next use
    gc.collect()
    before = entries()  # other tests' ops may die meanwhile
    product = met()
    rebuilt = {id(entry) for entry in weak._built.values()}
    assert rebuilt - before.keys()
    del product
    gc.collect()
    assert entries().keys() <= before.keys()


def test_depth_is_no_matter():
    deep = chosen()
    for _ in range(20000):
        deep = deep + 0.1
    assert (X["float64"] * deep).dtype.name == "float64"


@pytest.mark.parametrize("count", [3, 300])
def test_a_dump_keeps_them_weak_and_exact(count):
    axis = geon.Axis("L", count)
    values = [0.1 * i for i in range(count)]
    (again,) = geon.loads(geon.dumps(geon.constant(values, axis)))
    assert again.weak
    x = geon.placeholder(axis, "float64")
    found = compute(x + again, {x: np.zeros(count)})
    np.testing.assert_array_equal(found, np.array(values))


@pytest.mark.parametrize("count", [3, 300])
def test_alone_they_have_the_default_dtype(count, transformer):
    values = [0.1 * i for i in range(count)]
    whole = [7 * i for i in range(count)]
    made = [geon.constant(v, geon.Axis("L")) for v in (values, whole)]
    v = geon.Variable(geon.Axis("L", count), initial_value=0)
    plain, ints, twice, _ = transformer.computation([*made, made[0] * 2, geon.assign(v, made[0])])()
    assert (plain.dtype, ints.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(plain, np.array(values, np.float32))
    np.testing.assert_array_equal(twice, 2 * np.array(values, np.float32))
    np.testing.assert_array_equal(transformer.get(v), np.array(values, np.float32))


def test_comparing_and_ordering_read_the_exact_numbers(transformer):
    close = geon.constant([0.1 + 2e-12, 0.1 + 1e-12, 0.1], N)
    made = [close > 0.1, geon.argsort(close), geon.argmin(close), *geon.top_k(close, 2)]
    greater, order, least, _, positions = transformer.computation(made)()
    assert greater.tolist() == [True, True, False]
    assert order.tolist() == [2, 1, 0]
    assert least == 2
    assert positions.tolist() == [0, 1]


def test_a_print_is_one_effect_however_many_dtypes_its_value_meets(capfd):
    shown = geon.print(chosen(), "rate")
    made = [X[dtype] * shown for dtype in ("float64", "float32", "float16")]
    f = geon.NumPyTransformer().computation(made, YES, *X.values())
    values = f([True, False, True], [1] * 3, [1] * 3, [1] * 3)
    assert capfd.readouterr().out.count("rate") == 1
    np.testing.assert_array_equal(values[0], [0.1, 0.9, 0.1])


def test_a_cast_says_the_dtype_and_is_exact():
    assert compute(geon.cast(0.1, "float64"), {}) == 0.1
    assert compute(geon.cast(geon.constant(2**53 + 1), "int64"), {}) == 2**53 + 1
    assert compute(geon.cast(2.7, "int8"), {}) == 2
    assert np.isinf(compute(geon.cast(1e300, "float32"), {}))
    wide = compute(geon.cast(chosen(), "float64"), {YES: [True, False, True]})
    np.testing.assert_array_equal(wide, [0.1, 0.9, 0.1])


@geon.custom_deriv(lambda g, out, x, y: [2 * g * x, g])
def squared_plus(x, y):
    return geon.square(x) + y


def test_a_rule_of_the_users_gives_weak_inputs_a_derivative_or_not():
    x = X["float64"]
    y = squared_plus(x, chosen())
    assert geon.deriv(geon.sum(y), x).dtype.name == "float64"
    assert squared_plus(chosen(), 0.1).weak
    found = compute(x * squared_plus(chosen(), 0.1), {x: [1.0] * 3, YES: [True, False, True]})
    np.testing.assert_allclose(found, [0.1**2 + 0.1, 0.9**2 + 0.1, 0.1**2 + 0.1], rtol=3e-16)


@pytest.mark.parametrize("target", [chosen, numbers])
def test_a_weak_target_of_a_derivative_is_refused_where_its_values_went_elsewhere(target):
    rate = target()
    assert geon.deriv(geon.sum(rate * rate), rate).axes is rate.axes
    loss = geon.sum(X["float64"] * rate)
    for derive in (
        lambda: geon.deriv(loss, rate),
        lambda: geon.vjp(loss, rate, 1.0),
        lambda: geon.jvp(loss, rate, geon.broadcast(1.0, N)),
    ):
        with pytest.raises(geon.DerivativeError, match=r"Python numbers alone.*geon\.cast"):
            derive()
    known = geon.cast(rate, "float64")
    assert geon.deriv(geon.sum(X["float64"] * known), known).dtype.name == "float64"


def test_an_override_that_would_change_nothing_is_refused(transformer):
    x, rate = X["float64"], chosen()
    f = transformer.computation(x * rate, x, YES, keep=[rate])
    f([1.0] * 3, [True, False, True])
    np.testing.assert_array_equal(f.value(rate), np.array([0.1, 0.9, 0.1], np.float32))
    with pytest.raises(geon.ArgumentError, match=r"Python numbers alone.*geon\.cast"):
        f.override(rate, [1.0, 2.0, 3.0])
    known = geon.cast(rate, "float64")
    f = transformer.computation(x * known, x, YES, keep=[known])
    f.override(known, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f([1.0] * 3, [True] * 3), [1.0, 2.0, 3.0])


def test_a_mismatch_of_axes_names_what_the_user_made():
    x, y = X["float64"], geon.placeholder(geon.Axis("N", 5), "int64", name="y")
    for join in (lambda: geon.stack([x, y], S), lambda: geon.stack([y, x], S)):
        with pytest.raises(geon.AxisError, match=r"y\(N:5\) made at"):
            join()
    with pytest.raises(geon.AxisError, match=r"0\.1 and float64\(N:3\) \(made at"):
        geon.stack([0.1, x], S)


SMALL = geon.placeholder(N, "int8", name="small")
REFUSED = {
    "pad": lambda: geon.pad(SMALL, {N: 1}, value=300),
    "pad with a fraction": lambda: geon.pad(SMALL, {N: 1}, value=0.5),
    "stack": lambda: geon.stack([SMALL, geon.broadcast(300, N)], S),
    "concat": lambda: geon.concat([SMALL, geon.constant([300], N.with_length(1))], N),
    "scatter": lambda: geon.scatter(SMALL, POSITIONS, 300, N),
    "update": lambda: geon.update(SMALL, 300, 0),
    "assign": lambda: geon.assign(SMALL, 300),
    "assign where": lambda: geon.assign(SMALL, geon.where(YES, 0.5, 1)),
    "add": lambda: SMALL + geon.where(YES, 300, 0),
    "multiply": lambda: SMALL * [1, 2, 300],
}


@pytest.mark.parametrize(("name", "make"), REFUSED.items(), ids=REFUSED)
def test_numbers_that_do_not_fit_are_named_with_the_op_and_what_they_met(name, make):
    with pytest.raises(geon.DTypeError) as caught:
        make()
    text = str(caught.value)
    assert text.startswith(name.split()[0] + " of ")
    assert "small(N:3) int8 (made at" in text
    assert "300" in text or "0.5" in text or "fractions" in text


def test_a_value_of_another_dtype_makes_a_weak_whole_its_own():
    value = geon.placeholder(dtype="float64")
    for made in (
        geon.update(numbers(), value, 1),
        geon.scatter(numbers(), POSITIONS, value, N),
        geon.pad(numbers(), {N: 1}, value=value),
        geon.interpolation(numbers(), chosen(), value),
        geon.clip(numbers(), value),
    ):
        assert (made.dtype.name, made.weak) == ("float64", False)


@pytest.mark.parametrize("dtype", ["uint64", "int8", "float64", "bool"])
def test_a_cast_of_a_repeated_number_folds_to_its_dtype(dtype):
    made = geon.cast(geon.broadcast(4, N), dtype)
    found = geon.NumPyTransformer().computation(made)()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.full(3, 4).astype(dtype))
