"""Matrix products, products by equations, and determinants."""

from __future__ import annotations

import geon

from ....errors import ArgumentError, AxisError
from ...positional.elementwise import elementwise
from ...positional.functions import scaled
from ...positional.movement import with_axis
from ...positional.products import contract, matmul, turned
from ...positional.values import Value, array, as_array
from ..table import row


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
) -> Value:
    """Return ``alpha * a @ b + beta * c``, with ``a`` and ``b`` transposed on request."""
    product = matmul(turned(a) if transA else a, turned(b) if transB else b)
    result = scaled(product, alpha)
    return result if c is None else elementwise(geon.add, result, scaled(c, beta))


def einsum(*values: Value, equation: str) -> Value:
    """Return the sum of products that an equation describes, with broadcast positions for dots."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    patterns = left.split(",")
    if len(patterns) != len(values):
        raise ArgumentError(
            f"the equation {equation!r} has {len(patterns)} operands, the node {len(values)}"
        )
    labels = [_labels(p, len(v.shape)) for p, v in zip(patterns, values, strict=True)]
    rest = sorted({label for each in labels for label in each if label[0] == "."}, reverse=True)
    if arrow:
        wanted = _labels(right, len(right.replace("...", "")) + len(rest))
    else:
        flat = [label for each in labels for label in each]
        wanted = rest + sorted([x for x in set(flat) if x[0] != "." and flat.count(x) == 1])
    return contract(values, labels, wanted)


def _labels(pattern: str, rank: int) -> list[str]:
    """Return a label for each position: a letter, or for dots their number from the right."""
    before, dots, after = pattern.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise AxisError(f"the pattern {pattern!r} of an equation does not fit {rank} dimensions")
    return [*before, *[f".{k:02}" for k in range(count)[::-1]], *after]


def determinant(x: Value, /) -> Value:
    """Return the determinants of the matrices over the last two positions."""
    given = with_axis(with_axis(as_array(x), len(x.shape) - 2), len(x.shape) - 1)
    axes = [dim for dim in given.dims[-2:] if dim is not None]
    return array(geon.linalg.det(given.tensor, axes), given.dims[:-2])


ROWS = [
    row("Einsum", einsum),
    row("Det", determinant),
    row("MatMul", matmul),
    row("Gemm", gemm),
]
