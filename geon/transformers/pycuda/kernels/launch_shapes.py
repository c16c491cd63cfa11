"""The launch of a loop tree: its grid, and the threads and shared memory of a block."""

from __future__ import annotations

from typing import NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, exact_quotient, names_of, product
from ...loops.tree import Space
from ..launches.launch_ir import FULL_DEVICE_BLOCKS, MAX_GRID_BLOCKS, THREADS_PER_BLOCK, Grid
from .scratch_layout import scratch_layout, shared_bytes
from .thread_text import launched
from .tree_choice import TeamTree


class LaunchShape(NamedTuple):
    """A grid of blocks, each with ``threads`` threads and ``shared`` bytes of shared memory.

    ``meets`` is True if the threads of a block synchronise.
    """

    grid: Grid
    threads: int
    shared: int
    meets: bool = False


def by_elements(count: Size) -> LaunchShape:
    """Return the launch of a thread for each of ``count`` elements."""
    return LaunchShape(Grid(count, THREADS_PER_BLOCK), THREADS_PER_BLOCK, 0)


def launch_shape(form: TeamTree) -> LaunchShape:
    """Return the launch of a tree.

    A thread or a team has a task each. Teams whose row arrays are in scratch memory run several.
    """
    tasks = [product(loop.extent for loop in loops) for loops, _ in launched(form.tree)]
    if form.team.size == 1:
        return by_elements(sum(tasks, start=0))
    ((loops, _),), (count,) = launched(form.tree), tasks
    if scratch_layout(form.tree, Space.STACK).size != 0:
        grid = _grid(form, count, most=FULL_DEVICE_BLOCKS)
    elif form.team.beside:
        *rows, column = loops
        blocks = (column.extent + form.team.beside - 1) // form.team.beside
        grid = _grid(form, product(loop.extent for loop in rows) * blocks)
    else:
        grid = _grid(form, count, form.team.rows)
    return LaunchShape(grid, form.team.threads, shared_bytes(form.tree, form.team), True)


def _grid(form: TeamTree, units: Size, each: int = 1, most: int = MAX_GRID_BLOCKS) -> Grid:
    """Return the grid of so many units, of which a factor may be a number of parts."""
    for name in names_of(units) & form.numbers.keys():
        fewer = exact_quotient(units, Length.of(name))
        assert fewer is not None and each == 1, f"{units} blocks have {name} as a factor"
        return Grid(fewer, each, most, form.numbers[name])
    return Grid(units, each, most)
