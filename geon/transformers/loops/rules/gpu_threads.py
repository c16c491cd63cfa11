"""Threads of a GPU kernel, and which accesses of a loop are vectors."""

from __future__ import annotations

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.lengths import is_multiple

ELEMENTS_PER_VECTOR = 4  # elements that a thread loads and stores at once: 16 bytes of float32


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of a kernel: ``team`` is how many of them share a task.

    Operands ``unaligned`` may begin between vectors. If ``beside``, the teams of adjacent tasks are
    beside each other: the neighbour of a thread works on the next task, not on the next element.
    """

    team: int = 1
    unaligned: frozenset[int] = frozenset()
    beside: bool = False


def is_aligned(offset: AffineIndex, lane: str) -> bool:
    """Return True if a loop accesses adjacent elements, the first of them at a vector's begin."""
    others = [(atom, step) for atom, step in offset.terms.items() if atom != lane]
    whole = all(isinstance(atom, str) and is_whole(step) for atom, step in others)
    return whole and offset.step(lane) == 1 and is_whole(offset.constant)


def is_whole(size: Size) -> bool:
    """Return True if a number of elements is known to fill vectors."""
    return is_multiple(size, ELEMENTS_PER_VECTOR)
