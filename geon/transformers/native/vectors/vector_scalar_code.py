"""Emit scalar code as vector statements."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.scalar_code import Load, Scalar
from ...printing.nests.scalar_statements import MemoryNames, ScalarPrinter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from .lanes import Vectors
from .vector_ops import row_text

# The bits of 1, by dtype: true is a mask of all bits.
ONES = {"float32": "0x3f800000", "float64": "0x3ff0000000000000", "int32": "1", "int64": "1"}


class VectorScalars(ScalarPrinter):
    """Emits scalar code as vectors along loops; what is the same for a whole vector is a scalar."""

    def __init__(self, names: MemoryNames, depths: Depths, vectors: Vectors) -> None:
        super().__init__(names, depths)
        self.vectors = vectors
        self.texts: set[str] = set()  # texts and names that are vectors

    def is_vector(self, text: str) -> bool:
        """Return True if a text is a vector."""
        return text in self.texts

    def vector(self, text: str) -> str:
        """Return a text after recording it as a vector."""
        self.texts.add(text)
        return text

    def spread(self, ctype: str, text: str) -> str:
        """Return a text as a vector; broadcast a scalar."""
        return text if self.is_vector(text) else self.vectors.spread(ctype, text)

    def let(self, block: StatementBlock, key: Hashable, ctype: str, text: str) -> str:
        """Emit ``text`` once in ``block`` and return its name."""
        if not self.is_vector(text):
            return super().let(block, key, ctype, text)
        return self.vector(super().let(block, key, self.vectors.type(ctype), text))

    def expression(
        self,
        block: StatementBlock,
        row: str,
        dtypes: Sequence[str],
        result: str,
        operands: Sequence[str],
    ) -> str:
        """Return the expression of an elementwise primitive, of vectors if an operand is one."""
        if not any(map(self.is_vector, operands)):
            return super().expression(block, row, dtypes, result, operands)
        if row == "cast":
            result_type = self.vectors.type(C_TYPES[result])
            if dtypes[0] == "bool":
                return self.vector(f"({result_type})({operands[0]} & {ONES[result]})")
            return self.vector(f"GEON_AS({result_type}, {operands[0]})")
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
        each = [self.of_one_type(ctype, text) for text in texts]
        return self.vector(super().choice(ctype, flags, each))

    def of_one_type(self, ctype: str, text: str) -> str:
        """Return a vector whose type is that of others: one read from memory has another type."""
        vector = self.spread(ctype, text)
        return f"({self.vectors.type(ctype)}){vector}" if vector.startswith("GEON_AT(") else vector

    def computed(self, block: StatementBlock, value: Scalar) -> str:
        """Return the expression of a value whose parts have been emitted."""
        variables = self.vectors.variables
        if not isinstance(value, Load) or all(value.offset.step(v) == 0 for v in variables):
            return super().computed(block, value)
        element = f"{self.names.operand(value.operand)}[{self.index(block, value.offset)}]"
        return self.vector(self.vectors.place(C_TYPES[name_of(value.dtype)], element))

    def stored(self, ctype: str, place: str, text: str) -> str:
        """Return the statement that stores a vector from ``place`` on."""
        text, vector = self.put(ctype, text)
        return f"GEON_AT({vector}, {place}) = {text};"

    def put(self, ctype: str, text: str) -> tuple[str, str]:
        """Return the vector to store and its type."""
        return self.spread(ctype, text), self.vectors.type(ctype)
