"""Turns of a loop over columns that are taken together, as C: some rows are read at a time.

Running values of columns then stay in registers from one row to the next, and memory is asked for
several rows at once. They are combined in the same order as row by row.
"""

from __future__ import annotations

from ...printing.nests.pass_text import PrintedPass
from ...printing.nests.statement_blocks import Known
from ..names.dialect import ArrayLanes
from ..names.loop_lines import for_loop, indented

TOGETHER = 4  # turns that are one loop over lanes (``GEON_FOUR_TURNS``),
ENOUGH = 4  # so many times of which there are at least, where that is known,
MOST = 24  # and each of which has so few statements


def joins_turns(made: PrintedPass) -> bool:
    """Whether some turns of the innermost loop of a pass over lanes are taken by one loop over
    these: of one that only accumulates.
    """
    extent = made.loops[-1].extent
    if isinstance(extent, int) and extent < ENOUGH * TOGETHER:
        return False
    if made.stores or made.windows or made.stages or not (made.sums or made.states):
        return False
    return len(made.body.lines) <= MOST


def turns_together(
    name: str,
    low: str,
    high: str,
    filled: bool,
    over: ArrayLanes,
    known: list[object],
    each: list[str],
    single: list[str],
    held: tuple[list[str], list[str]] = ([], []),
) -> list[str]:
    """A loop over turns of which each goes over all lanes, some turns by one loop over these.

    ``each`` are the statements of a lane, before which stands what is ``known`` of a turn;
    ``single`` is the loop of one turn, for those that are left over; none is where the loop is
    ``filled``. Before and after some turns of a lane stands what has its values ``held``.
    """
    first = f"{name}_first"
    values, told = of_turns(name, first, known)
    before, after = held
    turns = [f"GEON_FOUR_TURNS({name}, {first},", *indented([*told, *each]), ")"]
    inside = [*before, *turns, *after]
    lines = [
        f"int64_t {first} = {low};",
        f"for (; {first} + {TOGETHER} <= {high}; {first} += {TOGETHER}) {{",
        *indented([*values, *over.loop("0", "lanes", inside)]),
        "}",
        *([] if filled else for_loop(name, first, high, single)),
    ]
    return ["{", *indented(lines), "}"]


def of_turns(name: str, first: str, known: list[object]) -> tuple[list[str], list[str]]:
    """The statements that find what is ``known`` of some turns, before these, and those that say in
    each turn what was found, and all else that is known.
    """
    turn, found, told = f"{name} - {first}", list[str](), list[str]()
    for each in known:
        found.append(str(each))
        if isinstance(each, Known) and each.named:
            found.append(f"{each.name}_turns[{turn}] = {each.name};")
            told.append(f"const {each.ctype} {each.name} = {each.name}_turns[{turn}];")
        elif not isinstance(each, Known):
            told.append(str(each))
    values = [each for each in known if isinstance(each, Known) and each.named]
    if not values:
        return [], told
    arrays = [f"{each.ctype} {each.name}_turns[{TOGETHER}];" for each in values]
    return arrays + for_loop(name, first, f"{first} + {TOGETHER}", found), told
