"""Check that the native backend has an implementation for every op of a lowered program."""

from __future__ import annotations

from ....op_graph.op_graph import Op
from ...printing.scalars import completeness
from ..library import library_kernels


def lacks(op: Op) -> list[str]:
    """Return the table entries that ``op`` needs and the native backend does not have."""
    if op.primitive.name in completeness.REGIONS:
        return []
    where = "LIBRARY of transformers/native/library/library_kernels.py"
    return completeness.lacks(op, library_kernels.LIBRARY, where)
