"""The discrete Fourier transform along an axis, without a factor, and its form on parts.

``fourier`` is of one of three forms: ``c2c`` of complex numbers, ``r2c`` of real ones, whose result
has only the frequencies from 0 to n // 2, and ``c2r`` from these back to n real numbers.
``fourier_parts`` is the same on real tensors whose last axis has the real and imaginary parts of
what is complex; programs contain that one.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from ...errors import DTypeError
from ..axes.axes import Axes, Axis, axes_of
from ..axes.lengths import Length
from ..building.elementwise_build import meet
from ..building.resolve_axes import has_axes
from ..core.primitive import Inferred, Primitive, require
from ..op_graph import Guard, Op, Tensor, make
from ..values.attribute_types import Flag, Name, OneAxis, Size
from ..values.dtypes import complex_dtype, kind, real_dtype
from .accumulation import floating, widen
from .complex_numbers import conj
from .elementwise import cast, equal, multiply, where
from .leaves import iota, length_value
from .logic import logical_or

Array = np.ndarray[Any, Any]
FORMS = ("c2c", "r2c", "c2r")


def is_form(value: Any) -> bool:
    """Return True if ``value`` is a form of a transform."""
    return type(value) is str and value in FORMS


Form = Annotated[str, is_form]


class FourierAttributes(NamedTuple):
    """The axis and form of a transform, and the number ``n`` of elements that it is over.

    ``inverse`` changes the sign of the exponent, which is otherwise negative; r2c has it negative
    and c2r positive.
    """

    axis: Name
    form: Form
    inverse: Flag
    n: Size


class FourierPartsAttributes(NamedTuple):
    """The attributes of a transform, and the last axis, of parts, of what is complex in it."""

    axis: Name
    form: Form
    inverse: Flag
    n: Size
    parts: OneAxis


def transformed(x: Array, axis: int, form: str, inverse: bool, n: int, out: Array) -> None:
    """Write the transform of ``x`` along the dimension ``axis`` to ``out``, without a factor."""
    if not (x.size and out.size):
        out[...] = 0
    elif form == "r2c":
        np.fft.rfft(x, axis=axis, out=out)
    elif form == "c2r":
        np.fft.irfft(x, n, axis=axis, norm="forward", out=out)
    elif inverse:
        np.fft.ifft(x, axis=axis, norm="forward", out=out)
    else:
        np.fft.fft(x, axis=axis, out=out)


def _reference(op: Op, x: Array) -> Array:
    a: FourierAttributes = op.attrs
    out = np.empty(op.axes.lengths, op.dtype)
    transformed(x, op.axes.index(a.axis), a.form, a.inverse, a.n, out)  # type: ignore[arg-type]  # bound
    return out


def _parts_reference(op: Op, x: Array) -> Array:
    a: FourierPartsAttributes = op.attrs
    out = np.empty(op.axes.lengths, op.dtype)
    wide = np.result_type(x.dtype, np.complex64)
    source, target = x, out
    if a.form != "r2c":
        source = np.ascontiguousarray(x).view(wide)[..., 0]
    if a.form != "c2r":
        target = out.view(wide)[..., 0]
    transformed(source, op.args[0].axes.index(a.axis), a.form, a.inverse, a.n, target)  # type: ignore[arg-type]  # bound
    return out


def _lengths(x: Op, a: Any) -> tuple[int | Length, int | Length, tuple[Guard, ...]]:
    """Return the lengths before and after along the axis, and the guard that the first is so."""
    half = a.n // 2 + 1
    before = half if a.form == "c2r" else a.n
    after = half if a.form == "r2c" else a.n
    have = x.axes[a.axis].expression
    return before, after, tuple(meet("fourier", a.axis, (have, x), (before, x)))


def _along(axes: Axes, name: str, length: int | Length) -> Axes:
    return axes_of(tuple([a.with_length(length) if a.name == name else a for a in axes]))


def _infer(args: tuple[Any, ...], a: FourierAttributes) -> Inferred:
    (x,) = args
    has_axes(x, (a.axis,), "fourier")
    wanted = "f" if a.form == "r2c" else "c"
    if kind(x.dtype) != wanted or x.dtype.itemsize < 4:
        raise DTypeError(f"a transform {a.form} of {x.dtype.name}")
    _, after, guards = _lengths(x, a)
    dtype = complex_dtype(x.dtype) if a.form == "r2c" else x.dtype
    dtype = real_dtype(dtype) if a.form == "c2r" else dtype
    return _along(x.axes, a.axis, after), dtype, guards


def _parts_infer(args: tuple[Any, ...], a: FourierPartsAttributes) -> Inferred:
    (x,) = args
    has_axes(x, (a.axis,), "fourier_parts")
    require(kind(x.dtype) == "f" and x.dtype.itemsize >= 4, "a transform of {}", x.dtype)
    _, after, guards = _lengths(x, a)
    inner = x.axes
    if a.form != "r2c":
        last = x.axes[-1]
        is_parts = (last.name, last.expression) == (a.parts.name, 2)
        require(is_parts, "a transform of {}, whose last axis is no parts", x.axes)
        inner = x.axes.without((a.parts.name,))
    result = _along(inner, a.axis, after)
    return result if a.form == "c2r" else Axes(result, a.parts), x.dtype, guards


def _transpose(g: Tensor, op: Op, i: int) -> Tensor:
    """Return the cotangent of the argument.

    The matrix of c2c is symmetric. r2c takes the real part of a transform back, which c2r does if
    frequencies that it counts twice, all but 0 and n / 2, are halved.
    """
    a: FourierAttributes = op.attrs
    if a.form == "c2c":
        return fourier(g, a.axis, "c2c", a.n, a.inverse)
    frequencies = op if a.form == "r2c" else op.args[0]
    number = iota(frequencies.axes[a.axis])
    n = length_value(a.n)
    single = logical_or.apply(equal.apply(number, 0), equal.apply(multiply.apply(number, 2), n))
    if a.form == "r2c":
        weight = cast(where.apply(single, 1.0, 0.5), g.dtype)
        return fourier(multiply.apply(conj(g), weight), a.axis, "c2r", a.n)
    weight = cast(where.apply(single, 1.0, 2.0), op.args[0].dtype)
    return multiply.apply(conj(fourier(g, a.axis, "r2c", a.n)), weight)


def _samples() -> list[tuple[str, list[Any], Any]]:
    def there_and_back(n: int) -> Any:
        def build(x: Tensor) -> Tensor:
            x = widen(floating(x))
            forth, back = ("c2c", "c2c") if kind(x.dtype) == "c" else ("r2c", "c2r")
            middle = multiply.apply(fourier(x, "B", forth, n), 1 - 0.5j)
            return fourier(middle, "B", back, n, True)

        return build

    return [
        ("of an even length", [[Axis("A", 2), Axis("B", 6)]], there_and_back(6)),
        ("of an odd length, not last", [[Axis("B", 5), Axis("A", 2)]], there_and_back(5)),
    ]


FOURIER = Primitive(
    "fourier",
    "ordered",
    "The discrete Fourier transform along an axis, of complex or real numbers, without a factor.",
    reference=_reference,
    transpose=_transpose,
    attributes=FourierAttributes,
    arity=1,
    infer=_infer,
    dtype_operands=(),
    cost="kernel",
    takes_complex=True,
    samples=_samples,
)
FOURIER_PARTS = Primitive(
    "fourier_parts",
    "ordered",
    "A Fourier transform with complex numbers as pairs along a last axis; only in programs.",
    reference=_parts_reference,
    attributes=FourierPartsAttributes,
    arity=1,
    infer=_parts_infer,
    dtype_operands=(),
    cost="kernel",
)


def fourier(
    x: Tensor, axis: str, form: str, n: int | Length, inverse: bool | None = None
) -> Tensor:
    """Return a transform of one of ``FORMS`` over ``n`` elements, without a factor."""
    inverse = form == "c2r" if inverse is None else inverse
    return make(FOURIER, (x,), (axis, form, inverse, n))
