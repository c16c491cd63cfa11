"""Normalisation layers: ``BatchNorm``, ``LayerNorm``, ``RMSNorm`` and ``GroupNorm``.

Half-precision inputs are normalised in float32, which the running statistics have, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import ArgumentError, AxisError
from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import mean, variance
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.rows.accumulation import floating, widen
from ....op_graph.rows.elementwise import cast, maximum, rsqrt, square, where
from ....op_graph.rows.movement import flatten, reorder, unflatten
from ....op_graph.rows.reductions import tensor_size
from ..axis import channel_axes, feature_axes
from ..checks import at_least_one, finite, not_negative
from .axes import resolve_over
from .layer import Layer, Training, parameter_dtype

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxesLike


class Norm(Layer):
    """Base of normalisation layers: ``scale`` starts at 1, ``shift`` at 0; and an epsilon."""

    def __init__(
        self, over: AxesLike | None = None, epsilon: float = 1e-5, *, name: str | None = None
    ) -> None:
        super().__init__(name)
        not_negative(type(self).__name__, "epsilon", epsilon)
        self.over, self.epsilon = over, epsilon

    def scale(self, x: Tensor, axes: Axes) -> Leaf:
        """Return the scale over ``axes``."""
        return self.variable("scale", axes, 1.0, outputs=axes, dtype=parameter_dtype(x))

    def shift(self, x: Tensor, axes: Axes) -> Leaf:
        """Return the shift over ``axes``."""
        return self.variable("shift", axes, 0.0, outputs=axes, dtype=parameter_dtype(x))

    def normed(self, x: Tensor, middle: Tensor, spread: Tensor) -> Tensor:
        """Return ``x`` minus its mean, divided by the root of its variance."""
        return (x - middle) * rsqrt(spread + self.epsilon)


class LayerNorm(Norm):
    """Normalises to mean 0 and variance 1 over ``over``, or all axes but N and T; scale and shift.

    J. Ba, J. Kiros and G. Hinton, "Layer normalization", 2016.
    """

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x`` normalised."""
        axes = resolve_over(x, self.over, feature_axes(x.axes), repr(self))
        w = widen(floating(x))
        y = self.normed(w, mean(w, axes), variance(w, axes))
        return cast(y * self.scale(x, axes) + self.shift(x, axes), parameter_dtype(x))


class RMSNorm(Norm):
    """Normalises to mean square 1 over ``over``, or all axes but N and T; then a scale.

    B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.
    """

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x`` normalised."""
        axes = resolve_over(x, self.over, feature_axes(x.axes), repr(self))
        w = widen(floating(x))
        y = w * rsqrt(mean(square(w), axes) + self.epsilon)
        return cast(y * self.scale(x, axes), parameter_dtype(x))


class GroupNorm(Norm):
    """Normalises each of ``groups`` of channels to mean 0 and variance 1; then a scale and a shift.

    The channels are the axis ``over``, or the only one beside N, T, D, H and W. Statistics are
    taken over a group and all axes but N and T. Y. Wu and K. He, "Group normalization", ECCV 2018.
    """

    def __init__(
        self,
        groups: int,
        over: Axis | str | None = None,
        epsilon: float = 1e-5,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(over, epsilon, name=name)
        at_least_one("GroupNorm", "groups", groups)
        self.groups = groups

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x`` normalised."""
        axes = resolve_over(x, self.over, channel_axes(x.axes), repr(self))
        if len(axes) != 1:
            raise AxisError(
                f"{user_call(self)}: groups are parts of one axis, and {axes} are the channels of "
                f"{x} (made at {x.line_info}); say which with over="
            )
        (channels,) = axes
        length = channels.expression
        if isinstance(length, int) and length % self.groups:
            raise AxisError(
                f"{user_call(self)}: {channels} of {x} (made at {x.line_info}) is not divided by "
                f"{self.groups} groups; give a number that divides it"
            )
        group = Axis(f"{channels.name}.group", self.groups)
        inside = Axis(f"{channels.name}.inside", length // self.groups)
        w = unflatten(widen(floating(x)), channels, [group, inside])
        over = feature_axes(w.axes).without([group])
        y = flatten(self.normed(w, mean(w, over), variance(w, over)), [group, inside], channels)
        y = reorder(y, x.axes)
        return cast(y * self.scale(x, axes) + self.shift(x, axes), parameter_dtype(x))


class BatchNorm(Norm):
    """Normalises each channel to mean 0 and variance 1, then a scale and a shift.

    The channels are ``over``, or all axes but N, T, D, H and W. In training, the statistics are
    those of the batch, over the other axes, and the running statistics ``mean`` and ``variance``
    become momentum * running + (1 - momentum) * batch; PyTorch's momentum is 1 minus this one. An
    empty batch leaves them unchanged. The running variance is the unbiased one, divided by n - 1; a
    batch of one element per channel leaves it unchanged. Without training, the running statistics
    are used. They are persistent and not trained.

    S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015.
    """

    def __init__(
        self,
        over: AxesLike | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(over, epsilon, name=name)
        if not finite(momentum) or not 0 <= momentum <= 1:
            raise ArgumentError(
                f"{user_call('BatchNorm')}: momentum={momentum!r} is the share of the running "
                "statistics that "
                "stays in a step; give one from 0 to 1"
            )
        self.momentum = momentum

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x`` normalised; the new running statistics are added to ``training``."""
        axes = resolve_over(x, self.over, channel_axes(x.axes), repr(self))
        w, others = widen(floating(x)), x.axes.without(axes)
        middle, spread = self.running(w, axes)
        if training is not None:
            if not len(others):
                raise AxisError(
                    f"{user_call(self)}: {x} (made at {x.line_info}) has no axis beside the "
                    f"channels {axes} to take statistics over; give it a batch"
                )
            batch = mean(w, others), variance(w, others)
            size = cast(tensor_size(w, others), w.dtype)
            sample = batch[1] * (size / maximum(size - 1, 1))
            # A mean needs at least one element, an unbiased variance two.
            for state, new, least in ((middle, batch[0], 1), (spread, sample, 2)):
                old = training.value(state)
                moved = self.momentum * old + (1 - self.momentum) * new
                training.keep(state, where(size >= least, moved, old))
            y = self.normed(w, *batch)
        else:
            y = self.normed(w, middle, spread)
        return cast(y * self.scale(x, axes) + self.shift(x, axes), parameter_dtype(x))

    def running(self, x: Tensor, axes: Axes) -> tuple[Leaf, Leaf]:
        """Return the running mean and variance, which are not trained."""
        middle, spread = (
            self.variable(place, axes, first, dtype=parameter_dtype(x), trainable=False)
            for place, first in (("mean", 0.0), ("variance", 1.0))
        )
        return middle, spread
