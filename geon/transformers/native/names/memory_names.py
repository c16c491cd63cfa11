"""C expressions for a plan's memory, at the top level and in region bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Place


@dataclass(frozen=True, eq=False, slots=True)
class MemoryScope:
    """A plan whose kernels are called, with the names of its memory there.

    ``known`` has C expressions of memory locations. ``first_buffer`` and ``first_step`` are the
    offsets of the plan's arena buffers and steps in the program. ``looped`` is True if a loop runs
    the plan.
    """

    plan: Plan
    known: Mapping[Place, str]
    first_buffer: int = 0
    first_step: int = 0
    looped: bool = False

    def pointer(self, place: Place, table: Callable[[Place], str]) -> str:
        """Return the C pointer to a location; ``table`` gives the program's own pointers."""
        found = self.known.get(place)
        if found is not None:
            return found
        if place[0] == "arena":
            assert isinstance(place[1], int)
            return table(("arena", self.first_buffer + place[1]))
        return table(place)
