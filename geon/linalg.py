"""Linear algebra over two named axes: ``geon.linalg.cholesky(x, [I, J])`` and the like.

Each function takes the axes of the rows and of the columns; all other axes are batch axes. A matrix
over (I, J) maps values over J to values over I: ``geon.dot(a, x, J)``.
"""

from .op_graph.linalg.cholesky import cholesky, cholesky_solve
from .op_graph.linalg.lu import det, inv, slogdet, solve
from .op_graph.linalg.triangular import triangular_solve

__all__ = [
    "cholesky", "cholesky_solve", "det", "inv", "slogdet", "solve", "triangular_solve",
]  # fmt: skip
