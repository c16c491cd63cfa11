"""Annotations that select values to recompute, mark checkpointed scans, and order ops.

A ``remat`` mark has the values from which its value is recomputed as further arguments. Derivatives
see only the value. Stage 3 recomputes the ops between these values and the mark for uses that come
after the mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.primitive import Primitive
from ..op_graph import Op, Tensor, make, make_op
from ..values.attribute_types import Flag, Parts
from .elementwise import infer_same


class RematAttributes(NamedTuple):
    """``open`` if ops are recomputed down to variables and placeholders."""

    open: Flag


class SegmentedAttributes(NamedTuple):
    """The numbers of segments into which a scan is divided, one for each level."""

    numbers: Parts


def _tangent(op: Op, moving: list[int], by_argument: dict[Op, Tensor]) -> Tensor | None:
    """Return the tangent of the value with a mark of its own, so that it is recomputed too."""
    value, *kept = op.args
    if 0 not in moving:
        return None
    tangents = [by_argument[arg] for arg in kept if arg in by_argument]
    return mark_remat(by_argument[value], [*kept, *tangents], op.attrs.open)


REMAT = Primitive(
    "remat",
    "call",
    "x itself; ops that use it late recompute it from the further arguments, and also from values "
    "below these if it is open.",
    reference=lambda op, x, *kept: x,
    transpose=lambda g, op, i: g if i == 0 else None,
    jvp=_tangent,
    attributes=RematAttributes,
    infer=infer_same,
    dtype_operands=(0,),
    batched_together=(0,),
)
SEGMENTED = Primitive(
    "segmented",
    "call",
    "x itself; a scan that begins with it is run in so many segments, where others read its steps.",
    reference=lambda op, x: x,
    transpose=lambda g, op, i: g,
    attributes=SegmentedAttributes,
    arity=1,
    infer=infer_same,
    dtype_operands=(0,),
    batched_together=(0,),
)
AFTER = Primitive(
    "after",
    "call",
    "x itself, computed after the further arguments.",
    reference=lambda op, x, *late: x,
    infer=infer_same,
    dtype_operands=(0,),
    batched_together=(0,),
    has_side_effect=True,
    is_barrier=True,
)


def mark_remat(value: Tensor, kept: Sequence[Op], open: bool) -> Tensor:
    """Return ``value`` with a mark: ops above ``kept`` are recomputed for later uses.

    If ``open``, the mark reaches down to variables and placeholders except for ``kept``.
    """
    return make(REMAT, (value, *dict.fromkeys(kept)), (open,))


def compute_after(value: Op, late: Sequence[Op]) -> Op:
    """Return ``value``, ordered after the computation of ``late``."""
    return make_op(AFTER, (value, *late), site=value._site)


def mark_segments(value: Tensor, numbers: tuple[int, ...]) -> Tensor:
    """Return ``value`` as the initial carry of a scan to divide into ``numbers`` of segments."""
    return make(SEGMENTED, (value,), (numbers,))
