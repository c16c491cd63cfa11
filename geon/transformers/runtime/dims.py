"""Lengths at run time: integers, or ``Dim`` for expressions of open names; size checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import AxisError, SizeError

MAX_BYTES = 2**63 - 1


class Dim:
    """A length that depends on open names: ``of`` evaluates it, ``text`` displays it."""

    def __init__(
        self, text: str, names: Iterable[str], of: Callable[[Mapping[str, int]], int]
    ) -> None:
        self.text, self.names, self.of = text, tuple(names), of

    def __repr__(self) -> str:
        return self.text


class Lengths(dict[str, int]):
    """The integers of open names; a missing one raises ``AxisError``."""

    def __missing__(self, name: str) -> int:
        error = AxisError(ungiven(name))
        error.open_name = name
        raise error


def ungiven(name: str) -> str:
    """Return the error message for an open length that nothing determines."""
    return (
        f"nothing gives the open length {name}: no data of this call have it; set the axis's "
        f"length, or give lengths={{{name}: ...}} to transformer.computation"
    )


def has_all_lengths(dim: Any, lengths: Mapping[str, int]) -> bool:
    """Return True if ``lengths`` has every open name of ``dim``."""
    return isinstance(dim, int) or all(name in lengths for name in dim.names)


def resolve(dim: Any, lengths: Mapping[str, int]) -> int:
    """Return the integer value of ``dim`` under ``lengths``."""
    return dim if isinstance(dim, int) else int(dim.of(lengths))


def open_sizes(dims: Sequence[Any], shape: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield (open name, size) for each dimension of ``shape`` whose length is one open name."""
    for dim, size in zip(dims, shape, strict=True):
        if not isinstance(dim, int) and dim.text in dim.names:
            yield dim.text, size


def implied_sizes(dims: Sequence[Any], shape: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield (open name, size) for each length that is a linear function of one open name.

    A length of ``shape`` that no integer gives yields the next smaller one.
    """
    for dim, size in zip(dims, shape, strict=True):
        if not isinstance(dim, int) and len(dim.names) == 1 and dim.text not in dim.names:
            (name,) = dim.names
            first, second, third = (dim.of({name: value}) for value in (1, 2, 3))
            step = second - first
            if step > 0 and third - second == step:
                yield name, max(1 + (size - first) // step, 0)


class Room(NamedTuple):
    """Capacity of a memory: bytes, text for messages, error for larger requests, extra cure."""

    most: int
    has: str
    error: type[SizeError] = SizeError
    cure: str = ""


def check_size(size: int, what: str, room: Room) -> None:
    """Raise ``SizeError`` for a size beyond 63 bits or beyond the capacity of a memory."""
    if size > MAX_BYTES:
        raise SizeError(
            f"{what} needs {size:,} bytes, more than a 64-bit size can say; nothing was allocated. "
            "Use smaller lengths"
        )
    if size > room.most:
        raise room.error(
            f"{what} needs {size:,} bytes and {room.has}; nothing was allocated. Use smaller "
            f"lengths or a smaller batch{room.cure}"
        )
