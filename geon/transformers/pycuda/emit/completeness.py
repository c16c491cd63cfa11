"""Check that the CUDA target's tables cover a lowered op."""

from __future__ import annotations

from ....op_graph.op_graph import Op
from ...printing.scalars import completeness
from ..kernels.library_kernels import LIBRARY


def lacks(op: Op) -> list[str]:
    """Return the table entries that a lowered op needs and that are missing."""
    if op.primitive.name in completeness.REGIONS:
        return []
    return completeness.lacks(
        op, LIBRARY, "LIBRARY of transformers/pycuda/kernels/library_kernels.py"
    )
