"""NumPy statements of one kernel, for every kind of primitive."""

from __future__ import annotations

from collections.abc import Callable

from ...op_graph.axes.lengths import Length, product
from ...op_graph.op_graph import Op
from ...op_graph.random.streams import RandomBitsAttributes
from ...op_graph.rows.effects import printed_form
from ...op_graph.rows.fourier import FourierPartsAttributes
from ...op_graph.rows.indexing import COMBINING, ScatterAttributes
from ...op_graph.rows.reductions import positions
from ...op_graph.rows.sort_and_cumulative import RUNNING, RunningAttributes
from ...op_graph.values.dtypes import is_float8, kind, name_of
from ..kernels.nests.inlining import inspected_values
from ..lowering.fusion.kernel import Kernel
from .arrays import ArrayOperands, dtype_text, length_text
from .index_maps import moved_text
from .matmul import groups
from .pairwise_sums import MAX_FLOAT32_TERMS, MAX_SERIAL_TERMS
from .table import INTEGER_TABLE, REDUCTIONS, TABLE


def statements(work: ArrayOperands, kernel: Kernel) -> list[str]:
    """Return the statements that compute a kernel."""
    name = kernel.op.primitive.name
    if name in REDUCTIONS:
        return _reduction(work, kernel.op)
    special = SPECIAL.get(name)
    if special is not None:
        return special(work, kernel.op)
    if kernel.op.primitive.index_map is not None:
        return moved_text(work, kernel.op)
    return _elementwise(work, kernel.op)


def _elementwise(work: ArrayOperands, op: Op) -> list[str]:
    name = op.primitive.name
    lines = TABLE[name]
    if kind(op.args[0].dtype) != "f":
        lines = INTEGER_TABLE.get(name, lines)
    operands = [work.operand(arg, op.axes) for arg in op.args]
    fields = {"o": work.operand(op)}
    text = "; ".join(lines)
    for word, value in (("one", 1.0), ("zero", 0.0)):
        if f"{{{word}}}" in text:
            fields[word] = work.scalar(value, op.dtype)
    return [line.format(*operands, **fields) for line in lines]


def _where(work: ArrayOperands, op: Op) -> list[str]:
    condition, chosen, other = (work.operand(arg, op.axes) for arg in op.args)
    out = work.operand(op)
    first = [] if out == other else [f"np.copyto({out}, {other})"]
    return [*first, f"np.copyto({out}, {chosen}, where={condition})"]


def _cast(work: ArrayOperands, op: Op) -> list[str]:
    x, out = work.operand(op.args[0], op.axes), work.operand(op)
    if kind(op.args[0].dtype) == "f" and kind(op.dtype) == "i":
        return [f"rt.to_integer({x}, {out})"]
    if kind(op.dtype) == "b":
        return [f"np.not_equal({x}, {work.scalar(0, op.args[0].dtype)}, out={out})"]
    if is_float8(op.dtype) and name_of(op.args[0].dtype) == "float64":
        return [f"rt.to_float8({x}, {out})"]
    return [f"np.copyto({out}, {x}, casting='unsafe')"]


def _bitcast(work: ArrayOperands, op: Op) -> list[str]:
    x, out = work.operand(op.args[0], op.axes), work.operand(op)
    return [f"np.copyto({out}, {x}.view({dtype_text(op.dtype)}))"]


def _reduction(work: ArrayOperands, op: Op) -> list[str]:
    x, out = work.operand(op.args[0]), work.operand(op)
    text = REDUCTIONS[op.primitive.name]
    if op.dtype is op.args[0].dtype:
        text = text.replace(" dtype={dtype},", "")
    axis = positions(op)
    shown = str(axis[0]) if len(axis) == 1 else str(axis)
    if op.primitive.name == "sum" and not _few(work, op.args[0], axis):
        return [f"rt.add_reduce({x}, {shown}, {out})"]
    return [text.format(x, axis=shown, dtype=dtype_text(op.dtype), o=out)]


def _few(work: ArrayOperands, x: Op, axis: tuple[int, ...]) -> bool:
    """Return True if NumPy's own sum is accurate: few terms, one contiguous run, or no floats."""
    terms = product(x.axes.lengths[k] for k in axis)
    together = len(axis) == len(x.axes) and work.base[x] is x
    few = isinstance(terms, int) and terms <= MAX_SERIAL_TERMS
    return name_of(x.dtype) not in ("float32", "float64") or together or few


def _position(work: ArrayOperands, op: Op) -> list[str]:
    x, out = work.operand(op.args[0]), work.operand(op)
    return [f"np.{op.primitive.name}({x}, axis={positions(op)[0]}, out={out})"]


