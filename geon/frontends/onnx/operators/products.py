"""Matrix products, products by equations, and determinants."""

from __future__ import annotations

from itertools import combinations

import geon

from ....errors import ArgumentError, AxisError
from ...positional.elementwise import chain, elementwise
from ...positional.indexing import select
from ...positional.products import contract, matmul
from ...positional.reshaping import transpose
from ...positional.values import Value, host
from ..table import row

MAX_DETERMINANT = 5  # rows; the products grow with 2 to the power of them


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
    """Return the determinants of small matrices, by expansion along rows."""
    size = x.shape[-1]
    if size != x.shape[-2] or not isinstance(size, int) or size > MAX_DETERMINANT:
        raise ArgumentError(
            f"the determinant of {x}: geon has that of square matrices of {MAX_DETERMINANT} rows "
            "at most"
        )
    minors: dict[tuple[int, ...], Value] = {(): host(1, x.dtype)}
    for k in range(size):
        line = select(x, len(x.shape) - 2, size - 1 - k)
        entries = [select(line, len(line.shape) - 1, c) for c in range(size)]
        wider: dict[tuple[int, ...], Value] = {}
        for chosen in combinations(range(size), k + 1):
            terms = [
                elementwise(geon.multiply, entries[c], minors[chosen[:n] + chosen[n + 1 :]])
                for n, c in enumerate(chosen)
            ]
            signed = [elementwise(geon.negative, t) if n % 2 else t for n, t in enumerate(terms)]
            wider[chosen] = chain(geon.add, signed)
        minors = wider
    (result,) = minors.values()
    return result


ROWS = [
    row("Einsum", einsum),
    row("Det", determinant),
    row("MatMul", lambda x, y, /: matmul(x, y)),
    row("Gemm", gemm),
]
