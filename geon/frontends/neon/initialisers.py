"""Initialisers: what a variable of a layer begins with.

Each is called with the axes of the variable, those that its layer sums over (``inputs``) and those
that it makes (``outputs``), and gives an ``initial_value``. Numbers and arrays serve as well. What
is random takes a ``geon.Random``, which numbers its draws, so no two variables begin alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...errors import ArgumentError
from ...op_graph.axes import Axes
from ...op_graph.elementwise import sqrt
from ...op_graph.leaves import length_value
from ...op_graph.op_graph import Tensor
from ...op_graph.random import Random
from .checks import a_finite_number, stream

if TYPE_CHECKING:
    from ...op_graph.accepted import TensorLike

    Initialiser: TypeAlias = Callable[[Axes, Axes, Axes], Any]
    First: TypeAlias = TensorLike | Initialiser

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Constant:
    """The same number everywhere."""

    value: float = 0.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> float:
        return self.value


@dataclass(frozen=True)
class Drawn:
    """What draws from a stream; ``ArgumentError`` for what is none, and for other than numbers."""

    random: Random

    def __post_init__(self) -> None:
        what = type(self).__name__
        stream(what, self.random)
        for name, value in vars(self).items():
            if name != "random":
                a_finite_number(what, name, value)


@dataclass(frozen=True)
class Uniform(Drawn):
    """Numbers spread evenly from ``low`` to ``high``."""

    low: float = -0.1
    high: float = 0.1

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        return self.random.uniform(axes, self.low, self.high)


@dataclass(frozen=True)
class Gaussian(Drawn):
    """Normally distributed numbers."""

    mean: float = 0.0
    std: float = 0.01

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        return self.random.normal(axes, self.mean, self.std)


@dataclass(frozen=True)
class Glorot(Drawn):
    """Even between ±gain sqrt(6 / (inputs + outputs)).

    X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", AISTATS 2010.
    """

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        both = length_value(inputs.size) + length_value(outputs.size)
        reach = self.gain * sqrt(6 / both)
        return self.random.uniform(axes, -reach, reach)


@dataclass(frozen=True)
class Xavier(Drawn):
    """Even between ±gain sqrt(3 / inputs): variance 1 / inputs, the form that Caffe has."""

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        reach = self.gain * sqrt(3 / length_value(inputs.size))
        return self.random.uniform(axes, -reach, reach)


@dataclass(frozen=True)
class Kaiming(Drawn):
    """Normal of variance 2 / ((1 + slope²) inputs), for relu or leaky relu of that ``slope``.

    K. He, X. Zhang, S. Ren and J. Sun, "Delving deep into rectifiers", ICCV 2015.
    """

    slope: float = 0.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        gain = 2 / (1 + self.slope**2)
        return self.random.normal(axes, 0, sqrt(gain / length_value(inputs.size)))


@dataclass(frozen=True)
class Identity:
    """``gain`` from each input to the output of the same number, 0 elsewhere."""

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Array]:
        return lambda axes: _placed(self.gain * np.eye(*_sizes(axes, inputs)), axes, inputs)


@dataclass(frozen=True)
class Orthogonal(Drawn):
    """A random matrix of inputs by outputs with orthonormal rows or columns, times ``gain``.

    A. Saxe, J. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks", ICLR 2014.
    """

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Array]:
        numbers = _numbers(self.random)

        def first(axes: Axes) -> Array:
            rows, columns = _sizes(axes, inputs)
            if not rows or not columns:
                return _placed(np.zeros((rows, columns)), axes, inputs)
            drawn = numbers().normal(size=(max(rows, columns), min(rows, columns)))
            basis, upper = np.linalg.qr(drawn)
            # With these signs all orthogonal matrices are equally likely.
            basis = basis * np.where(np.diagonal(upper) < 0, -1, 1)
            return _placed(self.gain * (basis if rows >= columns else basis.T), axes, inputs)

        return first


@dataclass(frozen=True)
class Sparse(Drawn):
    """Normal numbers from some inputs to each output, 0 from a ``share`` of them, rounded up.

    J. Martens, "Deep learning via Hessian-free optimization", ICML 2010.
    """

    share: float = 0.9
    std: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ArgumentError(f"Sparse: share={self.share!r} of the inputs; give one from 0 to 1")

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Array]:
        numbers = _numbers(self.random)

        def first(axes: Axes) -> Array:
            rows, columns = _sizes(axes, inputs)
            generator = numbers()
            order = generator.random((rows, columns)).argsort(axis=0)
            drawn = generator.normal(0, self.std, (rows, columns))
            return _placed(np.where(order < math.ceil(self.share * rows), 0, drawn), axes, inputs)

        return first


def _numbers(random: Random) -> Callable[[], np.random.Generator]:
    """A maker of generators, all alike, for what NumPy draws: of a draw of the stream's own."""
    seed, draw = random.bits().attrs[:2]
    return lambda: np.random.default_rng([seed, draw])


def _sizes(axes: Axes, inputs: Axes) -> tuple[int, int]:
    """Rows and columns of a variable over ``axes`` as a matrix: its inputs by all else."""
    return int(axes.only(inputs).size), int(axes.without(inputs).size)


def _placed(matrix: Array, axes: Axes, inputs: Axes) -> Array:
    """A matrix as the array over ``axes`` of a variable with these inputs."""
    apart = Axes(axes.only(inputs), axes.without(inputs))
    whole = matrix.reshape([int(length) for length in apart.lengths])
    return whole.transpose([apart.index(axis) for axis in axes])
