"""Functions of the bits of floats: signs, neighbours, exponents, and logarithms to base 2 and 10.

They are composites of ``bitcast``, whose derivative is zero: what moves with the argument is
computed from it, and has its derivative.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from ...errors import DTypeError
from ..building.constants import as_tensor
from ..building.elementwise_build import refuse_unshared
from ..building.weak import exact, like, meet_together
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.accumulation import floating
from ..rows.elementwise import (
    add,
    cast,
    equal,
    greater,
    isnan,
    less,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    where,
)
from ..rows.logic import bitwise_and, left_shift, logical_or, make_bitcast, right_shift
from ..values.dtypes import FLOAT32, HALVES, kind, name_of
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import Named, TensorLike


class IeeeFormat(NamedTuple):
    """The integers of a float dtype's width, and its layout: mantissa bits and exponent bias."""

    integers: str
    mantissa: int
    bias: int


FORMATS = {
    "float16": IeeeFormat("int16", 10, 15),
    "bfloat16": IeeeFormat("int16", 7, 127),
    "float32": IeeeFormat("int32", 23, 127),
    "float64": IeeeFormat("int64", 52, 1023),
}


def float_operands(what: str, *values: Any) -> list[Tensor]:
    """Return operands as floats of one dtype; weak ones as exact float64, to read bits of."""
    tensors = [as_tensor(value, near=_other_tensor(values, value)) for value in values]
    refuse_unshared(what, tensors)
    return meet_together(what, [real_float(what, tensor) for tensor in tensors])


def real_float(what: str, x: Any) -> Tensor:
    """Return a tensor as a float; ``DTypeError`` if it is complex."""
    number = floating(as_tensor(x))
    if kind(number.dtype) != "f":
        raise DTypeError(
            f"{user_call(what)}: {number} (made at {number.line_info}) is {number.dtype.name}, and "
            f"{what} takes real numbers; take geon.real, geon.imag or geon.absolute of it"
        )
    return number


def _other_tensor(values: tuple[Any, ...], value: Any) -> Any:
    return next((v for v in values if v is not value and isinstance(v, Tensor)), None)


def _of_float32(x: Tensor) -> Tensor:
    """Return a half as float32, which holds it."""
    return cast(x, FLOAT32) if name_of(x.dtype) in HALVES else x


