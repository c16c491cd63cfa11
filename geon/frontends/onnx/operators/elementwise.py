"""Arithmetic, comparisons, logic and casts, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ...positional.elementwise import chain, elementwise, mapped
from ...positional.functions import remainder, truncated_divide
from ...positional.programs import cast
from ...positional.reshaping import unsqueeze
from ...positional.values import HostArray, Value, host
from ..one_to_one import PRIMITIVES
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
    wide = np.promote_types(x.dtype, y.dtype) if x.dtype.kind != y.dtype.kind else x.dtype
    if x.dtype.kind == "f" or x.dtype.name == "bfloat16":
        wide = x.dtype
    return cast(elementwise(geon.power, cast(x, wide), cast(y, wide)), x.dtype)


def shift(x: Value, y: Value, /, *, direction: str) -> Value:
    """Return bits shifted to the left or to the right."""
    return elementwise(geon.left_shift if direction == "LEFT" else geon.right_shift, x, y)


def clip(x: Value, low: Value | None = None, high: Value | None = None, /) -> Value:
    """Return elements from ``low`` to ``high``; ``high`` wins if it is below ``low``."""
    for f, bound in ((geon.maximum, low), (geon.minimum, high)):
        x = x if bound is None else elementwise(f, x, cast(bound, x.dtype))
    return x


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


# Operators whose second operand aligned at an ``axis`` before version 7.
ALIGNED: dict[str, Callable[..., Any]] = {
    name: getattr(geon, PRIMITIVES[name])
    for name in "Add And Equal Greater Less Mul Or Sub Xor".split()
} | {"Div": truncated_divide, "Pow": geon.power}  # fmt: skip
BUILDERS: dict[str, Callable[..., Any]] = {
    **{name: mapped(getattr(geon, primitive)) for name, primitive in PRIMITIVES.items()},
    "Div": mapped(truncated_divide), "Equal": equal, "Pow": power, "Mod": modulo,
    "Max": variadic(geon.maximum), "Min": variadic(geon.minimum), "Sum": variadic(geon.add),
    "Mean": mean, "BitShift": shift, "IsInf": is_inf, "Identity": identity,
}  # fmt: skip

ROWS = [
    *[row(name, build, 7 if name in ALIGNED else 1) for name, build in BUILDERS.items()],
    *[row(name, before_7(f), 1, 6) for name, f in ALIGNED.items()],
    row("Clip", clip, attributes={"min": 1, "max": 2}),
]
