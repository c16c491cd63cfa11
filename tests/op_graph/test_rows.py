"""Tests generated from the registry: a row that is added is tested when it exists."""

import mpmath
import numpy as np
import pytest
import sympy

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import KINDS, PRIMITIVES
from geon.op_graph.evaluation.interpreter import completeness
from geon.op_graph.op_graph import post_order
from geon.op_graph.values.dtypes import as_dtype, kind
from geon.testing.cases import for_each

from .computing import compute, shape
from .samples import NOT_DIFFERENTIABLE, SAMPLES, A, B, Sample

C = geon.Axis("C", 2)
OPERAND_AXES = ((A, B), (B, C), (C, A))
ROWS = [row for row in PRIMITIVES.values() if isinstance(row, Elementwise)]
SMOOTH = ("numeric", "any", "float", "magnitude")
WITH_SYMPY = [row for row in ROWS if row.sympy]


def operand_dtype(row, position):
    """The dtype that a generated test feeds an operand of a row."""
    if row.rule == "logical" or (row.rule == "select" and position == 0):
        return "bool"
    return "int64" if row.rule in ("integer", "bits") else "float64"


def operands(row, seed=0):
    """Placeholders of unequal axes for a row, and arrays of its domain by placeholder."""
    random = np.random.default_rng(seed)
    feeds = {}
    for position, (low, high) in enumerate(row.domain):
        dtype = operand_dtype(row, position)
        leaf = geon.placeholder(OPERAND_AXES[position], dtype)
        values = random.uniform(low, high, size=shape(leaf.axes))
        feeds[leaf] = values > (low + high) / 2 if dtype == "bool" else values.astype(dtype)
    return feeds


def elementwise_samples():
    """A sample for each elementwise row of floats, and for where, whose condition is fixed."""

    def domain_values(row, first=0):
        def values(random):
            return [
                random.uniform(*interval, size=shape(axes))
                for interval, axes in zip(row.domain[first:], OPERAND_AXES[first:], strict=False)
            ]

        return values

    found = {}
    for row in ROWS:
        if row.rule in SMOOTH:
            axes = OPERAND_AXES[: row.arity]
            build = row
            found[row.name] = [Sample("generated", axes, build, domain_values(row))]
    condition = geon.constant(np.array([[True, False, True], [False, False, True]]), axes=[A, B])
    found["where"] = [
        Sample(
            "generated",
            OPERAND_AXES[1:],
            lambda x, y: geon.where(condition, x, y),
            domain_values(geon.where, 1),
        )
    ]
    return found


GENERATED = elementwise_samples() | {
    row.name: [Sample(label, axes, build) for label, axes, build in row.samples()]
    for row in PRIMITIVES.values()
    if row.samples is not None and row.differentiable
}
CASES = [
    pytest.param(sample, id=f"{name}-{sample.label}")
    for name, samples in {**GENERATED, **SAMPLES}.items()
    for sample in samples
]


# What every row says -----------------------------------------------------------------------------


@for_each("row", PRIMITIVES.values(), ids=str)
def test_every_row_has_a_sentence_and_a_kind(row):
    assert row.doc.endswith(".") and row.kind in KINDS and row.name


def test_every_row_that_has_a_value_has_a_reference():
    assert completeness() == []


def test_every_row_says_its_derivative_or_has_none():
    undeclared = [
        name
        for name, row in PRIMITIVES.items()
        if row.differentiable == (name in NOT_DIFFERENTIABLE)
    ]
    assert undeclared == []


def test_every_differentiable_row_has_a_sample():
    without_floats = {row.name for row in ROWS if row.name not in GENERATED}
    missing = [
        name
        for name, row in PRIMITIVES.items()
        if row.differentiable and name not in {*GENERATED, *SAMPLES, *without_floats}
    ]
    assert missing == []


def test_the_first_sample_of_every_row_contains_it():
    for name, samples in {**GENERATED, **SAMPLES}.items():
        y = samples[0].build(*(geon.placeholder(axes, "float64") for axes in samples[0].axes))
        assert name in {op.primitive.name for op in post_order([y])}


def test_every_elementwise_row_has_a_domain_for_each_operand():
    assert [row.name for row in ROWS if len(row.domain) != row.arity] == []
    assert [row.name for row in ROWS if row.partials and len(row.partials) != row.arity] == []


# Values ------------------------------------------------------------------------------------------


