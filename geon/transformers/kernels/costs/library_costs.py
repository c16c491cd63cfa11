"""Cost of library calls: bytes of the operands, and steps of scalar code per element."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import evaluate, product
from ....op_graph.op_graph import Op
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.dtypes import name_of
from ...sizes.blocks import MAX_NARROW_SORT_LENGTH
from ..analysis.op_counts import Rows, note
from ..nests.inlining import inspected_values

# Scalar steps per element of the first operand; 1 if not listed. ``SORTS`` are computed instead.
# Those of a scatter are per position, those of an update per replaced element.
STEPS = {
    "cumsum": 3, "cumprod": 4, "cummax": 3, "cummin": 3, "argmax": 4, "argmin": 4,
    "scatter": 2, "update": 2, "counting sort": 10,
}  # fmt: skip
SORTS = frozenset({"sort", "argsort", "top_k"})
COUNTED = frozenset({*RUNNING, "argmax", "argmin"})  # one operation per element


@dataclass(frozen=True, slots=True)
class Counted:
    """Cost of one library call.

    ``read``, ``written`` and ``touched`` are bytes. ``rows`` are the primitives that count as
    operations. ``moves`` are the bytes read and written of each argument and of the result.
    ``steps`` is the total of scalar steps. ``picked`` is the number of elements accessed at random
    in memory of ``among`` bytes.
    """

    read: int
    written: int
    touched: int
    rows: Rows
    moves: tuple[tuple[int, int], ...]
    steps: int
    picked: int = 0
    among: int = 0


def count_call(
    op: Op, lengths: Mapping[str, int], places: Sequence[Hashable] | None = None
) -> Counted:
    """Return the cost of a call; ``places`` are those of its arguments, then that of its result."""
    name = op.primitive.name
    rows: Rows = {}
    args = inspected_values(op) if op.primitive.has_side_effect else op.args
    sizes = [_size(arg, lengths) for arg in args]
    result = 0 if op.primitive.has_side_effect else _size(op, lengths)
    if name in ("update", "scatter"):
        return _replaced(op, sizes, result, places, rows, lengths)
    first = sizes[0] if sizes else result
    if name in COUNTED:
        note(rows, "add", name_of(op.args[0].dtype), first)
    steps = STEPS.get(name, 1) * max(first, result)
    if name in SORTS:
        steps = round(sorted_steps(op, lengths) * first)
    read = sum(n * a.dtype.itemsize for n, a in zip(sizes, args, strict=True))
    written = result * op.dtype.itemsize
    shared = places is not None and bool(op.args) and places[-1] in places[:-1]
    moves = [(n * a.dtype.itemsize, 0) for n, a in zip(sizes, args, strict=True)]
    moves += [] if op.primitive.has_side_effect else [(0, written)]
    return Counted(read, written, read + written * (not shared), rows, tuple(moves), steps)


def sorted_steps(op: Op, lengths: Mapping[str, int]) -> float:
    """Return the scalar steps per element of a sort.

    They are those of a sorting network for short lines, and of quicksort rounds for long ones.
    """
    at = op.args[0].axes.index(op.attrs.axis)
    n = int(evaluate(op.args[0].axes.lengths[at], lengths))
    itemsize, bits = op.args[0].dtype.itemsize, n.bit_length()
    finds = op.primitive.name != "sort"
    if n < 2:
        return 1.0
    if n <= MAX_NARROW_SORT_LENGTH:
        wide = 6 if finds and itemsize == 8 else max(itemsize * (1 + finds), 4) / 4
        return (2 + bits / 2) * wide
    if itemsize == 1:
        return STEPS["counting sort"]
    word = 8 if finds else itemsize
    share = 1.0
    if op.primitive.name == "top_k":
        share = int(evaluate(op.attrs.k, lengths)) / n
    return (8 + 2 * bits * share) * (1 + word / 4) / 2


def _replaced(
    op: Op,
    sizes: list[int],
    result: int,
    places: Sequence[Hashable] | None,
    rows: Rows,
    lengths: Mapping[str, int],
) -> Counted:
    """Return the cost of an update or scatter; in place, only the replaced part is touched."""
    scatters = op.primitive.name == "scatter"
    at = 2 if scatters else 1
    bytes_of = [n * arg.dtype.itemsize for n, arg in zip(sizes, op.args, strict=True)]
    whole = result * op.dtype.itemsize
    part = min(sizes[at] * op.dtype.itemsize, whole)
    read = sum(bytes_of[1:])
    combines = scatters and op.attrs.mode != "set"
    if combines:
        note(rows, "add", name_of(op.dtype), sizes[at])
    others = [(size, 0) for size in bytes_of[1:]]
    steps, picked = STEPS["update"] * sizes[at], 0
    if scatters:
        lengths_after = op.axes.lengths[op.axes.names.index(op.attrs.axis) + 1 :]
        picked = sizes[at] // max(int(evaluate(product(lengths_after), lengths)), 1)
        steps = STEPS["scatter"] * picked + sizes[at]
    if places is not None and places[-1] == places[0]:
        moves = ((part * combines, 0), *others, (0, part))
        all_bytes = (read + part * combines, part, read + part)
        return Counted(*all_bytes, rows, moves, steps, picked, whole)
    moves = ((whole, 0), *others, (0, whole))
    return Counted(read + whole, whole, read + 2 * whole, rows, moves, steps, picked, whole)


def _size(op: Op, lengths: Mapping[str, int]) -> int:
    return int(evaluate(op.axes.size, lengths))
