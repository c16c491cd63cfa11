"""Optimiser wrappers: gradient accumulation, averages of weights, loss scaling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ....errors import ArgumentError
from ....op_graph.building.constants import as_tensor
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.rows.elementwise import cast, isfinite, maximum, minimum, where
from ....op_graph.rows.logic import logical_and
from ....op_graph.rows.reductions import all
from ....op_graph.values.dtypes import accumulator
from ..checks import above_zero, at_least_one, share
from .optimiser import Moves, Optimiser

MIN_LOSS_SCALE = 2.0**-24  # smallest scale, from which it recovers in a few dozen doublings
MAX_LOSS_SCALE = 2.0**127  # largest power of two in float32


class OptimiserWrapper(Optimiser):
    """Base of wrappers, which change when an inner optimiser steps, and its gradients."""

    def __init__(self, inner: Optimiser) -> None:
        if not isinstance(inner, Optimiser):
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: {inner!r} is no optimiser to go around; give "
                "one, such as "
                "neon.Adam(0.001)"
            )
        self.inner = inner
        around: Optimiser = inner
        while isinstance(around, OptimiserWrapper):
            if type(around) is type(self):
                raise ArgumentError(
                    f"{user_call(type(self).__name__)}: there is one around {around.inner} "
                    "already, and both "
                    "would keep their numbers by one name; give one of them"
                )
            around = around.inner
        super().__init__(0.0, name=inner.name)

    @property
    def name(self) -> str | None:
        """The prefix of variables' names, for the inner optimiser and its own."""
        return self.inner.name

    @name.setter
    def name(self, name: str | None) -> None:
        self.inner.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner})"

    def chosen(self, weights: Sequence[Leaf]) -> list[Leaf]:
        """The weights that the inner optimiser moves."""
        return self.inner.chosen(weights)

    def seed(self, cost: Tensor) -> Tensor | None:
        """The initial cotangent of the inner optimiser."""
        return self.inner.seed(cost)

    def averages(self) -> dict[Leaf, Leaf]:
        """The averages that the inner optimiser keeps."""
        return self.inner.averages()


class Accumulated(OptimiserWrapper):
    """A step of ``optimiser`` after every ``batches`` calls, with the mean of their gradients.

    So batches of equal size together are equivalent to one large batch, except for the order of
    additions. Gradients not yet used in a step are stored in checkpoints. Raises ``ArgumentError``
    unless ``batches`` is an integer of at least 1.
    """

    def __init__(self, optimiser: Optimiser, batches: int) -> None:
        at_least_one("Accumulated", "batches", batches)
        super().__init__(optimiser)
        self.batches = batches

    def moves(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> Moves:
        """Return the sums of gradients, and the inner step when they are complete."""
        count = self.state(None, "batches")
        due = count + 1 >= self.batches
        sums = [
            (
                self.state(w, "sum"),
                self.state(w, "sum") + cast(gradient, accumulator(gradient.dtype)),
            )
            for w, gradient in zip(weights, gradients, strict=True)
        ]
        moves = self.inner.moves(weights, [total / self.batches for _, total in sums]).only(due)
        for kept, total in sums:
            moves.always[kept] = where(due, 0, total)
        moves.always[count] = where(due, 0, count + 1)
        return moves


class Averaged(OptimiserWrapper):
    """Keeps exponential moving averages of the weights that ``optimiser`` moves.

    After each step, average = smoothing average + (1 - smoothing) weight, starting at the weight's
    initial value. ``model.evaluate`` and ``model.predict`` use them with ``averaged=True``. Raises
    ``ArgumentError`` unless ``smoothing`` is at least 0 and less than 1.
    """

    def __init__(self, optimiser: Optimiser, smoothing: float = 0.999) -> None:
        share("Averaged", "smoothing", smoothing)
        super().__init__(optimiser)
        self.smoothing = smoothing
        self.kept: dict[Leaf, Leaf] = {}

    def moves(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> Moves:
        """Return the new values of weights and of their averages."""
        moves = self.inner.moves(weights, gradients)
        for w in weights:
            kept = self.state(w, "average", cast(w, accumulator(w.dtype)))
            new = cast(moves.changes[w], kept.dtype)
            moves.changes[kept] = self.smoothing * kept + (1 - self.smoothing) * new
            self.kept[w] = kept
        return moves

    def averages(self) -> dict[Leaf, Leaf]:
        """The weights that it has moved, and their averages."""
        return self.kept


class Scaled(OptimiserWrapper):
    """Loss scaling: ``optimiser`` gets gradients of the scaled cost, against underflow.

    Gradients are divided by the scale in float32. If one of them is not finite, no variable of
    ``optimiser`` changes, and the scale is halved; after every ``every`` finite steps, it is
    doubled. It starts at ``first``. P. Micikevicius and others, "Mixed precision training", ICLR
    2018. Raises ``ArgumentError`` unless ``first`` is above 0 and ``every`` at least 1.
    """

    def __init__(self, optimiser: Optimiser, first: float = 65536.0, every: int = 2000) -> None:
        above_zero("Scaled", "first", first)
        at_least_one("Scaled", "every", every)
        super().__init__(optimiser)
        self.first, self.every = first, every

    @property
    def scale(self) -> Leaf:
        """The factor of the cost in the next step."""
        return self.state(None, "scale", self.first, "float32")

    def seed(self, cost: Tensor) -> Tensor | None:
        """The scale."""
        inner = self.inner.seed(cost)
        own = cast(self.scale, cost.dtype)
        return own if inner is None else inner * own

    def moves(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> Moves:
        """Return the inner step if all gradients are finite, and the next scale."""
        scale, good = self.scale, self.state(None, "good")
        real = [cast(gradient, accumulator(gradient.dtype)) / scale for gradient in gradients]
        finite = reduce(
            logical_and, [all(isfinite(gradient)) for gradient in real], as_tensor(True)
        )
        grown = good + 1 >= self.every
        moves = self.inner.moves(weights, real).only(finite)
        doubled = 2 * minimum(scale, MAX_LOSS_SCALE / 2)
        higher, lower = where(grown, doubled, scale), maximum(scale / 2, MIN_LOSS_SCALE)
        moves.always[scale] = where(finite, higher, lower)
        moves.always[good] = where(logical_and(finite, ~grown), good + 1, 0)
        return moves
