"""Where C code finds the memory of a plan: at the top, and in the bodies of regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Place


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """A plan whose kernels are called, and what its memory is called there.

    ``known`` has expressions of places; buffers of the arena are those of the program from
    ``first_buffer`` on, and steps from ``first_step`` on. What is ``looped`` is run by a loop.
    """

    plan: Plan
    known: Mapping[Place, str]
    first_buffer: int = 0
    first_step: int = 0
    looped: bool = False

    def pointer(self, place: Place, table: Callable[[Place], str]) -> str:
        """The pointer to a place; ``table`` says where the program's own are."""
        found = self.known.get(place)
        if found is not None:
            return found
        if place[0] == "arena":
            assert isinstance(place[1], int)
            return table(("arena", self.first_buffer + place[1]))
        return table(place)
