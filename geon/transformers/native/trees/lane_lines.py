"""Statements of single lanes of a vector, and the C loops that run them in all lanes."""

from __future__ import annotations

from collections.abc import Sequence

from ...printing.nests.loop_lines import for_loop
from ..names.dialect import SIMD

LANE = "each"  # the index of the current lane


class LaneLine(str):
    """A statement of the current lane, of ``lanes`` lanes; one that stores sets no array."""

    lanes: int
    array: str

    def __new__(cls, text: str, lanes: int, array: str = "") -> LaneLine:
        """Return the statement ``text``, which sets an element of ``array``."""
        made = super().__new__(cls, text)
        made.lanes, made.array = lanes, array
        return made


class LaneArray(str):
    """The declaration of an array with an element for each lane."""

    __slots__ = ()


class Definition(str):
    """The statement that defines a value, or copies a vector to an array over lanes."""

    __slots__ = ()


def lane_loops(lines: Sequence[object]) -> list[str]:
    """Return statements; those of single lanes that may run together are one loop over lanes.

    Definitions that need none of what waiting statements compute move before these.
    """
    found: list[str] = []
    waiting: list[LaneLine] = []

    def close() -> None:
        if waiting:
            body = [str(line) for line in waiting]
            found.extend([SIMD, *for_loop(LANE, "0", str(waiting[0].lanes), body)])
            waiting.clear()

    for line in lines:
        if isinstance(line, LaneLine):
            if waiting and waiting[0].lanes != line.lanes:
                close()
            waiting.append(line)
            continue
        if not isinstance(line, LaneArray) and not may_precede(line, waiting):
            close()
        found.append(str(line))
    close()
    return found


def may_precede(line: object, waiting: Sequence[LaneLine]) -> bool:
    """Return True if a statement is a definition that needs none of what others compute."""
    if not isinstance(line, Definition):
        return False
    return all(each.array and f"{each.array}[" not in line for each in waiting)
