"""geon.to_sympy: round trips, sums over axes, and what has no expression."""

import numpy as np
import pytest
import sympy

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES

N, C = geon.Axis("N"), geon.Axis("C", 3)
# Elementwise rows of floats without a SymPy form: roundings to even, tests of representations,
# integers, the incomplete beta function, and slopes that only derivatives of second order of others
# contain.
WITHOUT = {
    "round", "isnan", "isinf", "isfinite", "gelu_tanh_derivative", "left_shift", "right_shift",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "gcd", "betainc",
}  # fmt: skip


def rows():
    return [row for row in PRIMITIVES.values() if isinstance(row, Elementwise) and row.own]


def scalars(row):
    booleans = row.rule in ("logical",), row.name == "where"
    dtypes = ["bool" if booleans[0] or (booleans[1] and k == 0) else "float64" for k in range(3)]
    return [geon.placeholder((), dtypes[k], name="xyz"[k]) for k in range(row.arity)]


def test_rows_without_a_form_are_those_known():
    found = set()
    for row in rows():
        if row.name in WITHOUT and (row.rule in ("bits", "integer")):
            found.add(row.name)
            continue
        try:
            geon.to_sympy(row(*scalars(row)))
        except geon.ArgumentError:
            found.add(row.name)
    assert found == WITHOUT


@pytest.mark.parametrize("row", [row for row in rows() if row.name not in WITHOUT], ids=str)
def test_values_come_back(row):
    leaves = scalars(row)
    op = row(*leaves)
    back = geon.from_sympy(geon.to_sympy(op), {leaf.name: leaf for leaf in leaves})
    f = geon.NumPyTransformer().computation([op, back], *leaves)
    random = np.random.default_rng(1)
    for _ in range(3):
        low_high = [
            (0, 1) if leaf.dtype == "bool" else row.domain[k] for k, leaf in enumerate(leaves)
        ]
        data = [
            random.random() < 0.5 if leaf.dtype == "bool" else random.uniform(*ends)
            for leaf, ends in zip(leaves, low_high, strict=True)
        ]
        one, two = f(*data)
        np.testing.assert_allclose(np.float64(two), np.float64(one), rtol=1e-9, atol=1e-12)


def test_derivatives_are_sympys():
    x, y = (geon.placeholder((), "float64", name=name) for name in "xy")
    op = geon.gelu(x) * geon.where(x > y, geon.sin(x) * 0.5, y**2) + geon.log1p(x * x) / y
    a, b = sympy.symbols("x y", real=True)
    mine = geon.to_sympy(geon.deriv(op, x))
    theirs = sympy.diff(geon.to_sympy(op), a)
    for point in ({a: 0.3, b: 1.2}, {a: 1.4, b: 0.7}):
        assert abs(sympy.N(mine.subs(point)) - sympy.N(theirs.subs(point))) < 1e-12


def test_sums_over_axes_come_back():
    u = geon.placeholder([N, C], "float64", name="u")
    w = geon.Variable([C], "float64", initial_value=np.array([1.0, 2, 3]), name="w")
    total = geon.sum(geon.square(geon.dot(u, w)))
    ops = [total, geon.prod(w), geon.mean(geon.sum(u, N) * w), geon.sum(geon.iota(C) * w)]
    expressions = geon.to_sympy(ops)
    i_N, i_C = (sympy.Symbol(f"i_{n}", integer=True, nonnegative=True) for n in "NC")
    length = sympy.Symbol("N", integer=True, nonnegative=True)
    U, W = (sympy.IndexedBase(name, real=True) for name in "uw")
    inner = sympy.Sum(U[i_N, i_C] * W[i_C], (i_C, 0, 2))
    assert expressions[0] == sympy.Sum(inner**2, (i_N, 0, length - 1))
    back = geon.from_sympy(expressions, {"u": u, "w": w})
    f = geon.NumPyTransformer().computation([ops, back], u)
    one, two = f(np.random.default_rng(0).normal(size=(4, 3)))
    np.testing.assert_allclose(two, one, rtol=1e-13)


def test_a_sum_inside_of_a_sum_over_the_same_axis():
    w = geon.placeholder([C], "float64", name="w")
    op = geon.sum(geon.square(w - geon.mean(w)))
    back = geon.from_sympy(geon.to_sympy(op), {"w": w})
    one, two = geon.NumPyTransformer().computation([op, back], w)([1.0, 2.0, 4.0])
    np.testing.assert_allclose(two, one)


def test_free_indices_and_extremes():
    u = geon.placeholder([N, C], "float64", name="u")
    text = str(geon.to_sympy(geon.softmax(u, C)))
    largest = "Max(u[i_N, 0], u[i_N, 1], u[i_N, 2])"
    assert text == (
        f"exp(u[i_N, i_C] - {largest})/Sum(exp(u[i_N, i_C_1] - {largest}), (i_C_1, 0, 2))"
    )


def test_symbols_of_the_users_own():
    x = geon.placeholder((), name="x")
    whole = sympy.Symbol("y", positive=True)
    assert geon.to_sympy({"a": [x + 1]}, {x: whole}) == {"a": [whole + 1]}
    hidden = geon.max(geon.placeholder([N], name="v"))
    assert geon.to_sympy(geon.exp(hidden), {hidden: whole}) == sympy.exp(whole)


def test_what_has_no_expression_is_said_with_its_lines():
    u = geon.placeholder([N, C], "float64", name="u")
    bare = geon.placeholder((), "float64")
    op = geon.sum(geon.sort(u, C)) + geon.max(u) + bare
    with pytest.raises(geon.ArgumentError) as caught:
        geon.to_sympy(op)
    text = str(caught.value)
    for part in ("sort, ", "max, ", "at most 64 elements", "which has no name", "test_to_sympy.py"):
        assert part in text
    other = geon.placeholder((), "float64", name="u")
    with pytest.raises(geon.ArgumentError, match="whose name is also that of"):
        geon.to_sympy(geon.sum(u) + other)
    with pytest.raises(geon.ArgumentError, match=r"ops\[1\] is 3 of type int"):
        geon.to_sympy([u, 3])


def test_a_deep_graph():
    x = geon.placeholder((), "float64", name="x")
    op = x
    for _ in range(10_000):
        op = geon.tanh(op)
    assert geon.from_sympy(geon.to_sympy(op), {"x": x}) is op
