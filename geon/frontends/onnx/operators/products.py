"""Matrix products, products by equations, and determinants."""

from __future__ import annotations

from itertools import combinations

import geon

from ....errors import ArgumentError, AxisError
from ...positional.elementwise import chain, elementwise
from ...positional.indexing import select
from ...positional.products import matmul
from ...positional.reshaping import transpose
from ...positional.values import PositionalArray, Value, array, as_array, fresh, host, renamed
from ..table import row
from .common import cast

MAX_DETERMINANT = 5  # rows; the products grow with 2 to the power of them


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
    names: dict[str, str] = {}
    tensors = []
    for each, value in zip(labels, values, strict=True):
        given = as_array(value)
        for label, dim in zip(each, given.dims, strict=True):
            if dim is not None and label not in names:
                names[label] = fresh(dim.name, names.values())
        tensors.append(_by_labels(given, each, names))
    kept = [names[label] for label in wanted if label in names]
    result = array(geon.contract(tensors, kept), [names.get(label) for label in wanted])
    return cast(result, values[0].dtype)


def _labels(pattern: str, rank: int) -> list[str]:
    """Return a label for each position: a letter, or for dots their number from the right."""
    before, dots, after = pattern.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise AxisError(f"the pattern {pattern!r} of an equation does not fit {rank} dimensions")
    return [*before, *[f".{k:02}" for k in range(count)[::-1]], *after]


def _by_labels(value: PositionalArray, labels: list[str], names: dict[str, str]) -> geon.Tensor:
    """Return the tensor with the axes' names of labels; of equal labels, the diagonal."""
    own: list[str | None] = []
    for label, dim in zip(labels, value.dims, strict=True):
        taken = {*names.values(), *[n for n in own if n is not None]}
        name = None if dim is None else names[label]
        own.append(fresh(name, taken) if name in own and name is not None else name)
    tensor = renamed(value, own).tensor
    for label in dict.fromkeys(labels):
        same = [n for n, each in zip(own, labels, strict=True) if each == label and n is not None]
        tensor = geon.diagonal(tensor, same) if len(same) > 1 else tensor
    return tensor


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
    row("MatMul", product),
    row("Gemm", gemm),
]
