"""Sums, products, elementwise functions and activations."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import AxisError
from ..functions import scaled
from ..movement import Part, concat, slices
from ..products import matmul, turned
from ..reductions import along
from ..reshaping import reshape, unsqueeze
from ..reshaping import transpose as reordered
from ..values import Value, positions
from .common import constant, ew, optional


def add(a: Value, b: Value | None = None, *, p: float = 1.0, q: float = 1.0) -> Value:
    """Return ``p * a + q * b``; lengths of 1 stretch."""
    return scaled(a, p) if b is None else ew(geon.add, scaled(a, p), scaled(b, q))


def mul(a: Value, b: Value | None = None, *, p: float = 1.0) -> Value:
    """Return ``p * a * b``; lengths of 1 stretch."""
    return scaled(a, p) if b is None else scaled(ew(geon.multiply, a, b), p)


def cmul(a: Value, b: Value) -> Value:
    """Return products of complex numbers, whose parts alternate along the last dimension."""
    last = len(a.shape) - 1
    if len(b.shape) != last + 1 or a.shape[last] % 2 or b.shape[last] % 2:
        raise AxisError(
            f"the parts of complex numbers alternate along the last dimension of both operands: "
            f"{a} and {b}; give an even length"
        )
    (ar, ai), (br, bi) = ([slices(x, {last: Part(k, None, 2)}) for k in (0, 1)] for x in (a, b))
    parts = [
        ew(lambda p, q, r, s: p * q - r * s, ar, br, ai, bi),
        ew(lambda p, q, r, s: p * q + r * s, ar, bi, ai, br),
    ]
    whole = concat([unsqueeze(each, [last + 1]) for each in parts], last + 1)
    return reshape(whole, [*whole.shape[:last], 2 * whole.shape[last]])


def gemm(
    a: Value, w: Value, bias: Value | None = None, *, transpose_a: bool = False,
    transpose_b: bool = False,
) -> Value:  # fmt: skip
    """Return ``a @ w + bias``; transposes exchange the last two dimensions."""
    found = matmul(turned(a) if transpose_a else a, turned(w) if transpose_b else w)
    return optional(geon.add, found, bias)


def ewdiv(a: Value | None, b: Value) -> Value:
    """Return ``a / b``, or ``1 / b`` without ``a``."""
    return ew(geon.divide, constant(1, b.dtype) if a is None else a, b)


def clamp(x: Value, *, min: float | None = None, max: float | None = None) -> Value:
    """Return ``x`` with elements raised to ``min`` and lowered to ``max``."""
    low = x if min is None else ew(lambda t: geon.maximum(t, min), x)
    return low if max is None else ew(lambda t: geon.minimum(t, max), low)


def softmax(x: Value, *, axis: int = -1) -> Value:
    """Return the softmax along a dimension."""
    return along(lambda t, axes: geon.softmax(t, axes) if axes else t * 0 + 1, x,
                 axis)  # fmt: skip


def unary(f: Any) -> Any:
    """Return the function of a command that applies ``f`` to each element."""
    return lambda x: ew(f, x)


def transpose(x: Value, *, axes: Any = (0, 1)) -> Value:
    """Return ``x`` with two dimensions exchanged."""
    first, second = positions(axes, len(x.shape))
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    return reordered(x, order)
