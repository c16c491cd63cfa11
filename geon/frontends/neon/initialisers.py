"""Initialisers of layers' variables.

An initialiser is called with the axes of the variable, those that its layer sums over (``inputs``)
and those that it produces (``outputs``), and returns an ``initial_value``. Each index of other
axes, such as groups of filters, gates or experts, has a matrix of its own. Numbers and arrays can
be used instead. Random initialisers take a ``geon.Random``, which numbers its draws, so no two
variables start equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...errors import ArgumentError
from ...op_graph.axes.axes import Axes
from ...op_graph.core.source_info import user_call
from ...op_graph.op_graph import Tensor
from ...op_graph.rows.elementwise import sqrt
from ...op_graph.rows.leaves import length_value
from .checks import a_finite_number, stream

if TYPE_CHECKING:
    from ...op_graph.building.typing import TensorLike
    from ...op_graph.draws.stream import Random

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
    """Base of random initialisers; raises ``ArgumentError`` for invalid streams and parameters."""

    random: Random

    def __post_init__(self) -> None:
        what = type(self).__name__
        stream(what, self.random)
        for name, value in vars(self).items():
            if name != "random":
                a_finite_number(what, name, value)


@dataclass(frozen=True)
class Uniform(Drawn):
    """Uniformly distributed numbers from ``low`` to ``high``."""

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
    """Uniform in ±gain sqrt(6 / (inputs + outputs)).

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
    """Uniform in ±gain sqrt(3 / inputs): variance gain² / inputs, Caffe's form."""

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        reach = self.gain * sqrt(3 / length_value(inputs.size))
        return self.random.uniform(axes, -reach, reach)


@dataclass(frozen=True)
class Kaiming(Drawn):
    """Normal with variance 2 / ((1 + slope²) inputs), for relu or leaky relu of that ``slope``.

    K. He, X. Zhang, S. Ren and J. Sun, "Delving deep into rectifiers", ICCV 2015.
    """

    slope: float = 0.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Tensor:
        gain = 2 / (1 + self.slope**2)
        return self.random.normal(axes, 0, sqrt(gain / length_value(inputs.size)))


@dataclass(frozen=True)
class Identity:
    """``gain`` times the identity matrix from inputs to outputs, in each group."""

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Array]:
        def first(axes: Axes) -> Array:
            groups = _groups(axes, inputs, outputs)
            count, rows, columns = _sizes(axes, inputs, groups)
            matrices = np.broadcast_to(self.gain * np.eye(rows, columns), (count, rows, columns))
            return _place_matrices(matrices, axes, inputs, groups)

        return first


@dataclass(frozen=True)
class Orthogonal(Drawn):
    """A random matrix of inputs by outputs with orthonormal rows or columns, times ``gain``.

    Each group of filters, gate or expert has a matrix of its own.

    A. Saxe, J. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks", ICLR 2014.
    """

    gain: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Array]:
        numbers = _numbers(self.random)

        def first(axes: Axes) -> Array:
            groups = _groups(axes, inputs, outputs)
            count, rows, columns = _sizes(axes, inputs, groups)
            if not count or not rows or not columns:
                return _place_matrices(np.zeros((count, rows, columns)), axes, inputs, groups)
            drawn = numbers().normal(size=(count, max(rows, columns), min(rows, columns)))
            basis, upper = np.linalg.qr(drawn)
            # With these signs, all orthogonal matrices are equally likely.
            basis = basis * np.where(np.diagonal(upper, axis1=1, axis2=2) < 0, -1, 1)[:, None]
            if rows < columns:
                basis = basis.transpose(0, 2, 1)
            return _place_matrices(self.gain * basis, axes, inputs, groups)

        return first


@dataclass(frozen=True)
class Sparse(Drawn):
    """Normal numbers, with a ``share`` of each output's inputs, rounded up, set to 0.

    J. Martens, "Deep learning via Hessian-free optimization", ICML 2010.
    """

    share: float = 0.9
    std: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ArgumentError(
                f"{user_call('Sparse')}: share={self.share!r} of the inputs; give one from 0 to 1"
            )

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Array]:
        numbers = _numbers(self.random)

        def first(axes: Axes) -> Array:
            _, rows, columns = _sizes(axes, inputs, Axes())
            generator = numbers()
            order = generator.random((rows, columns)).argsort(axis=0)
            drawn = generator.normal(0, self.std, (rows, columns))
            kept = np.where(order < math.ceil(self.share * rows), 0, drawn)
            return _place_matrices(kept, axes, inputs, Axes())

        return first


def _numbers(random: Random) -> Callable[[], np.random.Generator]:
    """Return a function that makes equal NumPy generators, seeded by one draw of the stream."""
    bits = random.bits().attrs
    return lambda: np.random.default_rng([bits.seed, bits.draw])


def _groups(axes: Axes, inputs: Axes, outputs: Axes) -> Axes:
    """Return the axes that are neither inputs nor outputs; none if ``outputs`` is empty."""
    rest = axes.without(inputs)
    return rest.without(outputs) if len(outputs) else Axes()


def _sizes(axes: Axes, inputs: Axes, groups: Axes) -> tuple[int, int, int]:
    """Return the number of matrices in a variable over ``axes``, their rows and their columns.

    There is one for each index of the ``groups``; its rows are the inputs, its columns all other
    axes.
    """
    columns = axes.without(inputs).without(groups)
    return int(groups.size), int(axes.only(inputs).size), int(columns.size)


def _place_matrices(matrices: Array, axes: Axes, inputs: Axes, groups: Axes) -> Array:
    """Return the matrices of ``_sizes`` as the array over ``axes``."""
    apart = Axes(groups, axes.only(inputs), axes.without(inputs).without(groups))
    whole = matrices.reshape([int(length) for length in apart.lengths])
    return whole.transpose([apart.index(axis) for axis in axes])
