"""geon.from_sympy: values and derivatives beside those of SymPy, and what it refuses."""

import numpy as np
import pytest
import sympy
from sympy.codegen import cfunctions

import geon
from geon.frontends.sympy.functions import BY_CLASS
from geon.frontends.sympy.reader import RULES

x, y = sympy.symbols("x y", real=True)
i, j = sympy.symbols("i j", integer=True)
N, M = geon.Axis("N"), geon.Axis("M", 3)
HALF = sympy.Rational(1, 2)
# An expression of each class that the table has, over points between 0.2 and 0.9.
CASES = [
    *(f(x) for f in (sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan)),
    *(f(x) for f in (sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.atanh, sympy.exp)),
    *(f(x) for f in (sympy.sec, sympy.csc, sympy.cot, sympy.sech, sympy.csch, sympy.coth)),
    *(f(1 / x) for f in (sympy.asec, sympy.acsc, sympy.acoth, sympy.acosh)),
    *(f(x) for f in (sympy.acot, sympy.asech, sympy.acsch, sympy.sinc, sympy.frac)),
    *(f(x) for f in (sympy.erf, sympy.erfc, sympy.erfinv, sympy.loggamma, sympy.gamma)),
    *(f(x, evaluate=False) for f in (sympy.digamma, sympy.trigamma, sympy.factorial)),
    *(f(x) for f in (cfunctions.expm1, cfunctions.log1p, cfunctions.exp2, cfunctions.log2)),
    *(f(x) for f in (cfunctions.log10, cfunctions.Sqrt)),
    *(f(x - HALF) for f in (sympy.Abs, sympy.sign, sympy.Heaviside)),
    *(f(5 * x) for f in (sympy.floor, sympy.ceiling)),
    *(f(x, y) for f in (sympy.atan2, sympy.erf2, sympy.beta, sympy.binomial, sympy.Max)),
    *(sympy.Min(x, y, HALF), sympy.Mod(5 * x, y), cfunctions.hypot(x, y), sympy.log(x, y)),
    *(cfunctions.fma(x, y, x), sympy.polygamma(2, x), sympy.UnevaluatedExpr(x) * y),
    *(x**n for n in (2, 3, 7, 20, -1, -2, -5, HALF, -HALF, 3 * HALF, sympy.Rational(-1, 3))),
    *(2**x, x**y, sympy.sqrt(2) * x, sympy.pi * x + sympy.E**2, sympy.EulerGamma - x),
    *(x / y, -x * y, -1 / x, x - y, 3 * x / (7 * y), (x + y) / (x * y) + 1, x / 3 + sympy.sin(1)),
    sympy.Piecewise((x**2, x < HALF), (sympy.sin(y), x < 0.7), (sympy.pi, True)),
    sympy.Piecewise((x, (x > HALF) & (y > HALF)), (y, ~(x > HALF) | (y < 0.3)), (0, True)),
    sympy.Piecewise((1, sympy.Xor(x > HALF, y > HALF)), (x, sympy.Eq(x, y)), (y, sympy.Ne(x, y))),
    sympy.Piecewise((x, sympy.Ne(x, y) & sympy.Not(x > y, evaluate=False)), (y, True)),
    sympy.Piecewise((x, sympy.Implies(x >= y, y <= HALF, evaluate=False)), (y, True)),
    sympy.Piecewise((x, sympy.Equivalent(x >= y, y <= HALF, evaluate=False)), (y, True)),
    sympy.Piecewise((x, sympy.ITE(x > y, y > HALF, x > HALF, evaluate=False)), (y, True)),
    sympy.Piecewise((x, sympy.Nand(x > y, y > HALF, evaluate=False)), (y, True)),
    sympy.Piecewise((x, sympy.Nor(x > y, y > HALF, evaluate=False)), (y, True)),
    *(f(x, evaluate=False) for f in (sympy.re, sympy.conjugate, sympy.im)),
    *(f(n, x) for n in (0, 1) for f in (sympy.besseli, sympy.besselj, sympy.besselk)),
    *(sympy.airyai(x), sympy.airyaiprime(x), sympy.airybi(x), sympy.airybiprime(x)),
    *(sympy.bessely(0, x), sympy.bessely(1, x), sympy.lowergamma(x, y), sympy.uppergamma(x, y)),
    sympy.Sum(sympy.sin(i * x) / i, (i, 1, 5)),
    sympy.Product(x + i * y, (i, -1, 2)),
    sympy.Sum(x**i * y**j, (i, 0, 2), (j, 1, 3)),
]
STEPS = (sympy.sign, sympy.floor, sympy.ceiling, sympy.Heaviside, sympy.frac, sympy.Mod, sympy.im)