@for_each("row", ROWS, ids=str)
def test_elementwise_value_over_unequal_axes(row):
    feeds = operands(row)
    op = row(*feeds)
    assert op.axes.names == ("A", "B", "C")[: 1 + row.arity if row.arity < 3 else 3]
    letters = "abc"
    views = []
    for leaf, array in feeds.items():
        at = [letters.index(name.lower()) for name in leaf.axes.names]
        full = np.zeros((2, 3, 2), array.dtype)
        order = np.argsort(at)
        own = array.transpose(order)
        index = tuple(slice(None) if k in at else None for k in range(3))
        views.append(full + own[index] if array.dtype != bool else full | own[index])
    expected = np.asarray(row.reference(*views)).astype(op.dtype)
    expected = expected if len(op.axes) == 3 else expected[..., 0]
    np.testing.assert_array_equal(compute(op, feeds), expected)


@pytest.mark.parametrize("row", WITH_SYMPY, ids=str)
def test_elementwise_value_is_what_sympy_says(row):
    feeds = operands(row, seed=1)
    scalars = {geon.placeholder((), "float64"): a.ravel()[0] for a in feeds.values()}
    value = compute(row(*scalars), scalars)
    np.testing.assert_allclose(value, at_point(expression(row), scalars.values()), rtol=1e-13)


def test_lgamma_of_what_overflows_is_infinite():
    x = geon.placeholder([A], "float64")
    found = compute(geon.lgamma(x), {x: np.array([1e308, -0.0])})
    np.testing.assert_array_equal(found, [np.inf, np.inf])


EXPECTED_DTYPE = {
    "numeric": {"bool": "int64", "int16": "int16", "bfloat16": "bfloat16", "float32": "float32"},
    "magnitude": {"bool": "int64", "uint8": "uint8", "float64": "float64", "complex64": "float32"},
    "any": {"bool": "bool", "uint8": "uint8", "float16": "float16"},
    "float": {"bool": "float32", "int64": "float32", "float16": "float16", "float64": "float64"},
    "compare": {"bool": "bool", "int32": "bool", "bfloat16": "bool"},
    "predicate": {"bool": "bool", "int32": "bool", "float64": "bool"},
    "logical": {"bool": "bool", "int32": "bool", "float32": "bool"},
    "select": {"bool": "bool", "int8": "int8", "float64": "float64"},
    "bits": {"bool": "bool", "uint16": "uint16", "int64": "int64"},
    "integer": {"int8": "int8", "uint64": "uint64"},
}


@for_each("row", ROWS, ids=str)
def test_elementwise_dtype_follows_its_rule(row):
    for given, expected in EXPECTED_DTYPE[row.rule].items():
        dtypes = [given] * row.arity
        if row.rule == "select":
            dtypes[0] = "bool"
        leaves = [geon.placeholder([A], dtype) for dtype in dtypes]
        op = row(*leaves)
        assert op.dtype is as_dtype(expected)
        feeds = {leaf: np.ones(2, leaf.dtype) for leaf in leaves}
        assert compute(op, feeds).dtype == as_dtype(expected)


# Derivatives -------------------------------------------------------------------------------------


class Problem:
    """A sample with placeholders, arrays and a seed over its result."""

    def __init__(self, sample):
        self.random = np.random.default_rng(7)
        self.arrays = sample.arrays(self.random)
        self.xs = [geon.placeholder(axes, "float64") for axes in sample.axes]
        self.feeds = dict(zip(self.xs, self.arrays, strict=True))
        self.y = sample.build(*self.xs)
        self.seed = geon.placeholder(self.y.axes, self.y.dtype)
        self.weights = self.random.normal(size=shape(self.y.axes)).astype(self.y.dtype)

    def first(self):
        """The derivative of sum(seed * y) in every input."""
        return geon.vjp(self.y, self.xs, self.seed)

    def value(self, op, arrays=None, extra=None):
        """The value of an op, where the inputs are ``arrays``."""
        feeds = dict(zip(self.xs, arrays or self.arrays, strict=True))
        return compute(op, {**feeds, self.seed: self.weights, **(extra or {})})

    def normal_like(self, axes):
        """A constant of random values over ``axes``."""
        return geon.constant(np.array(self.random.normal(size=shape(axes))), axes=list(axes))


