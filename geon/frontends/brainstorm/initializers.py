"""Initializers: first values of parameters, by shape.

A weight matrix has the shape (outputs, inputs). Equal seeds give equal values: the draws of each
initializer, their order and their arithmetic are part of its definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ...errors import ArgumentError
from .describable import described, option
from .errors import InitializationError
from .randomness import Seedable
from .utils import Array, product

__all__ = [
    "ArrayInitializer", "DenseSqrtFanIn", "DenseSqrtFanInOut", "EchoState", "Gaussian", "Identity",
    "LstmOptInit", "Orthogonal", "RandomWalk", "SparseInputs", "SparseOutputs", "Uniform",
]  # fmt: skip

Shape: TypeAlias = "tuple[int, ...]"


@described
class Initializer(Seedable):
    """Base of initializers; a subclass defines ``__call__``.

    ``rnd`` is the source of random numbers. ``__call__`` raises ``InitializationError`` for a shape
    that it does not accept, on which the fallback of ``Network.initialize`` is used.
    """

    def __call__(self, shape: Shape) -> Array:
        """Return the first values of a parameter of this shape."""
        raise NotImplementedError

    def _require(self, condition: bool, what: str, shape: Shape) -> None:
        """Raise ``InitializationError`` unless the condition on the shape holds."""
        if not condition:
            raise InitializationError(
                f"{type(self).__name__}: the parameter has the shape {tuple(shape)}; it needs "
                f"{what}; use another initializer for it, or give a fallback="
            )

    def _require_square(self, shape: Shape) -> None:
        self._require(len(shape) == 2 and shape[0] == shape[1], "a square matrix", shape)


Init: TypeAlias = "Initializer | float | list[Any] | Array"


@described
class ArrayInitializer(Initializer):
    """The values of an array of the shape of the parameter."""

    array: Any

    def __complete__(self) -> None:
        super().__complete__()
        self.array = np.array(self.array)

    def __call__(self, shape: Shape) -> Array:
        self._require(
            self.array.shape == tuple(shape), f"that of the array, {self.array.shape}", shape
        )
        return self.array

    def __describe__(self) -> Any:
        return self.array.tolist()


@described
class _Dense(Initializer):
    """Base of uniform draws from -scale / sqrt(n) to scale / sqrt(n).

    ``scale`` is a number or the name of an activation function.
    """

    scales: ClassVar[dict[str, float]]
    scale: float | str = option(default="rel")

    def __complete__(self) -> None:
        super().__complete__()
        self._scale()

    def _scale(self) -> float:
        if not isinstance(self.scale, str):
            return self.scale
        if self.scale not in self.scales:
            raise InitializationError(
                f"{type(self).__name__}: scale={self.scale!r} is no activation function that it "
                f"knows; give a number or one of {', '.join(map(repr, self.scales))}"
            )
        return self.scales[self.scale]

    def units(self, shape: Shape) -> int:
        """Return n for a shape."""
        raise NotImplementedError

    def __call__(self, shape: Shape) -> Array:
        self._require(len(shape) >= 2, "at least two axes", shape)
        return self._scale() * (2 * self.rnd.rand(*shape) - 1) / np.sqrt(self.units(shape))


class DenseSqrtFanIn(_Dense):
    """Uniform from -scale / sqrt(n) to scale / sqrt(n) for n inputs of each unit.

    The scales of activation functions are sqrt(6) for ``rel``, sqrt(3) for ``tanh``, 4 sqrt(3) for
    ``sigmoid`` and 1 for ``linear``.
    """

    scales = {"rel": np.sqrt(6), "tanh": np.sqrt(3), "sigmoid": 4 * np.sqrt(3), "linear": 1}

    def units(self, shape: Shape) -> int:
        """Return the number of inputs."""
        return product(shape[1:])


class DenseSqrtFanInOut(_Dense):
    """Uniform from -scale / sqrt(n) to scale / sqrt(n) for the sum n of inputs and outputs.

    The scales of activation functions are sqrt(12) for ``rel``, sqrt(6) for ``tanh``, 4 sqrt(6) for
    ``sigmoid`` and 1 for ``linear``. X. Glorot and Y. Bengio, "Understanding the difficulty of
    training deep feedforward neural networks", AISTATS 2010.
    """

    scales = {"rel": np.sqrt(12), "tanh": np.sqrt(6), "sigmoid": 4 * np.sqrt(6), "linear": 1}

    def units(self, shape: Shape) -> int:
        """Return the number of outputs plus that of inputs."""
        return shape[0] + product(shape[1:])


@described
class EchoState(Initializer):
    """A square matrix of uniform draws, scaled to a spectral radius.

    H. Jaeger, "The echo state approach to analysing and training recurrent neural networks", 2001.
    """

    spectral_radius: float = option(default=1.0)

    def __call__(self, shape: Shape) -> Array:
        self._require_square(shape)
        values = self.rnd.uniform(-0.5, 0.5, size=shape)
        return values * (self.spectral_radius / np.abs(np.linalg.eig(values)[0]).max())


@described
class Gaussian(Initializer):
    """Normal draws with a standard deviation and a mean."""

    std: float = 0.1
    mean: float = option(default=0.0)

    def __call__(self, shape: Shape) -> Array:
        return self.rnd.randn(*shape) * self.std + self.mean


@described
class Identity(Initializer):
    """``scale`` times the identity matrix, plus normal noise of standard deviation ``std``."""

    scale: float = 1.0
    std: float = 0.01
    enforce_square: bool = True

    def __call__(self, shape: Shape) -> Array:
        self._require(len(shape) == 2, "a matrix", shape)
        if self.enforce_square:
            self._require_square(shape)
        return np.eye(shape[0], shape[1]) * self.scale + self.rnd.randn(*shape) * self.std


class LstmOptInit(Initializer):
    """One initializer or number for each of four equal blocks of rows.

    The blocks are the input of cells, their input gates, forget gates and output gates.
    """

    def __init__(
        self,
        input_block: Init = 0.0,
        input_gate: Init = 0.0,
        forget_gate: Init = 0.0,
        output_gate: Init = 0.0,
    ) -> None:
        super().__init__()
        self.block_input = input_block
        self.input_gate = input_gate
        self.forget_gate = forget_gate
        self.output_gate = output_gate

    def __call__(self, shape: Shape) -> Array:
        self._require(shape[0] % 4 == 0, "a first length that is a multiple of 4", shape)
        part = (shape[0] // 4, *shape[1:])
        blocks = (self.block_input, self.input_gate, self.forget_gate, self.output_gate)
        return np.concatenate(
            [evaluate_initializer(b, part, seed=self.rnd.generate_seed()) for b in blocks]
        )


@described
class Orthogonal(Initializer):
    """``scale`` times a matrix with orthonormal rows or columns.

    A. Saxe, J. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks", ICLR 2014.
    """

    scale: float = 1.0

    def __call__(self, shape: Shape) -> Array:
        self._require(len(shape) == 2, "a matrix", shape)
        u, _, v = np.linalg.svd(self.rnd.randn(*shape), full_matrices=False)
        return self.scale * (u if u.shape == tuple(shape) else v)


@described
class RandomWalk(Initializer):
    """Normal draws with the standard deviation scale / sqrt(n) for a square matrix of length n.

    The default scale is that of the paper for ``act_func``, ``linear`` or ``rel``. D. Sussillo and
    L. Abbott, "Random walk initialization for training very deep feedforward networks", 2014.
    """

    scales: ClassVar[dict[str, Callable[[int], float]]] = {
        "linear": lambda n: float(np.exp(1 / (2 * n))),
        "rel": lambda n: float(np.sqrt(2) * np.exp(1.2 / (max(n, 6) - 2.4))),
    }
    act_func: str = "linear"
    scale: float | None = option(default=None)

    def __complete__(self) -> None:
        super().__complete__()
        if self.scale is None and self.act_func not in self.scales:
            raise InitializationError(
                f"RandomWalk: act_func={self.act_func!r} has no scale in the paper; give scale=, "
                f"or one of {', '.join(map(repr, self.scales))}"
            )

    def __call__(self, shape: Shape) -> Array:
        self._require_square(shape)
        scale = self.scales[self.act_func](shape[1]) if self.scale is None else self.scale
        return scale * self.rnd.randn(*shape) / np.sqrt(shape[1])


@described
class _Sparse(Initializer):
    """Base of initializers that keep so many connections of each unit, and set the rest to 0."""

    axis: ClassVar[int]  # that of the matrix along which connections are chosen

    sub_initializer: Init
    connections: int = 15

    def __call__(self, shape: Shape) -> Array:
        self._require(
            len(shape) == 2 and shape[self.axis] >= self.connections,
            f"a matrix with a length of at least {self.connections} along axis {self.axis}",
            shape,
        )
        seed = self.rnd.generate_seed()
        values = evaluate_initializer(self.sub_initializer, shape, seed=seed)
        mask = np.zeros(shape)
        lines = mask if self.axis == 1 else mask.T
        for line in lines:
            line[: self.connections] = 1
            self.rnd.shuffle(line)
        return values * mask


class SparseInputs(_Sparse):
    """``sub_initializer`` for ``connections`` random inputs of each unit, and 0 for the others."""

    axis = 1


class SparseOutputs(_Sparse):
    """``sub_initializer`` for ``connections`` random targets of each input, and 0 elsewhere."""

    axis = 0


@described
class Uniform(Initializer):
    """Uniform draws from ``low`` to ``high``, or from -low to low if ``high`` is None."""

    low: float = 0.1
    high: Any = None

    def __complete__(self) -> None:
        super().__complete__()
        if self.high is None:
            self.low, self.high = sorted([-self.low, self.low])
        if not self.low < self.high:
            raise InitializationError(
                f"Uniform: low={self.low} is not below high={self.high}; give an interval"
            )

    def __call__(self, shape: Shape) -> Array:
        return ((self.high - self.low) * self.rnd.rand(*shape)) + self.low


def evaluate_initializer(
    initializer: Any, shape: Shape, fallback: Any = None, seed: int | None = None
) -> Array:
    """Return the values of an initializer, number or array for a parameter's shape.

    ``seed`` seeds the initializer first. ``fallback`` is used if it raises ``InitializationError``.
    Raises ``ArgumentError``, a ``TypeError``, for anything else.
    """
    if isinstance(initializer, (list, tuple, np.ndarray)):
        initializer = ArrayInitializer(initializer)
    if isinstance(initializer, Initializer):
        if seed is not None:
            initializer.rnd.set_seed(seed)
        try:
            return initializer(shape)
        except InitializationError:
            if fallback is None:
                raise
            return evaluate_initializer(fallback, shape, seed=seed)
    if not isinstance(initializer, (int, float, np.number)):
        raise ArgumentError(
            f"{initializer!r} of type {type(initializer).__name__} is no initializer; give a "
            "number, an array of the parameter's shape or an Initializer, such as Gaussian()"
        )
    return np.full(shape, initializer, dtype=np.float64)
