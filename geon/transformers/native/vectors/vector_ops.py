"""Elementwise rows of vectors, and what vectors have of a nest; ``c/vectors.h`` has their types.

Rows have the texts of ``c_expressions``, of vectors in place of numbers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from ....op_graph.values.dtypes import DType, kind, name_of, named_dtype
from ...kernels.ir.scalar_code import (
    Apply,
    Contracted,
    IndexNumber,
    LengthNumber,
    Load,
    Number,
    Reduced,
    Scalar,
    indices,
    parts,
)
from ...printing.nests.transposed_passes import is_direct
from ...printing.scalars import c_expressions

KINDS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}  # of vectors.h
C_KINDS = {c_expressions.C_TYPES[dtype]: kind for dtype, kind in KINDS.items()}

# The first operand is ``v0`` where it must be a vector. Truths are ones in all bits, or none.
ROWS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "square": "{0} * {0}",
    "maximum": "GEON_CHOSEN({type}, {bits}, ({v0} > {1}) | ({v0} != {v0}), {v0}, {v1})",
    "minimum": "GEON_CHOSEN({type}, {bits}, ({v0} < {1}) | ({v0} != {v0}), {v0}, {v1})",
    "where": "GEON_CHOSEN({type}, {bits}, {0}, {v1}, {v2})",
}
FLOAT_ROWS = {
    **ROWS,
    "divide": "{0} / {1}",
    "reciprocal": "1 / {0}",
    "absolute": "({type})(({bits})({0}) & {most})",  # without the sign
    "sqrt": "GEON_ROOT_{type}({0})",
    "rsqrt": "1 / GEON_ROOT_{type}({0})",
}
INTEGER_ROWS = {**ROWS, "absolute": "GEON_CHOSEN({type}, {bits}, {0} < 0, -{0}, {0})"}
SIGNS = {**c_expressions.COMPARISONS, **c_expressions.BITWISE, **c_expressions.LOGICAL}
TRUTHS = {row: f"{{0}} {sign} {{1}}" for row, sign in SIGNS.items()}
TRUTHS |= dict.fromkeys(("logical_not", "bitwise_not"), "~{0}")
ORDERED = ("less", "less_equal", "greater", "greater_equal")  # of truths, whose ones are negative


def vector_type(ctype: str, count: int) -> str:
    """The type of vectors of so many numbers of a C type."""
    return f"{C_KINDS[ctype]}x{count}"


def is_number(dtype: DType, itemsize: int) -> bool:
    """Whether there are vectors of a dtype, as wide as all others."""
    return name_of(dtype) in KINDS and dtype.itemsize == itemsize


def has_row(node: Apply, itemsize: int) -> bool:
    """Whether vectors have the row of a node, where they have its operands."""
    if name_of(node.dtype) != "bool":
        return node.row.name in rows_of(node.dtype) and is_number(node.dtype, itemsize)
    if node.row.name in ORDERED and name_of(node.args[0].dtype) == "bool":
        return False
    return node.row.name in TRUTHS


def rows_of(dtype: DType) -> Mapping[str, str]:
    """The texts of vectors of a dtype, by the names of their rows."""
    return FLOAT_ROWS if kind(dtype) == "f" else INTEGER_ROWS


def row_text(
    row: str, dtype: str, types: tuple[str, str], operands: Sequence[str], each: Sequence[str]
) -> str:
    """A row of vectors of the ``types`` of its result and of truths; ``each`` are the operands that
    are vectors, whatever they are else.
    """
    result, bits = types
    if dtype == "bool":
        return f"({bits})({TRUTHS[row].format(*operands)})"
    names = {f"v{k}": text for k, text in enumerate(each)} | {"type": result, "bits": bits}
    names["most"] = f"INT{8 * named_dtype(dtype).itemsize}_MAX"
    return rows_of(named_dtype(dtype))[row].format(*operands, **names)


def vectors(nodes: Iterable[Scalar], loop: str, of_rows: Container[int] = ()) -> set[int]:
    """The nodes that have a value for each element of a vector along a loop, by id.

    Where rows are side by side, so have those ``of_rows``, and what these reduce; of products, so
    have their sums.
    """
    found: set[int] = set()
    for node in nodes:
        own = any(index.step(loop) != 0 for index in indices(node))
        rows = id(node) in of_rows and isinstance(node, (Load, Apply))
        inside = any(id(part) in found for part in parts(node))
        if own or rows or inside or isinstance(node, (Contracted, Reduced)):
            found.add(id(node))
    return found


def has_vector(
    node: Scalar, wide: Container[int], loop: str, itemsize: int, chooses: bool = False
) -> bool:
    """Whether vectors have what a node is, one that is ``wide`` as numbers of so many bytes that
    adjoin along a loop, or by a row; what is the same for all of a vector may be of any dtype, and
    where text ``chooses`` between vectors, a truth.
    """
    if id(node) not in wide:
        known = isinstance(node, (Number, LengthNumber, Load, IndexNumber, Apply))
        return known and all(is_direct(index) for index in indices(node))
    if isinstance(node, Load):
        adjoins = is_direct(node.offset) and node.offset.step(loop) == 1
        return adjoins and is_number(node.dtype, itemsize)
    if isinstance(node, Contracted):
        return is_number(node.dtype, itemsize)
    if not isinstance(node, Apply) or not has_row(node, itemsize):
        return False
    chosen = chooses and node.row.name == "where" and id(node.args[0]) not in wide
    args = node.args[1:] if chosen else node.args
    return all(id(arg) in wide or is_number(arg.dtype, itemsize) for arg in args)
