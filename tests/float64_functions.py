"""Cases of ``float64_cases`` for elementwise, special and constructing functions."""

import math

import mpmath
import numpy as np

import geon
from tests.float64_cases import TRUTH, X1, X2, Y1, Y2, A, B, Case, V, draw, each, mp_sqrt

SIGNED = (draw((3, 4), -1.9, 1.9, 8), (A, B))
OTHER = (draw((3, 4), -1.9, 1.9, 9), (A, B))
N = geon.Axis("N", 5)
P = geon.Axis("P", 3)


def unary(build, expected, operand=X2, **more):
    """The case of a function of one tensor, and of mpmath numbers."""
    return [Case(build, each(expected), (operand,), **more)]


def binary(build, expected, operands=(SIGNED, OTHER), **more):
    """The case of a function of two tensors, and of mpmath numbers."""
    return [Case(build, each(expected), operands, **more)]


def sinc(x):
    return mpmath.sin(mpmath.pi * x) / (mpmath.pi * x)


def fmod(x, y):
    return mpmath.sign(x) * (abs(x) - abs(y) * mpmath.floor(abs(x) / abs(y)))


def whole(x):
    return mpmath.sign(x) * mpmath.floor(abs(x))


def decimals(x):
    return mpmath.mpf(float(mpmath.nint(x * 100)) / 100)


def next_float(x, y):
    return mpmath.mpf(np.nextafter(float(x), float(y)))


def mantissa(x):
    return mpmath.mpf(math.frexp(x)[0])


def covariance(x):
    d = x - x.sum(1)[:, None] / 4
    return d @ d.T / 3


def correlation(x):
    c = covariance(x)
    scale = mp_sqrt(np.diagonal(c))
    return c / scale / scale[:, None]


def legendre(x):
    return (5 * x**3 - 3 * x) / 2


def steps(start, stop):
    return np.array([start + (stop - start) * mpmath.mpf(k) / 4 for k in range(5)])


LOG10, DEGREES = mpmath.log(10), mpmath.pi / 180
S2, Q2 = (draw((3, 4), 1.5, 6, 10), (A, B)), (draw((3, 4), 0.3, 4, 11), (A, B))
TRIANGLE = np.tri(3, 4, 1, dtype=bool)

