"""Losses: cross entropies between predicted and wanted probabilities."""

from __future__ import annotations

import math
from typing import Any

from ..errors import AxisError
from . import reductions
from .constants import as_tensor
from .dtypes import FLOAT32, kind
from .elementwise import log
from .op_graph import Tensor, annotate
from .weak import in_dtype, strengthen


def cross_entropy_binary(
    y: Any,
    t: Any,
    *,
    usebits: bool = False,
    reduction_axes: Any = None,
    out_axes: Any = None,
    name: str | None = None,
) -> Tensor:
    """The sum of -(t log y + (1 - t) log(1 - y)): the cost of saying y where the truth is t.

    ``y`` are probabilities, ``t`` probabilities, 0 and 1, or truth values. Summed over
    ``reduction_axes``, or over all but ``out_axes``, or over all. In nats; in bits with
    ``usebits``. Where ``y`` is a ``sigmoid``, value and derivatives are exact however far out;
    elsewhere y = 0 or 1 makes it infinite, or NaN where t agrees.
    """
    y, t = _operands(y, t)
    entropy = t * log(y) + (1 - t) * log(1 - y)
    return _cost(entropy, usebits, reduction_axes, out_axes, name)


def cross_entropy_multi(
    y: Any,
    t: Any,
    *,
    usebits: bool = False,
    reduction_axes: Any = None,
    out_axes: Any = None,
    name: str | None = None,
) -> Tensor:
    """The sum of -t log y over classes: the cost of saying y where the truth is t.

    ``y`` are probabilities of classes, ``t`` probabilities or a ``onehot`` tensor. Summed over
    ``reduction_axes``, or over all but ``out_axes``, or over all: with ``out_axes=[N]`` there is
    a cost for each example of the batch. In nats; in bits with ``usebits``. Where ``y`` is a
    ``softmax``, value and derivatives are exact however far out; elsewhere y = 0 makes it
    infinite, or NaN where t is 0 too. Raises ``AxisError`` for a ``t`` of class numbers.
    """
    y, given = as_tensor(y), as_tensor(t, near=y)
    missing = [axis.name for axis in y.axes if axis not in given.axes]
    if missing and kind(given.dtype) == "i" and not given.weak:
        raise AxisError(
            f"cross_entropy_multi: t = {given} (made at {given.file_info}) of dtype "
            f"{given.dtype.name} lacks the axis {missing[-1]!r} of y = {y} (made at "
            f"{y.file_info}); if it holds class numbers, write geon.onehot(t, {missing[-1]}), "
            "else geon.cast it to a float dtype"
        )
    y, t = _operands(y, given)
    return _cost(t * log(y), usebits, reduction_axes, out_axes, name)


def _operands(y: Any, t: Any) -> tuple[Tensor, Tensor]:
    """Both as floats."""
    y, t = as_tensor(y, near=t), as_tensor(t, near=y)
    if kind(y.dtype) != "f":
        y = in_dtype(y, FLOAT32)
    if kind(t.dtype) != "f":
        t = strengthen(t, y.dtype, t.weak and y.weak)
    return y, t


def _cost(
    entropy: Tensor, usebits: bool, reduction_axes: Any, out_axes: Any, name: str | None
) -> Tensor:
    made = -reductions.sum(entropy, reduction_axes, out_axes=out_axes)
    if usebits:
        made = made / math.log(2)
    return annotate(made, name, (), ())