@composite
def signbit(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return true where the sign of ``x`` is negative, also that of -0.0 and of NaN.

    Axes are those of ``x``.
    """
    given = exact(as_tensor(x))
    if kind(given.dtype) in "bi":
        return less.apply(given, 0)
    given = real_float("signbit", given)
    return less.apply(make_bitcast(given, FORMATS[name_of(given.dtype)].integers), 0)


@composite
def copysign(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return ``x`` with the sign bit of ``y``; integers and bool count as float32.

    The derivative in ``x`` is 1 or -1, also at 0; that in ``y`` is zero.
    """
    x, y = float_operands("copysign", x, y)
    flips = logical_or.apply(less.apply(signbit(x), signbit(y)), less.apply(signbit(y), signbit(x)))
    return where.apply(flips, negative.apply(x), x)


@composite
def nextafter(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the float next to ``x`` in the direction of ``y``, in their common float dtype.

    It is ``y`` where both are equal, and NaN where one is. The derivative is zero. Raises
    ``DTypeError`` for Python numbers alone, which have no neighbours.
    """
    x, y = float_operands("nextafter", x, y)
    if x.weak:
        raise DTypeError(
            f"{user_call('nextafter')}: Python numbers have no dtype, and so no neighbours; give "
            "one with geon.constant(number, dtype=...)"
        )
    whole = FORMATS[name_of(x.dtype)].integers
    bits = make_bitcast(x, whole)
    away = equal.apply(greater.apply(y, x), greater.apply(x, 0))
    neighbour = add.apply(bits, where.apply(away, 1, -1))
    tiny = copysign(make_bitcast(cast(as_tensor(1), whole), name_of(x.dtype)), y)
    neighbour = where.apply(equal.apply(x, 0), tiny, make_bitcast(neighbour, name_of(x.dtype)))
    result = where.apply(equal.apply(x, y), y, neighbour)
    return where.apply(logical_or.apply(isnan(x), isnan(y)), add.apply(x, y), result)


@composite
def ldexp(x: TensorLike, n: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return ``x`` times 2 to the power of the integers ``n``, rounded once.

    Raises ``DTypeError`` for an ``n`` that is no integer; write ``x * 2.0 ** n`` for fractions.
    """
    given = real_float("ldexp", as_tensor(x, near=n if isinstance(n, Tensor) else None))
    n = as_tensor(n, near=given)
    if kind(n.dtype) != "i":
        raise DTypeError(
            f"{user_call('ldexp')}: the exponent {n} (made at {n.line_info}) is {n.dtype.name}, "
            "not an integer dtype; write x * geon.exp2(n)"
        )
    refuse_unshared("ldexp", (given, n))
    wide = _of_float32(exact(given))
    form = FORMATS[name_of(wide.dtype)]
    rest = cast(maximum(minimum(n, 4 * form.bias), -4 * form.bias), form.integers)
    # The largest factor is last: what is subnormal before it is 0 after it.
    factors = []
    for _ in range(3):
        part = maximum(minimum(rest, form.bias), 1 - form.bias)
        factors.append(_power_of_two(part, name_of(wide.dtype)))
        rest = rest - part
    for factor in reversed(factors):
        wide = multiply.apply(wide, factor)
    return _back(wide, given)


def _power_of_two(n: Tensor, dtype: str) -> Tensor:
    """Return 2 to a power for which it is a normal number."""
    form = FORMATS[dtype]
    return make_bitcast(left_shift.apply(n + form.bias, form.mantissa), dtype)


def _back(x: Tensor, given: Tensor) -> Tensor:
    """Return ``x`` in the dtype of what was given, weak if that was weak."""
    return x if x.dtype is given.dtype and not given.weak else like(x, given)


@public
def frexp(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return (mantissa, exponent): ``x`` is mantissa * 2 ** exponent, 0.5 <= abs(mantissa) < 1.

    The mantissa has the dtype of ``x`` (integers and bool: float32), the exponent int32. Zeros,
    infinities and NaN have the exponent 0. The derivative of the mantissa is 2 ** -exponent.
    """
    given = real_float("frexp", x)
    wide = _of_float32(exact(given))
    exponent = _exponent(wide)
    return _back(ldexp(wide, -exponent), given), cast(exponent, "int32")


def _exponent(x: Tensor) -> Tensor:
    """Return the exponent of ``frexp`` of a float32 or float64, in the integers of its width."""
    form = FORMATS[name_of(x.dtype)]
    raised = form.mantissa + 2  # powers of two that make subnormal numbers normal
    top = 2 * form.bias + 1
    subnormal = equal.apply(_raw_exponent(x), 0)
    raw = _raw_exponent(where.apply(subnormal, x * 2.0**raised, x))
    exponent = raw - (form.bias - 1) - where.apply(subnormal, raised, 0)
    special = logical_or.apply(equal.apply(x, 0), equal.apply(raw, top))
    return where.apply(special, 0, exponent)


def _raw_exponent(x: Tensor) -> Tensor:
    form = FORMATS[name_of(x.dtype)]
    bits = make_bitcast(x, form.integers)
    return bitwise_and.apply(right_shift.apply(bits, form.mantissa), 2 * form.bias + 1)


def _mantissa_near_one(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return (m, n) with x = m * 2^n and m from sqrt(1/2) to sqrt(2), n as a float."""
    exponent = _exponent(x)
    mantissa = ldexp(x, -exponent)
    low = less.apply(mantissa, math.sqrt(0.5))
    low = bitwise_and.apply(low, greater.apply(mantissa, 0))
    mantissa = where.apply(low, mantissa + mantissa, mantissa)
    return mantissa, cast(exponent - where.apply(low, 1, 0), x.dtype)


@composite
def log2(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the logarithm to base 2, exact for powers of 2; integers and bool give float32."""
    given = floating(as_tensor(x))
    if kind(given.dtype) == "c":
        return log(given) * (1 / math.log(2))
    mantissa, exponent = _mantissa_near_one(_of_float32(exact(given)))
    return _back(exponent + log(mantissa) * (1 / math.log(2)), given)


# log10(2) in two parts, the first of 12 or 32 bits: its products with exponents are exact.
LOG10_2 = {
    "float32": (0.301025390625, 4.605038981195214e-06),
    "float64": (0.3010299955494702, 1.1451100898021838e-10),
}


@composite
def log10(x: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the logarithm to base 10; integers and bool give float32."""
    given = floating(as_tensor(x))
    if kind(given.dtype) == "c":
        return log(given) * (1 / math.log(10))
    mantissa, exponent = _mantissa_near_one(_of_float32(exact(given)))
    high, low = LOG10_2[name_of(mantissa.dtype)]
    rest = exponent * low + log(mantissa) * (1 / math.log(10))
    return _back(exponent * high + rest, given)
