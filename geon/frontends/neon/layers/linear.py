"""Products with weights: ``Linear``, ``Affine``, ``Bias``, and ``LookupTable``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import ArgumentError, DTypeError
from ....op_graph.axes.axes import Axes, Axis, as_axes, new_axis
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Leaf, Tensor, make
from ....op_graph.rows.contraction import dot
from ....op_graph.rows.elementwise import not_equal, where
from ....op_graph.rows.indexing import CHECKED, PURPOSES, Purpose, gather, held_by_int64
from ....op_graph.rows.movement import broadcast
from ....op_graph.values.dtypes import kind
from ..activations import identity
from ..axis import feature_axes
from ..checks import a_function, is_integer
from .axes import made_apart, resolve_over
from .layer import Layer, Training, parameter_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....op_graph.building.typing import AxesLike, DTypeLike, NewAxes
    from ..initialisers import First


class Linear(Layer):
    """A product with weights ``w``: features in, ``axes`` out.

    It sums over ``over``, or all axes but N and T. The weights are over the summed axes, then
    ``axes``; if a name is in both, the summed one gets a prime.
    """

    def __init__(
        self, axes: NewAxes, init: First, *, over: AxesLike | None = None, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.axes, self.init, self.over = as_axes(axes), init, over

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x`` times the weights: its remaining axes, then the layer's."""
        inputs = resolve_over(x, self.over, feature_axes(x.axes), repr(self))
        x, inputs = made_apart(x, inputs, self.axes, repr(self))
        w = self.variable(
            "w",
            Axes(inputs, self.axes),
            self.init,
            inputs=inputs,
            outputs=self.axes,
            dtype=parameter_dtype(x),
        )
        return dot(x, w, over=inputs)


class Affine(Linear):
    """A product with weights ``w``, plus a bias ``b`` unless it is None, then an activation."""

    def __init__(
        self,
        axes: NewAxes,
        init: First,
        bias: First | None = 0.0,
        activation: Callable[[Tensor], Tensor] = identity,
        *,
        over: AxesLike | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(axes, init, over=over, name=name)
        a_function("Affine", "activation", activation)
        self.bias, self.activation = bias, activation

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """The activation of ``x`` times the weights plus the bias."""
        y = super().forward(x, training)
        if self.bias is not None:
            y = y + make_bias(self, y, self.axes, self.bias)
        return self.activation(y)


class Bias(Layer):
    """Adds a bias ``b`` over ``axes``, or over the features: all axes but N and T."""

    def __init__(
        self, init: First = 0.0, axes: AxesLike | None = None, *, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.init, self.axes = init, axes

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """``x`` plus the bias."""
        over = resolve_over(x, self.axes, feature_axes(x.axes), repr(self), "axes")
        return x + make_bias(self, x, over, self.init)


def make_bias(layer: Layer, x: Tensor, axes: Axes, first: First) -> Leaf:
    """Return the bias ``b`` of a layer over those of ``axes`` that ``x`` has."""
    own = x.axes.only(axes)
    return layer.variable("b", own, first, outputs=own, dtype=parameter_dtype(x))


ROW_OF_TABLE = "row of a table"
PURPOSES[ROW_OF_TABLE] = Purpose(
    "used as rows of a table",
    "check the data, or give the table more words; a number that stands for padding has a row, "
    "which pad= of neon.LookupTable names",
)


class LookupTable(Layer):
    """An embedding: a row ``w`` over ``axes`` for each number of ``words``.

    If a number is ``pad``, the result is 0, and its row is not trained. Raises ``DTypeError``
    unless the numbers are integers; numbers out of range raise when they are looked up.
    """

    def __init__(
        self,
        words: Axis,
        axes: NewAxes,
        init: First,
        *,
        pad: int | None = None,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.words, self.axes = new_axis(words, "LookupTable"), as_axes(axes)
        self.init, self.pad, self.dtype = init, pad, dtype
        count = self.words.length
        known = isinstance(count, int)
        if pad is not None and not (is_integer(pad) and 0 <= pad and (not known or pad < count)):
            raise ArgumentError(
                f"LookupTable: pad={pad!r} is no number of a row of {self.words}; give the integer "
                "that stands for padding"
            )

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """The rows at the numbers ``x``: over x's axes and the layer's."""
        if kind(x.dtype) != "i":
            raise DTypeError(
                f"{user_call(self)}: {x} (made at {x.line_info}) is {x.dtype.name}, and rows have "
                "integers for numbers; geon.cast it"
            )
        w = self.variable(
            "w",
            Axes(self.words, self.axes),
            self.init,
            inputs=Axes(self.words),
            outputs=self.axes,
            dtype=self.dtype,
        )
        # Negative numbers do not count from the end: they are mistakes, such as padding.
        places = make(CHECKED, (held_by_int64(x),), (self.words.expression, False, None, ""))
        places.add_tags(ROW_OF_TABLE)
        rows = broadcast(gather(w, places, self.words), Axes(x.axes, self.axes))
        return rows if self.pad is None else where(not_equal(x, self.pad), rows, 0)
