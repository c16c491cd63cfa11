"""Layers without variables: ``Activation``, ``Preprocess`` and ``Dropout``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.elementwise import cast, where
from ....op_graph.syntax.operators import is_function
from ....op_graph.values.dtypes import kind
from ..checks import finite, stream
from .axes import resolve_over
from .layer import Layer, Training

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxesLike
    from ....op_graph.draws.stream import Random


class Activation(Layer):
    """A function of the tensor, such as ``geon.relu``."""

    def __init__(self, function: Callable[[Tensor], Tensor], *, name: str | None = None) -> None:
        super().__init__(name)
        if not is_function(function):
            raise ArgumentError(
                f"{type(self).__name__} takes a function of a tensor, not {function!r}"
            )
        self.function = function

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """The function of ``x``."""
        return self.function(x)


class Preprocess(Activation):
    """A function of data as floats, such as ``lambda x: x / 255``: integers become float32."""

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """The function of ``x``, converted to float32 unless it is a float."""
        return self.function(x if kind(x.dtype) == "f" else cast(x, "float32"))


class Dropout(Layer):
    """While training, sets a share ``rate`` of the elements to 0 and divides the rest by 1 - rate.

    Each element is drawn independently, in each example; with ``axes``, elements with equal indices
    along these are dropped together. Otherwise, and with a rate of 0, ``x`` is unchanged.
    """

    def __init__(
        self,
        rate: float,
        random: Random,
        axes: AxesLike | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        stream("Dropout", random)
        if not finite(rate) or not 0 <= rate < 1:
            raise ArgumentError(
                f"{user_call('Dropout')}: rate={rate!r} is the share of elements that become 0; "
                "give one of at "
                "least 0 and less than 1"
            )
        self.rate, self.random, self.axes = rate, random, axes

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x``, or with ``training`` its elements after dropout."""
        if training is None or self.rate == 0:
            return x
        axes = resolve_over(x, self.axes, x.axes, repr(self), "axes") if len(x.axes) else x.axes
        kept = self.random.bernoulli(axes, 1 - self.rate, "bool")
        return where(kept, x / (1 - self.rate), 0, axes=x.axes)
