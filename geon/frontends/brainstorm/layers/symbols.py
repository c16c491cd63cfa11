"""Placeholders for the buffers of a layer, over the axes of its forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import geon

from ..errors import LayerValidationError
from ..structure.buffer_structure import BufferStructure

T, B = geon.Axis("T"), geon.Axis("B")
"""The axes of steps and of sequences, both open."""


class Tensors(dict[str, Any]):
    """Tensors by name, which are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no tensor {name!r}; there are {', '.join(self) or 'none'}")


@dataclass(eq=False)
class Symbols:
    """The tensors that a layer's ``forward`` reads.

    ``inputs`` and ``parameters`` are by name; ``state`` are internals whose values stay from one
    pass to the next. ``before`` are the values of outputs and internals before the first step, for
    those with a context. ``training`` is True in a pass that trains. ``probe(name)`` is a tensor of
    zeros over the axes of the internal ``name``; a layer adds it to a value inside of a loop, so
    that its delta is computed as the internal ``d`` + name. ``random`` returns the stream of
    random numbers.
    """

    inputs: Tensors
    parameters: Tensors
    state: Tensors
    before: Tensors
    training: bool
    random: Callable[[], geon.Random]
    probes: dict[str, Any] = field(default_factory=dict)
    structures: Mapping[str, BufferStructure] = field(default_factory=dict)
    dtype: str = "float32"

    def probe(self, name: str) -> Any:
        """Return zeros whose derivative is the internal ``d`` + name, over the axes of that."""
        if name not in self.probes:
            axes = axes_of(self.structures[f"d{name}"])
            self.probes[name] = geon.placeholder(axes, self.dtype, name=f"probe_{name}")
        return self.probes[name]


def axes_of(structure: BufferStructure) -> list[geon.Axis]:
    """Return the axes of a buffer's tensor: T and B where it has them, then F0, F1 and so on."""
    features = [geon.Axis(f"F{k}", n) for k, n in enumerate(structure.feature_shape)]
    return [{"T": T, "B": B}[entry] for entry in structure.scaling_shape] + features


def as_buffer(tensor: Any, structure: BufferStructure, what: str) -> Any:
    """Return a tensor over the axes of a buffer: T and B by name, the features by position.

    Raises ``LayerValidationError`` if it has other axes or lengths.
    """
    wanted = axes_of(structure)
    scaling = wanted[: len(structure.scaling_shape)]
    features = feature_axes(tensor)
    surplus = [name for name in "TB" if name in tensor.axes and name not in structure.shape]
    if surplus or tuple([axis.length for axis in features]) != structure.feature_shape:
        raise LayerValidationError(
            f"{what} is computed over the axes {tensor.axes}, and its buffer has the shape "
            f"{structure.shape}; return a tensor over T and B where the shape has them, and the "
            "features in their order, or change the shape in setup"
        )
    return geon.cast_axes(geon.broadcast(tensor, [*scaling, *features]), wanted)


def from_buffer(leaf: Any, tensor: Any) -> Any:
    """Return a tensor over the axes of a buffer as one over those of ``tensor``.

    It undoes ``as_buffer``. Return None if that repeated elements.
    """
    scaling = [axis for axis in leaf.axes if axis.name in ("T", "B")]
    if any(axis not in tensor.axes for axis in scaling):
        return None
    return geon.reorder(geon.cast_axes(leaf, [*scaling, *feature_axes(tensor)]), tensor.axes)


def feature_axes(tensor: Any) -> list[geon.Axis]:
    """Return the axes of a tensor but T and B."""
    return [axis for axis in tensor.axes if axis.name not in ("T", "B")]
