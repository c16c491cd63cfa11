"""Parts, conjugates and angles of complex numbers, and complex numbers of two parts.

Derivatives follow the convention of JAX: for a real y of a complex z = a + ib the derivative is
dy/da - i dy/db, so that a function which is holomorphic has its usual complex derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..building.constants import as_tensor
from ..building.elementwise_build import elementwise
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..op_graph import Tensor
from ..values.dtypes import kind
from .movement import broadcast
from .trigonometry import atan2

if TYPE_CHECKING:
    from ..building.typing import OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


def _joined(x: Array, y: Array) -> Array:
    made = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, np.complex64))
    made.real, made.imag = x, y
    return made


_real = elementwise(
    "real",
    "The real part of complex numbers.",
    np.real,
    (1.0,),
    rule="magnitude",
    takes_complex=True,
)
_imag = elementwise(
    "imag",
    "The imaginary part of complex numbers.",
    np.imag,
    (-1j,),
    rule="magnitude",
    takes_complex=True,
)
_conj = elementwise(
    "conj",
    "The complex conjugate.",
    np.conjugate,
    transpose=lambda g, op, i: conj(g),
    takes_complex=True,
)
_as_complex = elementwise(
    "as_complex",
    "x + iy, of two real operands.",
    _joined,
    (1.0, 1j),
    arity=2,
    rule="pair",
)


def _known(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor of a fixed dtype."""
    x = as_tensor(x)
    return strengthen(x, x.dtype) if x.weak else x


@public
def real(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the real part of ``x``; a real ``x`` itself."""
    x = _known(x)
    return _real.apply(x) if kind(x.dtype) == "c" else x


@public
def imag(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the imaginary part of ``x``; zeros for a real ``x``."""
    x = _known(x)
    if kind(x.dtype) == "c":
        return _imag.apply(x)
    return broadcast(strengthen(as_tensor(0), x.dtype), x.axes)


@public
def conj(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the complex conjugate of ``x``; a real ``x`` itself."""
    x = as_tensor(x)
    return _conj.apply(x) if kind(x.dtype) == "c" else x


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
    made: Tensor = _as_complex(real, imag)
    return strengthen(made, made.dtype) if made.weak else made
