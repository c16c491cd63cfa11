"""Statements of single lanes of a vector, and the C loops that run them in all lanes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from ...printing.nests.loop_lines import for_loop
from ..names.dialect import SIMD

LANE = "each"  # the index of the current lane
ARRAY = re.compile(r"\w+(?=\[)")  # names of arrays in a statement


class LaneLine(str):
    """A statement of the current lane, of ``lanes`` lanes.

    It sets an element of ``array``, which has numbers of type ``ctype``, or stores a result.
    """

    lanes: int
    array: str
    ctype: str

    def __new__(cls, text: str, lanes: int, array: str = "", ctype: str = "") -> LaneLine:
        """Return the statement ``text``."""
        made = super().__new__(cls, text)
        made.lanes, made.array, made.ctype = lanes, array, ctype
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
    sets, results = ([x for x in lines if bool(x.array) is y] for y in (True, False))
    read = [set(ARRAY.findall(line)) for line in sets]
    stored = {ARRAY.findall(line)[0] for line in results}
    early = set[str]()  # arrays of which results are computed, and then set
    for number, line in enumerate(lines):
        later = {each.array for each in lines[number:]} if not line.array else set()
        early |= later & {*ARRAY.findall(line)}
    groups: list[tuple[set[str], list[LaneLine]]] = []
    for line, names in zip(sets, read, strict=True):
        of_lanes = (names | {line.array}) & {each.array for each in sets}
        near = [group for group in groups if not of_lanes.isdisjoint(group[0])]
        groups = [group for group in groups if of_lanes.isdisjoint(group[0])]
        used = of_lanes.union(*[arrays for arrays, _ in near])
        groups.append((used, [*chain.from_iterable(lines for _, lines in near), line]))
    alike: dict[frozenset[str], list[LaneLine]] = {}
    for _, group in groups:
        alike.setdefault(frozenset(line.ctype for line in group), []).extend(group)
    if len(alike) < 2 or early or not stored.isdisjoint(chain.from_iterable(read)):
        return [list(lines)]
    return [*alike.values(), *([line] for line in results)]


def may_precede(line: object, waiting: Sequence[LaneLine]) -> bool:
    """Return True if a statement is a definition that needs none of what others compute."""
    if not isinstance(line, Definition):
        return False
    return all(each.array and f"{each.array}[" not in line for each in waiting)
