"""Statements of single lanes of a vector, and the C loops that run them in all lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from ...printing.nests.loop_lines import for_loop
from ..names.dialect import SIMD

LANE = "each"  # the index of the current lane


class LaneLine(str):
    """A statement of the current lane, of ``lanes`` lanes.

    It sets an element of the array ``memory``, which has numbers of type ``ctype``, or, without a
    type, stores an element of the result ``memory``.
    """

    lanes: int
    memory: str
    ctype: str

    def __new__(cls, text: str, lanes: int, memory: str, ctype: str = "") -> LaneLine:
        """Return the statement ``text``."""
        made = super().__new__(cls, text)
        made.lanes, made.memory, made.ctype = lanes, memory, ctype
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
        for group in independent(waiting) if waiting else ():
            found.extend([SIMD, *for_loop(LANE, "0", str(group[0].lanes), list(map(str, group)))])
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


def independent(lines: Sequence[LaneLine]) -> list[list[LaneLine]]:
    """Return groups of statements that need nothing of each other, for loops of their own.

    Each group has numbers of other types: compilers do not vectorise some loops over numbers of
    several widths. Results are stored after all groups, as they may share memory with operands.
    All is one group if a result is read again, or stored before what it is computed from changes.
    """
    sets = [line for line in lines if line.ctype]
    arrays = {line.memory for line in sets}
    results = {line.memory for line in lines if not line.ctype}
    groups: list[tuple[set[str], list[LaneLine]]] = []
    for number, line in enumerate(lines):
        if not line.ctype:
            if memories_of(line, {each.memory for each in lines[number:] if each.ctype}):
                return [list(lines)]
            continue
        if memories_of(line, results):
            return [list(lines)]
        used = memories_of(line, arrays)
        near = [group for group in groups if not used.isdisjoint(group[0])]
        groups = [group for group in groups if used.isdisjoint(group[0])]
        used = used.union(*[memories for memories, _ in near])
        groups.append((used, [*chain.from_iterable(lines for _, lines in near), line]))
    alike: dict[frozenset[str], list[LaneLine]] = {}
    for _, group in groups:
        alike.setdefault(frozenset(line.ctype for line in group), []).extend(group)
    if len(alike) < 2:
        return [list(lines)]
    return [*alike.values(), *([line] for line in lines if not line.ctype)]


def memories_of(line: str, names: Iterable[str]) -> set[str]:
    """Return those of ``names``, of arrays and results, of which a statement has elements."""
    return {name for name in names if f"{name}[" in line}


def may_precede(line: object, waiting: Sequence[LaneLine]) -> bool:
    """Return True if a statement is a definition that needs none of what others compute."""
    if not isinstance(line, Definition):
        return False
    return all(each.ctype and not memories_of(line, [each.memory]) for each in waiting)
