"""Complex tensors: dtypes, derivatives by the convention of JAX, and what is refused."""

import mpmath
import numpy as np
import pytest

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES
from geon.transformers.lowering.rules.complex_parts import RULES

from .computing import compute

N = geon.Axis("N", 5)
RANDOM = np.random.default_rng(3)
Z = RANDOM.normal(size=5) + 1j * RANDOM.normal(size=5)
W = RANDOM.normal(size=5) + 1j * RANDOM.normal(size=5)
X = RANDOM.normal(size=5)


@pytest.fixture
def z():
    return geon.placeholder([N], "complex128", name="z")


@pytest.fixture
def w():
    return geon.placeholder([N], "complex128", name="w")


@pytest.fixture
def x():
    return geon.placeholder([N], "float64", name="x")


def slopes(f, at):
    """df/da - i df/db of a real function of a + ib, by central differences."""
    step = 1e-6

    def along(direction):
        moved = [at + sign * step * direction for sign in (1, -1)]
        return (f(moved[0]) - f(moved[1])) / (2 * step)

    found = np.zeros(at.shape, at.dtype)
    for k in range(at.size):
        unit = np.eye(at.size)[k]
        found[k] = along(unit) - (1j * along(1j * unit) if np.iscomplexobj(at) else 0)
    return found


# Dtypes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "joint"),
    [
        ("float32", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
        ("float32", "complex128", "complex128"),
        ("float16", "complex64", "complex64"),
        ("int64", "complex64", "complex64"),
        ("bool", "complex128", "complex128"),
        ("complex64", "complex128", "complex128"),
    ],
)
def test_promotion(left, right, joint):
    made = geon.placeholder([N], left) + geon.placeholder([N], right)
    assert made.dtype.name == joint


def test_python_numbers_are_weak(x, z):
    single = geon.placeholder([N], "float32")
    assert (single * 1j).dtype.name == "complex64" and (x * 1j).dtype.name == "complex128"
    assert (geon.placeholder([N], "complex64") * 1j).dtype.name == "complex64"
    assert (geon.iota(N) * 1j).dtype.name == "complex64"
    assert compute(x * (geon.constant(0.1j) * 2), {x: X})[0] == X[0] * 0.2j
    np.testing.assert_array_equal(compute(z * [1, 2j, 3, 4, 5], {z: Z}), Z * [1, 2j, 3, 4, 5])


def test_functions_made_of_others(z):
    for made, wanted in [
        (geon.log2(z), np.log2(Z)),
        (geon.log10(z), np.log10(Z)),
        (geon.mean(z), Z.mean()),
        (geon.squared_L2(z), np.sum(abs(Z) ** 2)),
        (geon.roll(z, {N: 2}), np.roll(Z, 2)),
    ]:
        np.testing.assert_allclose(compute(made, {z: Z}), wanted, rtol=1e-14)


def test_results_that_are_real(x, z):
    for made in (abs(z), geon.real(z), geon.imag(z), geon.angle(z), geon.variance(z, N)):
        assert made.dtype.name == "float64"
    assert geon.L2_norm(z).dtype.name == "float64"
    assert compute(geon.variance(z), {z: Z}) == pytest.approx(np.var(Z))
    assert compute(geon.std(z), {z: Z}) == pytest.approx(np.std(Z))
    assert compute(geon.L2_norm(z), {z: Z}) == pytest.approx(np.linalg.norm(Z))
    assert geon.real(x) is x and geon.conj(x) is x
    np.testing.assert_array_equal(compute(geon.imag(x), {x: X}), np.zeros(5))
    np.testing.assert_array_equal(compute(geon.angle(x), {x: X}), np.angle(X))
    assert geon.as_complex(geon.placeholder([N], "float16")).dtype.name == "complex64"
    np.testing.assert_array_equal(compute(geon.as_complex(x, 2), {x: X}), X + 2j)


# Derivatives --------------------------------------------------------------------------------------