def points(count=6):
    return np.random.default_rng(0).uniform(0.2, 0.9, size=(2, count))


def exact(expr, values, order=60):
    """The value of an expression at each point, by SymPy itself."""
    expr = expr.replace(sympy.erf2, lambda a, b: sympy.erf(b) - sympy.erf(a))
    if any(type(part).__module__ == cfunctions.__name__ for part in sympy.preorder_traversal(expr)):
        expr = expr.replace(cfunctions.hypot, lambda a, b: sympy.sqrt(a**2 + b**2))
        expr = expr.replace(cfunctions.Sqrt, sympy.sqrt).expand(func=True)
    expr = expr.doit()
    return [
        float(sympy.N(expr.subs({x: sympy.Float(a, order), y: sympy.Float(b, order)}).doit(), 20))
        for a, b in values.T
    ]


def inputs():
    return [geon.placeholder([N], "float64", name=name) for name in "xy"]


def test_values_are_those_of_sympy(transformer):
    leaves = inputs()
    found = geon.from_sympy(CASES, {x: leaves[0], y: leaves[1]})
    results = transformer.computation([r + 0 * leaves[0] for r in found], *leaves)(*points())
    for expr, values in zip(CASES, results, strict=True):
        np.testing.assert_allclose(
            values, exact(expr, points()), rtol=2e-14, atol=1e-15, err_msg=str(expr)
        )


def test_every_class_of_the_table_has_a_case():
    used, waiting = set(), list(CASES)
    while waiting:
        expr = waiting.pop()
        used |= set(type(expr).__mro__)
        waiting += [part for part in expr.args if isinstance(part, sympy.Basic)]
    assert {*BY_CLASS, *RULES} - used == set()


def test_derivatives_are_those_of_sympy():
    smooth = [e for e in CASES if not e.has(*STEPS, sympy.Piecewise, sympy.re, sympy.conjugate)]
    smooth = [e for e in smooth if not e.has(cfunctions.expm1, cfunctions.hypot, cfunctions.Sqrt)]
    assert len(smooth) > 60
    leaves = inputs()
    found = geon.from_sympy(smooth, {x: leaves[0], y: leaves[1]})
    slopes = [geon.deriv(geon.sum(r), leaves[0], unreached="zero") for r in found]
    results = geon.NumPyTransformer().computation(slopes, *leaves)(*points(3))
    for expr, values in zip(smooth, results, strict=True):
        wanted = exact(sympy.diff(expr.doit(), x), points(3))
        np.testing.assert_allclose(values, wanted, rtol=1e-11, atol=1e-13, err_msg=str(expr))


def test_equal_parts_are_one_op_and_structures_stay():
    leaves = inputs()
    part = sympy.sin(x) * y
    made = geon.from_sympy({"a": part, "b": [part + 1, (part, 2)]}, {"x": leaves[0], y: leaves[1]})
    assert made["a"] is made["b"][1][0]
    assert made["b"][0].args[1] is made["a"] or made["b"][0].args[0] is made["a"]
    assert (made["b"][1][1].dtype, made["b"][1][1].axes.names) == ("float64", ())


def test_axes_make_placeholders_and_the_order_of_symbols_is_that_of_axes():
    made = geon.from_sympy(y * x, {x: [M, N], y: N}, dtype="float32")
    assert made.axes.names == ("M", "N") and made.dtype == "float32"
    assert geon.find("y", made).axes.names == ("N",)
    v = geon.placeholder([N], "float32")
    assert geon.from_sympy(x / 3 + sympy.pi, {x: v}).dtype == "float32"
    assert geon.from_sympy(x + 1, {x: 2}).dtype == "float64"


def test_powers_are_squares_products_and_roots():
    v, _ = inputs()
    rows = {2: geon.square(v), -1: geon.reciprocal(v), HALF: geon.sqrt(v), -HALF: geon.rsqrt(v)}
    rows[4] = geon.square(geon.square(v))
    for exponent, expected in rows.items():
        assert geon.from_sympy(x**exponent, {x: v}) is expected
    assert geon.from_sympy(x**40, {x: v}) is geon.power(v, 40)


