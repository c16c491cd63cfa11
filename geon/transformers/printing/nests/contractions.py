"""C text of a contraction's scalar code: the elements of its operands, and its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Scalar, Select, walk
from ...kernels.products.contraction import Contraction
from ..scalars.c_types import C_TYPES
from .scalar_statements import MemoryNames, ScalarPrinter, changes
from .statement_blocks import StatementBlock

Texts = Mapping[str, str]  # texts of loop variables


MAX_LOOP_TRUTHS = 4  # maximum loop-invariant conditions, each with a loop of its own


class PrintedElement(NamedTuple):
    """Statements of one element.

    ``around`` precede the innermost loop, ``lines`` are inside of it, and ``value`` is the
    element's text. ``chosen`` has the same text for each condition that is known before the loop:
    an operand that was joined is then read from one of its parts.
    """

    around: list[str]
    lines: list[str]
    value: str
    chosen: tuple[tuple[str, PrintedElement], ...] = ()


Element = Callable[[Texts, str | None], PrintedElement]
"""What gives the statements of one element by the texts of the loops' indices and the innermost
loop, where there is one."""


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

    def element(self, value: Scalar) -> Element:
        """Return a function that prints one element."""

        def element(texts: Texts, inner: str | None) -> PrintedElement:
            around = self.block(texts)
            if inner is None:
                return PrintedElement([], around.lines, self.scalars.value(around, value))
            general = self.inside(around, inner, value)
            return general._replace(chosen=self.chosen(around, inner, value))

        return element

    def inside(self, around: StatementBlock, inner: str, value: Scalar) -> PrintedElement:
        """Return one element within loop ``inner``, inside block ``around``."""
        block = around.inside(inner)
        text = self.scalars.value(block, value)
        return PrintedElement(around.lines, block.lines, text)

    def chosen(
        self, around: StatementBlock, inner: str, value: Scalar
    ) -> tuple[tuple[str, PrintedElement], ...]:
        """Return the element for each case in which exactly one loop-invariant condition holds."""
        selects = [node for node in walk(value) if isinstance(node, Select)]
        truths = [g for g in dict.fromkeys(x.guards for x in selects) if not changes(g, inner)]
        if not 1 <= len(truths) <= MAX_LOOP_TRUTHS:
            return ()
        names = {guards: self.scalars.flag(around, guards) for guards in truths}
        made = []
        for holds in truths:
            self.scalars.assumed = {guards: guards is holds for guards in truths}
            signs = ["" if guards is holds else "!" for guards in truths]
            parts = [f"{sign}{names[guards]}" for sign, guards in zip(signs, truths, strict=True)]
            made.append((" && ".join(parts), self.inside(around, inner, value)))
        self.scalars.assumed = {}
        return tuple(made)

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
