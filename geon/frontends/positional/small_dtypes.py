"""Dtypes of 2 to 8 bits that geon has no tensors of: their values, held in wider tensors.

A tensor of floats holds them in float32, which has all their values, and one of integers in int8 or
uint8. A cast to such a dtype rounds; a cast from it is the cast of the wider tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from ...errors import DTypeError
from .elementwise import elementwise
from .folding import MAX_FOLDED_ELEMENTS
from .values import HostArray, PositionalArray, Size, Value, known


@dataclass(frozen=True)
class FloatFormat:
    """A float with ``mantissa`` stored bits.

    ``least`` is the exponent of the smallest normal number, and ``most`` the largest number.
    """

    mantissa: int
    least: int
    most: float
    has_infinity: bool = False
    has_nan: bool = True
    has_negative_zero: bool = True

    held = np.dtype(np.float32)


@dataclass(frozen=True)
class IntegerFormat:
    """An integer with so many bits."""

    bits: int
    is_signed: bool

    @property
    def held(self) -> np.dtype[Any]:
        """The dtype of the tensor that holds the values."""
        return np.dtype(np.int8 if self.is_signed else np.uint8)

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        whole = 1 << self.bits
        return (-whole // 2, whole // 2 - 1) if self.is_signed else (0, whole - 1)


# By the names of ml_dtypes: the formats of the OCP, and those of Graphcore and AMD ("fnuz").
FORMATS: dict[str, FloatFormat | IntegerFormat] = {
    "float8_e4m3fn": FloatFormat(3, -6, 448.0),
    "float8_e4m3fnuz": FloatFormat(3, -7, 240.0, has_negative_zero=False),
    "float8_e5m2": FloatFormat(2, -14, 57344.0, has_infinity=True),
    "float8_e5m2fnuz": FloatFormat(2, -15, 57344.0, has_negative_zero=False),
    "float8_e8m0fnu": FloatFormat(0, -127, 2.0**127, has_negative_zero=False),
    "float6_e2m3fn": FloatFormat(3, 0, 7.5, has_nan=False),
    "float6_e3m2fn": FloatFormat(2, -2, 28.0, has_nan=False),
    "float4_e2m1fn": FloatFormat(1, 0, 6.0, has_nan=False),
    "int4": IntegerFormat(4, True),
    "uint4": IntegerFormat(4, False),
    "int2": IntegerFormat(2, True),
    "uint2": IntegerFormat(2, False),
}
ROUNDINGS: dict[str, Callable[[geon.Tensor], geon.Tensor]] = {
    "nearest": geon.round,
    "up": geon.ceil,
    "down": geon.floor,
}


@dataclass(frozen=True, eq=False, slots=True)
class SmallArray:
    """An array of a dtype of ``FORMATS``, whose values ``held`` has in a wider dtype."""

    held: PositionalArray
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[Size, ...]:
        """The length at each position."""
        return self.held.shape

    def __str__(self) -> str:
        return str(self.held).replace(str(self.held.dtype), str(self.dtype), 1)


def is_small(dtype: Any) -> bool:
    """Return True if a dtype is one of ``FORMATS``."""
    return np.dtype(dtype).name in FORMATS


def held_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of geon that holds the values of a dtype: itself, or a wider one."""
    return FORMATS[dtype.name].held if is_small(dtype) else dtype


def wide(value: Any) -> Any:
    """Return the values of an array of a small dtype in a wider one; others are unchanged."""
    if isinstance(value, SmallArray):
        return value.held
    if isinstance(value, HostArray) and is_small(value.dtype):
        held = held_dtype(value.dtype)
        return HostArray(value.array.astype(held), held)
    return value


def labelled(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array that has values of a small dtype, in the dtype that holds them, as such."""
    if isinstance(value, HostArray):
        return HostArray(value.array.astype(dtype), dtype)
    return SmallArray(value, dtype)


def cast_small(
    value: Value, dtype: np.dtype[Any], saturate: bool = True, rounding: str = "nearest"
) -> Any:
    """Return numbers rounded to a small dtype; of integers only the low bits are kept.

    Floats beyond the largest number become it if ``saturate``, or if the dtype has neither infinity
    nor NaN; else they become infinite or NaN. ``rounding`` is "nearest" (ties to even), "up" or
    "down".
    """
    if rounding not in ROUNDINGS:
        raise DTypeError(f"rounding {rounding!r} is not one of {', '.join(ROUNDINGS)}")
    form = FORMATS[dtype.name]

    def build(x: geon.Tensor) -> geon.Tensor:
        if isinstance(form, IntegerFormat):
            return _low_bits(x, form)
        return _rounded(x, form, saturate, ROUNDINGS[rounding])

    result = elementwise(build, value)
    if isinstance(value, HostArray) and value.array.size <= MAX_FOLDED_ELEMENTS:
        found = known(result)
        return labelled(HostArray(found, found.dtype), dtype)
    return labelled(result, dtype)


def _low_bits(x: geon.Tensor, form: IntegerFormat) -> geon.Tensor:
    low = geon.bitwise_and(geon.cast(x, "int32"), (1 << form.bits) - 1)
    if form.is_signed:
        low = geon.where(low > form.bounds[1], low - (1 << form.bits), low)
    return geon.cast(low, form.held)


def _rounded(
    x: geon.Tensor,
    form: FloatFormat,
    saturate: bool,
    rounding: Callable[[geon.Tensor], geon.Tensor],
) -> geon.Tensor:
    """Round to a multiple of the distance of the numbers around ``x``, which is a power of 2."""
    exponents = int(np.log2(form.most)) + 2 - form.least  # up to twice the largest number
    # Quotients of numbers of many exponents overflow in float32.
    working = "float64" if x.dtype == "float64" or exponents > 100 else "float32"
    x = geon.cast(x, working)
    size = geon.minimum(geon.absolute(x), 2 * form.most) * 2.0**-form.least
    scale: geon.Tensor = geon.where(geon.isnan(x), x, 1)
    for k in reversed(range(exponents.bit_length())):  # the exponent of size, bit by bit
        power = 2.0 ** (1 << k)
        is_large = geon.greater_equal(size, power)
        size = geon.where(is_large, size * (1 / power), size)
        scale = geon.where(is_large, scale * power, scale)
    step = scale * 2.0 ** (form.least - form.mantissa)
    found = rounding(x / step) * step
    if form.mantissa == 0:  # powers of 2 alone: there is no 0
        found = geon.maximum(found, 2.0**form.least)
    is_over = geon.greater(geon.absolute(found), form.most)
    if saturate or not (form.has_nan or form.has_infinity):
        beyond = geon.where(geon.less(found, 0), -form.most, form.most)
    elif form.has_infinity:
        beyond = found * float("inf")
    else:
        beyond = found * float("nan")
    found = geon.where(is_over, beyond, found)
    if not form.has_nan:
        found = geon.where(geon.isnan(found), 0, found)
    if not form.has_negative_zero:
        found = geon.where(geon.equal(found, 0), 0, found)
    return geon.cast(found, form.held)
