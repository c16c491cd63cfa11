"""Draws of directions and of vectors: von Mises and multivariate normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from ...errors import AxisError
from ..axes.axes import Axes
from ..building.constants import as_tensor
from ..building.resolve_axes import axis_of
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..random.parameters import AT_LEAST_ZERO
from ..random.streams import BitStream
from ..rows.contraction import contract
from ..rows.custom_calls import CustomDeriv
from ..rows.elementwise import (
    cast,
    floor,
    greater_equal,
    less,
    log,
    maximum,
    minimum,
    negative,
    not_equal,
    sqrt,
    where,
)
from ..rows.logic import logical_not, logical_or
from ..rows.trigonometry import acos, cos
from ..values.dtypes import FLOAT64
from .continuous import FloatDraw, full
from .rejection import until_all
from .von_mises_derivative import von_mises_derivative

if TYPE_CHECKING:
    from ..building.typing import AxisLike, DTypeLike, Named, NewAxes, TensorLike

MIN_CONCENTRATION = 1e-7  # below, the density is uniform to float64's rounding of the method


class MultivariateDraws(BitStream):
    """Draws of directions and of vectors."""

    __slots__ = ()

    @public
    def von_mises(
        self,
        axes: NewAxes = (),
        location: TensorLike = 0.0,
        concentration: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw angles from -pi to pi of the density exp(concentration cos(x - location)).

        The method is the exact rejection of D. J. Best and N. I. Fisher (1979), in float64. The
        derivative by ``concentration`` is that of the quantile function, at a fixed probability.
        Raises ``ArgumentError`` for a constant ``concentration`` below 0.
        """
        form = FloatDraw("von_mises", axes, dtype)
        location = form.number("location", location)
        k = cast(form.tensor("concentration", concentration, AT_LEAST_ZERO), FLOAT64)
        angle = cast(_turned(self, k), form.wide) + location
        whole_turns = floor((angle + math.pi) * (0.5 / math.pi))
        return cast(angle - 2 * math.pi * whole_turns, form.dtype)

    @public
    def multivariate_normal(
        self,
        axes: NewAxes,
        mean: TensorLike,
        factor: TensorLike,
        axis: AxisLike | None = None,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw normal vectors along ``axis`` with the covariance ``factor`` times its transpose.

        ``axes`` are those of the result and contain ``axis``, which may be left out if it is the
        only one. ``mean`` is a number or a tensor over some of them. ``factor`` is over ``axis``,
        its prime and any others of ``axes``; the Cholesky factor of a covariance is one. Raises
        ``AxisError`` for a ``factor`` without these axes.
        """
        form = FloatDraw("multivariate_normal", axes, dtype)
        middle = form.tensor("mean", mean)
        along = axis_of(middle, axis, "multivariate_normal")
        other = along.prime
        scale = cast(as_tensor(factor), form.wide)
        wanted = Axes(*form.axes, other)
        if not (along.name in scale.axes and other.name in scale.axes):
            raise AxisError(
                f"{user_call('multivariate_normal')}: the factor {scale} (made at "
                f"{scale.line_info}) lacks {along} or its prime {other}; give it rows along "
                f"{along} and columns along {other}"
            )
        extra = [each for each in scale.axes if each.name not in wanted]
        if extra:
            raise AxisError(
                f"{user_call('multivariate_normal')}: the factor {scale} (made at "
                f"{scale.line_info}) has {extra[0]}, which the result over {form.axes} lacks; add "
                "it to axes"
            )
        columns = Axes(*(other if each.name == along.name else each for each in form.axes))
        standard = self.normal(columns, dtype=form.wide)
        return cast(contract([scale, standard], form.axes) + middle, form.dtype)


def _turned(stream: BitStream, k: Tensor) -> Tensor:
    """Return the angles of ``_von_mises`` with the derivative of the quantile function."""

    def draw(k: Tensor) -> Tensor:
        return _von_mises(stream, k)

    def rule(g: Tensor, out: Tensor, k: Tensor) -> Sequence[Tensor]:
        return [g * von_mises_derivative(k, out)]

    return CustomDeriv(draw, rule)(k)


def _von_mises(stream: BitStream, k: Tensor) -> Tensor:
    """Return angles of mean direction 0 of the concentrations ``k``, float64."""
    axes, dtype = k.axes, k.dtype
    is_uniform = less(k, MIN_CONCENTRATION)
    k = where(is_uniform, 1.0, k)
    t = 1.0 + sqrt(1.0 + 4.0 * k * k)
    # (t - sqrt(2 t)) / (2 k), with t - 2 = 4 k^2 / t against cancellation.
    rho = 2.0 * k / (t + sqrt(2.0 * t))
    r = (1.0 + rho * rho) / (2.0 * rho)

    def attempt() -> tuple[Tensor, Tensor]:
        z = cos(math.pi * stream.uniform(axes, dtype=dtype))
        f = (1.0 + r * z) / (r + z)
        c = k * (r - f)
        u = stream.uniform(axes, dtype=dtype)
        # NaN, which an invalid concentration gives, counts as accepted.
        refused = logical_not(
            logical_or(less(u, c * (2.0 - c)), greater_equal(log(c / u) + 1.0, c))
        )
        return logical_or(logical_not(refused), not_equal(c, c)), maximum(minimum(f, 1.0), -1.0)

    size = acos(until_all(attempt, full(0.0, axes, dtype)))
    size = where(is_uniform, math.pi * stream.uniform(axes, dtype=dtype), size)
    return where(less(stream.uniform(axes, dtype=dtype), 0.5), negative(size), size)
