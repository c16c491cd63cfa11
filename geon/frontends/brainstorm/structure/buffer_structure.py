"""``BufferStructure``: the shape of a buffer; ``StructureTemplate``: a pattern of such shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import StructureValidationError

Shape = tuple[Any, ...]
SCALING: tuple[tuple[str, ...], ...] = ((), ("B",), ("T", "B"))
"""The first entries of shapes by buffer type: constant, one row per example, one per step too."""


class BufferStructure:
    """The shape of a buffer: ``(5, 3)``, ``('B', 7)`` or ``('T', 'B', 32, 32, 3)``.

    ``T`` is the number of steps and ``B`` that of sequences; all other entries are lengths of
    features. A buffer with T may have ``context_size`` more rows: row ``-k`` is the step ``k``
    before the first. One that ``is_backward_only`` holds deltas or gradients. Two structures are
    equal if their shapes are.
    """

    def __init__(self, *shape: Any, context_size: int = 0, is_backward_only: bool = False) -> None:
        self.shape = tuple(shape)
        self.buffer_type = _buffer_type(self.shape, "BufferStructure")
        for length in self.feature_shape:
            if isinstance(length, bool) or not isinstance(length, int) or length < 0:
                raise StructureValidationError(
                    f"BufferStructure{self.shape}: {length!r} is no length of a feature; after 'T' "
                    "and 'B', a shape has integers, such as ('T', 'B', 784)"
                )
        if not isinstance(context_size, int) or context_size < 0:
            raise StructureValidationError(
                f"BufferStructure{self.shape}: context_size={context_size!r} is no number of steps"
            )
        if context_size and not self.scales_with_time:
            raise StructureValidationError(
                f"BufferStructure{self.shape} has no steps, so it has no context_size="
                f"{context_size} of steps before them; begin the shape with 'T', 'B'"
            )
        self.context_size, self.is_backward_only = context_size, bool(is_backward_only)

    @classmethod
    def from_layout(cls, layout: Mapping[str, Any]) -> BufferStructure:
        """Return the structure that an entry of a layout describes."""
        return cls(
            *layout["@shape"],
            context_size=layout.get("@context_size", 0),
            is_backward_only=layout.get("@is_backward_only", False),
        )

    @classmethod
    def create_from_buffer_hub(cls, hub: Any) -> BufferStructure:
        """Return the structure of the buffer that all sources and sinks of a hub share."""
        return cls(
            *SCALING[hub.buffer_type],
            *hub.feature_shape,
            context_size=hub.context_size,
            is_backward_only=hub.is_backward_only,
        )

    @property
    def scaling_shape(self) -> tuple[str, ...]:
        """Return the entries that are T and B."""
        return SCALING[self.buffer_type]

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Return the lengths of the features."""
        return self.shape[self.buffer_type :]

    @property
    def feature_size(self) -> int:
        """Return the number of features."""
        return math.prod(self.feature_shape)

    @property
    def scales_with_time(self) -> bool:
        """Return True if the buffer has a row for each step."""
        return self.buffer_type == 2

    @property
    def scales_with_batch_size(self) -> bool:
        """Return True if the buffer has a row for each sequence."""
        return self.buffer_type >= 1

    @property
    def nr_dims(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def get_shape(self, time_size: int, batch_size: int) -> tuple[int, ...]:
        """Return the shape of the array for these numbers of steps and sequences."""
        lengths = {"T": time_size + self.context_size, "B": batch_size}
        return tuple([lengths.get(entry, entry) for entry in self.shape])

    def to_json(self, index: int) -> dict[str, Any]:
        """Return the entry of a layout, at this index of its view."""
        described = {"@type": "array", "@index": index, "@shape": self.shape}
        if self.context_size:
            described["@context_size"] = self.context_size
        if self.is_backward_only:
            described["@is_backward_only"] = True
        return described

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BufferStructure) and self.shape == other.shape

    def __hash__(self) -> int:
        return hash(self.shape)

    def __repr__(self) -> str:
        return f"<BufferStructure {self.shape}>"


class StructureTemplate:
    """A pattern of shapes, such as ``('T', 'B', 'F')`` or ``('B', '...')``.

    ``'F'`` is one length of any size, ``'...'`` any number of lengths at the end. ``('...',)``
    matches every shape. ``context_size`` and ``is_backward_only`` are matched if they are given.
    """

    def __init__(
        self,
        *template: Any,
        context_size: int | None = None,
        is_backward_only: bool | None = None,
    ) -> None:
        self.shape = tuple(template)
        self.context_size, self.is_backward_only = context_size, is_backward_only
        self.any = self.shape == ("...",)
        self.buffer_type = 0 if self.any else _buffer_type(self.shape, "StructureTemplate")
        features = self.shape[self.buffer_type :]
        for place, entry in enumerate(features):
            last = place == len(features) - 1
            fits = entry == "F" or (entry == "..." and last)
            fits = fits or (isinstance(entry, int) and not isinstance(entry, bool) and entry >= 0)
            if not fits:
                cure = "'...' stands last" if entry == "..." else "use lengths, 'F' and '...'"
                raise StructureValidationError(
                    f"StructureTemplate{self.shape}: {entry!r} cannot stand at {place} of the "
                    f"features; {cure}"
                )

    def matches(self, structure: BufferStructure) -> bool:
        """Return True if a structure has a shape of this pattern."""
        if self.context_size not in (None, structure.context_size):
            return False
        if self.is_backward_only not in (None, structure.is_backward_only):
            return False
        if self.any:
            return True
        features, found = self.shape[self.buffer_type :], structure.feature_shape
        if features and features[-1] == "...":
            features, found = features[:-1], found[: len(features) - 1]
        return (
            self.buffer_type == structure.buffer_type
            and len(features) == len(found)
            and all(entry in ("F", length) for entry, length in zip(features, found, strict=True))
        )

    def __repr__(self) -> str:
        return f"<StructureTemplate {self.shape}>"


def _buffer_type(shape: Shape, what: str) -> int:
    """Return 2 for a shape with T and B, 1 with B, 0 without; raise if they are misplaced."""
    kind = 2 if shape[:1] == ("T",) else 1 if shape[:1] == ("B",) else 0
    if shape[:kind] != SCALING[kind] or any(entry in ("T", "B") for entry in shape[kind:]):
        raise StructureValidationError(
            f"{what}{shape}: 'T' and 'B' stand only at the front, as in ('T', 'B', 5) and "
            "('B', 5), or not at all, as in (5, 3)"
        )
    return kind


def combine_buffer_structures(structures: Sequence[BufferStructure]) -> BufferStructure:
    """Return the structure of buffers that are concatenated along their last dimension.

    Raises ``StructureValidationError`` if they differ in another dimension.
    """
    structures = list(structures)
    if len(structures) == 1:
        return structures[0]
    if not structures:
        raise StructureValidationError("combine_buffer_structures: there are no structures")
    first = structures[0]
    for other in structures:
        if other.shape[:-1] != first.shape[:-1] or not other.feature_shape:
            raise StructureValidationError(
                f"the shapes {first.shape} and {other.shape} cannot be concatenated along their "
                "last dimension, since they differ in another one, or have no features; connect "
                "them to different inputs, or give them equal shapes but for the last length"
            )
        if other.is_backward_only != first.is_backward_only:
            raise StructureValidationError(
                "a buffer that is for the backward pass only cannot be concatenated with one that "
                f"is not: {first.shape} and {other.shape}"
            )
    return BufferStructure(
        *first.shape[:-1],
        sum(each.shape[-1] for each in structures),
        context_size=max(each.context_size for each in structures),
        is_backward_only=first.is_backward_only,
    )
