"""Draws of the gamma distribution and of those that are made of gamma values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from ..building.resolve_axes import axis_of
from ..core.argument_hints import public
from ..functions.composites import softmax
from ..op_graph import Tensor
from ..random.parameters import POSITIVE
from ..random.streams import BitStream
from ..rows.custom_calls import CustomDeriv
from ..rows.elementwise import (
    absolute,
    cast,
    exp,
    greater_equal,
    less,
    less_equal,
    log,
    log1p,
    rsqrt,
    sigmoid,
    where,
)
from ..rows.logic import logical_and, logical_not, logical_or
from .continuous import FloatDraw, full, standard_exponential
from .gamma_derivative import log_gamma_derivative
from .rejection import until_all

if TYPE_CHECKING:
    from ..building.typing import AxisLike, DTypeLike, Named, NewAxes, TensorLike

# Coefficients k of sum of c_k y^k for 3 log(1 + y) - 3 y + 3 y^2 / 2 - y^3, from y^4 on.
_SERIES = tuple((-1.0) ** (k + 1) * 3 / k for k in range(4, 12))
_SMALL_STEP = 0.1  # largest y for which the series is right to 1e-7 of the test


def log_gamma_values(stream: BitStream, shape: Tensor) -> Tensor:
    """Return logarithms of standard gamma values of the tensor ``shape``, float32 or float64.

    The derivative by ``shape`` is that of the quantile function.
    """

    def draw(a: Tensor) -> Tensor:
        value, log_factor = _draw(stream, a)
        return log(value) + log_factor

    def rule(g: Tensor, out: Tensor, a: Tensor) -> Sequence[Tensor]:
        return [g * log_gamma_derivative(a, exp(out), out)]

    return CustomDeriv(draw, rule)(shape)


def gamma_values(stream: BitStream, shape: Tensor) -> Tensor:
    """Return standard gamma values; see ``log_gamma_values``."""

    def draw(a: Tensor) -> Tensor:
        value, log_factor = _draw(stream, a)
        return value * exp(log_factor)

    def rule(g: Tensor, out: Tensor, a: Tensor) -> Sequence[Tensor]:
        is_zero = less(out, TINY[out.dtype.name])  # below, the logarithm is lost
        x = where(is_zero, 1.0, out)
        return [g * where(is_zero, 0.0, x * log_gamma_derivative(a, x, log(x)))]

    return CustomDeriv(draw, rule)(shape)


TINY = {"float32": 1.2e-38, "float64": 2.3e-308}  # about the smallest normal numbers


def _draw(stream: BitStream, a: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and log(f): x f is gamma distributed with the shape ``a``.

    G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM Transactions
    on Mathematical Software 26 (2000): x = d (1 + c z)^3 with a normal z, accepted with a
    probability of at least 0.95. All elements try again until each has been accepted once. Shapes
    below 1 are drawn at a + 1 and multiplied by f = u^(1 / a).
    """
    axes, dtype = a.axes, a.dtype
    is_small = less(a, 1.0)
    d = where(is_small, a + 1.0, a) - 1 / 3
    c = rsqrt(9.0 * d)

    def attempt() -> tuple[Tensor, Tensor]:
        z, u = stream.normal(axes, dtype=dtype), stream.uniform(axes, dtype=dtype)
        y = c * z
        cube = (1.0 + y) * (1.0 + y) * (1.0 + y)
        # NaN, which an invalid shape gives, counts as accepted.
        refused = greater_equal(log(u), d * _log_density(y))
        inside = logical_not(less_equal(cube, 0.0))
        squeezed = less(u, 1.0 - 0.0331 * (z * z) * (z * z))
        accepted = logical_and(inside, logical_or(squeezed, logical_not(refused)))
        return accepted, d * cube

    value = until_all(attempt, full(0.0, axes, dtype))
    boost = -standard_exponential(stream, axes, dtype) / a
    return value, where(is_small, boost, 0.0)


