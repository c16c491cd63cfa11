"""Annotations that say which values are recomputed where they are used later.

A mark has what its value is computed from as further arguments. Derivatives see the
value alone; stage 3 computes again, for uses that come after the mark, what lies between the two.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.primitive import Primitive
from ..op_graph import Op, Tensor, make
from ..values.attribute_types import is_flag, is_parts
from .elementwise import same


def _tangent(op: Op, moving: list[int], found: dict[Op, Tensor]) -> Tensor | None:
    """The tangent of the value, a mark as well: what it is made of is computed again too."""
    value, *kept = op.args
    if 0 not in moving:
        return None
    tangents = [found[arg] for arg in kept if arg in found]
    return marked(found[value], [*kept, *tangents], op.attrs[0])


REMAT = Primitive(
    "remat",
    "call",
    "x itself; what it is computed from is computed again for what uses it later, but the further "
    "arguments, and what these are computed from where that is not open.",
    reference=lambda op, x, *kept: x,
    transpose=lambda g, op, i: g if i == 0 else None,
    jvp=_tangent,
    attributes=("open",),
    fits=(is_flag,),
    infer=same,
    carriers=(0,),
    alike=(0,),
)
SEGMENTED = Primitive(
    "segmented",
    "call",
    "x itself; a scan that begins with it is run in so many segments, where others read its steps.",
    reference=lambda op, x: x,
    transpose=lambda g, op, i: g,
    attributes=("numbers",),
    fits=(is_parts,),
    arity=1,
    infer=same,
    carriers=(0,),
    alike=(0,),
)
AFTER = Primitive(
    "after",
    "call",
    "x itself, known once the further arguments are computed.",
    reference=lambda op, x, *late: x,
    infer=same,
    carriers=(0,),
    alike=(0,),
    acts=True,
    waits=True,
)


def marked(value: Tensor, kept: Sequence[Op], open: bool) -> Tensor:
    """``value``, a mark down to ``kept``, or, where that is ``open``, down to storage but these."""
    made: Tensor = make(REMAT, (value, *dict.fromkeys(kept)), (open,))
    return made


def after(value: Op, late: Sequence[Op]) -> Op:
    """``value``, known once ``late`` are computed."""
    made: Op = make(AFTER, (value, *late), site=value._site)
    return made


def segmented(value: Tensor, numbers: tuple[int, ...]) -> Tensor:
    """``value``, with which a scan begins that is run in so many segments, each in so many."""
    made: Tensor = make(SEGMENTED, (value,), (numbers,))
    return made
