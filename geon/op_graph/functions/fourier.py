"""``geon.fft``: discrete Fourier transforms along named axes, and convolution by transform.

The functions are those of ``numpy.fft``. An axis keeps its name: along the axis of a real transform
the result has the n // 2 + 1 frequencies from 0 on. Integers and halves are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axis, new_axis
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.resolve_axes import axis_of, named_axes, own_axis
from ..building.weak import strengthen
from ..core.argument_hints import check_choice, public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.accumulation import floating, widen
from ..rows.complex_numbers import as_complex
from ..rows.concatenation import concat, pad
from ..rows.elementwise import cast, divide, less, multiply, sqrt, where
from ..rows.fourier import fourier
from ..rows.leaves import iota, length_value
from ..rows.movement import broadcast
from ..rows.slicing import take
from ..values.attribute_types import as_int
from ..values.dtypes import kind, real_dtype

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, DTypeLike, OpKeywords, TensorLike

NORMS = ("backward", "ortho", "forward")
MODES = ("full", "same", "valid", "circular")
"""Parts of a convolution that ``convolve`` returns."""


# One axis -----------------------------------------------------------------------------------------


@public
def fft(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the discrete Fourier transform of ``x`` along ``axis``: complex, over x's axes.

    Element k is the sum over j of x[j] exp(-2 pi i j k / n). ``norm`` says which transform is
    divided: "backward" the inverse by n, "forward" this one by n, "ortho" both by sqrt(n).
    """
    x = _known(x)
    along = axis_of(x, axis, "fft.fft")
    return _transform(_complex(x), along, "c2c", False, norm, "fft")