def _cumulative(work: ArrayOperands, op: Op) -> list[str]:
    a: RunningAttributes = op.attrs
    at = op.axes.index(a.axis)
    running = RUNNING[op.primitive.name]
    ufunc, identity = running.ufunc.__name__, running.identity(op.dtype)
    x, out = work.array(op.args[0]), work.array(op)

    def part(array: str, text: str) -> str:
        return work.view_of(array, f"[{', '.join([':'] * at + [text])}]")

    def accumulated(source: str, target: str) -> str:
        if ufunc == "add" and name_of(op.dtype) == "float32":
            return f"rt.add_accumulate({source}, {at}, {target})"
        return f"np.{ufunc}.accumulate({source}, axis={at}, out={target})"

    backwards = "::-1" if a.reverse else ":"
    if not a.exclusive:
        return [accumulated(part(x, backwards), part(out, backwards))]
    source = part(x, ":0:-1" if a.reverse else ":-1")
    target = part(out, "-2::-1" if a.reverse else "1:")
    first = part(out, "-1:" if a.reverse else ":1")
    return [
        f"np.copyto({first}, {work.scalar(identity, op.dtype)})",
        accumulated(source, target),
    ]


def _sort(work: ArrayOperands, op: Op) -> list[str]:
    x, out = work.operand(op.args[0]), work.operand(op)
    first = [] if x == out else [f"np.copyto({out}, {x})"]
    return [*first, f"{out}.sort(axis={op.axes.index(op.attrs.axis)}, kind='stable')"]


def _argsort(work: ArrayOperands, op: Op) -> list[str]:
    x, out, at = work.operand(op.args[0]), work.operand(op), op.axes.index(op.attrs.axis)
    return [f"np.copyto({out}, np.argsort({x}, axis={at}, kind='stable'))"]


def _top_k(work: ArrayOperands, op: Op) -> list[str]:
    x, out, at = work.operand(op.args[0]), work.operand(op), op.axes.index(op.attrs.axis)
    return [f"rt.top_k({x}, {at}, {op.attrs.k}, {op.attrs.largest}, {out})"]


def _fourier(work: ArrayOperands, op: Op) -> list[str]:
    a: FourierPartsAttributes = op.attrs
    x, out, at = work.operand(op.args[0]), work.operand(op), op.args[0].axes.index(a.axis)
    n = work.length(a.n)
    return [f"rt.fourier({x}, {out}, {at}, {a.form!r}, {a.inverse}, {n})"]


def _dot(work: ArrayOperands, op: Op) -> list[str]:
    parts = groups(op)
    x, y = op.args
    order = work.layouts[op].order
    summed = [n for n in work.layouts[x].order if n in parts.summed]
    batch = [n for n in order if n in parts.batch]
    rows = [n for n in order if n in parts.rows]
    columns = [n for n in order if n in parts.columns]
    flat = not batch
    left = _matrix(work, x, batch, [rows, summed], drop=flat)
    right = _matrix(work, y, batch, [summed, columns], drop=flat)
    out = _matrix(work, op, batch, [rows, columns], drop=flat)
    terms = product(x.axes[n].expression for n in summed)
    if name_of(op.dtype) != "float32" or (isinstance(terms, int) and terms <= MAX_FLOAT32_TERMS):
        return [f"np.matmul({left}, {right}, out={out})"]
    return [f"rt.matmul({left}, {right}, {out})"]


def _matrix(
    work: ArrayOperands, op: Op, batch: list[str], pair: list[list[str]], drop: bool
) -> str:
    """Return ``op`` with axes (batch, first of pair, second); with ``drop``, without empty ones."""
    name = work.array(op)
    order = [op.axes.index(n) for n in [*batch, *pair[0], *pair[1]]]
    if order != sorted(order):
        name = work.view_of(name, f".transpose({', '.join(map(str, order))})")
    kept = [group for group in pair if group or not drop]
    if any(len(group) != 1 for group in kept):
        lengths: list[int | Length] = [op.axes[n].expression for n in batch]
        lengths += [product(op.axes[n].expression for n in group) for group in kept]
        name = work.view_of(name, f".reshape({work.shape(lengths)}, copy=False)")
    return name


def _update(work: ArrayOperands, op: Op) -> list[str]:
    x, value, out = work.operand(op.args[0]), work.operand(op.args[1]), work.operand(op)
    first = [] if x == out else [f"np.copyto({out}, {x})"]
    if len(op.args) > 2:
        return [*first, f"{out}{work.index(op, 2)} = {value}"]
    part = work.view_of(work.array(op), work.index(op, 2))
    return [*first, f"np.copyto({part}, {value})"]


def _slice(work: ArrayOperands, op: Op) -> list[str]:
    """Return the statements of a slice at run-time positions; other slices are views."""
    x, out = work.operand(op.args[0]), work.operand(op)
    return [f"np.copyto({out}, {x}{work.index(op, 1)})"]


def _flatten(work: ArrayOperands, op: Op) -> list[str]:
    x = op.args[0]
    shaped = work.view_of(work.array(op), f".reshape({work.shape(x.axes.lengths)}, copy=False)")
    return [f"np.copyto({shaped}, {work.operand(x)})"]


