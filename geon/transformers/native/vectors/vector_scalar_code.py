"""Emit scalar code as vector statements."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.scalar_code import NODES, Load, Scalar
from ...printing.nests.scalar_statements import MemoryNames, ScalarPrinter
from ...printing.nests.statement_blocks import Known, StatementBlock
from ...printing.scalars.c_types import C_TYPES
from .lanes import Vectors
from .vector_ops import row_text


class VectorScalars(ScalarPrinter):
    """Emits the scalar code of a nest as vectors over rows in lanes, or over elements of the last
    loop.

    Values that are the same for a whole vector remain scalars.
    """

    def __init__(
        self, names: MemoryNames, depths: Depths, vectors: Vectors, by_lanes: bool
    ) -> None:
        super().__init__(names, depths)
        self.vectors, self.by_lanes = vectors, by_lanes
        self.texts: set[str] = set()  # texts and names that are vectors
        self.numbers: dict[str, Known] = {}  # scalars hoisted out of loops, by name

    def is_vector(self, text: str) -> bool:
        """Return True if a text is a vector."""
        held = self.by_lanes and self.names.lanes.array_of(text) is not None
        return held or text in self.texts

    def vector(self, text: str) -> str:
        """Return a text after recording it as a vector."""
        self.texts.add(text)
        return text

    def spread(self, ctype: str, text: str) -> str:
        """Return a text as a vector; broadcast a scalar."""
        self.name(text)
        return text if self.is_vector(text) else self.vectors.spread(ctype, text)

    def let(self, block: StatementBlock, key: Hashable, ctype: str, text: str) -> str:
        """Emit ``text`` once in ``block`` and return its name; a value of rows in lanes is always a
        vector.
        """
        if block.lanes is not None:
            return super().let(block, key, ctype, self.spread(ctype, text))
        if text not in self.texts:
            return self.known(block, key, ctype, text)
        return self.vector(super().let(block, key, self.vectors.type(ctype), text))

    def known(self, block: StatementBlock, key: Hashable, ctype: str, text: str) -> str:
        """Emit a scalar and return its name; hoist it out of the vector loop if possible.

        Compilers with few passes do not hoist it.
        """
        if block.around is None or not isinstance(key, NODES):
            return super().let(block, key, ctype, text)
        name = block.around.names[key] = self.fresh()
        self.numbers[name] = Known(ctype, name, text, named=False)
        block.around.lines.append(self.numbers[name])
        return name

    def name(self, *texts: str) -> None:
        """Record that hoisted scalars are used inside of their loop."""
        for text in texts:
            if text in self.numbers:
                self.numbers[text].named = True

    def expression(
        self,
        block: StatementBlock,
        row: str,
        dtypes: Sequence[str],
        result: str,
        operands: Sequence[str],
        attrs: tuple[Any, ...] = (),
    ) -> str:
        """Return the expression of an elementwise primitive, of vectors if an operand is one."""
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
        """Return a selection between texts, of vectors if one of them is."""
        if not any(map(self.is_vector, texts)):
            return super().choice(ctype, flags, texts)
        each = [self.spread(ctype, text) for text in texts]
        return self.vector(super().choice(ctype, flags, each))

    def computed(self, block: StatementBlock, value: Scalar) -> str:
        """Return the expression of a value whose parts have been emitted."""
        variables = self.vectors.variables
        if not isinstance(value, Load) or all(value.offset.step(v) == 0 for v in variables):
            return super().computed(block, value)
        element = f"{self.names.operand(value.operand)}[{self.index(block, value.offset)}]"
        return self.vector(self.vectors.place(C_TYPES[name_of(value.dtype)], element))

    def put(self, ctype: str, text: str) -> tuple[str, str]:
        """Return the vector to store and its type."""
        return self.spread(ctype, text), self.vectors.type(ctype)
