"""The scalar code of a contraction as text: its operands' elements, and what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..kernels.contraction import Contraction
from ..kernels.depths import ELEMENT, Depths
from ..kernels.scalar import Scalar
from .scalars import Block, Names, ScalarPrinter

Texts = Mapping[str, str]  # of loops' variables


class PrintedElement(NamedTuple):
    """The statements ``around`` the innermost loop over elements and those of one, whose text is
    ``value``.
    """

    around: list[str]
    lines: list[str]
    value: str


class ContractionPrinter:
    """Writes the elements and stores of a contraction."""

    def __init__(self, made: Contraction, names: Names) -> None:
        self.made, self.names = made, names
        self.loops = (*made.batch, *made.rows, *made.columns, *made.summed)
        depths = Depths({loop.name: ELEMENT for loop in self.loops}, 0)
        self.scalars = ScalarPrinter(names, depths)

    def block(self, texts: Texts) -> Block:
        """A block in which loops' indices are these texts."""
        self.scalars.spelled = texts
        block = Block()
        block.depth = ELEMENT
        return block

    def element(self, value: Scalar) -> Callable[..., PrintedElement]:
        """What gives the statements of one element by the texts of the loops' indices and the
        innermost loop, where there is one.
        """

        def element(texts: Texts, inner: str | None = None) -> PrintedElement:
            around = self.block(texts)
            block = around if inner is None else around.inside(inner)
            text = self.scalars.value(block, value)
            return PrintedElement([] if inner is None else around.lines, block.lines, text)

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
