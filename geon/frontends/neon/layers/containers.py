"""Layers of layers: ``Sequential``, ``Parallel``, ``Residual`` and ``Highway``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ....errors import ArgumentError, AxisError
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.concatenation import concat
from ....op_graph.rows.elementwise import sigmoid
from ....op_graph.syntax.operators import is_function
from .functions import Activation
from .layer import Layer, Training

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxisLike
    from .cache import Cache

    Part = Layer | Callable[[Tensor], Tensor]


class Several(Layer):
    """A list of layers, named by their numbers; a function becomes an ``Activation``."""

    def __init__(self, parts: Sequence[Part], *, name: str | None = None) -> None:
        super().__init__(name)
        if isinstance(parts, Layer) or not isinstance(parts, Iterable):
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: {parts!r} is no list of layers and functions; "
                "give one, "
                "such as [neon.Affine(K, init), geon.relu]"
            )
        self.parts = [as_layer(part) for part in parts]

    def layers(self) -> Iterator[tuple[str, Layer]]:
        """Yield the layers with their numbers."""
        for number, layer in enumerate(self.parts):
            yield str(number), layer


class Sequential(Several):
    """Layers one after another; a function among them is an ``Activation``."""

    def forward(
        self, x: Tensor, training: Training | None = None, cache: Cache | None = None
    ) -> Tensor:
        """The result of the last layer."""
        for layer in self.parts:
            x = layer(x, training=training, cache=cache)
        return x


class Parallel(Several):
    """Layers applied to one tensor, with their results concatenated along ``axis``."""

    def __init__(self, parts: Sequence[Part], axis: AxisLike, *, name: str | None = None) -> None:
        super().__init__(parts, name=name)
        self.axis = axis

    def forward(
        self, x: Tensor, training: Training | None = None, cache: Cache | None = None
    ) -> Tensor:
        """The results concatenated along the axis, in the order of axes of the first."""
        return concat([layer(x, training=training, cache=cache) for layer in self.parts], self.axis)


class Residual(Layer):
    """``x`` plus a layer of ``x``; with ``shortcut``, a layer of ``x`` instead of ``x``."""

    def __init__(
        self, layer: Part, shortcut: Part | None = None, *, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.layer = as_layer(layer)
        self.shortcut = None if shortcut is None else as_layer(shortcut)

    def forward(
        self, x: Tensor, training: Training | None = None, cache: Cache | None = None
    ) -> Tensor:
        """The sum; raises ``AxisError`` if the axes differ."""
        changed = self.layer(x, training=training, cache=cache)
        kept = x if self.shortcut is None else self.shortcut(x, training=training, cache=cache)
        return of_one_kind(self, kept, changed, "shortcut=") + changed


class Highway(Layer):
    """A layer of ``x`` mixed with ``x`` by a gate g: g layer(x) + (1 - g) x.

    g is the sigmoid of the result of the layer ``gate``. R. Srivastava, K. Greff and J.
    Schmidhuber, "Training very deep networks", NIPS 2015.
    """

    def __init__(self, layer: Part, gate: Part, *, name: str | None = None) -> None:
        super().__init__(name)
        self.layer, self.gate = as_layer(layer), as_layer(gate)

    def forward(
        self, x: Tensor, training: Training | None = None, cache: Cache | None = None
    ) -> Tensor:
        """The mixture; raises ``AxisError`` if the layer or the gate has other axes than ``x``."""
        changed = self.layer(x, training=training, cache=cache)
        gate = self.gate(x, training=training, cache=cache)
        changed = of_one_kind(self, changed, x, "another layer")
        opened = sigmoid(of_one_kind(self, gate, x, "another gate"))
        return x + opened * (changed - x)


def as_layer(part: Part) -> Layer:
    """Return a layer unchanged, or a function as a layer."""
    if isinstance(part, Layer):
        return part
    given: object = part
    if isinstance(given, type) and issubclass(given, Layer):
        raise ArgumentError(
            f"{given.__name__} is a class of layers and no layer; give one: {given.__name__}(...)"
        )
    if not is_function(part):
        raise ArgumentError(f"{part!r} is neither a layer nor a function of a tensor; give one")
    return Activation(part)


def of_one_kind(layer: Layer, made: Tensor, other: Tensor, cure: str) -> Tensor:
    """Return ``made`` if it has the axes of ``other``; raise ``AxisError`` otherwise."""
    if not made.axes.same_set(other.axes):
        raise AxisError(
            f"{user_call(layer)}: {made} (made at {made.line_info}) and {other} (made at "
            f"{other.line_info}) have other axes, and are to be added; give {cure}"
        )
    return made
