"""Which entries of its tables native code has not, of those that an op needs."""

from __future__ import annotations

from ....op_graph.op_graph import Op
from ...printing.scalars import completeness
from ..library import library_kernels


def lacks(op: Op) -> list[str]:
    """The entries that an op of a lowered program needs and tables do not have."""
    if op.primitive.name in completeness.REGIONS:
        return []
    where = "LIBRARY of transformers/native/library/library_kernels.py"
    return completeness.lacks(op, library_kernels.LIBRARY, where)
