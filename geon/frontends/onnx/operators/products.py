"""Matrix products."""

from __future__ import annotations

import geon

from ...positional.elementwise import elementwise
from ...positional.products import matmul
from ...positional.reshaping import transpose
from ...positional.values import Value
from ..table import row


def product(x: Value, y: Value, /) -> Value:
    """Return the product of matrices, with batch dimensions."""
    return matmul(x, y)


def gemm(
    a: Value,
    b: Value,
    c: Value | None = None,
    /,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803  # attributes of the standard
    transB: int = 0,  # noqa: N803
    broadcast: int = 0,
) -> Value:
    """Return ``alpha * a @ b + beta * c``, with ``a`` and ``b`` transposed on request."""
    del broadcast  # of operator sets before 7: c stretches only where it must
    left = transpose(a, [1, 0]) if transA else a
    right = transpose(b, [1, 0]) if transB else b
    result = scaled(matmul(left, right), alpha)
    return result if c is None else elementwise(geon.add, result, scaled(c, beta))


def scaled(x: Value, factor: float) -> Value:
    """Return ``x`` times a factor in the dtype of ``x``."""
    if factor == 1:
        return x
    number = int(factor) if x.dtype.kind in "iu" and factor == int(factor) else factor
    return elementwise(lambda t: geon.cast(t * number, t.dtype), x)


ROWS = [
    row("MatMul", product),
    row("Gemm", gemm),
]
