"""Scalar code as text of vectors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.scalar_code import NODES, Load, Scalar
from ...printing.nests.scalar_statements import Names, ScalarPrinter
from ...printing.nests.statement_blocks import Block, Known
from ...printing.scalars.c_types import C_TYPES
from .lanes import Vectors
from .vector_ops import row_text


class VectorScalars(ScalarPrinter):
    """Writes the scalar code of a nest for vectors of rows side by side, or of elements along the
    last loop.

    What is the same for all of a vector stays a number.
    """

    def __init__(self, names: Names, depths: Depths, vectors: Vectors, by_lanes: bool) -> None:
        super().__init__(names, depths)
        self.vectors, self.by_lanes = vectors, by_lanes
        self.width = 1 if by_lanes else vectors.count
        self.texts: set[str] = set()  # of vectors, and the names of some
        self.numbers: dict[str, Known] = {}  # that are computed around loops, by name

    def is_vector(self, text: str) -> bool:
        """Whether a text is that of a vector."""
        held = self.by_lanes and self.names.lanes.array_of(text) is not None
        return held or text in self.texts

    def vector(self, text: str) -> str:
        """A text, noted as that of a vector."""
        self.texts.add(text)
        return text

    def spread(self, ctype: str, text: str) -> str:
        """A text of numbers of a type as that of a vector."""
        self.name(text)
        return text if self.is_vector(text) else self.vectors.spread(ctype, text)

    def let(self, block: Block, key: Hashable, ctype: str, text: str) -> str:
        """The name of ``text`` computed once in ``block``, as a vector where it is one, or where
        rows have one.
        """
        if block.lanes is not None:
            return super().let(block, key, ctype, self.spread(ctype, text))
        if text not in self.texts:
            return self.known(block, key, ctype, text)
        return self.vector(super().let(block, key, self.vectors.type(ctype), text))

    def known(self, block: Block, key: Hashable, ctype: str, text: str) -> str:
        """The name of a number, which is computed around the loop over vectors where it may be:
        compilers with few passes leave it where it stands.
        """
        if block.around is None or not isinstance(key, NODES):
            return super().let(block, key, ctype, text)
        name = block.around.names[key] = self.fresh()
        self.numbers[name] = Known(ctype, name, text, named=False)
        block.around.lines.append(self.numbers[name])
        return name

    def name(self, *texts: str) -> None:
        """Note what is named inside of the loop that it was computed around."""
        for text in texts:
            if text in self.numbers:
                self.numbers[text].named = True

    def expression(
        self,
        block: Block,
        row: str,
        dtypes: Sequence[str],
        result: str,
        operands: Sequence[str],
        attrs: tuple[Any, ...] = (),
    ) -> str:
        """The expression of an elementwise row, of vectors where an operand is one."""
        if not any(map(self.is_vector, operands)):
            return super().expression(block, row, dtypes, result, operands, attrs)
        self.name(*operands)
        if row == "where" and not self.is_vector(operands[0]):
            return self.choice(C_TYPES[result], operands[:1], operands[1:])
        pairs = zip(dtypes, operands, strict=True)
        each = [t if d == "bool" else self.spread(C_TYPES[d], t) for d, t in pairs]
        types = (self.vectors.type(C_TYPES[result]), self.vectors.type("_Bool"))
        return self.vector(row_text(row, result, types, operands, each))

    def choice(self, ctype: str, flags: Sequence[str], texts: Sequence[str]) -> str:
        """The text of a choice, of vectors where one of its texts is one."""
        if not any(map(self.is_vector, texts)):
            return super().choice(ctype, flags, texts)
        each = [self.spread(ctype, text) for text in texts]
        return self.vector(super().choice(ctype, flags, each))

    def computed(self, block: Block, value: Scalar) -> str:
        """The expression of a value whose parts have theirs."""
        variables = self.vectors.variables
        if not isinstance(value, Load) or all(value.offset.step(v) == 0 for v in variables):
            return super().computed(block, value)
        element = f"{self.names.operand(value.operand)}[{self.index(block, value.offset)}]"
        return self.vector(self.vectors.place(C_TYPES[name_of(value.dtype)], element))

    def put(self, ctype: str, text: str, of_row: bool = False) -> tuple[str, str]:
        """The vector that is stored, and its type; of a row by itself the number."""
        if not self.by_lanes and of_row:
            return super().put(ctype, text, of_row)
        return self.spread(ctype, text), self.vectors.type(ctype)