def test_sums_over_open_lengths_are_reductions_of_slices():
    A = sympy.IndexedBase("A")
    n = sympy.Symbol("N", integer=True)
    leaf = geon.placeholder([N], "float64", name="A")
    sums = [
        sympy.Sum(A[i] ** 2, (i, 0, n - 1)),
        sympy.Sum(x * i + A[i + 1], (i, 0, n - 2)),
        sympy.Sum(A[i] * A[j] * (i + 1) ** j, (i, 0, n - 1), (j, 0, n - 1)),
        sympy.Sum(A[n - 1 - i] * i, (i, 0, n - 1)),
        A[0] + A[2] + sympy.Sum(1, (i, 1, n)),
        sympy.Sum(A[i] * i, (i, n - 2, n - 1)),
        sympy.Sum(sympy.Sum(A[j] * i, (j, 0, i - 1 + n - i)), (i, 1, 2)),
    ]
    scalar = geon.placeholder((), "float64", name="x")
    made = geon.from_sympy(sums, {A: leaf, x: scalar})
    f = geon.NumPyTransformer().computation(made, leaf, scalar)
    for length in (3, 6):
        a = np.arange(2.0, 2 + length)
        k = np.arange(length)
        wanted = [
            np.sum(a**2),
            np.sum(1.5 * k[:-1] + a[1:]),
            np.sum(np.outer(a, a) * (k[:, None] + 1.0) ** k),
            np.sum(a[::-1] * k),
            a[0] + a[2] + length,
            np.sum((a * k)[-2:]),
            3 * np.sum(a),
        ]
        np.testing.assert_allclose(f(a, 1.5), wanted)


def test_matrices_and_their_elements():
    X = sympy.MatrixSymbol("X", 2, 3)
    leaf = geon.placeholder([geon.Axis("R", 2), geon.Axis("C", 3)], "float64", name="X")
    v = geon.placeholder([N], "float64", name="x")
    matrix = sympy.Matrix([[X[0, 0], X[1, 2]], [x, 1]])
    axes = [geon.Axis("P"), geon.Axis("Q", 2)]
    made = geon.from_sympy(matrix, {X: leaf, x: v}, axes=axes)
    assert made.axes.names == ("P", "Q", "N")
    data = np.arange(6.0).reshape(2, 3)
    found = geon.NumPyTransformer().computation(made, leaf, v)(data, np.array([7.0, 8]))
    np.testing.assert_array_equal(found, [[[0, 0], [5, 5]], [[7, 8], [1, 1]]])
    column = geon.from_sympy(sympy.Matrix([x, 2 * x]), {x: v}, axes=geon.Axis("P"))
    assert column.axes.names == ("P", "N")
    for given, text in ((None, r"shape \(2, 2\); give axes="), ([geon.Axis("P")], "axes are")):
        with pytest.raises(geon.AxisError, match=text):
            geon.from_sympy(matrix, {X: leaf, x: v}, axes=given)
    with pytest.raises(geon.AxisError, match="has length 3, not 2"):
        geon.from_sympy(matrix, {X: leaf, x: v}, axes=[geon.Axis("P", 3), geon.Axis("Q")])


def test_what_is_unknown_is_said_at_once():
    f = sympy.Function("f")
    expressions = [sympy.fresnels(x) + f(y), sympy.Integral(f(x), x) * sympy.I, sympy.zeta(x)]
    with pytest.raises(geon.ArgumentError) as caught:
        geon.from_sympy(expressions, {x: ()})
    text = str(caught.value)
    assert "for y; add {y: tensor}" in text
    assert "nothing for I, Integral, f, fresnels, zeta;" in text and "test_from_sympy.py" in text


def test_functions_of_the_users_own():
    f = sympy.Function("f")
    v, _ = inputs()
    symbols = {x: v, f: lambda a, b: geon.maximum(a, b) + 1, sympy.sin: geon.tanh}
    made = geon.from_sympy(f(x, 2) * sympy.sin(x), symbols)
    assert made is (geon.maximum(v, 2) + 1) * geon.tanh(v)
    wide = geon.from_sympy(f(x), {f: lambda a: geon.broadcast(a, [M, *a.axes]), x: v})
    assert wide.axes.names == ("N", "M")