LOSSES = {
    "modulus": lambda z, w: abs(z * w),
    "angle": lambda z, w: geon.angle(z) * geon.real(w),
    "parts": lambda z, w: geon.real(z) ** 3 * geon.imag(z) + geon.real(w),
    "conjugate": lambda z, w: geon.real(geon.conj(z) * z * w),
    "quotient": lambda z, w: abs(z / w + 1 / z),
    "powers": lambda z, w: abs(z**3 + z**-1 + z**w + z**0.5),
    "exponentials": lambda z, w: abs(geon.exp(z) + geon.log(w) * geon.sqrt(z)),
    "waves": lambda z, w: abs(geon.sin(z) * geon.cos(w) + geon.tan(z) + geon.tanh(w)),
    "hyperbolic": lambda z, w: geon.imag(geon.sinh(z) * geon.cosh(w)),
    "made of parts": lambda z, w: abs(geon.as_complex(geon.imag(z), geon.real(w)) ** 2 + z),
    "cast": lambda z, w: abs(geon.cast(abs(z), "complex128") * 1j + w),
    "moved": lambda z, w: abs(geon.cumsum(z * w, N, reverse=True) + geon.flip(z, N)),
    "product": lambda z, w: geon.broadcast(geon.real(geon.dot(z, w * z)), [N]),
    "products": lambda z, w: abs(geon.cumprod(z, N, exclusive=True) * geon.prod(w) + geon.prod(z)),
    "near 0": lambda z, w: abs(geon.expm1(z * w) * geon.log1p(z)),
    "norm": lambda z, w: geon.broadcast(geon.L2_norm(z - w) + geon.std(z * w), [N]),
    "selected": lambda z, w: abs(geon.where(geon.real(z) > 0, z, w * w)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_of_real_losses(name, z, w):
    weight = geon.constant(np.arange(1.0, 6), [N])
    loss = geon.sum(LOSSES[name](z, w) * weight)
    feeds = {z: Z, w: W}
    for leaf in (z, w):
        wanted = slopes(lambda v, leaf=leaf: compute(loss, {**feeds, leaf: v}), feeds[leaf])
        made = geon.deriv(loss, leaf, unreached="zero")
        assert made.dtype.name == "complex128"
        np.testing.assert_allclose(compute(made, feeds), wanted, rtol=1e-6, atol=1e-7)
        # Forward mode: the derivative along t is the real part of what reverse mode gives times t.
        along = geon.jvp(loss, [leaf], [geon.constant(W * 1j, [N])])
        wanted = np.sum(wanted * W * 1j).real
        np.testing.assert_allclose(compute(along, feeds), wanted, rtol=1e-6, atol=1e-7)


def test_the_derivative_in_a_real_number_is_real(x, z):
    loss = geon.sum(abs(geon.exp(x * 1j) * z + x) ** 2)
    made = geon.deriv(loss, x)
    assert made.dtype.name == "float64"
    wanted = slopes(lambda v: compute(loss, {x: v, z: Z}), X)
    np.testing.assert_allclose(compute(made, {x: X, z: Z}), wanted, rtol=1e-6)


def test_a_holomorphic_function_has_its_complex_derivative(z):
    made = geon.deriv(geon.sum(z**3 + geon.exp(z)), z, seed=1)
    np.testing.assert_allclose(compute(made, {z: Z}), 3 * Z**2 + np.exp(Z), rtol=1e-12)
    second = geon.deriv(geon.sum(made), z, seed=1)
    np.testing.assert_allclose(compute(second, {z: Z}), 6 * Z + np.exp(Z), rtol=1e-12)


def test_values_of_jax():
    """What ``jax.grad`` of jax 0.10 gives at 1 + 2i for these losses."""
    z = geon.placeholder((), "complex128")
    for loss, wanted in [
        (abs(z) ** 2, 2 - 4j),
        (geon.real(z), 1 + 0j),
        (geon.imag(z), -1j),
        (geon.real(geon.conj(z) * z), 2 - 4j),
        (geon.real(z * z), 2 + 4j),
        (geon.angle(z), -0.4 - 0.2j),
    ]:
        np.testing.assert_allclose(compute(geon.deriv(loss, z), {z: np.array(1 + 2j)}), wanted)


def test_jacobians_of_real_values(x, z):
    k = geon.Axis("K", 7)
    spread = geon.outer(geon.multiply, geon.iota(k, "float64") + 1, z)
    found = compute(geon.jacobian(abs(spread), z), {z: Z})
    for j in range(7):
        np.testing.assert_allclose(found[j], np.diag((j + 1) * np.conj(Z) / abs(Z)), atol=1e-14)
    with pytest.raises(geon.DerivativeError, match=r"Jacobians of geon\.real\(y\)"):
        geon.jacobian(z * x, x)


def test_gradients_are_checked_through_complex_values(x, z):
    loss = geon.sum(abs(geon.exp(geon.as_complex(x, x * x)) + z) ** 2)
    geon.check_gradients(loss, {x: X, z: Z})
    with pytest.raises(geon.ArgumentError, match="is complex; check a real number"):
        geon.check_gradients(geon.sum(z), {x: X, z: Z})


def test_the_derivative_of_a_modulus_at_0_is_0():
    z = geon.placeholder((), "complex128")
    assert compute(geon.deriv(abs(z), z), {z: np.array(0j)}) == 0


def test_the_derivative_of_a_product_with_factors_of_zero(z):
    given = np.array([2j, 0, 1 - 1j, 3, 1j])
    made = compute(geon.deriv(geon.prod(z), z, seed=1), {z: given})
    np.testing.assert_allclose(made, [0, np.prod(np.delete(given, 1)), 0, 0, 0], atol=1e-15)
    given[3] = 0
    assert not compute(geon.deriv(geon.prod(z), z, seed=1), {z: given}).any()


@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_functions_near_zero_keep_their_digits(name):
    """The reference and the real parts of the lowering have the digits of mpmath."""
    random = np.random.default_rng(5)
    turns = np.exp(2j * np.pi * random.uniform(size=300))
    near = 10.0 ** random.uniform(-30, 1, 300) * turns
    minus_one = -1 + random.normal(size=20) * (1e-3 + 1j)
    at = np.concatenate([near, minus_one, -2 + 0.01 * turns[:20], [0.0]])
    x = geon.placeholder([geon.Axis("K", len(at))], "complex128")
    row = getattr(geon, name)
    (lowered,) = geon.NumPyTransformer().computation([row(x)], x)(at)
    with mpmath.workdps(60):
        wide = [mpmath.mpc(value) for value in at]
        exact = [mpmath.expm1(v) if name == "expm1" else mpmath.log(1 + v) for v in wide]
        for found in (lowered, compute(row(x), {x: at})):
            errors = [abs(mpmath.mpc(value) - e) for value, e in zip(found, exact, strict=True)]
            worst = max([e / abs(v) if v else e for e, v in zip(errors, exact, strict=True)])
            assert worst < 5e-16


# What is refused ----------------------------------------------------------------------------------

REFUSED = {
    "an order": lambda z: z < 1,
    "a sort": lambda z: geon.sort(z, N),
    "a maximum": lambda z: geon.max(z),
    "a remainder": lambda z: z % 2,
    "a rounding": lambda z: geon.floor(z),
    "a sigmoid": lambda z: geon.sigmoid(z),
    "a running maximum": lambda z: geon.cummax(z, N),
    "a scatter that compares": lambda z: geon.scatter(
        z, geon.constant([0], [geon.Axis("K", 1)]), 1j, N, mode="max"
    ),
    "parts that are complex": lambda z: geon.as_complex(z, 1.0),
    "a real dtype": lambda z: geon.cast(z, "float32"),
    "a special function": lambda z: geon.digamma(z),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_meaning_is_refused_with_the_cure(what, z):
    with pytest.raises(geon.DTypeError, match=r"z\(N:5\).*(geon\.real|real tensors)"):
        REFUSED[what](z)


def test_a_complex_loss_and_numbers_in_real_tensors_are_refused(x, z):
    with pytest.raises(geon.DerivativeError, match="complex; take the derivative of a real number"):
        geon.deriv(geon.sum(z), z)
    with pytest.raises(geon.DTypeError, match=r"2j is complex and cannot be float64; give its"):
        geon.constant(2j, dtype="float64")
    with pytest.raises(geon.DTypeError, match=r"complex128 cannot be float32; take its \.real"):
        geon.constant(np.ones(5, complex), [N], dtype="float32")
    with pytest.raises(geon.DTypeError, match="of complex Python numbers, cannot be float64"):
        geon.update(x, geon.where(True, 1j, 2), {N: 0})


def test_every_row_that_takes_complex_numbers_becomes_real_ones():
    """An elementwise row acts on each part alone only where it is linear and real."""
    linear = {"where", "cast", "stop_gradient", "copy"}
    rows = [
        row.name
        for row in PRIMITIVES.values()
        if row.takes_complex and row.kind in ("elementwise", "contraction")
    ]
    assert {"add", "multiply", "exp", "dot"} <= set(rows)
    assert [name for name in rows if name not in RULES and name not in linear] == []
    refusing = [row for row in PRIMITIVES.values() if isinstance(row, Elementwise)]
    assert not {row.name for row in refusing if not row.takes_complex} & set(RULES)
