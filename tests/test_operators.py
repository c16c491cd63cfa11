"""Python and NumPy syntax on tensors: what it builds, what it refuses, what a notebook shows."""

import numpy as np
import pytest

import geon
from tests.places import here

N, C, K = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("K", 4)
x = geon.placeholder(axes=N, name="x")
y = geon.placeholder(axes=N, name="y")
i = geon.placeholder(axes=N, dtype="int32", name="i")
j = geon.placeholder(axes=N, dtype="int32", name="j")

BUILT = {
    "x + y": (x + y, geon.add(x, y)),
    "x + 1": (x + 1, geon.add(x, 1)),
    "1 + x": (1 + x, geon.add(1, x)),
    "x - y": (x - y, geon.subtract(x, y)),
    "1 - x": (1 - x, geon.subtract(1, x)),
    "x * y": (x * y, geon.multiply(x, y)),
    "2 * x": (2 * x, geon.multiply(2, x)),
    "x / y": (x / y, geon.divide(x, y)),
    "1 / x": (1 / x, geon.divide(1, x)),
    "x // y": (x // y, geon.floordivide(x, y)),
    "7 // x": (7 // x, geon.floordivide(7, x)),
    "x % y": (x % y, geon.mod(x, y)),
    "7 % x": (7 % x, geon.mod(7, x)),
    "divmod": (divmod(x, y)[1], geon.mod(x, y)),
    "x ** y": (x**y, geon.power(x, y)),
    "2 ** x": (2**x, geon.power(2, x)),
    "-x": (-x, geon.negative(x)),
    "+x": (+x, x),
    "abs(x)": (abs(x), geon.absolute(x)),
    "x < y": (x < y, geon.less(x, y)),
    "x <= y": (x <= y, geon.less_equal(x, y)),
    "x > y": (x > y, geon.greater(x, y)),
    "x >= y": (x >= y, geon.greater_equal(x, y)),
    "1 < x": (1 < x, geon.greater(x, 1)),
    "x == y": (x == y, geon.equal(x, y)),
    "x == 1": (x == 1, geon.equal(x, 1)),
    "1 == x": (1 == x, geon.equal(x, 1)),
    "x != y": (x != y, geon.not_equal(x, y)),
    "1 != x": (1 != x, geon.not_equal(x, 1)),
    "np.float32(3) == x": (np.float32(3) == x, geon.equal(np.float32(3), x)),
    "x != np.float32(3)": (x != np.float32(3), geon.not_equal(x, np.float32(3))),
    "i & j": (i & j, geon.bitwise_and(i, j)),
    "1 & i": (1 & i, geon.bitwise_and(1, i)),
    "i | j": (i | j, geon.bitwise_or(i, j)),
    "i ^ j": (i ^ j, geon.bitwise_xor(i, j)),
    "~i": (~i, geon.bitwise_not(i)),
    "i << j": (i << j, geon.left_shift(i, j)),
    "1 << i": (1 << i, geon.left_shift(1, i)),
    "i >> j": (i >> j, geon.right_shift(i, j)),
    "np.tanh(x)": (np.tanh(x), geon.tanh(x)),
    "np.add(x, y)": (np.add(x, y), geon.add(x, y)),
    "np.maximum(0, x)": (np.maximum(0, x), geon.maximum(0, x)),
    "np.arctan2(x, y)": (np.arctan2(x, y), geon.atan2(x, y)),
    "np.equal(x, y)": (np.equal(x, y), geon.equal(x, y)),
    "np.not_equal(x, y)": (np.not_equal(x, y), geon.not_equal(x, y)),
    "np.logical_not(x)": (np.logical_not(x), geon.logical_not(x)),
    "np.float32(2) * x": (np.float32(2) * x, geon.multiply(np.float32(2), x)),
    "np.abs(x)": (np.abs(x), geon.absolute(x)),
}


@pytest.mark.parametrize("text", BUILT)
def test_an_operator_builds_the_op(text):
    built, expected = BUILT[text]
    assert built is expected


def compute(value, *pairs):
    with geon.make_transformer("numpy") as transformer:
        f = transformer.computation(value, *(leaf for leaf, _ in pairs))
        return f(*(array for _, array in pairs))


def test_an_array_beside_a_tensor_takes_its_axes():
    z = geon.placeholder(axes=C)
    array = np.array([1, 2, 3], np.float32)
    for made in (array * z, z * array, np.multiply(array, z), [1, 2, 3] * z):
        assert made.axes is geon.Axes(C)
        np.testing.assert_array_equal(compute(made, (z, [1, 10, 100])), [1, 20, 300])


def test_an_array_in_place_operation_is_refused():
    z = geon.placeholder(axes=C)
    array = np.ones(3, np.float32)
    with pytest.raises(geon.SymbolicError, match="out"):
        array *= z


def test_matmul_contracts_the_one_shared_axis():
    w = geon.placeholder(axes=[C, K])
    z = geon.placeholder(axes=[K, N])
    assert (w @ z).axes is geon.Axes(C, N)
    assert w @ z is geon.dot(w, z)


def test_matmul_refuses_more_than_one_shared_axis_and_names_dot():
    w, first = geon.placeholder(axes=[C, K], name="w"), here()
    z, second = geon.placeholder(axes=[C, K, N], name="z"), here()
    with pytest.raises(geon.AxisError) as caught:
        w @ z
    for part in ("w(C:3, K:4)", "z(C:3, K:4, N)", first, second, "C, K", "geon.dot(x, y, over=K)"):
        assert part in str(caught.value)


def test_indexing():
    z = geon.placeholder(axes=[C, N, K])
    given = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
    at = geon.placeholder(dtype="int64")
    for made, expected, names in [
        (z[0], given[0], "NK"),
        (z[-1], given[-1], "NK"),
        (z[1, 2, 3], given[1, 2, 3], ""),
        (z[0:2], given[0:2], "CNK"),
        (z[:, ::2], given[:, ::2], "CNK"),
        (z[:, 4:1:-2], given[:, 4:1:-2], "CNK"),
        (z[::-1, ..., 1], given[::-1, ..., 1], "CN"),
        (z[..., 1:], given[..., 1:], "CNK"),
        (z[...], given, "CNK"),
        (z[{N: slice(1, 3)}], given[:, 1:3], "CNK"),
        (z[{"K": 0, C: slice(None, None, 2)}], given[::2, :, 0], "CN"),
        (z[at + 1], given[2], "NK"),
    ]:
        assert "".join(made.axes.names) == names
        value = compute(made + 0 * geon.cast(at, "float32"), (z, given), (at, 1))
        np.testing.assert_array_equal(value, expected)


REFUSED = {
    "truth": (lambda: bool(x > 0), "geon.where"),
    "if": (lambda: 1 if x > 0 else 2, "geon.where"),
    "chained": (lambda: 0 < x < 1, "geon.where"),
    "iteration": (lambda: list(x), r"x\[i\]"),
    "unpacking": (lambda: (lambda a, b: a)(*x), r"x\[i\]"),
    "len": (lambda: len(x), "geon.tensor_size"),
    "in": (lambda: 1 in x, "geon.any"),
    "float": (lambda: float(x), "transformer.computation"),
    "int": (lambda: int(x), "transformer.computation"),
    "range": (lambda: range(x), "compute it"),
    "array": (lambda: np.asarray(x), "transformer.computation"),
    "reduce": (lambda: np.add.reduce(x), r"write geon.sum\(x, A\)"),
    "unknown ufunc": (lambda: np.spacing(x), "geon has no function for it"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_symbolic_tensor_refuses_says_what_to_write(what):
    call, cure = REFUSED[what]
    with pytest.raises(geon.SymbolicError, match=cure) as caught:
        call()
    assert "x(N)" in str(caught.value) or "greater(N)" in str(caught.value)
    assert "test_operators.py:" in str(caught.value)


# Notebooks --------------------------------------------------------------------------------------


def test_a_tensor_shows_itself():
    z, line = geon.tanh(x * 2, name="<z>"), here()
    shown = z._repr_html_()
    assert "&lt;z&gt;" in shown and "<z>" not in shown
    for part in ("tanh", "multiply", "(N)", "float32", line):
        assert part in shown


def test_a_computation_shows_itself(transformer):
    v = geon.Variable(axes=C, initial_value=0, name="weights")
    shown = transformer.computation([geon.sum(x), v], x)._repr_html_()
    for part in ("weights(C:3)", "x(N)", transformer.target.name, "sum"):
        assert part in shown


def test_text_of_ops():
    z, line = geon.add(x, 1.25, name="z"), here()
    assert str(z) == "z(N)"
    assert repr(z).startswith("<add z(N) float32 at ") and line in repr(z)
