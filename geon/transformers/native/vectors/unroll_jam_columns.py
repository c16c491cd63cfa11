"""Unroll and jam for reductions over rows: several rows are read in one loop over columns.

The accumulators of columns stay in registers from one row to the next, and several rows are loaded
at once. Terms are combined in the same order as without unrolling.
"""

from __future__ import annotations

from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.pass_text import PrintedPass
from ...printing.nests.statement_blocks import Known
from ..names.dialect import ArrayLanes

JAM_FACTOR = 4  # unroll factor (``GEON_FOUR_TURNS``)
MIN_JAM_GROUPS = 4  # minimum number of unrolled groups in a loop of known extent
MAX_JAM_STATEMENTS = 24  # maximum statements of an iteration


def joins_turns(made: PrintedPass) -> bool:
    """Return True if iterations of the innermost loop of a pass over lanes are unrolled and jammed.

    The pass only accumulates.
    """
    extent = made.loops[-1].extent
    if isinstance(extent, int) and extent < MIN_JAM_GROUPS * JAM_FACTOR:
        return False
    if made.stores or made.windows or not (made.sums or made.states):
        return False
    return len(made.body.lines) <= MAX_JAM_STATEMENTS


def turns_together(
    name: str,
    low: str,
    high: str,
    filled: bool,
    over: ArrayLanes,
    known: list[object],
    each: list[str],
    single: list[str],
) -> list[str]:
    """Return a loop over iterations, unrolled so that one loop over lanes serves ``JAM_FACTOR``
    iterations.

    ``each`` are the statements of a lane, ``known`` those of an iteration before its lanes.
    ``single`` is the loop over lanes of a remaining iteration; there are none if ``filled``.
    """
    first = f"{name}_first"
    values, told = of_turns(name, first, known)
    turns = [f"GEON_FOUR_TURNS({name}, {first},", *indent([*told, *each]), ")"]
    lines = [
        f"int64_t {first} = {low};",
        f"for (; {first} + {JAM_FACTOR} <= {high}; {first} += {JAM_FACTOR}) {{",
        *indent([*values, *over.loop("0", "lanes", turns)]),
        "}",
        *([] if filled else for_loop(name, first, high, single)),
    ]
    return ["{", *indent(lines), "}"]


def of_turns(name: str, first: str, known: list[object]) -> tuple[list[str], list[str]]:
    """Return the statements that compute ``known`` values of a group in arrays, and those that read
    them back in each iteration.
    """
    turn, found, told = f"{name} - {first}", list[str](), list[str]()
    for each in known:
        found.append(str(each))
        if isinstance(each, Known):
            found.append(f"{each.name}_turns[{turn}] = {each.name};")
            told.append(f"const {each.ctype} {each.name} = {each.name}_turns[{turn}];")
        else:
            told.append(str(each))
    values = [each for each in known if isinstance(each, Known)]
    if not values:
        return [], told
    arrays = [f"{each.ctype} {each.name}_turns[{JAM_FACTOR}];" for each in values]
    return arrays + for_loop(name, first, f"{first} + {JAM_FACTOR}", found), told
