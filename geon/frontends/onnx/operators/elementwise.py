"""Arithmetic, comparisons and logic, element by element, and casts.

Casts are also to and from texts and dtypes that geon has no tensors of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ....errors import DTypeError
from ....op_graph.values.dtypes import DTYPES, DType
from ...positional.elementwise import ONNX_PRIMITIVES, chain, elementwise, mapped
from ...positional.functions import clip, remainder, truncated_divide
from ...positional.programs import cast
from ...positional.reshaping import unsqueeze
from ...positional.small_dtypes import cast_small, is_small, wide
from ...positional.values import HostArray, PositionalArray, Value, host, known
from ..table import row


def before_7(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of an operator whose second operand aligns at ``axis`` of the first."""

    def build(
        x: Value,
        y: Value,
        /,
        *,
        axis: int | None = None,
        broadcast: int = 0,
    ) -> Value:
        if broadcast and axis is not None:
            after = len(x.shape) - axis % len(x.shape) - len(y.shape)
            y = unsqueeze(y, range(len(y.shape), len(y.shape) + after))
        return elementwise(f, x, y)

    return build


def variadic(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of an operator of one or more tensors."""

    def build(
        *values: Value,
    ) -> Value:
        return chain(f, values)

    return build


def mean(
    *values: Value,
) -> Value:
    """Return the mean of tensors."""
    return elementwise(lambda t: t / len(values), chain(geon.add, values))


def modulo(x: Value, y: Value, /, *, fmod: int = 0) -> Value:
    """Return the remainder with the sign of ``y``, or with ``fmod`` of ``x``."""
    return elementwise(remainder if fmod else geon.mod, x, y)


def power(x: Value, y: Value, /) -> Value:
    """Return ``x`` to the power of ``y`` in the dtype of ``x``."""
    common = np.promote_types(x.dtype, y.dtype) if x.dtype.kind != y.dtype.kind else x.dtype
    if x.dtype.kind == "f" or x.dtype.name == "bfloat16":
        common = x.dtype
    return cast(elementwise(geon.power, cast(x, common), cast(y, common)), x.dtype)


def shift(x: Value, y: Value, /, *, direction: str) -> Value:
    """Return bits shifted to the left or to the right."""
    return elementwise(geon.left_shift if direction == "LEFT" else geon.right_shift, x, y)


def is_inf(x: Value, /, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    """Return true where elements are infinite, with the signs that are asked for."""

    def build(t: geon.Tensor) -> geon.Tensor:
        found = geon.isinf(t)
        if not detect_negative:
            found = geon.logical_and(found, geon.greater(t, 0))
        return found if detect_positive else geon.logical_and(found, geon.less(t, 0))

    return elementwise(build, x)


def identity(x: Any, /) -> Any:
    """Return the value unchanged: a tensor, a sequence, an optional or texts."""
    return x


def equal(x: Value, y: Value, /) -> Value:
    """Return true where elements, which may be texts, are equal."""
    if isinstance(x, HostArray) and isinstance(y, HostArray) and object in (x.dtype, y.dtype):
        return host(np.equal(x.array, y.array).astype(bool))
    return elementwise(geon.equal, x, y)


# Casts --------------------------------------------------------------------------------------------


def cast_like(x: Any, like: Any, /, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return elements in the dtype of ``like``."""
    return cast_value(x, like.dtype, saturate, round_mode)


def cast_value(x: Any, to: DType, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return elements in a dtype; raise ``DTypeError`` where geon has no tensors of it.

    ``round_mode`` is that of a cast to powers of 2; others round to the nearest number.
    """
    if x.dtype == to:
        return x
    x = wide(x)
    if object in (x.dtype, to):
        return _texts(x, to)
    if is_small(to):
        powers = to.name == "float8_e8m0fnu"
        return cast_small(x, to, bool(saturate), round_mode if powers else "nearest")
    for each in (x.dtype, to):
        if each.name not in DTYPES:
            raise DTypeError(f"a cast from {x.dtype} to {to}: geon has no tensors of {each}")
    return cast(x, to)


def _texts(x: Any, dtype: DType) -> HostArray:
    """Cast known numbers to texts, or known texts to numbers."""
    given = known(x, "a tensor that becomes texts")
    if dtype.kind != "O":
        numbers = [float(text) for text in given.flat] if dtype.kind not in "iu" else given
        return host(np.asarray(numbers).reshape(given.shape).astype(dtype))
    if x.dtype.kind == "b":
        given = given.astype(np.int64)
    texts = [str(number) for number in given.flat]
    found = np.empty(len(texts), object)
    found[:] = texts
    return HostArray(found.reshape(given.shape), dtype)


def bit_cast(x: Any, /, *, to: DType) -> Any:
    """Return the same bits in another dtype of the same size."""
    if x.dtype.kind in "biu" and to.kind in "iu" and x.dtype.itemsize == to.itemsize:
        return cast(x, to)
    if isinstance(x, PositionalArray):
        return elementwise(lambda t: geon.bitcast(t, to), x)
    return host(np.ascontiguousarray(x.array).view(to).reshape(x.shape))


# Operators whose second operand aligned at an ``axis`` before version 7.
ALIGNED: dict[str, Callable[..., Any]] = {
    name: ONNX_PRIMITIVES[name]
    for name in "Add And Equal Greater Less Mul Or Sub Xor".split()
} | {"Div": truncated_divide, "Pow": geon.power}  # fmt: skip
BUILDERS: dict[str, Callable[..., Any]] = {
    **{name: mapped(f) for name, f in ONNX_PRIMITIVES.items()},
    "Div": mapped(truncated_divide), "Equal": equal, "Pow": power, "Mod": modulo,
    "Max": variadic(geon.maximum), "Min": variadic(geon.minimum), "Sum": variadic(geon.add),
    "Mean": mean, "BitShift": shift, "IsInf": is_inf, "Identity": identity,
}  # fmt: skip

ROWS = [
    *[row(name, build, 7 if name in ALIGNED else 1) for name, build in BUILDERS.items()],
    *[row(name, before_7(f), 1, 6) for name, f in ALIGNED.items()],
    row("Clip", clip, attributes={"min": 1, "max": 2}),
    row("BitCast", bit_cast),
    row("Cast", cast_value),
    row("CastLike", cast_like),
]
