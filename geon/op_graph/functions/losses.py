"""Cross-entropy losses between predicted and target probabilities."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import AxisError
from ..building.constants import as_tensor
from ..building.weak import in_dtype, strengthen
from ..core.source_info import user_call
from ..op_graph import Leaf, Op, Tensor
from ..rewriting.stabilise import has_stable_form
from ..rows.accumulation import widen
from ..rows.elementwise import equal, log, where
from ..rows.logic import logical_and
from ..rows.reductions import SUM, reduce
from ..values.dtypes import FLOAT32, kind
from .composites import composite, weighted

if TYPE_CHECKING:
    from ..building.typing import AxesLike, Named, TensorLike


@composite
def cross_entropy_binary(
    y: TensorLike,
    t: TensorLike,
    *,
    usebits: bool = False,
    reduction_axes: AxesLike | None = None,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the sum of -(t log y + (1 - t) log(1 - y)) for probabilities y and targets t.

    ``y`` are probabilities; ``t`` are probabilities, 0 and 1, or truth values. The sum is over
    ``reduction_axes``, or over all but ``out_axes``, or over all. It is in nats, or in bits with
    ``usebits``. If ``y`` is a ``sigmoid``, value and derivatives are exact for all arguments;
    otherwise y = 0 or 1 may make it infinite. A term whose weight, t or 1 - t, is 0 is 0 even if
    its logarithm is infinite, and so are its derivatives. Warns if ``y`` is recognised as scores: a
    product with weights, also under ``tanh``, ``relu`` and similar functions, or a logarithm.
    """
    y, t = _operands(y, t)
    _warn_of_scores(y, "cross_entropy_binary", "sigmoid")
    entropy = _weighted_log(t, y) + _weighted_log(1 - t, 1 - y)
    return _cost("cross_entropy_binary", entropy, usebits, reduction_axes, out_axes)


@composite
def cross_entropy_multi(
    y: TensorLike,
    t: TensorLike,
    *,
    usebits: bool = False,
    reduction_axes: AxesLike | None = None,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the sum of -t log y over classes, for probabilities y and targets t.

    ``y`` are probabilities of classes; ``t`` are probabilities or a ``onehot`` tensor. The sum is
    over ``reduction_axes``, or over all but ``out_axes``, or over all: with ``out_axes=[N]`` there
    is a cost for each example of the batch. It is in nats, or in bits with ``usebits``. If ``y`` is
    a ``softmax``, value and derivatives are exact for all arguments. A class whose t is 0 adds 0
    even if its y is 0, and has derivatives 0 there. Raises ``AxisError`` for a ``t`` of class
    numbers. Warns if ``y`` is recognised as scores: a product with weights, also under ``tanh``,
    ``relu`` and similar functions, or a logarithm.
    """
    y, given = as_tensor(y), as_tensor(t, near=y)
    missing = [axis.name for axis in y.axes if axis not in given.axes]
    if missing and kind(given.dtype) == "i" and len(given.axes):
        raise AxisError(
            f"cross_entropy_multi: t = {given} (made at {given.line_info}) of dtype "
            f"{given.dtype.name} lacks the axis {missing[-1]!r} of y = {y} (made at "
            f"{y.line_info}); if it holds class numbers, write geon.onehot(t, {missing[-1]}), "
            "else geon.cast it to a float dtype"
        )
    _warn_of_scores(y, "cross_entropy_multi", "softmax")
    y, t = _operands(y, given)
    entropy = _weighted_log(t, y)
    return _cost("cross_entropy_multi", entropy, usebits, reduction_axes, out_axes)


# Primitives that give weighted sums of their operands.
LINEAR = ("add", "subtract", "negative", "multiply", "divide", "sum", "dot", "cast")
# Activations of a weighted sum whose values may be below 0 or above 1.
ACTIVATIONS = ("tanh", "maximum", "where", "silu", "gelu", "gelu_tanh")


def _warn_of_scores(y: Tensor, what: str, squashing: str) -> None:
    """Warn if ``y`` is not confined to 0 to 1: it is linear in weights, or a logarithm."""
    ops: list[Op] = [y]
    last: Op = y
    while last.primitive.kind == "movement" or last.primitive.name == "cast":
        last = last.args[0]
    if last.primitive.name in ACTIVATIONS:
        ops = list(last.args[1:] if last.primitive.name == "where" else last.args)
    seen: set[Op] = set()
    weighted = logarithm = False
    while ops:
        op = ops.pop()
        if op in seen:
            continue
        seen.add(op)
        weighted |= op.primitive.name == "dot" and any(map(_is_weight, op.args))
        logarithm |= op.primitive.name == "log"
        if op.primitive.name in LINEAR or op.primitive.kind == "movement":
            ops += op.args
    if weighted or logarithm:
        shown = "a logarithm" if logarithm else "a weighted sum, which nothing keeps from 0 to 1"
        warnings.warn(
            f"{user_call(what)}: y = {y} (made at {y.line_info}) should be probabilities and is "
            f"{shown}; take them first, for example with geon.{squashing}",
            UserWarning,
            stacklevel=5,  # through ``public`` and ``composite``
        )


def _is_weight(op: Op) -> bool:
    while op.primitive.kind == "movement" or op.primitive.name == "cast":
        op = op.args[0]
    return isinstance(op, Leaf) and op.info.stored and op.info.trainable


def _operands(y: Any, t: Any) -> tuple[Tensor, Tensor]:
    """Return both operands as floats."""
    y, t = as_tensor(y, near=t), as_tensor(t, near=y)
    if kind(y.dtype) != "f":
        y = in_dtype(y, FLOAT32)
    if kind(t.dtype) != "f":
        t = strengthen(t, y.dtype, t.weak and y.weak)
    return y, t


def _weighted_log(weight: Tensor, y: Tensor) -> Tensor:
    """Return ``weight * log(y)``, which is 0 where both are 0, with derivatives that are 0 there.

    A logarithm with a stable form is finite wherever its argument is, and so are its derivatives.
    The derivatives of other logarithms are infinite at 0, so the argument is replaced where the
    weight is 0.
    """
    logarithm = log(y)
    if has_stable_form(logarithm):
        return weighted(weight, logarithm)
    none = logical_and.apply(equal(weight, 0), equal(y, 0))
    return weight * log(where.apply(none, 1, y))


def _cost(
    what: str,
    entropy: Tensor,
    usebits: bool,
    reduction_axes: Any,
    out_axes: Any,
) -> Tensor:
    total = reduce(SUM, widen(entropy), reduction_axes, out_axes, what=what)
    result = 0 - total  # a negation could give -0.0
    if usebits:
        result = result / math.log(2)
    return in_dtype(result, entropy.dtype)
