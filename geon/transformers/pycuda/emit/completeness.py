"""Which entries of its tables CUDA has not, of those that an op needs."""

from __future__ import annotations

from ....op_graph.op_graph import Op
from ...printing.scalars import completeness
from ..kernels.library_kernels import LIBRARY


def lacks(op: Op) -> list[str]:
    """The entries that an op of a lowered program needs and tables do not have."""
    if op.primitive.name in completeness.REGIONS:
        return []
    return completeness.lacks(
        op, LIBRARY, "LIBRARY of transformers/pycuda/kernels/library_kernels.py"
    )
