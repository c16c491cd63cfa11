"""Check that the CUDA target's tables cover a lowered op."""

from __future__ import annotations

from ....errors import UnavailableError
from ....op_graph.nodes import made_at
from ....op_graph.op_graph import Op
from ...lowering.rules.small_matrices import MAX_SMALL_ROWS
from ...printing.scalars import completeness
from ..kernels.library_kernels import LIBRARY


def lacks(op: Op) -> list[str]:
    """Return the table entries that a lowered op needs and that are missing."""
    if op.primitive.name in completeness.REGIONS:
        return []
    if op.primitive.kind == "matrix":
        raise UnavailableError(
            f"{op} (made at {made_at(op)}): matrices of more than {MAX_SMALL_ROWS} rows, or of an "
            "unknown number, have no kernel on GPUs; give the axis of a smaller one its length, or "
            'compute it with make_transformer("native") and feed the result'
        )
    return completeness.lacks(
        op, LIBRARY, "LIBRARY of transformers/pycuda/kernels/library_kernels.py"
    )
