"""Rules for passes that load along one axis and store along another, through tiles.

A team copies a square tile of each such load to shared memory, with neighbouring threads at
neighbouring elements of the operand, and then stores with neighbouring threads at neighbouring
elements of the result.
"""

from __future__ import annotations

from dataclasses import replace

from ...kernels.ir.scalar_code import Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from .. import transformations as shape
from ..partial_states import stage
from ..tree import Kind, LoopNode, Role, Space, Tree, find, loops_of, values_of, walk
from .gpu_threads import Threads

TILE_SIDE = 32  # elements per side of a tile
TILE_PADDING_ELEMENTS = 1  # per row of a tile, so that elements of a column lie in different banks


def in_tiles(tree: Tree, threads: Threads) -> Tree:
    """Divide a pass over columns into tiles, and each of them among the threads of a team."""
    (columns,) = [loop for loop in loops_of(tree.body) if loop.kind is Kind.COLUMNS]
    inner = [loop.variable for loop in loops_of(columns.body)]
    column, last = columns.variable, inner[-1]
    for name in inner:
        tree = shape.reorder(tree, column, name)
    tree, near, _ = shape.split(tree, column, TILE_SIDE, guarded=True)
    for name in (column, near):
        tree = shape.reorder(tree, last, name)
    tree, far, _ = shape.split(tree, last, TILE_SIDE, guarded=True)
    tree = shape.reorder(tree, near, last)
    first = len(tree.buffers)
    while loads := crossing(find(tree, last)[0], near, far):
        tree = stage(tree, last, loads[0], [far, near], padding=TILE_PADDING_ELEMENTS)
    tiles = range(first, len(tree.buffers))
    buffers = [
        replace(buffer, space=Space.SHARED) if number in tiles else buffer
        for number, buffer in enumerate(tree.buffers)
    ]
    tree = replace(tree, buffers=tuple(buffers))
    for each in find(tree, last)[0].body:
        assert isinstance(each, LoopNode), "copies of tiles and the pass are loops"
        tree = shared_tile(tree, each.variable, threads.team // TILE_SIDE)
    return tree


def crossing(loop: LoopNode, near: str, far: str) -> list[Load]:
    """Return the loads in a loop that are adjacent along loop ``near``, and apart along ``far``."""
    nodes = walk_scalars(*[value for each, _ in walk(loop.body) for value in values_of(each)])
    loads = [
        node
        for node in nodes
        if isinstance(node, Load) and all(isinstance(atom, str) for atom in node.offset.terms)
    ]
    return [x for x in loads if x.offset.step(near) == 1 and x.offset.step(far) not in (0, 1)]


def shared_tile(tree: Tree, name: str, lines: int) -> Tree:
    """Divide a loop over the lines of a tile, and that over their elements, among threads."""
    near = loops_of(find(tree, name)[0].body)[0].variable
    made = shape.split(tree, name, lines)
    tree = made.tree
    for inner in (made.inner, near):
        tree = shape.reorder(tree, name, inner)
    for each in (near, made.inner):
        tree = shape.set_role(tree, each, Role.THREAD, "neighbouring threads have neighbours")
    return tree
