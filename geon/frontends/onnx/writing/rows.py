"""The table of the exporter: a row for each primitive, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import FLOAT32, FLOAT64
from . import contractions, elementwise, indexing, movement, random_bits, reductions, regions
from .contractions import or_pooled
from .exporter import Exporter, OnnxValue
from .movement import Row


def _elementwise(function: Callable[..., Any], with_op: bool) -> Row:
    """Return the row of a function of aligned operands."""

    def row(e: Exporter, op: Op) -> OnnxValue:
        order = e.common_order(op, op.args)
        operands = [e.operand(arg, order) for arg in op.args]
        made = function(op, *operands) if with_op else function(*operands)
        return OnnxValue(made.name, order)

    return row


# Softmax ----------------------------------------------------------------------------------------


def _softmax_of(e: Exporter, op: Op) -> tuple[Op, str] | None:
    """Return the argument and the axis of a softmax, or of its logarithm, that ends with ``op``.

    The forms are ``exp(s) / sum(exp(s))`` and ``s - log(sum(exp(s)))`` with ``s = x - max(x)``.
    None is returned if an op inside has further readers, which would compute it again.
    """
    first, last = op.args
    total = last
    if op.primitive.name == "subtract":
        if not _is(e, last, "log"):
            return None
        total = last.args[0]
    if not _is(e, total, "sum"):
        return None
    powers = total.args[0]
    if powers.primitive.name != "exp" or len(total.attrs.reduced) != 1:
        return None
    shifted = powers.args[0]
    inner = powers if op.primitive.name == "divide" else shifted
    if first is not inner or shifted.primitive.name != "subtract":
        return None
    once = shifted if inner is powers else powers
    if e.uses[inner] != 2 or e.uses[once] != 1:
        return None
    x, largest = shifted.args
    while largest.primitive.name == "stop_gradient":
        largest = largest.args[0]
    if not _is(e, largest, "max") or largest.args[0] is not x or x.dtype not in (FLOAT32, FLOAT64):
        return None
    same = largest.attrs.reduced == total.attrs.reduced
    return (x, total.attrs.reduced[0]) if same else None


def _is(e: Exporter, op: Op, name: str) -> bool:
    """Return True for an op of this primitive with one reader."""
    return op.primitive.name == name and e.uses[op] == 1


def _or_softmax(operator: str, row: Row) -> Row:
    """Return the row of a quotient or difference that may be a softmax or its logarithm.

    What a softmax is made of is written before, and removed again with all that nothing reads.
    """

    def either(e: Exporter, op: Op) -> OnnxValue:
        found = _softmax_of(e, op)
        if found is None:
            ordinary: OnnxValue = row(e, op)
            return ordinary
        (x, axis), value = found, e.complete(found[0], found[1:])
        made = e.expr(value.name, x.dtype).run(operator, axis=value.order.index(axis))
        return OnnxValue(made.name, value.order)

    return either


# The table --------------------------------------------------------------------------------------

ROWS: dict[str, Row] = {
    **{name: _elementwise(row, False) for name, row in elementwise.ROWS.items()},
    **{name: _elementwise(row, True) for name, row in elementwise.ROWS_WITH_OP.items()},
    **contractions.ROWS,
    **indexing.ROWS,
    **movement.ROWS,
    **random_bits.ROWS,
    **reductions.ROWS,
    **regions.ROWS,
}
ROWS["max"] = or_pooled(ROWS["max"], "MaxPool", -math.inf)
ROWS["first_max"] = or_pooled(ROWS["first_max"], "MaxPool", -math.inf)
ROWS["sum"] = or_pooled(ROWS["sum"], "AveragePool", 0.0)
ROWS["divide"] = _or_softmax("Softmax", ROWS["divide"])
ROWS["subtract"] = _or_softmax("LogSoftmax", ROWS["subtract"])
# Primitives without a row. Those that are lowered are replaced by others before rows are asked for.
FED = "an input or a parameter, whose value is given"
RUN_AWAY = "an effect, which stands for the new value of a variable before rows are asked for"
MARKS = "a mark for derivatives and recomputation, which the stages before remove"
LOWERED = "replaced by other primitives, by the lowering rules"
WITHOUT_ROW: dict[str, str] = {
    **dict.fromkeys(("placeholder", "variable", "parameter"), FED),
    **dict.fromkeys(("assign", "with_effect", "doall", "sequential"), RUN_AWAY),
    **dict.fromkeys(("custom", "remat", "segmented", "stop_gradient"), MARKS),
    **dict.fromkeys(
        "eigh eigvalsh svd".split(),
        "eigenvalues or singular values, found by iteration: ONNX has no operator for it",
    ),
    "bitcast": "bits of elements other than words as float32: ONNX has an operator for them from"
    " version 26 on alone",
    "fourier_parts": "a Fourier transform of an open length; known lengths are products",
    "print": "an effect: ONNX has no operator that prints",
    **dict.fromkeys(
        "airy_ai airy_aip airy_bi airy_bip as_complex betainc cholesky conj converged cummax"
        " cummin cumprod determinant erfc erfcx erfcx_derivative erfinv exp_product"
        " fixed_point fourier gammainc gammaincc gcd gelu_derivative gelu_tanh_derivative i0 i0e i1"
        " i1e imag j0 j1 k0 k0e k1 k1e lgamma log_determinant log_ndtr lu lu_solve ndtr ndtri pinv"
        " polygamma qr real silu_derivative solve triangular_solve weighted_product y0 y1".split(),
        LOWERED,
    ),
}


def lacks(op: Op) -> list[str]:
    """Return what the table lacks for an op of a lowered program: a row, or nothing."""
    name = op.primitive.name
    if name in ROWS or WITHOUT_ROW.get(name) == FED:
        return []
    return [WITHOUT_ROW.get(name, f"the row {name!r} of geon/frontends/onnx/writing/rows.py")]
