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
    if op.primitive.name == "fourier_parts":
        raise UnavailableError(
            f"the pycuda target has no Fourier transform of an open length, and axis "
            f"{op.attrs.axis!r} of {op.args[0]} (made at {op.line_info}) has length {op.attrs.n}: "
            f"compile for a known one with specialize={{{op.attrs.axis}: 1024}}, or use "
            'geon.make_transformer("native")'
        )
    return completeness.lacks(
        op, LIBRARY, "LIBRARY of transformers/pycuda/kernels/library_kernels.py"
    )
