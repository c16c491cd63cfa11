"""``LBFGS``: quasi-Newton steps with a line search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ....errors import ArgumentError
from ....op_graph.autodiff.deriv import deriv
from ....op_graph.axes.axes import Axis
from ....op_graph.building.constants import as_tensor
from ....op_graph.building.weak import in_dtype
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import wide_norm
from ....op_graph.op_graph import Leaf, Op, Tensor
from ....op_graph.regions.scan import scan
from ....op_graph.regions.while_loop import while_loop
from ....op_graph.rows.concatenation import concat
from ....op_graph.rows.contraction import dot
from ....op_graph.rows.elementwise import add, cast, maximum, sqrt, where
from ....op_graph.rows.logic import logical_and
from ....op_graph.rows.movement import broadcast
from ....op_graph.transforms.functionalize import substitute
from ....op_graph.values.dtypes import accumulator
from ..checks import at_least_one
from .optimiser import Moves, Optimiser, Rate

# min. cosine between the changes of weights and of gradients for a pair to enter the history
MIN_CURVATURE_COSINE = 1e-8
SUFFICIENT_DECREASE = (
    1e-4  # min. share of the decrease predicted by the gradient (Armijo's condition)
)


@dataclass(eq=False)
class LBFGS(Optimiser):
    """Quasi-Newton steps, with a Hessian estimated from the last ``history`` steps.

    A step is minus the inverse Hessian times the gradient. It has length ``rate``, or half of it,
    and so on up to ``searches`` lengths, until the cost has decreased by a share of what the
    gradient predicts; each length costs one more forward pass. If none does, weights stay
    unchanged, and the history is cleared. So it needs a cost that is the same function in each
    step, such as that of all examples, without new random numbers. The first step of a history is
    against the gradient, with a norm of at most ``rate``. J. Nocedal, "Updating quasi-Newton
    matrices with limited storage", Mathematics of Computation 1980; the line search is L. Armijo's,
    Pacific Journal of Mathematics 1966. Raises ``ArgumentError`` for ``clip``, counts below 1, and
    if it gets gradients alone, as in ``Groups``.
    """

    rate: Rate = 1.0
    history: int = 10
    searches: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("LBFGS", "history", self.history)
        at_least_one("LBFGS", "searches", self.searches)
        if self.clip is not None:
            raise ArgumentError(f"{user_call('LBFGS')}: clip= would hide the curvature; give none")

    def moves(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> Moves:
        """Raise ``ArgumentError``: it needs the cost."""
        raise ArgumentError(
            "LBFGS looks for the length of a step along the cost, which Groups, other optimisers "
            "around it, and update() do not give it; call it with the cost: neon.LBFGS()(cost)"
        )

    def moves_of(self, cost: Tensor, weights: Sequence[Leaf]) -> Moves:
        """Return the new values of these weights and of the history."""
        if not weights:
            return Moves()
        return Search(self, cost, weights).moves()


class Search:
    """One step of ``LBFGS``; lists have a tensor for each weight, scalars are of dtype ``real``."""

    def __init__(self, optimiser: LBFGS, cost: Tensor, weights: Sequence[Leaf]) -> None:
        self.optimiser, self.weights, self.state = optimiser, list(weights), optimiser.state
        doubles = any(accumulator(w.dtype).name == "float64" for w in weights)
        self.real = "float64" if doubles else "float32"
        self.values = [cast(w, accumulator(w.dtype)) for w in weights]
        if optimiser.decay:
            cost = cost + optimiser.decay / 2 * self.inner(self.values, self.values)
        self.cost = cast(cost, self.real)
        self.gradients = [
            cast(gradient, accumulator(gradient.dtype)) for gradient in deriv(cost, self.weights)
        ]
        self.axis = Axis("history", optimiser.history)
        while any(self.axis.name in w.axes for w in weights):
            self.axis = self.axis.prime
        self.count = self.state(None, "steps")
        self.rho = self.state(None, "rho", dtype=self.real, along=self.axis)
        self.size = self.state(None, "size", dtype=self.real)

    def moves(self) -> Moves:
        """Return the new values of all variables."""
        moves = Moves({self.count: self.count + 1})
        history, rho, size = self.remember(moves)
        direction = self.direction(history, rho, size)
        predicted = self.inner(self.gradients, direction)
        length, accepted = self.search(direction, predicted)
        improves = logical_and(predicted < 0, accepted)
        new = self.plus(self.values, length, direction)
        for w, value in zip(self.weights, new, strict=True):
            moves.changes[w] = where(improves, cast(value, w.dtype), w)
        moves.changes[self.rho] = where(improves, rho, 0)
        moves.changes[self.size] = where(improves, size, 0)
        return moves

    def remember(self, moves: Moves) -> tuple[list[list[Tensor]], Tensor, Tensor]:
        """Return the history of changes of weights and gradients, and 1 / their products.

        The newest entry is last. Also return the scale of the initial inverse Hessian, 0 if
        unknown.
        """
        places = [[self.state(w, what) for w in self.weights] for what in ("value", "gradient")]
        now = [self.values, self.gradients]
        s, y = (self.plus(new, -1, old) for new, old in zip(now, places, strict=True))
        ss, sy, yy = self.inner(s, s), self.inner(s, y), self.inner(y, y)
        known = logical_and(self.count > 0, sy > MIN_CURVATURE_COSINE * sqrt(ss * yy))
        for old, new in zip(places, now, strict=True):
            moves.changes |= zip(old, new, strict=True)
        history: list[list[Tensor]] = []
        for what, news in (("s", s), ("y", y)):
            kept = [self.state(w, what, along=self.axis) for w in self.weights]
            pairs = zip(kept, news, strict=True)
            history.append([where(known, self.pushed(old, new), old) for old, new in pairs])
            moves.changes |= zip(kept, history[-1], strict=True)
        sy, yy = where(known, sy, 1), where(known, yy, 1)
        rho = where(known, self.pushed(self.rho, 1 / sy), self.rho)
        return history, rho, where(known, sy / yy, self.size)

    def direction(self, history: list[list[Tensor]], rho: Tensor, size: Tensor) -> list[Tensor]:
        """Return minus the inverse Hessian times the gradient, by the two-loop recursion."""

        def back(q: list[Tensor], pair: Any) -> tuple[list[Tensor], Tensor]:
            (s, y), rho = pair
            share = rho * self.inner(s, q)
            return self.plus(q, -share, y), share

        def forth(r: list[Tensor], pair: Any) -> tuple[list[Tensor], None]:
            (s, y), rho, share = pair
            return self.plus(r, share - rho * self.inner(y, r), s), None

        q, shares = scan(back, self.gradients, (history, rho), over=self.axis, reverse=True)
        first = in_dtype(1 / maximum(1, wide_norm(self.gradients, "LBFGS")), size.dtype)
        start = [cast(where(size > 0, size, first) * x, x.dtype) for x in q]
        r, _ = scan(forth, start, (history, rho, shares), over=self.axis)
        return [-x for x in r]

    def search(self, direction: list[Tensor], predicted: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first accepted step length, from the rate on, and True if there is one."""

        def half(tried: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            length = tried[0] / 2
            values = self.plus(self.values, length, direction)
            pairs = zip(self.weights, values, strict=True)
            known: dict[Op, Op] = {w: cast(value, w.dtype) for w, value in pairs}
            cost = substitute(self.cost, known)
            assert isinstance(cost, Tensor)
            return (
                length,
                cost <= self.cost + SUFFICIENT_DECREASE * length * predicted,
            )  # False if it is NaN

        begin = 2 * cast(self.optimiser.rate_at(self.count), self.real), as_tensor(False)
        length, accepted = while_loop(lambda c: ~c[1], half, begin, self.optimiser.searches)
        return length, accepted

    def pushed(self, kept: Tensor, new: Tensor) -> Tensor:
        """Return the history without its first entry, with the new one at the end."""
        one = broadcast(new, [self.axis.with_length(1), *new.axes])
        return concat([kept[{self.axis: slice(1, None)}], one], self.axis)

    def inner(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
        """Return the sum of all products."""
        return reduce(add, [cast(dot(x, y), self.real) for x, y in zip(a, b, strict=True)])

    def plus(self, a: Sequence[Tensor], t: Any, b: Sequence[Tensor]) -> list[Tensor]:
        """Return a + t b."""
        return [cast(x + t * y, x.dtype) for x, y in zip(a, b, strict=True)]
