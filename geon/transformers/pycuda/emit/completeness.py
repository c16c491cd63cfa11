"""Check that the CUDA target's tables cover a lowered op."""

from __future__ import annotations

from ....errors import UnavailableError
from ....op_graph.nodes import made_at
from ....op_graph.op_graph import Op
from ...lowering.rules.small_matrices import MAX_SMALL_ROWS, SMALL
from ...printing.scalars import completeness
from ..kernels.library_kernels import LIBRARY


def lacks(op: Op) -> list[str]:
    """Return the table entries that a lowered op needs and that are missing."""
    if op.primitive.name in completeness.REGIONS:
        return []
    if op.primitive.kind == "matrix":
        cure = 'compute it with make_transformer("native") and feed the result'
        name = op.primitive.name
        if name in SMALL:
            name = (
                f"{name} of matrices of more than {MAX_SMALL_ROWS} rows, or of an unknown number,"
            )
            cure = f"give the axis of a smaller one its length, or {cure}"
        raise UnavailableError(
            f"{op} (made at {made_at(op)}): {name} has no kernel on GPUs; {cure}"
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
