"""Draws of continuous distributions whose quantile function is elementary."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..axes.axes import Axes, as_axes
from ..building.constants import as_tensor
from ..core.argument_hints import public
from ..op_graph import Tensor
from ..random.exponential import exponential_from_bits, tail_from_bits
from ..random.parameters import (
    AT_LEAST_ZERO,
    POSITIVE,
    Requirement,
    float_dtype,
    known_values,
    parameter,
    refuse,
)
from ..random.streams import BitStream, float_format
from ..rows.elementwise import cast, exp, less, log, log1p, maximum, minimum, negative, power, where
from ..rows.logic import left_shift
from ..rows.movement import broadcast
from ..rows.trigonometry import tan
from ..special.formula_ops import GEON_OPS
from ..values.dtypes import DType, as_dtype, is_number
from .truncated import truncated_quantile

if TYPE_CHECKING:
    from ..building.typing import DTypeLike, Named, NewAxes, TensorLike


class FloatDraw:
    """The axes and the dtype of a draw of floats, and its parameters in the dtype of the words.

    Draws of the half formats are computed in float32.
    """

    def __init__(self, what: str, axes: Any, dtype: Any) -> None:
        self.what, self.axes, self.dtype = what, as_axes(axes), float_dtype(dtype, what)
        wide, self.words = float_format(self.dtype)
        self.wide = as_dtype(wide)

    def number(self, name: str, value: Any, requirement: Requirement | None = None) -> Any:
        """Return a number unchanged, and a tensor over all axes of the draw."""
        return parameter(self.what, name, value, self.axes, self.wide, requirement)

    def tensor(self, name: str, value: Any, requirement: Requirement | None = None) -> Tensor:
        """Return a parameter as a tensor over all axes of the draw."""
        return full(self.number(name, value, requirement), self.axes, self.wide)

    def scaled_and_shifted(self, standard: Any, location: Any, scale: Any) -> Tensor:
        """Return ``location + scale * standard`` in the dtype of the draw, without needless ops."""
        if not (is_number(scale) and scale == 1):
            standard = standard * scale
        if not (is_number(location) and location == 0):
            standard = standard + location
        return cast(standard, self.dtype)


def full(value: Any, axes: Axes, dtype: DType) -> Tensor:
    """Return a number or a tensor as a tensor over ``axes``."""
    return cast(broadcast(as_tensor(value), axes), dtype)


def standard_exponential(stream: BitStream, axes: Axes, wide: DType) -> Tensor:
    """Return standard exponential values, float32 or float64, above 0."""
    result: Tensor = exponential_from_bits(
        stream._bits(axes, float_format(wide)[1]), wide.name, GEON_OPS
    )
    return result


def _tails(stream: BitStream, form: FloatDraw) -> tuple[Tensor, Tensor]:
    """Return the smaller tail of uniform values, and True where it is the lower one."""
    words = stream._bits(form.axes, form.words)
    tail, is_low = tail_from_bits(words, form.wide.name, GEON_OPS)
    return tail, is_low


class ContinuousDraws(BitStream):
    """Draws by the inverse of a distribution function."""

    __slots__ = ()

    @public
    def exponential(
        self,
        axes: NewAxes = (),
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw exponentially distributed numbers over ``axes`` of the mean ``scale``.

        Standard values are above 0: from 2^-33 to 22.9 in float32, from 2^-65 to 45 in float64.
        They are equal on every transformer. Raises ``ArgumentError`` for a constant ``scale`` below
        0.
        """
        form = FloatDraw("exponential", axes, dtype)
        scale = form.number("scale", scale, AT_LEAST_ZERO)
        return form.scaled_and_shifted(standard_exponential(self, form.axes, form.wide), 0, scale)

    @public
    def laplace(
        self,
        axes: NewAxes = (),
        location: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the density exp(-|x - location| / scale) / (2 scale), over ``axes``.

        Standard values are equal on every transformer. Raises ``ArgumentError`` for a constant
        ``scale`` below 0.
        """
        form = FloatDraw("laplace", axes, dtype)
        location, scale = form.number("location", location), form.number("scale", scale, POSITIVE)
        words = self._bits(form.axes, form.words)
        # The highest bit is the sign; the others are the word of an exponential value.
        size = exponential_from_bits(left_shift(words, 1), form.wide.name, GEON_OPS)
        _, is_low = tail_from_bits(words, form.wide.name, GEON_OPS)
        return form.scaled_and_shifted(where(is_low, negative(size), size), location, scale)

    @public
    def gumbel(
        self,
        axes: NewAxes = (),
        location: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the Gumbel distribution of maxima, F(x) = exp(-exp(-(x - location) / scale)).

        The largest of such draws with the locations ``logits`` is at a position of the distribution
        ``softmax(logits)``; ``categorical`` draws positions. Raises ``ArgumentError`` for a
        constant ``scale`` that is not above 0.
        """
        form = FloatDraw("gumbel", axes, dtype)
        location, scale = form.number("location", location), form.number("scale", scale, POSITIVE)
        result = negative(log(standard_exponential(self, form.axes, form.wide)))
        return form.scaled_and_shifted(result, location, scale)

    @public
    def logistic(
        self,
        axes: NewAxes = (),
        location: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the logistic distribution, F(x) = sigmoid((x - location) / scale), over axes.

        Raises ``ArgumentError`` for a constant ``scale`` that is not above 0.
        """
        form = FloatDraw("logistic", axes, dtype)
        location, scale = form.number("location", location), form.number("scale", scale, POSITIVE)
        tail, is_low = _tails(self, form)
        size = log1p((1.0 - 2.0 * tail) / tail)  # log((1 - p) / p)
        return form.scaled_and_shifted(where(is_low, negative(size), size), location, scale)

    @public
    def cauchy(
        self,
        axes: NewAxes = (),
        location: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the Cauchy distribution of this median and half width at half the maximum.

        It has no mean. Standard values reach 2.7e9 in float32. Raises ``ArgumentError`` for a
        constant ``scale`` that is not above 0.
        """
        form = FloatDraw("cauchy", axes, dtype)
        location, scale = form.number("location", location), form.number("scale", scale, POSITIVE)
        tail, is_low = _tails(self, form)
        # The cotangent of pi p, by the tangent of the smaller angle of the two that add up to pi/2.
        near = tan(math.pi * (0.5 - tail))
        size = where(less(tail, 0.25), 1.0 / tan(math.pi * tail), near)
        return form.scaled_and_shifted(where(is_low, negative(size), size), location, scale)

    @public
    def weibull(
        self,
        axes: NewAxes = (),
        shape: TensorLike = 1.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the Weibull distribution, F(x) = 1 - exp(-(x / scale)^shape), over ``axes``.

        Raises ``ArgumentError`` for a constant ``shape`` or ``scale`` that is not above 0.
        """
        form = FloatDraw("weibull", axes, dtype)
        scale = form.number("scale", scale, POSITIVE)
        result = standard_exponential(self, form.axes, form.wide)
        return form.scaled_and_shifted(
            power(result, 1.0 / form.number("shape", shape, POSITIVE)), 0, scale
        )

    @public
    def pareto(
        self,
        axes: NewAxes = (),
        shape: TensorLike = 1.0,
        scale: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the Pareto distribution, F(x) = 1 - (scale / x)^shape for x from ``scale`` on.

        NumPy's ``pareto`` is this draw of scale 1, less 1. Raises ``ArgumentError`` for a constant
        ``shape`` or ``scale`` that is not above 0.
        """
        form = FloatDraw("pareto", axes, dtype)
        shape, scale = form.number("shape", shape, POSITIVE), form.number("scale", scale, POSITIVE)
        result = standard_exponential(self, form.axes, form.wide)
        return form.scaled_and_shifted(exp(result / shape), 0, scale)

    @public
    def log_normal(
        self,
        axes: NewAxes = (),
        mean: TensorLike = 0.0,
        std: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw numbers whose logarithms have this mean and standard deviation and are normal.

        Raises ``ArgumentError`` for a constant ``std`` below 0.
        """
        form = FloatDraw("log_normal", axes, dtype)
        std = form.number("std", std, AT_LEAST_ZERO)
        return cast(exp(self.normal(form.axes, mean, std, form.wide)), form.dtype)

    @public
    def truncated_normal(
        self,
        axes: NewAxes = (),
        mean: TensorLike = 0.0,
        std: TensorLike = 1.0,
        low: TensorLike = -2.0,
        high: TensorLike = 2.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw from the normal distribution of ``mean`` and ``std`` between ``low`` and ``high``.

        The bounds are values of the draw, not multiples of ``std``; they may be infinite, and far
        out in a tail. The draw is the quantile function of a uniform value, so it has derivatives
        with respect to all parameters. Raises ``ArgumentError`` for a constant ``std`` that is not
        above 0, and for constant bounds with ``low`` above ``high``.
        """
        form = FloatDraw("truncated_normal", axes, dtype)
        width = form.tensor("std", std, POSITIVE)
        middle = form.tensor("mean", mean)
        first, last = form.tensor("low", low), form.tensor("high", high)
        lowest, highest = known_values(low), known_values(high)
        if lowest is not None and highest is not None and not np.all(lowest <= highest):
            refuse("truncated_normal", f"low = {low} and high = {high}", "a low below high")
        tail, is_low = _tails(self, form)
        standard = truncated_quantile(
            where(is_low, tail, 1.0 - tail),
            where(is_low, 1.0 - tail, tail),
            (first - middle) / width,
            (last - middle) / width,
        )
        result = minimum(maximum(standard * width + middle, first), last)  # against rounding
        return cast(result, form.dtype)
