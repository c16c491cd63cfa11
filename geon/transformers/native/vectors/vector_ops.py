"""Vector texts of elementwise primitives, and tests for values that have vectors.

The types are those of ``c/vectors.h``. The texts correspond to those of ``c_expressions`` for
scalars.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from ....op_graph.values.dtypes import DType, kind, name_of, named_dtype
from ...kernels.analysis.footprint import is_direct
from ...kernels.ir.loop_variables import variables_in
from ...kernels.ir.scalar_code import (
    Apply,
    Clamped,
    Contracted,
    IndexNumber,
    LengthNumber,
    Load,
    Number,
    Reduced,
    Scalar,
    indices,
    operands_of,
)
from ...printing.scalars import c_expressions

KINDS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}  # in vectors.h
# In narrow_vectors.h.
NARROW_KINDS = {"int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16"}
NARROW_KINDS |= {"bool": "u8", "bfloat16": "u16"}
C_KINDS = {c_expressions.C_TYPES[dtype]: kind for dtype, kind in KINDS.items()}

# ``v0`` is operand 0 broadcast to a vector, ``{0}`` may be a scalar. True is a mask of all ones.
ROWS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "square": "{0} * {0}",
    "maximum": "{type}_maximum({v0}, {v1})",
    "minimum": "{type}_minimum({v0}, {v1})",
    "where": "GEON_CHOSEN({type}, {bits}, {0}, {v1}, {v2})",
}
FLOAT_ROWS = {
    **ROWS,
    "divide": "{0} / {1}",
    "reciprocal": "1 / {0}",
    "absolute": "({type})(({bits})({0}) & {most})",  # clears the sign bit
    "sqrt": "GEON_ROOT_{type}({0})",
    "rsqrt": "1 / GEON_ROOT_{type}({0})",
}
INTEGER_ROWS = {**ROWS, "absolute": "GEON_CHOSEN({type}, {bits}, {0} < 0, -{0}, {0})"}
SIGNS = {**c_expressions.COMPARISONS, **c_expressions.BITWISE, **c_expressions.LOGICAL}
TRUTHS = {row: f"{{0}} {sign} {{1}}" for row, sign in SIGNS.items()}
TRUTHS |= dict.fromkeys(("logical_not", "bitwise_not"), "~{0}")
ORDERED = ("less", "less_equal", "greater", "greater_equal")  # wrong for masks: true is -1


def vector_type(ctype: str, count: int) -> str:
    """Return the type of vectors of ``count`` elements of a C type."""
    return f"{C_KINDS[ctype]}x{count}"


def is_number(dtype: DType, itemsize: int) -> bool:
    """Return True if there are vectors of a dtype and it has ``itemsize`` bytes."""
    return name_of(dtype) in KINDS and dtype.itemsize == itemsize


def widened(node: Scalar, itemsize: int) -> Load | None:
    """Return the load of narrow elements that a node casts to numbers of ``itemsize`` bytes.

    Those are integers, truths and the upper halves of floats.
    """
    if not isinstance(node, Apply) or node.row.name != "cast":
        return None
    load = node.args[0]
    if not isinstance(load, Load) or not is_number(node.dtype, itemsize):
        return None
    source = name_of(load.dtype)
    known = source in NARROW_KINDS and (source != "bfloat16" or kind(node.dtype) == "f")
    return load if known else None


def widening_text(place: str, source: str, ctype: str, count: int) -> str:
    """Return the ``count`` narrow elements of dtype ``source`` at a place as a vector of numbers.

    The text calls a function of ``c/narrow_vectors.h``.
    """
    narrow = f"{NARROW_KINDS[source]}x{count}"
    text, result = f"GEON_AT({narrow}, {place})", vector_type(ctype, count)
    given = f"i32x{count}"
    if source == "bool":
        narrow = f"i8x{count}"
        text = f"({narrow})-({text} != 0)"
    text = f"{narrow}_widened({text})"
    if source == "bfloat16":
        given = f"f32x{count}"
        text = f"({given})({text} << 16)"
    return text if result == given else f"GEON_AS({result}, {text})"


def has_row(node: Apply, itemsize: int) -> bool:
    """Return True if the primitive of a node has a vector text."""
    if name_of(node.dtype) != "bool":
        return node.row.name in rows_of(node.dtype) and is_number(node.dtype, itemsize)
    if node.row.name in ORDERED and name_of(node.args[0].dtype) == "bool":
        return False
    return node.row.name in TRUTHS


def has_vector_row(row: str, dtypes: Sequence[str], result: str, itemsize: int) -> bool:
    """Return True if a primitive has a vector text for operands and a result of these dtypes."""
    numbers = [named_dtype(name) for name in (*dtypes, result) if name != "bool"]
    if not all(is_number(each, itemsize) for each in numbers):
        return False
    if row == "cast" and dtypes[0] == "bool":
        return result != "bool"
    if row == "cast":  # integers that do not fit are the largest and smallest ones, one by one
        rounds = kind(named_dtype(dtypes[0])) == "f" and kind(named_dtype(result)) != "f"
        return len(numbers) == 2 and not rounds
    if result != "bool":
        return row in rows_of(named_dtype(result))
    return row in TRUTHS and not (row in ORDERED and dtypes[0] == "bool")


def rows_of(dtype: DType) -> Mapping[str, str]:
    """Return the vector texts of a dtype, by the names of primitives."""
    return FLOAT_ROWS if kind(dtype) == "f" else INTEGER_ROWS


def row_text(
    row: str, dtype: str, types: tuple[str, str], operands: Sequence[str], each: Sequence[str]
) -> str:
    """Return the text of a primitive on vectors.

    ``types`` are the vector types of its result and of masks. ``operands`` may be scalars; ``each``
    are the same operands broadcast to vectors.
    """
    result, bits = types
    if dtype == "bool":
        return f"({bits})({TRUTHS[row].format(*operands)})"
    names = {f"v{k}": text for k, text in enumerate(each)} | {"type": result, "bits": bits}
    names["most"] = f"INT{8 * named_dtype(dtype).itemsize}_MAX"
    return rows_of(named_dtype(dtype))[row].format(*operands, **names)


def vectors(nodes: Iterable[Scalar], loop: str) -> set[int]:
    """Return the ids of nodes that have a value for each element of a vector along a loop.

    With columns these include reductions, and in products the sums.
    """
    found: set[int] = set()
    for node in nodes:
        own = any(index.step(loop) != 0 for index in indices(node))
        inside = any(id(part) in found for part in operands_of(node))
        if own or inside or isinstance(node, (Contracted, Reduced)):
            found.add(id(node))
    return found


def has_vector(
    node: Scalar,
    wide: Container[int],
    loop: str,
    itemsize: int,
    chooses: bool = False,
    clamps: bool = False,
) -> bool:
    """Return True if a node can be emitted for vectors along a loop.

    A node that is ``wide`` must be a contiguous load, a reduction, or a primitive with a
    vector text, of ``itemsize`` bytes. Other nodes are scalars of any dtype. With ``chooses`` the
    condition of a "where" may be a scalar, and with ``clamps`` parts of the index of a load may be
    clamped by guards that are the same for a whole vector.
    """
    if id(node) not in wide:
        known = isinstance(node, (Number, LengthNumber, Load, IndexNumber, Apply))
        return known and all(is_direct(index) for index in indices(node))
    if isinstance(node, Load):
        others = [atom for atom in node.offset.terms if not isinstance(atom, str)]
        fixed = all(isinstance(x, Clamped) and loop not in variables_in(x) for x in others)
        adjoins = (clamps or not others) and fixed and node.offset.step(loop) == 1
        return adjoins and is_number(node.dtype, itemsize)
    if isinstance(node, (Contracted, Reduced)):
        return is_number(node.dtype, itemsize)
    if not isinstance(node, Apply) or not has_row(node, itemsize):
        return False
    chosen = chooses and node.row.name == "where" and id(node.args[0]) not in wide
    args = node.args[1:] if chosen else node.args
    return all(id(arg) in wide or is_number(arg.dtype, itemsize) for arg in args)
