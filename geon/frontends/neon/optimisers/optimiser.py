"""``Optimiser``: base class that turns a cost into the effect of one training step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ....errors import ArgumentError
from ....op_graph.autodiff.deriv import deriv
from ....op_graph.axes.axes import Axis
from ....op_graph.building.constants import as_tensor
from ....op_graph.core.argument_hints import differentiates, public
from ....op_graph.core.source_info import user_call
from ....op_graph.names import DEFAULT_NAME
from ....op_graph.op_graph import Leaf, Same, Tensor, VoidOp
from ....op_graph.rows.effects import assign, doall
from ....op_graph.rows.elementwise import cast, where
from ....op_graph.rows.leaves import persistent_tensor
from ....op_graph.rows.logic import logical_and
from ....op_graph.syntax.operators import is_function
from ....op_graph.values.dtypes import accumulator
from ..checks import not_negative, share
from .schedules import Schedule

if TYPE_CHECKING:
    from .clipping import Clip

Rate: TypeAlias = float | Tensor | Schedule


@dataclass(eq=False)
class Moves:
    """The values of variables after a step.

    ``changes`` are applied if ``when``, a bool scalar, is True or None. ``always`` are applied
    unconditionally.
    """

    changes: dict[Leaf, Tensor] = field(default_factory=dict)
    always: dict[Leaf, Tensor] = field(default_factory=dict)
    when: Tensor | None = None

    def only(self, condition: Tensor) -> Moves:
        """Return these values, applied only if ``condition`` holds too."""
        when = condition if self.when is None else logical_and(self.when, condition)
        kept = {leaf: where(condition, value, leaf) for leaf, value in self.always.items()}
        return Moves(self.changes, kept, when)

    def effect(self) -> VoidOp:
        """Return the effect that assigns them."""
        changes = self.changes
        if self.when is not None:
            changes = {leaf: where(self.when, value, leaf) for leaf, value in changes.items()}
        return doall([assign(leaf, value) for leaf, value in (changes | self.always).items()])


@dataclass(eq=False)
class UpdateStep:
    """The inputs and outputs of an optimiser's rule in a step.

    ``rate`` is the learning rate and ``count`` the number of the step from 1, both tensors.
    """

    optimiser: Optimiser
    rate: Tensor
    count: Tensor
    moves: Moves = field(default_factory=Moves)

    def state(self, w: Leaf, what: str) -> Leaf:
        """Return a state variable of a weight, initially 0."""
        return self.optimiser.state(w, what)

    def set(self, variable: Leaf, value: Tensor) -> None:
        """Set the value of a variable after this step."""
        self.moves.changes[variable] = cast(value, variable.dtype)


@dataclass(eq=False)
class Optimiser:
    """A rule that moves weights against their gradients; a subclass defines ``moved``.

    ``rate`` is a number, a tensor such as a placeholder, or a schedule. ``decay`` is the weight
    decay. ``clip`` clips gradients first. Half-precision weights are updated in float32. State
    variables are persistent, and named after the weights below ``name``. Raises ``ArgumentError``
    for another type of rate, and for numbers that are not finite or out of range: rates, decays and
    epsilons are at least 0, smoothing factors at least 0 and less than 1.
    """

    rate: Rate
    _: KW_ONLY
    decay: float = 0.0
    clip: Clip | None = None
    name: str | None = None
    variables: dict[tuple[Same | None, str], Leaf] = field(
        default_factory=dict, init=False, repr=False
    )

    shares: ClassVar[tuple[str, ...]] = ()  # attributes that are at least 0 and less than 1
    decoupled = False  # True if ``decay`` applies to the weights instead of their gradients

    def __post_init__(self) -> None:
        what = type(self).__name__
        checked_rate(what, self.rate)
        not_negative(what, "decay", self.decay)
        if hasattr(self, "epsilon"):
            not_negative(what, "epsilon", self.epsilon)
        for name in self.shares:
            share(what, name, getattr(self, name))
        if self.clip is not None and not is_function(self.clip):
            raise ArgumentError(
                f"{user_call(what)}: clip={self.clip!r} clips no gradients; give neon.ByValue, "
                "neon.ByNorm or "
                "neon.ByGlobalNorm, such as clip=neon.ByGlobalNorm(1.0)"
            )

    @public
    @differentiates(1, "cost")
    def __call__(self, cost: Tensor, parameters: Sequence[Leaf] | None = None) -> VoidOp:
        """The effect of one step against the gradient of ``cost``, a scalar.

        It moves ``parameters``, or all trainable variables that the cost depends on. The gradients
        are those at entry, like the values that other results of the computation read.
        """
        if isinstance(cost, (list, tuple, dict)):
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: a {type(cost).__name__} stands where the cost "
                "does; an optimiser is given the cost, a scalar, and then the parameters, if not "
                "all that it depends on: optimiser(cost, parameters)"
            )
        cost = as_tensor(cost)
        if len(cost.axes):
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: the cost {cost} (made at {cost.line_info}) is "
                "no scalar; take geon.mean of it"
            )
        weights = trained_variables(cost) if parameters is None else list(parameters)
        if not weights:
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: the cost {cost} (made at {cost.line_info}) "
                "depends on no variable that is trained; give a cost that does, or the parameters"
            )
        weights = self.chosen(weights)
        return self.moves_of(cost, weights).effect()

    def moves_of(self, cost: Tensor, weights: Sequence[Leaf]) -> Moves:
        """Return the new values of these weights after a step for a cost."""
        gradients = deriv(cost, weights, seed=self.seed(cost)) if weights else []
        return self.moves(weights, gradients)

    def seed(self, cost: Tensor) -> Tensor | None:
        """Return the initial cotangent of the cost, or None for 1."""
        return None

    def chosen(self, weights: Sequence[Leaf]) -> list[Leaf]:
        """Return those of the weights that it moves."""
        return list(weights)

    def averages(self) -> dict[Leaf, Leaf]:
        """The weights of which it keeps averages, and these."""
        return {}

    def update(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> VoidOp:
        """The effect of one step for weights with these gradients."""
        return self.moves(weights, gradients).effect()

    def moves(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> Moves:
        """Return the new values after one step for weights with these gradients."""
        count = self.state(None, "steps")
        rate = self.rate_at(count)
        step = UpdateStep(self, rate, cast(count, "float32") + 1)
        step.set(count, count + 1)
        for w, gradient in zip(
            weights, self.clip(gradients) if self.clip else gradients, strict=True
        ):
            value, gradient = (cast(x, accumulator(x.dtype)) for x in (w, gradient))
            if self.decay and not self.decoupled:
                gradient = gradient + self.decay * value
            new = self.moved(w, value, gradient, step)
            if self.decay and self.decoupled:
                new = new - rate * self.decay * value
            step.set(w, new)
        return step.moves

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the new value of a weight; the rule of a subclass."""
        raise NotImplementedError

    def rate_at(self, count: Tensor) -> Tensor:
        """Return the learning rate of the step of this number, from 0 on."""
        return self.rate(cast(count, "float32")) if is_function(self.rate) else as_tensor(self.rate)

    def state(
        self,
        w: Leaf | None,
        what: str,
        first: Any = 0,
        dtype: str = "int64",
        along: Axis | None = None,
    ) -> Leaf:
        """Return the state variable ``what`` of a weight, or of none: created once, then reused.

        ``first`` is its initial value, ``dtype`` that of a variable of no weight. It has the axis
        ``along`` before those of the weight.
        """
        key = None if w is None else Same(w), what
        found = self.variables.get(key)
        if found is None:
            name: str | None = f"{self.name or 'optimiser'}.{what}"
            if w is not None:
                name = None if w.name is None else f"{self.name or 'optimiser'}.{w.name}.{what}"
            axes = [*([] if along is None else [along]), *(() if w is None else w.axes)]
            kind = dtype if w is None else accumulator(w.dtype)
            found = persistent_tensor(axes, kind, initial_value=first, name=name)
            if self.name is None:
                found.add_tags(DEFAULT_NAME)
            self.variables[key] = found
        return found


def checked_rate(what: str, rate: Any) -> None:
    """Raise ``ArgumentError`` unless ``rate`` is a number, scalar tensor or schedule."""
    if isinstance(rate, Tensor):
        if len(rate.axes):
            raise ArgumentError(
                f"{user_call(what)}: the rate {rate} (made at {rate.line_info}) is no scalar; "
                "give one for "
                "all weights, or neon.Groups with a rate for each group"
            )
    elif not is_function(rate):
        not_negative(what, "rate", rate)


def trained_variables(cost: Tensor) -> list[Leaf]:
    """Return the trainable variables that a cost depends on."""
    return [leaf for leaf in cost.variables() if isinstance(leaf, Leaf)]
