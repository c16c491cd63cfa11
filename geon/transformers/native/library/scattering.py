"""C library kernels that put values at positions, and the copies that they are added in.

The C is in ``c/scatter.c``.
"""

from __future__ import annotations

from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.rows.reducers import highest, lowest
from ....op_graph.values.dtypes import HALVES, as_dtype
from ...printing.scalars.c_expressions import cast_calls, combined, literal
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ..names.c_files import FileFunction, file_function
from ..sizes.scatters import FEW_PLACES, GRAIN, MOST_PARTS, Copies

COLUMNS = 512  # columns of a task at least: memory brings long runs sooner than parts of them
PIECE = 4096  # elements of the copies that are added by one task
FAR = 1 << 23  # bytes of places from which on caches hold few of them
AHEAD = 32  # positions between one whose place is fetched and the one that is put
LISTED = 1024  # positions of which those of one range are found together
MOST_RANGES = 8  # tasks that look through all positions, each for its own range of places


def scatter_text(mode: str, dtype: str, index: str) -> FileFunction:
    """``void(threads, x, positions, value, out, scratch, outer, n, inner, m)``: x with values in.

    ``positions`` has m integers of dtype ``index`` that lie inside the axis, negative ones counted
    from its end; ``value`` is (outer, m, inner). They are set or combined in order, so that the
    later of two set at one place stays; lowering adds and multiplies halves as float32. ``out`` may
    be ``x``; ``scratch`` is what ``Copies`` says.
    """
    stored = "value" if mode == "set" else combined(mode, dtype, ("place", "value"))
    types = {"TYPE": C_TYPES[dtype], "INDEX": C_TYPES[index]}
    macros = {"STORED(place, value)": f"({stored})", "ADDED": int(mode != "set")}
    macros |= {"NOTHING": _nothing(mode, dtype), "GRAIN": GRAIN, "COLUMNS": COLUMNS}
    macros |= {"FEW_PLACES": FEW_PLACES}
    macros |= {"MOST_PARTS": MOST_PARTS, "PIECE": PIECE}
    macros |= {"FAR": FAR, "AHEAD": AHEAD, "LISTED": LISTED, "MOST_RANGES": MOST_RANGES}
    name = f"geon_scatter_{mode}_{SUFFIXES[dtype]}_{SUFFIXES[index]}"
    added = mode != "set" and dtype in HALVES
    called = cast_calls(dtype, "float32") + cast_calls("float32", dtype) if added else ()
    return file_function("scatter", name, types, macros, calls=called)


def _nothing(mode: str, dtype: str) -> str:
    """The literal of the element that changes none that it is combined with: of a sum of floats -0.

    Of halves it is the bits.
    """
    known = as_dtype(dtype)
    if mode in ("set", "add"):
        return "0x8000" if dtype in HALVES else "-0.0" if dtype.startswith("float") else "0"
    return literal({"max": lowest(known), "min": highest(known), "multiply": 1}[mode], dtype)


def scatter_scratch(op: Op) -> Copies | None:
    """The scratch memory of a scatter, where it may take any."""
    x, index, _ = op.args
    if op.attrs[1] == "set":
        return None
    at, lengths = x.axes.index(op.attrs[0]), x.axes.lengths
    sizes = (product(lengths[:at]), lengths[at], product(lengths[at + 1 :]), index.axes.size)
    return Copies(*sizes, op.dtype.itemsize)
