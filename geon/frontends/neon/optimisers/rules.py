"""Update rules: SGD, RMSProp, Adagrad, Adadelta, Adam, AdamW and Lion."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.rows.elementwise import cast, expm1, sign, sqrt, square
from .optimiser import Optimiser, Rate, UpdateStep


@dataclass(eq=False)
class SGD(Optimiser):
    """Gradient descent; with ``momentum``, along the exponentially decaying sum of gradients.

    With ``nesterov``, Nesterov's momentum, as in I. Sutskever, J. Martens, G. Dahl and G. Hinton,
    "On the importance of initialization and momentum in deep learning", ICML 2013.
    """

    momentum: float = 0.0
    _: KW_ONLY
    nesterov: bool = False

    shares = ("momentum",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise ArgumentError(
                f"{user_call('SGD')}: nesterov=True looks ahead along a momentum; give momentum="
            )

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times velocity."""
        if self.momentum:
            kept = step.state(w, "momentum")
            speed = self.momentum * kept + gradient
            step.set(kept, speed)
            gradient = gradient + self.momentum * speed if self.nesterov else speed
        return value - step.rate * gradient


@dataclass(eq=False)
class RMSProp(Optimiser):
    """Gradients divided by the root of a running mean of their squares; then momentum.

    T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning", 2012.
    """

    rate: Rate = 0.01
    smoothing: float = 0.99
    momentum: float = 0.0
    epsilon: float = 1e-8

    shares = ("smoothing", "momentum")

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times the scaled gradient, or its momentum."""
        kept = step.state(w, "square")
        size = self.smoothing * kept + (1 - self.smoothing) * square(gradient)
        step.set(kept, size)
        change = gradient / (sqrt(size) + self.epsilon)
        if self.momentum:
            speed = step.state(w, "momentum")
            change = self.momentum * speed + change
            step.set(speed, change)
        return value - step.rate * change


@dataclass(eq=False)
class Adagrad(Optimiser):
    """Gradients divided by the root of the sum of all their squares.

    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
    stochastic optimization", JMLR 2011.
    """

    rate: Rate = 0.01
    epsilon: float = 1e-10

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times the scaled gradient."""
        kept = step.state(w, "square")
        size = kept + square(gradient)
        step.set(kept, size)
        return value - step.rate * gradient / (sqrt(size) + self.epsilon)


@dataclass(eq=False)
class Adadelta(Optimiser):
    """Gradients times the ratio of the running root mean squares of changes and gradients.

    M. Zeiler, "ADADELTA: an adaptive learning rate method", 2012.
    """

    rate: Rate = 1.0
    smoothing: float = 0.9
    epsilon: float = 1e-6

    shares = ("smoothing",)

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times the change."""
        seen, made = step.state(w, "square"), step.state(w, "change")
        size = self.smoothing * seen + (1 - self.smoothing) * square(gradient)
        change = sqrt(made + self.epsilon) / sqrt(size + self.epsilon) * gradient
        step.set(seen, size)
        step.set(made, self.smoothing * made + (1 - self.smoothing) * square(change))
        return value - step.rate * change


@dataclass(eq=False)
class Adam(Optimiser):
    """A running mean of gradients, divided by the root of that of their squares.

    Both are bias-corrected. D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR
    2015.
    """

    rate: Rate = 0.001
    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8

    shares = ("first", "second")

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times the scaled mean."""
        m, v = step.state(w, "m"), step.state(w, "v")
        new_m = self.first * m + (1 - self.first) * gradient
        new_v = self.second * v + (1 - self.second) * square(gradient)
        step.set(m, new_m)
        step.set(v, new_v)
        count = cast(step.count, value.dtype)
        size = sqrt(new_v / bias_correction(self.second, count)) + self.epsilon
        return value - step.rate / bias_correction(self.first, count) * (new_m / size)


def bias_correction(smoothing: float, count: Tensor) -> Tensor:
    """Return 1 - smoothing ** count, the bias correction of a running mean that starts at 0."""
    return -expm1(count * math.log(smoothing)) if smoothing else count * 0 + 1


@dataclass(eq=False)
class AdamW(Adam):
    """Adam with decoupled weight decay: weights shrink by rate times ``decay``.

    I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.
    """

    decoupled = True


@dataclass(eq=False)
class Lion(Optimiser):
    """Moves by the rate along the sign of a running mean of gradients; ``decay`` as in ``AdamW``.

    X. Chen and others, "Symbolic discovery of optimization algorithms", NeurIPS 2023.
    """

    rate: Rate = 1e-4
    first: float = 0.9
    second: float = 0.99

    decoupled = True
    shares = ("first", "second")

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times the sign."""
        m = step.state(w, "m")
        step.set(m, self.second * m + (1 - self.second) * gradient)
        return value - step.rate * sign(self.first * m + (1 - self.first) * gradient)