def _concat(work: ArrayOperands, op: Op) -> list[str]:
    at, out = op.axes.index(op.attrs.axis), work.array(op)
    lines: list[str] = []
    start: int | Length = 0
    for arg in op.args:
        end = start + arg.axes[op.attrs.axis].expression
        text = ", ".join([":"] * at + [f"{length_text(start)}:{length_text(end)}"])
        part = work.view_of(out, f"[{text}]")
        lines.append(f"np.copyto({part}, {work.operand(arg, arg.axes)})")
        start = end
    return lines


def _pad(work: ArrayOperands, op: Op) -> list[str]:
    x, value = op.args
    inner = []
    for axis, width in zip(x.axes, op.attrs.widths, strict=True):
        low = 0 if width is None else width[0]
        inner.append(f"{low}:{length_text(low + axis.expression)}")
    part = work.view_of(work.array(op), f"[{', '.join(inner)}]")
    return [
        f"np.copyto({work.operand(op)}, {work.operand(value)})",
        f"np.copyto({part}, {work.operand(x)})",
    ]


def _gather(work: ArrayOperands, op: Op) -> list[str]:
    x, index = op.args
    at = x.axes.index(op.attrs.axis)
    return [
        f"np.take({work.operand(x)}, {work.operand(index)}, axis={at}, mode='wrap', "
        f"out={work.operand(op)})"
    ]


def _scatter(work: ArrayOperands, op: Op) -> list[str]:
    x, out = work.operand(op.args[0]), work.operand(op)
    index, value = work.operand(op.args[1]), work.operand(op.args[2])
    a: ScatterAttributes = op.attrs
    place = ", ".join([":"] * op.axes.index(a.axis) + [index])
    first = [] if x == out else [f"np.copyto({out}, {x})"]
    if a.mode == "set":
        return [*first, f"{out}[{place}] = {value}"]
    slices = ", ".join(["slice(None)"] * op.axes.index(a.axis) + [index])
    return [*first, f"np.{COMBINING[a.mode].__name__}.at({out}, ({slices},), {value})"]


def _iota(work: ArrayOperands, op: Op) -> list[str]:
    return [f"rt.iota({work.operand(op)})"]


def _random_bits(work: ArrayOperands, op: Op) -> list[str]:
    a: RandomBitsAttributes = op.attrs
    flat = work.view_of(work.array(op), ".reshape(-1, copy=False)")
    calls = work.operand(op.args[0])
    return [f"rt.random_bits({flat}, {a.seed}, {a.draw}, int({calls}))"]


def _print(work: ArrayOperands, op: Op) -> list[str]:
    dtype = f", {printed_form(op)[1].name!r}" if op.attrs.pairs else ""
    return [f"rt.show({op.attrs.label!r}, {work.operand(op.args[0])}{dtype})"]


def _checked(work: ArrayOperands, op: Op) -> list[str]:
    if op.attrs.batch is not None:
        pairs = [f"({name!r}, {work.length(size)})" for name, size in op.attrs.batch]
        listed = f"[{', '.join(pairs)}]"
        return [f"rt.check_matrices({work.operand(op.args[1])}, {listed}, {work.position})"]
    length, lowest = work.length(op.attrs.length), "" if op.attrs.from_end else ", 0"
    return [
        f"rt.check_positions({work.operand(index)}, {length}, {work.position}{lowest})"
        for index in inspected_values(op)
    ]


def _factorisation(work: ArrayOperands, op: Op) -> list[str]:
    return [f"rt.{op.primitive.name}({work.array(op.args[0])}, {work.array(op)})"]


def _lu_solve(work: ArrayOperands, op: Op) -> list[str]:
    f, b = (work.array(arg) for arg in op.args)
    return [f"rt.lu_solve({f}, {b}, {op.attrs.transposed}, {work.array(op)})"]


def _triangular_solve(work: ArrayOperands, op: Op) -> list[str]:
    a, b = (work.array(arg) for arg in op.args)
    exchanged = op.args[0].axes.names[-1] == op.attrs.rows
    flags = f"{exchanged}, {op.attrs.lower}, {op.attrs.unit}"
    return [f"rt.triangular_solve({a}, {b}, {flags}, {work.array(op)})"]


SPECIAL: dict[str, Callable[[ArrayOperands, Op], list[str]]] = {
    "where": _where,
    "cast": _cast,
    "bitcast": _bitcast,
    "argmax": _position,
    "argmin": _position,
    **dict.fromkeys(RUNNING, _cumulative),
    "sort": _sort,
    "argsort": _argsort,
    "top_k": _top_k,
    "cholesky": _factorisation,
    "lu": _factorisation,
    "eigh": _factorisation,
    "eigvalsh": _factorisation,
    "qr": _factorisation,
    "svd": _factorisation,
    "lu_solve": _lu_solve,
    "triangular_solve": _triangular_solve,
    "fourier_parts": _fourier,
    "dot": _dot,
    "update": _update,
    "slice": _slice,
    "flatten": _flatten,
    "concat": _concat,
    "pad": _pad,
    "gather": _gather,
    "scatter": _scatter,
    "iota": _iota,
    "random_bits": _random_bits,
    "print": _print,
    "checked": _checked,
}