FUNCTIONS = {
    # Bits.
    "signbit": unary(geon.signbit, lambda x: x < 0, SIGNED, exact=True),
    "copysign": binary(geon.copysign, lambda x, y: abs(x) * mpmath.sign(y)),
    "nextafter": binary(geon.nextafter, next_float, strong=(0, 1)),
    "ldexp": unary(lambda x: geon.ldexp(x, -3), lambda x: x / 8),
    "frexp": unary(lambda x: geon.frexp(x)[0], mantissa),
    "log2": unary(geon.log2, lambda x: mpmath.log(x, 2)),
    "log10": unary(geon.log10, lambda x: mpmath.log(x) / LOG10),
    "bitcast": unary(
        lambda x: geon.bitcast(geon.bitcast(x, "int64"), "float64"), lambda x: x, strong=(0,)
    ),
    # Arithmetic.
    "trunc_divide": binary(geon.trunc_divide, lambda x, y: whole(x / y)),
    "fmod": binary(geon.fmod, fmod),
    "frac": unary(geon.frac, lambda x: x - whole(x), SIGNED),
    "round": [
        *unary(geon.round, lambda x: mpmath.nint(x), SIGNED),
        *unary(lambda x: geon.round(x, decimals=2), decimals, SIGNED),
    ],
    "fmax": binary(geon.fmax, lambda x, y: max(x, y)),
    "fmin": binary(geon.fmin, lambda x, y: min(x, y)),
    "heaviside": binary(geon.heaviside, lambda x, y: mpmath.mpf(x > 0)),
    "nan_to_num": unary(geon.nan_to_num, lambda x: x),
    "isclose": binary(
        lambda x, y: geon.isclose(x, y, 0.5), lambda x, y: abs(x - y) <= abs(y) / 2, exact=True
    ),
    "allclose": [
        Case(
            lambda x, y: geon.allclose(x, y, 10.0, 5.0), lambda x, y: np.array(True), (X2, Y2),
            exact=True,
        )
    ],
    "exp2": unary(geon.exp2, lambda x: mpmath.power(2, x)),
    "float_power": binary(geon.float_power, lambda x, y: x**y, (X2, Y2)),
    "cbrt": unary(geon.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), SIGNED),
    "hypot": binary(geon.hypot, lambda x, y: mpmath.sqrt(x * x + y * y)),
    "logaddexp": binary(
        geon.logaddexp, lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)), (X2, Y2)
    ),
    "logaddexp2": binary(
        geon.logaddexp2, lambda x, y: mpmath.log(mpmath.power(2, x) + mpmath.power(2, y), 2),
        (X2, Y2),
    ),
    "xlogy": binary(geon.xlogy, lambda x, y: x * mpmath.log(y), (SIGNED, Y2)),
    "xlog1py": binary(geon.xlog1py, lambda x, y: x * mpmath.log1p(y), (SIGNED, Y2)),
    "logit": unary(geon.logit, lambda x: mpmath.log(x / (1 - x)), TRUTH),
    "deg2rad": unary(geon.deg2rad, lambda x: x * DEGREES),
    "rad2deg": unary(geon.rad2deg, lambda x: x / DEGREES),
    "sinc": unary(geon.sinc, sinc, SIGNED),
    "spherical_j0": unary(geon.spherical_j0, lambda x: mpmath.sin(x) / x, SIGNED),
    # Special functions.
    "zeta": binary(geon.zeta, lambda s, q: mpmath.zeta(s, q), (S2, Q2), relative=4e-15),
    "orthogonal_polynomial": unary(
        lambda x: geon.orthogonal_polynomial("legendre", 3, x), legendre, relative=4e-15
    ),
    # Construction.
    "tril": [
        Case(lambda x: geon.tril(x, A, B, 1), lambda x: np.where(TRIANGLE, x, 0), (X2,)),
    ],
    "triu": [
        Case(lambda x: geon.triu(x, A, B, 2), lambda x: np.where(TRIANGLE, 0, x), (X2,)),
    ],
    "eye": [Case(lambda x: geon.eye(A, B, "float64") * x, lambda x: np.eye(3, 4) * x, (X2,))],
    "diag_embed": [
        Case(lambda x: geon.diag_embed(x, A, P), lambda x: np.where(np.eye(3), x, 0), (X1,))
    ],
    "trace": [
        Case(lambda x: geon.trace(x[:, :3], A, B), lambda x: np.trace(x[:, :3]), (X2,)),
    ],
    "vander": [Case(lambda x: geon.vander(x, P), lambda x: x[:, None] ** range(3), (X1,))],
    "kron": [Case(geon.kron, lambda x, y: np.multiply.outer(x, y).ravel(), (X1, Y1))],
    "cross": [
        Case(
            lambda x, y: geon.cross(x, y, A),
            lambda x, y: np.roll(x, -1) * np.roll(y, -2) - np.roll(x, -2) * np.roll(y, -1),
            (X1, Y1),
        )
    ],
    "linspace": [Case(lambda x, y: geon.linspace(x, y, N), steps, (V, (np.asarray(1.3), ())))],
    "logspace": [
        Case(
            lambda x: geon.logspace(x, 1.5, N),
            lambda x: each(lambda p: mpmath.power(10, p))(steps(x, mpmath.mpf(1.5))),
            (V,),
            relative=4e-15,
        )
    ],
    "repeat": [Case(lambda x: geon.repeat(x, {B: 2}), lambda x: np.repeat(x, 2, 1), (X2,))],
    "tile": [Case(lambda x: geon.tile(x, {B: 2}), lambda x: np.tile(x, 2), (X2,))],
    # Differences and pairs.
    "diff": [Case(lambda x: geon.diff(x, B, 2), lambda x: np.diff(x, 2), (X2,))],
    "trapezoid": [
        Case(
            lambda y: geon.trapezoid(y, B, dx=0.5),
            lambda y: (y[:, 1:] + y[:, :-1]).sum(1) / 4,
            (X2,),
        )
    ],
    "cumulative_trapezoid": [
        Case(
            lambda y: geon.cumulative_trapezoid(y, B),
            lambda y: np.add.accumulate((y[:, 1:] + y[:, :-1]) / 2, 1),
            (X2,),
        )
    ],
    "cov": [Case(lambda x: geon.cov(x, A, B), covariance, (X2,), relative=4e-15)],
    "corrcoef": [Case(lambda x: geon.corrcoef(x, A, B), correlation, (X2,), relative=4e-15)],
    "cdist": [
        Case(
            lambda x, y: geon.cdist(x, geon.rename(y, {A: "C"}), B),
            lambda x, y: mp_sqrt(((x[:, None] - y) ** 2).sum(2)),
            (X2, Y2),
        ),
        Case(
            lambda x, y: geon.cdist(x, geon.rename(y, {A: "C"}), B, 1),
            lambda x, y: abs(x[:, None] - y).sum(2),
            (X2, Y2),
        ),
    ],
}  # fmt: skip