def assert_close(found, expected):
    """Relative error 1e-6, with an absolute floor for what cancels."""
    scale = max(1.0, *(np.abs(e).max(initial=0.0) for e in expected))
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-6, atol=1e-8 * scale)


@pytest.mark.parametrize("sample", CASES)
def test_reverse_mode_against_central_differences(sample):
    problem = Problem(sample)
    gradients = problem.first()
    found = [problem.value(g) for g in gradients]
    for x, g, array in zip(problem.xs, gradients, found, strict=True):
        assert g.axes is x.axes and g.dtype is x.dtype
        assert np.isfinite(array).all()
    if sample.differences:
        geon.check_gradients(problem.y, problem.feeds, each=True, step=sample.step)


@pytest.mark.parametrize("sample", CASES)
def test_second_derivative_against_central_differences(sample):
    if not sample.differences:
        pytest.skip("it has no second derivative that differences show")
    problem = Problem(sample)
    gradients = problem.first()
    total = sum(geon.sum(problem.normal_like(g.axes) * g) for g in gradients)
    feeds = {**problem.feeds, problem.seed: problem.weights}
    geon.check_gradients(total, feeds, step=sample.step)


@pytest.mark.parametrize("sample", CASES)
def test_forward_mode_agrees_with_reverse_mode(sample):
    problem = Problem(sample)
    tangents = [problem.normal_like(x.axes) for x in problem.xs]
    forward = geon.jvp(problem.y, problem.xs, tangents)
    assert forward.axes is problem.y.axes and forward.dtype is problem.y.dtype
    left = np.vdot(problem.weights, problem.value(forward))
    right = sum(
        np.vdot(problem.value(g), compute(t))
        for g, t in zip(problem.first(), tangents, strict=True)
    )
    np.testing.assert_allclose(left, right, rtol=1e-6 if sample.step > 1e-3 else 1e-9, atol=1e-10)


@pytest.mark.parametrize("sample", CASES)
def test_second_forward_mode_agrees_with_reverse_mode(sample):
    problem = Problem(sample)
    tangents = [problem.normal_like(x.axes) for x in problem.xs]
    gradients = problem.first()
    forward = geon.jvp(gradients, problem.xs, tangents)
    others = [problem.normal_like(g.axes) for g in gradients]
    total = sum(geon.sum(u * g) for u, g in zip(others, gradients, strict=True))
    reverse = geon.deriv(total, problem.xs, unreached="zero")
    left = sum(np.vdot(compute(u), problem.value(t)) for u, t in zip(others, forward, strict=True))
    right = sum(
        np.vdot(problem.value(g), compute(t)) for g, t in zip(reverse, tangents, strict=True)
    )
    np.testing.assert_allclose(left, right, rtol=1e-6 if sample.step > 1e-3 else 1e-9, atol=1e-9)


def expression(row):
    """The SymPy expression of a row in real x, y, z."""
    names = {name: sympy.Symbol(name, real=True) for name in "xyz"[: row.arity]}
    return sympy.sympify(row.sympy, locals=names)


def at_point(formula, values):
    """The number a SymPy expression of x, y, z is at these values."""
    point = {sympy.Symbol(n, real=True): v for n, v in zip("xyz", map(float, values), strict=False)}
    with mpmath.workdps(30):
        return float(sympy.re(formula.subs(point).evalf(25)))


@pytest.mark.parametrize("row", WITH_SYMPY, ids=str)
def test_derivative_is_what_sympy_says(row):
    random = np.random.default_rng(3)
    formula = expression(row)
    xs = [geon.placeholder((), "float64") for _ in range(row.arity)]
    gradients = geon.deriv(row(*xs), xs, unreached="zero")
    for _ in range(3):
        point = [np.asarray(random.uniform(*interval)) for interval in row.domain]
        for x, symbol, g in zip(xs, "xyz", gradients, strict=False):
            expected = at_point(formula.diff(sympy.Symbol(symbol, real=True)), point)
            found = compute(g, dict(zip(xs, point, strict=True)))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14, err_msg=str(x))


@for_each("row", [row for row in ROWS if row.name not in GENERATED], ids=str)
def test_rows_without_floats_have_no_derivative(row):
    feeds = operands(row)
    y = row(*feeds)
    if kind(y.dtype) == "f":
        pytest.skip("its result is a float")
    with pytest.raises(geon.DerivativeError, match=row.name):
        geon.deriv(y, list(feeds), seed=1.0)
