"""Rule for rows that share cache lines of what they read: a block of elements runs for all rows."""

from __future__ import annotations

from collections.abc import Iterator

from ...kernels.ir.scalar_code import Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...sizes.blocks import CACHE_LINE_BYTES
from .. import transformations as shape
from ..tree import Kind, LoopNode, Role, Tree, VectorWidth, find, loops_of, require, values_of, walk


def rows_of_blocks(tree: Tree) -> Iterator[str]:
    """Yield the loops over rows that consist of blocks of elements with buffers."""
    for loop in loops_of(tree.body):
        if loop.role is not Role.SERIAL or len(loop.body) != 1:
            continue
        (block,) = loop.body
        if isinstance(block, LoopNode) and block.kind is Kind.MAIN:
            filled = [x for x in block.body if isinstance(x, LoopNode)][:-1]
            if any(each.kind is Kind.DIGIT for each in loops_of(tuple(filled))):
                yield loop.variable


def blocks_outside(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute a block of elements in all rows before the next one, if rows share cache lines.

    A transposed operand has neighbouring rows in a line, and each element of a row in another one:
    a whole row may need more lines than the caches keep until the next row.
    """
    loop, _ = find(tree, name)
    (block,) = loop.body
    assert isinstance(block, LoopNode)
    inner = [each.variable for each in loops_of(block.body)]
    loads = [
        node
        for each, _ in walk(block.body)
        for node in walk_scalars(*values_of(each))
        if isinstance(node, Load)
    ]
    require(any(shares_lines(x, name, inner) for x in loads), f"rows of {name} share no lines")
    return shape.reorder(tree, name, block.variable)


def shares_lines(load: Load, row: str, inner: list[str]) -> bool:
    """Return True if neighbouring rows read a cache line, and iterations inside of them others."""
    near, far = load.offset.step(row), [load.offset.step(each) for each in inner]
    lines = [step for step in far if not isinstance(step, int) or step >= line_of(load)]
    return isinstance(near, int) and 0 < near < line_of(load) and bool(lines)


def line_of(load: Load) -> int:
    """Return the elements of a cache line."""
    return CACHE_LINE_BYTES // load.dtype.itemsize
