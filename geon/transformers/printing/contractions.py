"""The scalar code of a contraction as text: its operands' elements, and what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..kernels.contraction import Contraction
from ..kernels.depths import Depths
from ..kernels.scalar import Scalar
from .scalars import Block, Names, ScalarPrinter

Texts = Mapping[str, str]  # of loops' variables


class ContractionPrinter:
    """Writes the elements and stores of a contraction."""

    def __init__(self, made: Contraction, names: Names) -> None:
        self.made, self.names = made, names
        self.scalars = ScalarPrinter(names, Depths({}, 0))
        self.loops = (*made.batch, *made.rows, *made.columns, *made.summed)

    def block(self, texts: Texts) -> Block:
        """A block in which loops' indices are these texts."""
        self.scalars.spelled = texts
        return Block()

    def element(self, value: Scalar) -> Callable[[Texts], tuple[list[str], str]]:
        """What gives the statements of one element, and its text."""

        def element(texts: Texts) -> tuple[list[str], str]:
            block = self.block(texts)
            text = self.scalars.value(block, value)
            return block.lines, text

        return element

    def store(self, texts: Texts, value: str) -> list[str]:
        """The statements that store all results at one element of the product."""
        block = self.block(texts)
        self.scalars.contracted = value
        stores = []
        for store in self.made.stores:
            text = self.scalars.value(block, store.value)
            offset = self.scalars.index(block, store.offset)
            stores.append(f"{self.names.operand(store.operand)}[{offset}] = {text};")
        return [*block.lines, *stores]
