"""C text of a contraction's scalar code: the elements of its operands, and its epilogue."""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Store
from ...kernels.products.contraction import Contraction
from ..scalars.c_types import C_TYPES
from .scalar_statements import MemoryNames, ScalarPrinter
from .statement_blocks import StatementBlock

Texts = Mapping[str, str]  # texts of loop variables


class ContractionPrinter:
    """Prints the elements and stores of a contraction."""

    def __init__(self, made: Contraction, names: MemoryNames) -> None:
        self.made, self.names = made, names
        self.loops = (*made.batch, *made.rows, *made.columns, *made.summed)
        depths = Depths({loop.name: ELEMENT_DEPTH for loop in self.loops}, 0)
        self.scalars = ScalarPrinter(names, depths)

    def block(self, texts: Texts) -> StatementBlock:
        """Return a block in which the loop variables have these texts."""
        self.scalars.spelled = texts
        block = StatementBlock()
        block.depth = ELEMENT_DEPTH
        return block

    def store(self, texts: Texts, value: str) -> list[str]:
        """Return the statements that store all results at one element of the product."""
        block = self.block(texts)
        self.scalars.contracted = value
        stores = [self.put(self.scalars, block, store) for store in self.made.stores]
        return [*block.lines, *stores]

    def put(self, scalars: ScalarPrinter, block: StatementBlock, store: Store) -> str:
        """Return the text of a store; statements that it needs are added to ``block``."""
        text, offset = scalars.value(block, store.value), scalars.index(block, store.offset)
        ctype, operand = C_TYPES[name_of(store.dtype)], self.names.operand(store.operand)
        return scalars.stored(ctype, f"{operand}[{offset}]", text)
