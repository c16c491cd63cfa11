"""Linear algebra over two named axes: ``geon.linalg.cholesky(x, [I, J])`` and the like.

Each function takes the axes of the rows and of the columns; all other axes are batch axes. A matrix
over (I, J) maps values over J to values over I: ``geon.dot(a, x, J)``.
"""

import sys as _sys
from typing import NoReturn as _NoReturn

from .op_graph.linalg.cholesky import cholesky, cholesky_solve
from .op_graph.linalg.composites import (
    cond,
    expm,
    lstsq,
    matrix_norm,
    matrix_power,
    matrix_rank,
    pinv,
)
from .op_graph.linalg.lu import det, inv, slogdet, solve
from .op_graph.linalg.orthogonal import qr
from .op_graph.linalg.spectral import eigh, eigvalsh, svd
from .op_graph.linalg.triangular import triangular_solve

__all__ = [
    "cholesky", "cholesky_solve", "cond", "det", "eigh", "eigvalsh", "expm", "inv", "lstsq",
    "matrix_norm", "matrix_power", "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd",
    "triangular_solve",
]  # fmt: skip


def __getattr__(name: str) -> _NoReturn:
    from .op_graph.syntax.foreign_names import missing_function
    from .op_graph.syntax.submodule_names import LINALG

    raise missing_function(_sys.modules[__name__], name, LINALG)
