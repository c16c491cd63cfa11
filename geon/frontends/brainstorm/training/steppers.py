"""Steppers: one update of the parameters of a network from the gradients of its losses.

A stepper states its rule once, on geon tensors, by these members:

- ``numbers`` names the members that are scalars of the rule and may change between steps, such as
  ``learning_rate``. ``begin_step()`` counts the step and returns their values in this order.
- ``vectors`` names the vectors that the rule keeps. They have the axis of the parameters and are 0
  at the start. ``state`` holds their arrays by name.
- ``constants`` names the members that are fixed in the compiled rule. If one has changed, the rule
  is compiled again.
- ``elementwise = True``, in the class that defines ``update``, says that each element of the
  results depends on the same element of the vectors alone. Then a compiled network applies the rule
  to each parameter where its gradient is computed, over the axes of that.
- ``look_ahead(parameters, state, numbers)`` returns the parameters at which gradients are taken, or
  None for the parameters themselves.
- ``update(parameters, gradients, state, numbers)`` returns the new parameters and a dictionary of
  the new vectors. ``parameters`` and ``gradients`` are tensors over one axis; ``state`` and
  ``numbers`` are dictionaries of tensors and scalars by these names.

``run()`` makes one step of an inspectable network: the forward and the backward pass, then the rule
as one computation on the flat arrays ``net.buffer.parameters`` and ``net.buffer.gradients``. A
compiled network puts ``look_ahead`` and ``update`` into the graph of its step, and calls
``begin_step()`` for the numbers of each call. A stepper of your own that only overrides ``run``
works with inspectable networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import geon

from ....errors import ArgumentError
from ...neon.optimisers.optimiser import Optimiser, UpdateStep
from ...neon.optimisers.rules import Adam, RMSProp
from ..array_functions import InPlace, compile_for_arrays
from ..describable import Describable, described, hidden, option
from ..errors import NetworkValidationError

Tensors: TypeAlias = Mapping[str, geon.Tensor]

__all__ = [
    "AdamStepper", "ForwardStepper", "MomentumStepper", "NesterovStepper", "RMSpropStepper",
    "SgdStepper", "TrainingStepper",
]  # fmt: skip


@described
class TrainingStepper(Describable):
    """Base of steppers; a subclass defines ``update``, or ``run``."""

    net: Any = hidden(default=None)
    state: dict[str, Any] = hidden(default={})
    count: int = hidden(default=0)
    computations: dict[Any, Any] = hidden(default={})
    carry_context: bool = hidden(default=False)  # the trainer sets both
    context: Any = hidden(default=None)

    numbers: ClassVar[tuple[str, ...]] = ()
    vectors: ClassVar[tuple[str, ...]] = ()
    constants: ClassVar[tuple[str, ...]] = ()
    elementwise: ClassVar[bool] = False

    def start(self, net: Any) -> None:
        """Prepare for a network: set the vectors and the count of steps to 0."""
        self.net = net
        shape = net.buffer.parameters.shape
        self.state = {name: net.handler.zeros(shape) for name in self.vectors}
        self.count = 0
        self.computations = {}

    def begin_step(self) -> list[float]:
        """Count a step, from 1 on, and return the values of ``numbers``."""
        self.count += 1
        return [float(getattr(self, name)) for name in self.numbers]

    def constant_values(self) -> tuple[Any, ...]:
        """Return the values of ``constants``; the rule is compiled again when they change."""
        return tuple(getattr(self, name) for name in self.constants)

    def look_ahead(
        self, parameters: geon.Tensor, state: Tensors, numbers: Tensors
    ) -> geon.Tensor | None:
        """Return the parameters at which gradients are taken, or None for the given ones."""
        return None

    def update(
        self, parameters: geon.Tensor, gradients: geon.Tensor, state: Tensors, numbers: Tensors
    ) -> tuple[geon.Tensor, dict[str, geon.Tensor]]:
        """Return the new parameters and the new vectors."""
        raise NetworkValidationError(
            f"{type(self).__name__} defines no update(parameters, gradients, state, numbers), the "
            "rule on tensors; define it, or override run() and train without compiled=True"
        )

    def run(self) -> Any:
        """Make one step with the data that the network has."""
        (parameters, _), numbers, state = self.net.vectors(), self.begin_step(), self.state
        ahead = self._computation("look_ahead")
        base = parameters
        if ahead is not None:
            base = self.net.handler.allocate(parameters.shape)
            self.net.handler.copy_to(parameters, base)
            ahead(base, *state.values(), *numbers, out=parameters)
        self.net.forward_pass(training_pass=True, context=self.context)
        if self.carry_context:
            self.context = self.net.get_context()
        self.net.backward_pass()
        parameters, gradients = self.net.vectors()
        new = [parameters, *state.values()]
        update = self._computation("update")
        if isinstance(update, InPlace):
            update(new, gradients, numbers)
        else:
            update(base, gradients, *state.values(), *numbers, out=new)

    def _computation(self, rule: str) -> Any:
        """Return a rule compiled for flat arrays; None if there is no look-ahead."""
        handler, dtype = self.net.handler, self.net.buffer.parameters.dtype
        key = rule, handler, dtype, self.constant_values()
        if key not in self.computations:
            vectors = (1 if rule == "look_ahead" else 2) + len(self.state)
            looks = type(self).look_ahead is not TrainingStepper.look_ahead
            function, numbers = getattr(self, f"_{rule}"), len(self.numbers)
            made: Any = None
            if rule == "update" and not looks and handler.transformer.memory.on_host:
                made = InPlace(handler, function, dtype, vectors, numbers)
            elif looks or rule == "update":
                made = compile_for_arrays(handler, function, [(1, dtype)] * vectors, numbers)
            self.computations[key] = made
        return self.computations[key]

    def _named(self, tensors: tuple[geon.Tensor, ...]) -> tuple[Tensors, Tensors]:
        count = len(self.state)
        return (
            dict(zip(self.state, tensors[:count], strict=True)),
            dict(zip(self.numbers, tensors[count:], strict=True)),
        )

    def _look_ahead(self, parameters: geon.Tensor, *rest: geon.Tensor) -> geon.Tensor | None:
        return self.look_ahead(parameters, *self._named(rest))

    def _update(
        self, parameters: geon.Tensor, gradients: geon.Tensor, *rest: geon.Tensor
    ) -> list[geon.Tensor]:
        new, state = self.update(parameters, gradients, *self._named(rest))
        return [new, *(state[name] for name in self.state)]


@described
class ForwardStepper(TrainingStepper):
    """Runs the forward pass, as in training if ``use_training_pass``, and updates nothing.

    ``run`` returns the total loss.
    """

    use_training_pass: bool = False

    def run(self) -> Any:
        """Run the forward pass and return the total loss."""
        self.net.forward_pass(training_pass=self.use_training_pass)
        return self.net.get_loss_values()["total_loss"]


@described
class SgdStepper(TrainingStepper):
    """Stochastic gradient descent."""

    numbers = ("learning_rate",)
    elementwise = True

    learning_rate: float = 0.1

    def update(
        self, parameters: geon.Tensor, gradients: geon.Tensor, state: Tensors, numbers: Tensors
    ) -> tuple[geon.Tensor, dict[str, geon.Tensor]]:
        """Return the parameters minus learning rate times gradients."""
        return parameters - numbers["learning_rate"] * gradients, {}


@described
class MomentumStepper(TrainingStepper):
    """Gradient descent along a velocity, which decays by ``momentum`` in each step.

    The learning rate is multiplied by 1 - momentum if ``scale_learning_rate``.
    """

    numbers = ("learning_rate", "momentum")
    vectors = ("velocity",)
    constants = ("scale_learning_rate",)
    elementwise = True

    learning_rate: float = 0.1
    momentum: float = 0.0
    scale_learning_rate: bool = option(default=True)

    def __complete__(self) -> None:
        super().__complete__()
        if not isinstance(self.scale_learning_rate, bool):
            raise ArgumentError(
                f"{type(self).__name__}: scale_learning_rate={self.scale_learning_rate!r}; give "
                "True or False"
            )

    @property
    def velocity(self) -> Any:
        """The array of velocities, before ``start`` None."""
        return self.state.get("velocity")

    def update(
        self, parameters: geon.Tensor, gradients: geon.Tensor, state: Tensors, numbers: Tensors
    ) -> tuple[geon.Tensor, dict[str, geon.Tensor]]:
        """Return parameters + v and v = momentum * velocity - rate * gradients."""
        rate, momentum = numbers["learning_rate"], numbers["momentum"]
        if self.scale_learning_rate:
            rate = rate * (1 - momentum)
        velocity = momentum * state["velocity"] - rate * gradients
        return parameters + velocity, {"velocity": velocity}


class NesterovStepper(MomentumStepper):
    """Momentum whose gradients are taken where the velocity alone would lead.

    Y. Nesterov, "A method of solving a convex programming problem with convergence rate O(1/k^2)",
    1983. During the forward and the backward pass the parameters are those of the look-ahead.
    """

    def look_ahead(self, parameters: geon.Tensor, state: Tensors, numbers: Tensors) -> geon.Tensor:
        """Return parameters + momentum * velocity."""
        return parameters + numbers["momentum"] * state["velocity"]


class _VectorStep(UpdateStep):
    """The state of a rule of ``neon`` for flat vectors by name."""

    def __init__(self, optimiser: Optimiser, state: Tensors, numbers: Tensors) -> None:
        super().__init__(optimiser, numbers["learning_rate"], numbers["count"])
        self.old = state
        self.new = dict(state)

    def state(self, w: Any, what: str) -> Any:
        """Return a vector by its name."""
        return self.old[what]

    def set(self, variable: Any, value: geon.Tensor) -> None:
        """Set the new value of a vector."""
        (name,) = (name for name, tensor in self.old.items() if tensor is variable)
        self.new[name] = geon.cast(value, variable.dtype)


class _RuleStepper(TrainingStepper):
    """Base of steppers with a rule of ``geon.frontends.neon``."""

    numbers = ("learning_rate", "count")
    elementwise = True
    learning_rate: float

    def __complete__(self) -> None:
        super().__complete__()
        self.rule()

    def rule(self) -> Optimiser:
        """Return the optimiser of neon that has the rule."""
        raise NotImplementedError

    def update(
        self, parameters: geon.Tensor, gradients: geon.Tensor, state: Tensors, numbers: Tensors
    ) -> tuple[geon.Tensor, dict[str, geon.Tensor]]:
        """Return the new parameters and vectors by the optimiser's rule."""
        optimiser = self.rule()
        step = _VectorStep(optimiser, state, numbers)
        new = optimiser.moved(parameters, parameters, gradients, step)  # type: ignore[arg-type]
        return new, step.new


@described
class AdamStepper(_RuleStepper):
    """Adam: bias-corrected running means of gradients and of their squares.

    D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """

    vectors = ("m", "v")
    constants = ("beta1", "beta2", "epsilon")

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def rule(self) -> Optimiser:
        """Return neon's Adam."""
        return Adam(self.learning_rate, self.beta1, self.beta2, self.epsilon)


@described
class RMSpropStepper(_RuleStepper):
    """Gradients divided by the root of a running mean of their squares.

    T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning", 2012.
    """

    constants = ("decay", "momentum", "epsilon")

    learning_rate: float = 0.01
    decay: float = 0.99
    momentum: float = 0.0
    epsilon: float = 1e-8

    @property
    def vectors(self) -> tuple[str, ...]:  # type: ignore[override]
        """The running mean of squares, and the momentum if there is one."""
        return ("square", "momentum") if self.momentum else ("square",)

    def rule(self) -> Optimiser:
        """Return neon's RMSProp."""
        return RMSProp(self.learning_rate, self.decay, self.momentum, self.epsilon)
