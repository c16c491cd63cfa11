"""``Parameter``: a variable of a model; ``Parameters``: those that a selector chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

import geon
from geon import eager

from ....errors import ArgumentError, AxisError
from ...neon.checks import above_zero
from ...neon.optimisers.clipping import clip_by_norm
from ...neon.optimisers.optimiser import Optimiser
from ...positional.values import PositionalArray, array
from ..checks import checked
from ..minimizers import as_optimiser

if TYPE_CHECKING:
    from .model import Model

Array = np.ndarray[Any, Any]
KINDS = ("weight", "bias", "state")


@checked
@dataclass(eq=False)
class Parameter:
    """A variable of a model, without axes for dimensions of length 1.

    ``kind`` is "weight", "bias", or "state", which is never trained. ``gradient`` accumulates until
    ``apply_gradients``.
    """

    kind: str
    shape: tuple[int, ...]
    leaf: Any
    trainable: bool = True
    minimizer: Optimiser | None = None
    gradient: Any = None

    @property
    def value(self) -> PositionalArray:
        """The variable with its dimensions."""
        names = iter(self.leaf.axes.names)
        return array(self.leaf, [None if n == 1 else next(names) for n in self.shape])

    def numpy(self) -> Array:
        """Return a copy of the value."""
        return np.array(eager.array(self.leaf)).reshape(self.shape)

    def add_gradient(self, gradient: Any) -> None:
        """Add to the accumulated gradient."""
        before = self.gradient
        self.gradient = (gradient if before is None else before + gradient).detach()

    def set(self, data: Any) -> None:
        """Assign data of the parameter's shape; raise ``AxisError`` for another shape."""
        given = np.asarray(getattr(data, "array", data))
        if given.shape != self.shape:
            raise AxisError(
                f"data of shape {given.shape} for the parameter {self.leaf} of shape {self.shape}; "
                "give data of its shape"
            )
        held = eager.array(given.reshape(self.leaf.shape), self.leaf.axes, self.leaf.dtype)
        eager.run(geon.assign(self.leaf, held))


@checked
@dataclass(frozen=True, eq=False)
class Parameters(Sequence[Parameter]):
    """Parameters of a model that a selector chose, by path; a sequence of ``Parameter``.

    ``places`` has the path, the model that owns it, and the name of each.
    """

    places: list[tuple[str, Model, str]] = field(repr=False)

    @property
    def names(self) -> list[str]:
        """The paths, such as ``0.weight``."""
        return [path for path, _, _ in self.places]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Parameters(self.places[at])
        _, owner, name = self.places[at]
        return owner.own[name]

    def __iter__(self) -> Iterator[Parameter]:
        return (owner.own[name] for _, owner, name in self.places)

    # Values -------------------------------------------------------------------------------------

    def numpy(self) -> list[Array]:
        """Return copies of the values."""
        return [parameter.numpy() for parameter in self]

    def set(self, *data: Any) -> None:
        """Assign an array to each parameter."""
        for parameter, each in self._with(data):
            parameter.set(each)

    def map(self, function: Callable[[Array], Any]) -> None:
        """Replace each value by ``function(value)``."""
        self.set(*map(function, self.numpy()))

    def zip_map(self, function: Callable[[Array, Array], Any], other: Parameters) -> None:
        """Replace each value by ``function(value, other's value)``, as in running averages."""
        pairs = self._with(other)
        self.set(*[function(left.numpy(), right.numpy()) for left, right in pairs])

    def copy_from(self, other: Parameters) -> None:
        """Set each parameter to the value of the corresponding one of ``other``."""
        self.zip_map(lambda mine, theirs: theirs, other)

    def share(self, other: Parameters) -> None:
        """Use the parameters of ``other`` from now on: training one model moves both."""
        pairs = self._with(other)
        for (_, owner, name), (_, rhs) in zip(self.places, pairs, strict=True):
            owner.own[name] = rhs

    def _with(self, other: Sequence[Any]) -> list[tuple[Parameter, Any]]:
        """Return pairs with parameters or arrays; raise ``AxisError`` unless shapes are equal."""
        shapes = [
            [getattr(x, "shape", None) or np.shape(x) for x in each] for each in (self, other)
        ]
        if shapes[0] != shapes[1]:
            raise AxisError(
                f"the parameters {', '.join(self.names)} have shapes {shapes[0]}, and what is "
                f"given has {shapes[1]}; choose as many of equal shapes"
            )
        return list(zip(self, other, strict=True))

    # Training -----------------------------------------------------------------------------------

    def freeze(self, frozen: bool = True) -> None:
        """Keep the parameters as they are in training; ``freeze(False)`` ends that."""
        for parameter in self:
            parameter.trainable = not frozen and parameter.kind != "state"

    def set_minimizer(self, minimizer: Any) -> None:
        """Move these parameters by a minimiser of their own."""
        made = as_optimiser(minimizer)
        for parameter in self:
            parameter.minimizer = made

    @property
    def gradients(self) -> list[Array | None]:
        """The accumulated gradients; None where there is none."""
        return [None if p.gradient is None else np.array(p.gradient).reshape(p.shape) for p in self]

    def map_gradients(self, function: Callable[[Array], Any]) -> None:
        """Replace each accumulated gradient by ``function(gradient)``."""
        for parameter, gradient in zip(self, self.gradients, strict=True):
            if gradient is not None:
                axes, dtype = parameter.leaf.axes, parameter.leaf.dtype
                made = np.asarray(function(gradient), dtype)
                if made.shape != gradient.shape:
                    raise AxisError(
                        f"the function returned shape {made.shape} for a gradient of shape "
                        f"{gradient.shape}; let it keep the shape"
                    )
                made = made.reshape(parameter.leaf.shape)
                parameter.gradient = eager.array(made, axes)

    def clip_grad_norm(self, largest: float) -> None:
        """Scale the accumulated gradients so that their common 2-norm is at most ``largest``."""
        above_zero("clip_grad_norm", "largest", largest)
        held = [p for p in self if p.gradient is not None]
        clip = eager.function(lambda gradients: clip_by_norm(gradients, largest))
        made = clip([p.gradient for p in held]) if held else []
        for parameter, gradient in zip(held, made, strict=True):
            parameter.gradient = gradient

    def gradients_isnan(self) -> bool:
        """Return True if an accumulated gradient has an element that is NaN."""
        return any(g is not None and bool(np.isnan(g).any()) for g in self.gradients)


def selected(places: list[tuple[str, Model, str]], selector: str, index: Any) -> Any:
    """Return the places that a selector chooses; raise ``ArgumentError`` if it chooses none."""
    kinds = {selector} if selector in KINDS else {"weight", "bias"} if selector == "all" else None
    found = [
        (path, owner, name)
        for path, owner, name in places
        if (fnmatchcase(path, selector) if kinds is None else owner.own[name].kind in kinds)
    ]
    if (not found and kinds is None) or (
        index is not None and not -len(found) <= index < len(found)
    ):
        at = "" if index is None else f", number {index}"
        raise ArgumentError(
            f"the selector {selector!r}{at} chooses no parameter; give 'all', one of "
            f"{', '.join(map(repr, KINDS))}, or a pattern of the names "
            f"{', '.join([path for path, _, _ in places]) or '(none: compile the model first)'}"
        )
    return found if index is None else [found[index]]
