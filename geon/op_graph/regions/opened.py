"""Bodies over placeholders, as derivatives look at them."""

from __future__ import annotations

from collections.abc import Sequence

from ..body import Body
from ..leaves import placeholder
from ..op_graph import Op, Tensor
from .parts import substituted


class Opened:
    """A body over placeholders in the place of its parameters: new ones, unless given."""

    def __init__(self, body: Body, leaves: Sequence[Tensor] | None = None) -> None:
        self.leaves = [like(op) for op in body.parameters] if leaves is None else list(leaves)
        known: dict[Op, Op] = dict(zip(body.parameters, self.leaves, strict=True))
        self.results = substituted(body.results, known)


def like(op: Op) -> Tensor:
    """A placeholder over the axes of an op, of its dtype."""
    return placeholder(op.axes, op.dtype)
