"""Check that the CUDA target's tables cover a lowered op."""

from __future__ import annotations

from collections.abc import Set

from ....errors import UnavailableError
from ....op_graph.nodes import made_at
from ....op_graph.op_graph import Op
from ...lowering.rules.small_matrices import MAX_SMALL_ROWS, SMALL
from ...printing.scalars import completeness
from ..kernels.library_kernels import LIBRARY
from ..products.nvmath_bindings import package


def lacks(op: Op, libraries: Set[str] = frozenset()) -> list[str]:
    """Return the table entries that a lowered op needs and that are missing.

    ``libraries`` are the options of the transformer that select a library. Raises
    ``UnavailableError`` for an op that only a library computes.
    """
    if op.primitive.name in completeness.REGIONS:
        return []
    if op.primitive.kind == "matrix" and "matrices" not in libraries:
        cure = (
            f"install cuSOLVER's binding: {package('cuSOLVER')}, or compute it with "
            'make_transformer("native") and feed the result'
        )
        name = op.primitive.name
        if name in SMALL:
            name = (
                f"{name} of matrices of more than {MAX_SMALL_ROWS} rows, or of an unknown number,"
            )
            cure = f"give the axis of a smaller one its length, or {cure}"
        raise UnavailableError(
            f"{op} (made at {made_at(op)}): {name} has no generated kernel on GPUs; {cure}"
        )
    if op.primitive.name == "fourier_parts" and "transforms" not in libraries:
        raise UnavailableError(
            "without cuFFT, the pycuda target has no Fourier transform of an open length, and "
            f"axis {op.attrs.axis!r} of {op.args[0]} (made at {op.line_info}) has length "
            f"{op.attrs.n}: "
            f"{package('cuFFT')}, compile for a known one with "
            f'specialize={{{op.attrs.axis}: 1024}}, or use geon.make_transformer("native")'
        )
    return completeness.lacks(
        op, LIBRARY, "LIBRARY of transformers/pycuda/kernels/library_kernels.py"
    )
