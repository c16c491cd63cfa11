"""Rows at computed positions, which are fetched ahead: memory brings several while one is read.

A processor goes on by itself with what adjoins, but it cannot know where the next row lies. What
says so was computed before, so that the row some turns ahead is asked for in each turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ...kernels.analysis.footprint import names_in
from ...kernels.ir.nest import Nest, Pass
from ...kernels.ir.scalar_code import NODES, Load, walk

AHEAD = 16  # rows between the one that is fetched and the one that is read
LINE = 64  # bytes of a line of cache
LINES = 4  # lines of a row that are fetched: then processors go on
NEAR = 1 << 15  # bytes of a table that any first cache holds
MOST = 2  # tables of a pass, whose positions are computed twice


@dataclass(frozen=True, slots=True)
class Lookup:
    """A load of rows whose positions change with a loop's ``variable``, and the bytes of a row."""

    load: Load
    variable: str
    size: Size


def lookups(nest: Nest, step: Pass) -> list[Lookup]:
    """The loads of a pass that read rows at positions of the loop around the innermost one."""
    around = [loop.name for loop in (*nest.rows, *step.loops[:-1])]
    if nest.across is not None or not around or not step.loops:
        return []
    inner, found = step.loops[-1], list[Lookup]()
    for load in [node for node in walk(*step.computed) if isinstance(node, Load)]:
        atoms = [atom for atom in load.offset.terms if isinstance(atom, NODES)]
        names = {name for atom in atoms for name in names_in(atom)}
        runs = load.offset.step(inner.name) == 1 and inner.name not in names
        if runs and around[-1] in names:
            table = nest.operands[load.operand].axes.size * load.dtype.itemsize
            if not (isinstance(table, int) and table <= NEAR):
                found.append(Lookup(load, around[-1], inner.extent * load.dtype.itemsize))
    return found if len(found) <= MOST else []


@dataclass(frozen=True, slots=True)
class PrintedLookup:
    """What is fetched ahead of loop ``variable``: after the statements ``before``, the bytes of a
    row of ``size`` from ``start`` on, the row that is ``AHEAD`` turns further.
    """

    variable: str
    before: tuple[str, ...]
    start: str
    size: Size
