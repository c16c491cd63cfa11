"""Parts, conjugates and angles of complex numbers, and complex numbers of two parts.

Derivatives follow the convention of JAX: for a real y of a complex z = a + ib the derivative is
dy/da - i dy/db, so that a function which is holomorphic has its usual complex derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..building.constants import as_tensor
from ..building.elementwise_build import join, refuse_unshared
from ..building.weak import exact, in_dtype, meet_together
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..op_graph import Tensor, make
from ..values.dtypes import complex_dtype, is_number, kind, real_dtype
from .accumulation import floating, widen
from .movement import broadcast
from .trigonometry import atan2

if TYPE_CHECKING:
    from ..building.typing import OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


def _joined(x: Array, y: Array) -> Array:
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, np.complex64))
    result.real, result.imag = x, y
    return result


def _part_infer(args: tuple[Any, ...], attrs: Any) -> Inferred:
    (x,) = args
    require(kind(x.dtype) == "c", "a part of {}", x.dtype)
    return x.axes, real_dtype(x.dtype), ()


def _conj_infer(args: tuple[Any, ...], attrs: Any) -> Inferred:
    require(kind(args[0].dtype) == "c", "a conjugate of {}", args[0].dtype)
    return args[0].axes, args[0].dtype, ()


def _as_complex_infer(args: tuple[Any, ...], attrs: Any) -> Inferred:
    x, y = args
    is_one_array = x.dtype is y.dtype and kind(x.dtype) == "f" and x.dtype.itemsize >= 4
    require(is_one_array, "complex numbers of {} and {}", x.dtype, y.dtype)
    axes, guards = join("as_complex", args)
    return axes, complex_dtype(x.dtype), guards


REAL = Primitive(
    "real",
    "elementwise",
    "The real part of complex numbers.",
    reference=np.real,
    partials=(1.0,),
    arity=1,
    infer=_part_infer,
    dtype_operands=(),
    takes_complex=True,
)
IMAG = Primitive(
    "imag",
    "elementwise",
    "The imaginary part of complex numbers.",
    reference=np.imag,
    partials=(-1j,),
    arity=1,
    infer=_part_infer,
    dtype_operands=(),
    takes_complex=True,
)
CONJ = Primitive(
    "conj",
    "elementwise",
    "The complex conjugate.",
    reference=np.conjugate,
    transpose=lambda g, op, i: conj(g),
    arity=1,
    infer=_conj_infer,
    takes_complex=True,
)
AS_COMPLEX = Primitive(
    "as_complex",
    "elementwise",
    "x + iy, of two real operands.",
    reference=_joined,
    partials=(1.0, 1j),
    arity=2,
    infer=_as_complex_infer,
    dtype_operands=(),
)


def _known(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor, which is not weak if it is complex: its parts have other dtypes."""
    x = as_tensor(x)
    return exact(x) if kind(x.dtype) == "c" else x


@public
def real(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the real part of ``x``; a real ``x`` itself."""
    x = _known(x)
    return make(REAL, (x,)) if kind(x.dtype) == "c" else x


@public
def imag(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the imaginary part of ``x``; zeros for a real ``x``."""
    x = _known(x)
    if kind(x.dtype) == "c":
        return make(IMAG, (x,))
    return broadcast(in_dtype(as_tensor(0), x.dtype), x.axes)


@public
def conj(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the complex conjugate of ``x``; a real ``x`` itself."""
    x = as_tensor(x)
    return make(CONJ, (x,)) if kind(x.dtype) == "c" else x


@public
def angle(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the angle of ``x`` in the complex plane, in radians from -pi to pi.

    Its derivative at 0 is NaN.
    """
    x = _known(x)
    return atan2.apply(imag(x), real(x))


@public
def as_complex(real: TensorLike, imag: TensorLike = 0.0, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the complex numbers with these real and imaginary parts, joined by axis name.

    float64 parts give complex128, others complex64. Raises ``DTypeError`` for complex parts and
    ``AxisError`` for two tensors that share no axis.
    """
    parts = [x if is_number(x) else as_tensor(x) for x in (real, imag)]
    refuse_unshared("as_complex", parts)
    for x in parts:
        AS_COMPLEX.refuse_dtypes([x])
    if all(map(is_number, parts)):
        both: list[Any] = parts
        return as_tensor(complex(*both))
    met = [exact(widen(floating(x))) for x in meet_together("as_complex", parts)]
    return make(AS_COMPLEX, tuple(met))