def _log_density(y: Tensor) -> Tensor:
    """Return 3 log(1 + y) - 3 y + 3 y^2 / 2 - y^3, without cancellation near 0."""
    near = full(0.0, y.axes, y.dtype)
    for coefficient in _SERIES[::-1]:
        near = near * y + coefficient
    square = y * y
    far = 3.0 * log1p(y) - 3.0 * y + square * (1.5 - y)
    return where(less(absolute(y), _SMALL_STEP), square * square * near, far)


class GammaDraws(BitStream):
    """Draws of the gamma distribution, and of quotients of gamma values."""

    __slots__ = ()

    @public
    def gamma(
        self,
        axes: NewAxes = (),
        shape: TensorLike = 1.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the density x^(shape - 1) exp(-x / scale), normalised, over ``axes``.

        The method is exact: candidates are drawn for all elements at once until each has been
        accepted once (Marsaglia and Tsang, 2000), in a loop of about log(elements) / 3 steps. The
        derivative by ``shape``, of any order, is that of the quantile function (implicit
        reparametrisation), right to 2e-6 in float32 and 1e-10 in float64. Values round to 0 where
        a small shape makes them too small for the dtype; ``beta`` and ``dirichlet`` use their
        logarithms. Raises ``ArgumentError`` for a constant ``shape`` or ``scale`` that is not above
        0.
        """
        form = FloatDraw("gamma", axes, dtype)
        a, scale = form.tensor("shape", shape, POSITIVE), form.number("scale", scale, POSITIVE)
        return form.scaled_and_shifted(gamma_values(self, a), 0, scale)

    @public
    def chi_square(
        self,
        axes: NewAxes = (),
        degrees: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw sums of squares of ``degrees`` standard normal values: twice a gamma value.

        Raises ``ArgumentError`` for constant ``degrees`` that are not above 0.
        """
        form = FloatDraw("chi_square", axes, dtype)
        a = form.tensor("degrees", degrees, POSITIVE)
        return form.scaled_and_shifted(gamma_values(self, 0.5 * a), 0, 2)

    @public
    def beta(
        self,
        axes: NewAxes = (),
        a: TensorLike = 1.0,
        b: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the density x^(a - 1) (1 - x)^(b - 1), normalised, between 0 and 1.

        The draw is x / (x + y) of gamma values x and y, so it has derivatives by ``a`` and ``b``.
        Raises ``ArgumentError`` for a constant ``a`` or ``b`` that is not above 0.
        """
        form = FloatDraw("beta", axes, dtype)
        first, second = form.tensor("a", a, POSITIVE), form.tensor("b", b, POSITIVE)
        result = sigmoid(log_gamma_values(self, first) - log_gamma_values(self, second))
        return cast(result, form.dtype)

    @public
    def student_t(
        self,
        axes: NewAxes = (),
        degrees: TensorLike = 1.0,
        location: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from Student's t distribution of ``degrees`` of freedom.

        The draw is a normal value divided by the root of a chi-square value over its degrees, so it
        has derivatives by all parameters. Raises ``ArgumentError`` for constant ``degrees`` or a
        constant ``scale`` that are not above 0.
        """
        form = FloatDraw("student_t", axes, dtype)
        half = 0.5 * form.tensor("degrees", degrees, POSITIVE)
        location, scale = form.number("location", location), form.number("scale", scale, POSITIVE)
        ratio = exp(0.5 * (log(half) - log_gamma_values(self, half)))
        result = self.normal(form.axes, dtype=form.wide) * ratio
        return form.scaled_and_shifted(result, location, scale)

    @public
    def dirichlet(
        self,
        axes: NewAxes,
        concentration: TensorLike,
        axis: AxisLike | None = None,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw probabilities along ``axis`` from the Dirichlet distribution.

        ``axes`` are those of the result and contain ``axis``, which may be left out if it is the
        only one; ``concentration`` is a number or a tensor over some of them. The draw is gamma
        values divided by their sum, so it has derivatives. Raises ``ArgumentError`` for a constant
        ``concentration`` that is not above 0.
        """
        form = FloatDraw("dirichlet", axes, dtype)
        a = form.tensor("concentration", concentration, POSITIVE)
        along = axis_of(a, axis, "dirichlet")
        return cast(softmax(log_gamma_values(self, a), along), form.dtype)
