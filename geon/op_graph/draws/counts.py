"""Draws of counts: Poisson, binomial, geometric, negative binomial and multinomial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from ..axes.axes import Axes, as_axes
from ..building.resolve_axes import axis_of
from ..core.argument_hints import public
from ..op_graph import Tensor
from ..random.parameters import (
    AT_LEAST_ZERO,
    CHANCE,
    POSITIVE,
    PROBABILITY,
    WHOLE,
    Requirement,
    parameter,
)
from ..random.streams import BitStream
from ..regions.scan import scan
from ..rows.elementwise import cast, floor, less, log1p, maximum, minimum, negative, where
from ..rows.sort_and_cumulative import cumsum
from ..values.dtypes import FLOAT64, as_dtype
from .binomial import binomial_counts
from .continuous import full, standard_exponential
from .gamma import gamma_values
from .poisson import poisson_counts

if TYPE_CHECKING:
    from ..building.typing import AxisLike, DTypeLike, Named, NewAxes, TensorLike


def _tensor(what: str, name: str, value: Any, axes: Axes, requirement: Requirement) -> Tensor:
    """Return a parameter as a float64 tensor over ``axes``."""
    return full(parameter(what, name, value, axes, FLOAT64, requirement), axes, FLOAT64)


class CountDraws(BitStream):
    """Draws of whole numbers, computed in float64 and returned in any dtype."""

    __slots__ = ()

    @public
    def poisson(
        self,
        axes: NewAxes = (),
        mean: TensorLike = 1.0,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw Poisson distributed counts of this mean, over ``axes``.

        Means below 10 are drawn by inversion of one uniform value, others by transformed rejection
        (W. Hörmann, 1993), in float64. Beyond a mean of 1e10, rounding of the density begins to
        change probabilities. Raises ``ArgumentError`` for a constant ``mean`` below 0.
        """
        shape = as_axes(axes)
        result = poisson_counts(self, _tensor("poisson", "mean", mean, shape, AT_LEAST_ZERO))
        return cast(result, as_dtype(dtype))

    @public
    def binomial(
        self,
        axes: NewAxes = (),
        count: TensorLike = 1,
        p: TensorLike = 0.5,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw the numbers of successes of ``count`` trials of the probability ``p``.

        Means below 10 are drawn by inversion, others by transformed rejection (W. Hörmann, 1993),
        as in ``poisson``. Raises ``ArgumentError`` for a constant ``count`` that is no whole number
        of at least 0 and a constant ``p`` outside 0 to 1.
        """
        shape = as_axes(axes)
        trials = _tensor("binomial", "count", count, shape, WHOLE)
        result = binomial_counts(self, trials, _tensor("binomial", "p", p, shape, PROBABILITY))
        return cast(result, as_dtype(dtype))

    @public
    def geometric(
        self,
        axes: NewAxes = (),
        p: TensorLike = 0.5,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw the number of trials of the probability ``p`` up to the first success, at least 1.

        Raises ``ArgumentError`` for a constant ``p`` that is not above 0 and at most 1.
        """
        shape = as_axes(axes)
        chance = _tensor("geometric", "p", p, shape, CHANCE)
        result = standard_exponential(self, shape, FLOAT64) / negative(log1p(negative(chance)))
        return cast(floor(result) + 1.0, as_dtype(dtype))

    @public
    def negative_binomial(
        self,
        axes: NewAxes = (),
        count: TensorLike = 1.0,
        p: TensorLike = 0.5,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw the number of failures before ``count`` successes of the probability ``p``.

        ``count`` may be any number above 0: the draw is a Poisson count whose mean is a gamma
        value. Raises ``ArgumentError`` for a constant ``count`` that is not above 0 and a
        constant ``p`` that is not above 0 and at most 1.
        """
        shape = as_axes(axes)
        a = _tensor("negative_binomial", "count", count, shape, POSITIVE)
        chance = _tensor("negative_binomial", "p", p, shape, CHANCE)
        mean = gamma_values(self, a) * ((1.0 - chance) / chance)
        return cast(poisson_counts(self, mean), as_dtype(dtype))

    @public
    def multinomial(
        self,
        axes: NewAxes,
        count: TensorLike,
        p: TensorLike,
        axis: AxisLike | None = None,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw the counts along ``axis`` of ``count`` trials with the probabilities ``p``.

        ``axes`` are those of the result and contain ``axis``, which may be left out if it is the
        only one. ``p`` is divided by its sum along ``axis``. A loop along ``axis`` draws a binomial
        count of the remaining trials for each class. Raises ``ArgumentError`` for a constant
        ``count`` that is no whole number of at least 0 and a constant ``p`` below 0.
        """
        shape = as_axes(axes)
        weights = _tensor("multinomial", "p", p, shape, AT_LEAST_ZERO)
        along = axis_of(weights, axis, "multinomial")
        others = Axes(*(each for each in shape if each.name != along.name))
        trials = _tensor("multinomial", "count", count, others, WHOLE)
        # The probability of a class among those from it on; 1 for the last that has any.
        rest = cumsum(weights, along, reverse=True)
        later = cumsum(weights, along, reverse=True, exclusive=True)
        share = where(less(0.0, later), weights / rest, where(less(0.0, weights), 1.0, 0.0))
        share = minimum(maximum(share, 0.0), 1.0)

        def draw(left: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
            result = binomial_counts(self, left, p)
            return left - result, result

        _, counts = scan(draw, trials, share, over=along)
        return cast(counts.reorder(shape), as_dtype(dtype))
