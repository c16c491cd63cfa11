"""``MixtureOfExperts``: routes each row to a few of many small networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ....errors import ArgumentError, AxisError
from ....op_graph.axes.axes import Axes, Axis, as_axes
from ....op_graph.axes.lengths import Length
from ....op_graph.building.constants import as_tensor
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import onehot, softmax
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.accumulation import widen
from ....op_graph.rows.concatenation import pad
from ....op_graph.rows.contraction import dot
from ....op_graph.rows.elementwise import cast, less, maximum, multiply, stop_gradient, where
from ....op_graph.rows.indexing import gather, scatter
from ....op_graph.rows.leaves import iota, length_value
from ....op_graph.rows.movement import broadcast, flatten, rename, reorder, unflatten
from ....op_graph.rows.reductions import sum, tensor_size
from ....op_graph.rows.sort_and_cumulative import cumsum, top_k
from ....op_graph.special.activations import gelu
from ..axis import feature_axes
from ..checks import finite, is_integer
from .attention import length_of, of_known_length
from .axes import made_apart, resolve_over
from .layer import Layer, Training, parameter_dtype

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxesLike, NewAxes
    from ..initialisers import First


class MixtureOfExperts(Layer):
    """The results of the ``k`` most likely of several networks, weighted by their probabilities.

    Each of the ``experts`` is a product with ``w`` and a bias ``b``, the activation, and a product
    with ``out`` and a bias ``out_bias``, over ``hidden`` in between; the results are over ``axes``.
    The probabilities of experts for a row are the softmax of a product with ``gate``. The weights
    of the ``k`` selected experts are normalised to sum 1, but if ``k`` is 1, the weight is the
    probability. Features are ``over``, or all axes but N and T; the other axes are those of rows.

    An expert processes all rows routed to it, or with ``capacity`` at most that multiple of an even
    share; for further rows, the later ones, its result is 0. While training, ``training.costs``
    gets ``balance`` times a cost that is 1 for evenly distributed rows and larger otherwise: the
    number of experts times the sum over experts of their share of rows times their mean
    probability.

    N. Shazeer and others, "Outrageously large neural networks", ICLR 2017; W. Fedus, B. Zoph and N.
    Shazeer, "Switch transformers", 2021.
    """

    def __init__(
        self,
        experts: Axis,
        hidden: NewAxes,
        axes: NewAxes,
        init: First,
        bias: First = 0.0,
        activation: Callable[[Tensor], Tensor] = gelu,
        *,
        k: int = 2,
        capacity: float | None = None,
        balance: float = 0.01,
        over: AxesLike | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.experts = of_known_length(experts, "experts", "MixtureOfExperts")
        if not is_integer(k) or not 1 <= k <= length_of(self.experts):
            raise ArgumentError(
                f"MixtureOfExperts: k={k!r} of {self.experts} are to be taken; give a number from "
                "1 to that of the experts"
            )
        if capacity is not None and (not finite(capacity) or capacity <= 0):
            raise ArgumentError(
                f"MixtureOfExperts: capacity={capacity!r} is how many times an even number of rows "
                "an expert takes; give a number above 0, or None for all rows"
            )
        self.hidden, self.axes, self.init, self.bias = as_axes(hidden), as_axes(axes), init, bias
        self.activation, self.k, self.balance, self.over = activation, k, balance, over
        self.capacity = None
        if capacity is not None:  # a fraction of thousandths, since lengths are integer expressions
            self.capacity = max(Fraction(capacity).limit_denominator(1000), Fraction(1, 1000))

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """The weighted results: x's remaining axes, then the layer's."""
        inputs = resolve_over(x, self.over, feature_axes(x.axes), repr(self))
        kept = x.axes.without(inputs)
        if not len(kept):
            raise AxisError(
                f"{user_call(self)}: {x} (made at {x.line_info}) has no axis of rows to share out "
                "among the experts; give it a batch"
            )
        made = Axes(self.experts, self.hidden, self.axes.without(self.hidden))
        x, inputs = made_apart(x, inputs, made, repr(self))
        taken = [*x.axes.names, *self.hidden.names, *self.axes.names, self.experts.name]
        row, choice, slot = (_fresh(name, taken) for name in ("row", "choice", "slot"))
        rows = flatten(reorder(x, Axes(kept, inputs)), kept, row)
        row = rows.axes[row.name]
        gate = self.weights(x, "gate", Axes(inputs, self.experts), inputs, Axes(self.experts))
        likely = softmax(dot(rows, gate, over=inputs), self.experts)
        shares, which = (
            rename(each, {self.experts.name: choice.name})
            for each in top_k(likely, self.k, self.experts)
        )
        choice = which.axes[choice.name]
        if self.k > 1:
            shares = shares / sum(shares, [choice])
        if training is not None and self.balance:
            training.add_cost(self.balance * self.evenness(likely, which, row))
        count = self.capacity_of(row)
        place = self.places(which, row, choice, count)
        total = length_of(self.experts) * count
        line = Axis(f"{slot.name}.line", total)
        source = broadcast(as_tensor(0), [line.with_length(total + 1)])
        source = scatter(source, place, broadcast(iota(row), place.axes), line.name)
        sent = gather(rows, source[{line.name: slice(0, -1)}], row)
        sent = unflatten(sent, line, [self.experts, slot.with_length(count)])
        found = flatten(self.worked(sent, inputs), [self.experts, slot], line)
        found = gather(pad(found, {line.name: (0, 1)}), place, line.name)
        y = sum(found * cast(shares, found.dtype), [choice])
        return reorder(unflatten(y, row, kept), Axes(kept, self.axes))

    def worked(self, sent: Tensor, inputs: Axes) -> Tensor:
        """Return the experts' results for the rows routed to them."""
        ours = Axes(self.experts)
        w = self.weights(sent, "w", Axes(ours, inputs, self.hidden), inputs, self.hidden)
        b = self.weights(sent, "b", Axes(ours, self.hidden), Axes(), self.hidden, self.bias)
        h = self.activation(dot(sent, w, over=inputs) + b)
        h, hidden = made_apart(h, self.hidden, self.axes, repr(self))
        out = self.weights(sent, "out", Axes(ours, hidden, self.axes), hidden, self.axes)
        bias = self.weights(sent, "out_bias", Axes(ours, self.axes), Axes(), self.axes, self.bias)
        return dot(h, out, over=hidden) + bias

    def weights(
        self,
        x: Tensor,
        place: str,
        axes: Axes,
        inputs: Axes,
        outputs: Axes,
        first: First | None = None,
    ) -> Tensor:
        """Return a variable with the dtype of ``x``; ``first`` defaults to the layer's."""
        first = self.init if first is None else first
        return self.variable(
            place, axes, first, inputs=inputs, outputs=outputs, dtype=parameter_dtype(x)
        )

    def capacity_of(self, row: Axis) -> int | Length:
        """Return the number of rows that an expert can process."""
        if self.capacity is None:
            return row.expression
        parts = self.capacity.denominator * length_of(self.experts)
        return (row.expression * (self.k * self.capacity.numerator) + (parts - 1)) // parts

    def places(self, which: Tensor, row: Axis, choice: Axis, count: int | Length) -> Tensor:
        """Return the slot of each row for each of its experts, in one line of all experts' slots.

        Rows without a slot get the index behind the line.
        """
        pair = Axis("_".join(each.name for each in (row, choice)))
        line = flatten(which, [row, choice], pair)
        taken = onehot(line, self.experts, "int64")
        before = sum(taken * cumsum(taken, pair.name), [self.experts]) - 1
        behind = length_value(length_of(self.experts) * count)
        place = where(
            less.apply(before, length_value(count)),
            multiply.apply(line, length_value(count)) + before,
            behind,
        )
        return unflatten(place, pair.name, [row, choice])

    def evenness(self, likely: Tensor, which: Tensor, row: Axis) -> Tensor:
        """Return the balance cost: 1 for evenly distributed rows, more otherwise."""
        likely = widen(likely)
        count = maximum(cast(tensor_size(likely, [row]), likely.dtype), 1)
        taken = onehot(which, self.experts, likely.dtype)
        share = stop_gradient(sum(taken, out_axes=[self.experts])) / (count * self.k)
        return length_of(self.experts) * sum(share * (sum(likely, [row]) / count))


def _fresh(name: str, taken: Sequence[str]) -> Axis:
    """Return an axis with an unused name."""
    axis = Axis(name)
    while axis.name in taken:
        axis = axis.prime
    return Axis(axis.name)
