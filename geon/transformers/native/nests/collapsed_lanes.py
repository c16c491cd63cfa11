"""Emit collapsed lanes: several iterations over few rows as one loop over all their lanes."""

from __future__ import annotations

import math

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import least_unless_zero
from ...printing.nests.loop_lines import indent
from ...printing.nests.scalar_statements import MAX_LANES
from ..names.dialect import ArrayLanes
from ..vectors.transpose_tiles import TILE_LANES


def turns_beside(lanes: int, turns: Size, vector: int) -> int | None:
    """Return the unroll factor that makes ``lanes * factor`` fill whole vectors of ``vector``
    elements.

    It is None if it depends on an open length; ``geon_beside`` computes it in C. A loop without
    iterations may have any factor.
    """
    if lanes >= TILE_LANES:
        return 1
    beside = vector // math.gcd(lanes, vector)
    while beside * lanes < TILE_LANES:
        beside *= 2
    while beside * lanes > MAX_LANES:
        beside //= 2
    if least_unless_zero(turns) >= 4 * beside:
        return beside
    return 1 if isinstance(turns, int) else None


BESIDE = f"""\
GEON_INLINE int64_t geon_beside(int64_t lanes, int64_t turns, int64_t vector)
{{
    int64_t beside = vector;
    if (lanes < 1 || lanes >= {TILE_LANES})
        return 1;
    while (beside > 1 && lanes * (beside / 2) % vector == 0)
        beside /= 2;
    while (beside * lanes < {TILE_LANES})
        beside *= 2;
    while (beside * lanes > {MAX_LANES})
        beside /= 2;
    return turns >= 4 * beside ? beside : 1;
}}
"""


def turns_of_run(
    name: str,
    bounds: tuple[str, str],
    beside: str,
    held: str,
    single: str,
    each: list[str],
    over: ArrayLanes,
) -> list[str]:
    """Return the loops of a run: over groups of ``beside`` iterations, then over the remaining
    ones.

    A group has ``held`` lanes, and ``each`` are the statements of a lane. ``single`` says how the
    remaining iterations are run: by a loop of their own ("apart"), by the same text ("joined"), or
    not at all as there are none ("").
    """
    begin, end = bounds

    def turns(number: str, lanes: str) -> list[str]:
        several = f"{name} + {number} <= {end}; {name} += {number}"
        return [
            f"for (; {name} < {end}; {name}++) {{" if number == "1" else f"for (; {several}) {{",
            *indent(over.loop("0", lanes, each)),
            "}",
        ]

    if single == "joined":
        head = f"for (int64_t turns = {beside}; {name} < {end}; turns = 1) {{"
        loops = [head, *indent(turns("turns", "lanes * turns")), "}"]
    else:
        loops = turns(beside, held) + (turns("1", "lanes") if single else [])
    return ["{", *indent([f"int64_t {name} = {begin};", *loops]), "}"]
