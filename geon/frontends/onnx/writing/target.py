"""The exporter as a target: what a computation is lowered to before its nodes are written."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

import geon

from ....op_graph.building.constants import number
from ....op_graph.op_graph import Op, Tensor
from ....op_graph.regions.scan import scan
from ....op_graph.regions.while_loop import while_loop
from ....op_graph.rewriting.driver import Rule, Rules, RuleSet
from ....op_graph.rewriting.window_rules import STORED_WINDOW_RULES
from ....op_graph.rows.elementwise import absolute, cast, equal, mod, not_equal, where
from ....op_graph.rows.movement import broadcast, reorder
from ....op_graph.rows.reductions import any as any_of
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.dtypes import FLOAT32
from ....transformers.base import Transformer
from ....transformers.lowering.facts.target import Arrangement, Layout, Target
from ....transformers.lowering.rules import lowering_rules
from . import elementwise, matrices
from .rows import lacks


def _arrange(op: Op, left: Layout, right: Layout) -> Arrangement:
    """Leave operands of contractions as they are; the exporter orders dimensions itself."""
    return Arrangement((None, None), op.axes.names)


def _except_float32(rule: Rule) -> Rule:
    """Return a rule that leaves float32, for which ONNX has an operator."""

    @wraps(rule)
    def rewritten(op: Op) -> Op | None:
        return None if op.dtype == FLOAT32 else rule(op)

    return rewritten


lower = Rules("loops that ONNX has no operator for")


@lower.on("cummax", "cummin", "cumprod")
def running(op: Op) -> Op:
    """Rewrite a running product or extreme as a scan."""
    a: Any = op.attrs
    x: Any = op.args[0]
    axis = x.axes[a.axis]
    rest = x.axes.without((axis,))
    combining: Any = RUNNING[op.primitive.name]
    first = broadcast(number(combining.identity(op.dtype), op.dtype), rest)

    def step(total: Tensor, element: Tensor) -> tuple[Tensor, Tensor]:
        combined = combining.step.apply(total, element)
        return combined, total if a.exclusive else combined

    _, totals = scan(step, first, cast(x, op.dtype), over=axis, reverse=a.reverse)
    return reorder(totals, op.axes)


@lower.on("gcd")
def gcd(op: Op) -> Op:
    """Rewrite as Euclid's algorithm, a loop until all remainders are 0."""
    x, y = (broadcast(absolute.apply(arg), op.axes) for arg in op.args)

    def step(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, y = state
        ends = equal.apply(y, 0)
        rest = mod.apply(x, where.apply(ends, 1, y))
        return where.apply(ends, x, y), where.apply(ends, 0, rest)

    found, _ = while_loop(lambda state: any_of(not_equal.apply(state[1], 0)), step, (x, y))
    made: Tensor = absolute.apply(found)
    return made


MANTISSA, BIAS = 23, 127  # bits and offset of float32


@lower.on("bitcast")
def bitcast(op: Op) -> Op | None:
    """Rewrite float32 of words by their exponents and fractions; NaN has one form."""
    words: Any = op.args[0]
    if op.dtype != FLOAT32 or words.dtype.kind not in "iu":
        return None
    word = cast(words, "uint32")
    exponents = np.arange(2**8) - BIAS - MANTISSA
    scales = np.ldexp(1.0, np.maximum(exponents, 1 - BIAS - MANTISSA)).astype(np.float32)
    table = geon.constant(scales, [geon.Axis("exponent", 2**8)])
    exponent = geon.bitwise_and(geon.right_shift(word, MANTISSA), 2**8 - 1)
    fraction = geon.bitwise_and(word, 2**MANTISSA - 1)
    digits = where.apply(exponent > 0, fraction + 2**MANTISSA, fraction)
    value = cast(digits, "float32") * geon.gather(table, exponent, "exponent")
    special = where.apply(fraction > 0, float("nan"), float("inf"))
    value = where.apply(equal.apply(exponent, 2**8 - 1), special, value)
    return where.apply(geon.right_shift(word, 31) > 0, -value, value)


def _rules() -> RuleSet:
    """Return the lowering rules of all targets, without those that replace rows of the exporter."""
    lowering = lowering_rules.RULES
    found = dict(lowering.rules)
    for name in elementwise.FLOAT32_OPERATORS:
        found[name] = tuple([_except_float32(rule) for rule in found[name]])
    for name in elementwise.WITHOUT_FORMULA:
        found[name] = tuple([r for r in found[name] if r is not lowering_rules._through_formula])
    loops = lower.done() | matrices.RULES
    return RuleSet("lowering to ONNX", found) | loops | STORED_WINDOW_RULES


class OnnxExporter(Transformer):
    """Lowers computations to primitives of the exporter's table; it computes nothing."""

    target = Target(
        name="onnx",
        rules=_rules(),
        arrange=_arrange,
        in_place={},
        hidden={},
        lacks=lacks,
        transforms=False,
    )
