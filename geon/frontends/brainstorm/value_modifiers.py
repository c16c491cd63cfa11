"""Modifiers of parameters and gradients: constraints, masks and weight decay.

``Network.set_weight_modifiers`` and ``set_gradient_modifiers`` install copies of them. Built-in
modifiers state their ``formula`` once, as a function of tensors. One of your own overrides
``__call__`` and works with handler operations, or names its members in ``numbers`` and ``arrays``
and defines ``formula``, which compiled networks need of gradient modifiers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import geon

from ...errors import ArgumentError
from .array_functions import run_on_arrays
from .describable import described, hidden, option
from .errors import NetworkValidationError
from .randomness import Seedable
from .utils import Array

__all__ = [
    "ClipValues", "ConstrainL2Norm", "FreezeValues", "GradientModifier", "L1Decay", "L2Decay",
    "MaskValues", "ValueModifier",
]  # fmt: skip


@described
class _Modifier(Seedable):
    """Base of modifiers; the network sets ``layer_name`` and ``view_name``.

    ``formula`` takes the values to modify and the members that ``arrays`` and ``numbers`` name.
    """

    layer_name: str = hidden(default="")
    view_name: str = hidden(default="")

    arrays: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[Callable[..., geon.Tensor] | None] = None

    def __repr__(self) -> str:
        members = (f"{name}={getattr(self, name)!r}" for name in self.numbers)
        place = ".".join([self.layer_name, self.view_name, type(self).__name__]).strip(".")
        return f"<{place}({', '.join(members)})>"

    def _run(self, handler: Any, *values: Any) -> None:
        """Replace the last of the arrays ``values`` by the formula of them."""
        if self.formula is None:
            raise NotImplementedError(f"{type(self).__name__} defines neither formula nor __call__")
        fixed = [self._array(name, values[-1]) for name in self.arrays]
        numbers = [getattr(self, name) for name in self.numbers]
        run_on_arrays(handler, self.formula, [*values, *fixed], numbers, out=values[-1])

    def _array(self, name: str, view: Any) -> Array:
        """Return an array member in the dtype of a view; raise unless it has the view's shape."""
        array = np.asarray(getattr(self, name), view.dtype)
        if array.shape != tuple(view.shape):
            raise NetworkValidationError(
                f"{self!r}: {name} has the shape {array.shape} and the values have "
                f"{tuple(view.shape)}; give an array of that shape"
            )
        return array

    def modified(self, *values: geon.Tensor) -> geon.Tensor:
        """Return the formula of tensors, the last of which it modifies: for compiled networks."""
        if self.formula is None:
            raise NetworkValidationError(
                f"{self!r} has no formula, so a compiled network cannot apply it; define formula, "
                "a static method on tensors, or train without compiled=True"
            )
        fixed = []
        for name in self.arrays:
            array = np.asarray(getattr(self, name), values[-1].dtype)
            fixed.append(geon.constant(array, values[-1].axes))
        return self.formula(*values, *fixed, *(getattr(self, name) for name in self.numbers))


class ValueModifier(_Modifier):
    """Base of modifiers of parameters, or of gradients, by their own values."""

    def __call__(self, handler: Any, view: Any) -> None:
        """Modify the values of an array of the handler."""
        self._run(handler, view)


class GradientModifier(_Modifier):
    """Base of modifiers of gradients that depend on the parameters too."""

    def __call__(self, handler: Any, parameters: Any, gradients: Any) -> None:
        """Modify the gradients, given the parameters: arrays of the handler."""
        self._run(handler, parameters, gradients)


@described
class ConstrainL2Norm(ValueModifier):
    """Scale the incoming weights of each unit whose L2 norm is above ``limit`` to that norm.

    The first axis of weights goes along units. Biases, which have one axis, stay as they are.
    """

    numbers = ("limit",)

    limit: float

    def __complete__(self) -> None:
        super().__complete__()
        if not self.limit > 0:
            raise ArgumentError(f"ConstrainL2Norm: limit={self.limit!r}; give a number above 0")

    @staticmethod
    def formula(values: geon.Tensor, limit: geon.Tensor) -> geon.Tensor:
        """Return the values divided by max(1, norm / limit)."""
        inputs = list(values.axes)[1:]
        if not inputs:
            return values
        norm = geon.sqrt(geon.sum(geon.square(values), inputs))
        return values / geon.maximum(norm / limit, 1)


@described
class ClipValues(ValueModifier):
    """Clip values to the interval from ``low`` to ``high``."""

    numbers = ("low", "high")

    low: float = -1.0
    high: float = 1.0

    def __complete__(self) -> None:
        super().__complete__()
        if not self.low <= self.high:
            raise ArgumentError(
                f"ClipValues: low={self.low!r} is above high={self.high!r}; swap them"
            )

    @staticmethod
    def formula(values: geon.Tensor, low: geon.Tensor, high: geon.Tensor) -> geon.Tensor:
        """Return the clipped values."""
        return geon.minimum(geon.maximum(values, low), high)


@described
class MaskValues(ValueModifier):
    """Multiply values by a mask of their shape, for example to clamp some weights to 0."""

    arrays = ("mask",)

    mask: Array

    def __complete__(self) -> None:
        super().__complete__()
        self.mask = np.asarray(self.mask)

    @staticmethod
    def formula(values: geon.Tensor, mask: geon.Tensor) -> geon.Tensor:
        """Return the product."""
        return values * mask


@described
class FreezeValues(ValueModifier):
    """Set values to ``weights`` each time, by default to the values of the first call."""

    weights: Array | None = option(default=None)
    first_values: Array | None = hidden(default=None)

    def __call__(self, handler: Any, view: Any) -> None:
        """Set the values of an array of the handler."""
        if self.weights is None and self.first_values is None:
            self.first_values = handler.get_numpy_copy(view)
        name = "first_values" if self.weights is None else "weights"
        handler.set_from_numpy(view, self._array(name, view))


@described
class L1Decay(GradientModifier):
    """L1 weight decay: add factor * sign(parameters) to gradients."""

    numbers = ("factor",)

    factor: float

    @staticmethod
    def formula(
        parameters: geon.Tensor, gradients: geon.Tensor, factor: geon.Tensor
    ) -> geon.Tensor:
        """Return the sum."""
        return gradients + factor * geon.sign(parameters)


@described
class L2Decay(GradientModifier):
    """L2 weight decay: add factor * parameters to gradients."""

    numbers = ("factor",)

    factor: float

    @staticmethod
    def formula(
        parameters: geon.Tensor, gradients: geon.Tensor, factor: geon.Tensor
    ) -> geon.Tensor:
        """Return the sum."""
        return gradients + factor * parameters