REFUSED = {
    "no expression": (lambda v: geon.from_sympy("x + 1", {x: v}), "no SymPy expression"),
    "a tensor": (lambda v: geon.from_sympy([v], {x: v}), "a tensor already"),
    "a list of symbols": (lambda v: geon.from_sympy(x, [x]), "symbols is a dictionary"),
    "a key": (lambda v: geon.from_sympy(x, {x + 1: v}), "a key of symbols is x [+] 1"),
    "an empty range": (
        lambda v: geon.from_sympy(sympy.Sum(x, (i, 3, 1)), {x: v}),
        "are 3 and 1",
    ),
    "an unknown limit": (
        lambda v: geon.from_sympy(sympy.Sum(x, (i, 0, sympy.Symbol("k"))), {x: v}),
        "limit k of a Sum",
    ),
    "an index outside": (
        lambda v: geon.from_sympy([sympy.Sum(i, (i, 0, 1)), i * x], {x: v}),
        "index i is used outside",
    ),
    "a number of indices": (
        lambda v: geon.from_sympy(sympy.IndexedBase("x")[0, 1], {x: v}),
        r"has 2 indices and .* 1 axes",
    ),
    "a negative index": (
        lambda v: geon.from_sympy(sympy.IndexedBase("x")[-1], {x: v}),
        "index -1 of x",
    ),
    "a negative index of a sum": (
        lambda v: geon.from_sympy(sympy.Sum(sympy.IndexedBase("x")[i - 3], (i, 0, 3)), {x: v}),
        "index -3 of x",
    ),
    "a negative index of a sum that runs down": (
        lambda v: geon.from_sympy(sympy.Sum(sympy.IndexedBase("x")[2 - i], (i, 0, 3)), {x: v}),
        "index -1 of x",
    ),
    "an index that is no integer for all steps": (
        lambda v: geon.from_sympy(sympy.Sum(sympy.IndexedBase("x")[i / 2], (i, 0, 3)), {x: v}),
        "index i/2 of .* is no integer",
    ),
    "an index that is no integer": (
        lambda v: geon.from_sympy(sympy.IndexedBase("x")[HALF], {x: v}),
        "index 1/2 of .* is no integer",
    ),
    "an order": (lambda v: geon.from_sympy(sympy.polygamma(x, x), {x: v}), "no integer"),
}


@pytest.mark.parametrize(("build", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_with_the_place(build, text):
    v, _ = inputs()
    with pytest.raises(geon.GeonError, match=text) as caught:
        build(v)
    assert "test_from_sympy.py" in str(caught.value)


def test_a_deep_expression():
    made = x
    for _ in range(10_000):
        made = sympy.sin(sympy.Add(made, y, evaluate=False), evaluate=False)
    leaves = inputs()
    assert geon.from_sympy(made, {x: leaves[0], y: leaves[1]}).primitive.name == "sin"


def test_numbers_and_elements_that_sympy_makes_anew_are_told_apart():
    numbers = [0.5 + k for k in range(50)]
    matrix = sympy.Matrix(10, 5, numbers)
    made = geon.from_sympy([numbers, matrix], {}, axes=[geon.Axis("P"), geon.Axis("Q")])
    found = geon.NumPyTransformer().computation(made)()
    np.testing.assert_array_equal(found[0], numbers)
    np.testing.assert_array_equal(np.ravel(found[1]), numbers)


def test_an_index_of_an_inner_sum_hides_that_of_the_outer_one():
    inner = sympy.Sum(i**2, (i, 1, 3))
    expr = sympy.Sum(i * x + inner, (i, 0, 4))
    v = geon.placeholder((), "float64")
    found = geon.NumPyTransformer().computation(geon.from_sympy(expr, {x: v}), v)(2.0)
    assert found == 10 * 2 + 5 * 14


def test_special_values():
    values = [sympy.oo, -sympy.oo, sympy.nan, sympy.Integer(10) ** 30, sympy.Integer(10) ** 400]
    found = geon.NumPyTransformer().computation(geon.from_sympy(values, {}))()
    np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan, 1e30, np.inf])
    v, _ = inputs()
    ties = [sympy.Heaviside(x), sympy.Heaviside(x, 1), sympy.sign(x), sympy.sinc(x), sympy.gamma(x)]
    found = geon.NumPyTransformer().computation(geon.from_sympy(ties, {x: v}), v)([0.0, -2.5])
    np.testing.assert_allclose(found[0], [0.5, 0])
    np.testing.assert_allclose(found[1], [1, 0])
    np.testing.assert_allclose(found[2], [0, -1])
    np.testing.assert_allclose(found[3], [1, np.sin(2.5) / 2.5])
    np.testing.assert_allclose(found[4], [np.inf, float(sympy.gamma(sympy.Float(-2.5)))])


@pytest.mark.slow
def test_two_thousand_expressions_are_one_graph():
    symbols = sympy.symbols("x:12", real=True)
    random = np.random.default_rng(0)
    functions = (sympy.sin, sympy.cos, sympy.tanh, sympy.atan)
    pool = [*symbols, *(sympy.sin(a * b) for a, b in zip(symbols, symbols[1:], strict=False))]
    expressions = []
    for _ in range(2000):
        a, b, c = (pool[k] for k in random.integers(len(pool), size=3))
        f = functions[random.integers(len(functions))]
        expressions.append(f(a * int(random.integers(1, 4)) / 4) * b + sympy.tanh(c) / (2 + b**2))
    leaves = [geon.placeholder([N], "float64", name=s.name) for s in symbols]
    made = geon.from_sympy(expressions, dict(zip(symbols, leaves, strict=True)))
    data = random.normal(size=(12, 5))
    found = geon.NumPyTransformer().computation(made, *leaves)(*data)
    wanted = sympy.lambdify(symbols, expressions, "numpy", cse=True)(*data)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