@public
def ifft(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the inverse of ``fft`` along ``axis``, with the same ``norm``."""
    x = _known(x)
    along = axis_of(x, axis, "fft.ifft")
    return _transform(_complex(x), along, "c2c", True, norm, "ifft")


@public
def rfft(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the frequencies 0 to n // 2 of ``fft`` of a real ``x``; the others are conjugates.

    The axis keeps its name, with length n // 2 + 1. Raises ``DTypeError`` for a complex ``x``.
    """
    x = _known(x)
    if kind(x.dtype) == "c":
        raise DTypeError(
            f"{user_call('rfft')}: {x} (made at {x.line_info}) is complex; take geon.fft.fft, or "
            "geon.real of it"
        )
    return _transform(x, axis_of(x, axis, "fft.rfft"), "r2c", False, norm, "rfft")


@public
def irfft(
    x: TensorLike,
    axis: AxisLike | None = None,
    n: int | Length | Axis | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the ``n`` real numbers whose ``rfft`` along ``axis`` is ``x``.

    ``x`` has n // 2 + 1 frequencies; without ``n`` it is the even number 2 (length - 1). Give the
    axis of the real numbers as ``n`` where its length is odd or open. The imaginary parts of the
    frequencies 0 and n / 2 are ignored. Raises ``AxisError`` for another number of frequencies.
    """
    x = _known(x)
    along = axis_of(x, axis, "fft.irfft")
    return _transform(_complex(x), along, "c2r", True, norm, "irfft", _number(x, along, n, "irfft"))


# Several axes -------------------------------------------------------------------------------------


@public
def fftn(
    x: TensorLike,
    axes: AxesLike | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``fft`` along each of ``axes``; all axes of ``x`` if they are not given."""
    result = _complex(_known(x))
    for axis in _axes(result, axes, "fftn"):
        result = _transform(result, axis, "c2c", False, norm, "fftn")
    return result


@public
def ifftn(
    x: TensorLike,
    axes: AxesLike | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the inverse of ``fftn``."""
    result = _complex(_known(x))
    for axis in _axes(result, axes, "ifftn"):
        result = _transform(result, axis, "c2c", True, norm, "ifftn")
    return result


@public
def rfftn(
    x: TensorLike,
    axes: AxesLike | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``rfft`` along the last of ``axes`` and ``fft`` along the others."""
    x = _known(x)
    along = _axes(x, axes, "rfftn")
    result = rfft(x, along[-1], norm=norm)
    for axis in along[:-1]:
        result = _transform(result, axis, "c2c", False, norm, "rfftn")
    return result


@public
def irfftn(
    x: TensorLike,
    axes: AxesLike | None = None,
    n: int | Length | Axis | None = None,
    *,
    norm: str = "backward",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the inverse of ``rfftn``; ``n`` is the number of elements along the last axis."""
    result = _complex(_known(x))
    along = _axes(result, axes, "irfftn")
    for axis in along[:-1]:
        result = _transform(result, axis, "c2c", True, norm, "irfftn")
    return irfft(result, along[-1], n, norm=norm)


# Frequencies --------------------------------------------------------------------------------------


@public
def fftfreq(
    axis: Axis, d: float = 1.0, *, dtype: DTypeLike = "float32", **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the frequencies of ``fft`` along ``axis`` in cycles per unit of ``d``.

    ``d`` is the distance of elements: the frequencies are 0, 1, ..., -2, -1 over n d.
    """
    number = iota(axis)
    n = axis.expression
    signed = where.apply(less.apply(number, length_value((n + 1) // 2)), number, number - n)
    return divide.apply(cast(signed, dtype), multiply.apply(cast(length_value(n), dtype), d))


@public
def rfftfreq(
    axis: Axis, d: float = 1.0, *, dtype: DTypeLike = "float32", **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the frequencies of ``rfft`` along ``axis``, over that axis with length n // 2 + 1."""
    n = new_axis(axis, "rfftfreq").expression
    number = cast(iota(axis.with_length(n // 2 + 1)), dtype)
    return divide.apply(number, multiply.apply(cast(length_value(n), dtype), d))


@public
def fftshift(x: TensorLike, axes: AxesLike | None = None, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` with the frequency 0 moved to the middle of each of ``axes``, or of all."""
    result = as_tensor(x)
    for axis in _axes(result, axes, "fftshift"):
        result = _turned(result, axis, (axis.expression + 1) // 2)
    return result


@public
def ifftshift(x: TensorLike, axes: AxesLike | None = None, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the inverse of ``fftshift``."""
    result = as_tensor(x)
    for axis in _axes(result, axes, "ifftshift"):
        result = _turned(result, axis, axis.expression // 2)
    return result


# Convolution --------------------------------------------------------------------------------------


@public
def convolve(
    x: TensorLike,
    y: TensorLike,
    axis: AxisLike,
    *,
    mode: str = "full",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the convolution of ``x`` and ``y`` along ``axis``, computed by Fourier transforms.

    Both have the axis, with lengths n and m; all other axes meet by name. Element k is the sum over
    j of x[j] y[k - j]. The result has along the axis n + m - 1 elements with "full"; with "same"
    the middle n of these; with "valid" the n - m + 1 that use all of ``y``; with "circular", for
    equal lengths, n, and k - j is taken modulo n. It takes O((n + m) log (n + m)) operations, where
    ``geon.convolution`` takes O(n m): it is faster for long filters. Its rounding error is relative
    to the largest element of the result.

    Raises ``ArgumentError`` for another mode, ``AxisError`` if one lacks the axis, and for "valid"
    if ``y`` is longer.
    """
    check_choice("convolve", "mode", mode, MODES)
    x, y = _known(x), _known(y)
    along = own_axis(x, axis, "convolve")
    n, m = along.expression, own_axis(y, axis, "convolve").expression
    total = n if mode == "circular" else n + m - 1
    size = _fast_length(total) if mode != "circular" else total
    whole = kind(x.dtype) == "c" or kind(y.dtype) == "c"
    if mode != "circular":
        x, y = _extended(x, along.name, size - n), _extended(y, along.name, size - m)
    if whole:
        result = ifft(multiply(fft(x, along.name), fft(y, along.name)), along.name)
    else:
        result = irfft(multiply(rfft(x, along.name), rfft(y, along.name)), along.name, size)
    first, count = {
        "full": (0, total),
        "same": ((m - 1) // 2, n),
        "valid": (m - 1, n - m + 1),
        "circular": (0, total),
    }[mode]
    if isinstance(count, int) and count < 1:
        raise AxisError(
            f"{user_call('convolve')}: y has length {m} along {along.name!r} and x {n}: nowhere do "
            'all of its elements meet x; give the shorter one as y, or mode="full"'
        )
    return take(result, {result.axes[along.name]: slice(first, first + count)})


# Parts of the functions above ---------------------------------------------------------------------


def _known(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor of float32, float64 or complex numbers."""
    result = widen(floating(as_tensor(x)))
    return strengthen(result, result.dtype) if result.weak else result


def _complex(x: Tensor) -> Tensor:
    return x if kind(x.dtype) == "c" else as_complex(x)


def _transform(
    x: Tensor,
    axis: Axis,
    form: str,
    inverse: bool,
    norm: str,
    what: str,
    n: int | Length | None = None,
) -> Tensor:
    """Return a transform with the factor that ``norm`` gives it."""
    check_choice(what, "norm", norm, NORMS)
    size = x.axes[axis.name].expression if n is None else n
    result = fourier(x, axis.name, form, size, inverse)
    if norm == ("forward" if inverse else "backward"):
        return result
    divisor = cast(length_value(size), "float64")
    scale = 1.0 / (sqrt(divisor) if norm == "ortho" else divisor)
    return multiply.apply(result, cast(scale, real_dtype(result.dtype)))


def _number(x: Tensor, axis: Axis, n: Any, what: str) -> int | Length:
    """Return the number of real elements of an inverse transform of ``x``."""
    have = axis.expression
    if n is None:
        return 2 * (have - 1)
    n = as_int(n.expression if isinstance(n, Axis) else n)
    if not isinstance(n, Length) and (type(n) is not int or n < 1):
        raise ArgumentError(
            f"{user_call(what)}: n={n!r} is no number of elements; give an integer of at least 1, "
            "or the axis of the real numbers"
        )
    needed = n // 2 + 1
    if isinstance(have, int) and isinstance(needed, int) and have != needed:
        raise AxisError(
            f"{user_call(what)}: {x} (made at {x.line_info}) has {have} frequencies along "
            f"{axis.name!r}, and n={n} real numbers have {needed}; give the n of the transform, or "
            "leave out or geon.pad frequencies"
        )
    return n


def _axes(x: Tensor, axes: Any, what: str) -> Sequence[Axis]:
    """Return axes of ``x`` in the order given; all if there are none given."""
    given = x.axes if axes is None else named_axes(axes, what, x)
    if not len(given):
        raise AxisError(
            f"{user_call(what)}: {x} (made at {x.line_info}) has no axis to transform; give a "
            "tensor with one, and axes=[...] with at least one"
        )
    return [own_axis(x, axis, what) for axis in given]


def _turned(x: Tensor, axis: Axis, first: int | Length) -> Tensor:
    """Return ``x`` with its elements from ``first`` on before the others."""
    own = x.axes[axis.name]
    return concat([take(x, {own: slice(first, None)}), take(x, {own: slice(None, first)})], own)


def _extended(x: Tensor, axis: str, count: int | Length) -> Tensor:
    """Return ``x`` with ``count`` zeros after it along an axis."""
    if isinstance(count, int):
        return pad(x, {axis: (0, count)}) if count else x
    own = x.axes[axis]
    rest = [a.with_length(count) if a is own else a for a in x.axes]
    return concat([x, broadcast(strengthen(as_tensor(0), x.dtype), rest)], own)


def _fast_length(n: int | Length) -> int | Length:
    """Return the next length without a prime factor above 5; an open length stays."""
    if isinstance(n, Length):
        return n
    size = max(n, 1)
    while not _is_smooth(size):
        size += 1
    return size


def _is_smooth(n: int) -> bool:
    for prime in (2, 3, 5):
        while n % prime == 0:
            n //= prime
    return n == 1
