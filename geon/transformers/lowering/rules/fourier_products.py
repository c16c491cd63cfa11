"""Fourier transforms of known lengths as products with small matrices of roots of unity.

For targets without a library of transforms. A length n1 n2 is split as by J. W. Cooley and J. W.
Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965: transforms over
n1, products with roots, transforms over n2. A prime length that is too large for a matrix is a
convolution over a longer length, by L. I. Bluestein, "A linear filtering approach to the
computation of discrete Fourier transform", 1970.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.axes.lengths import Length
from ....op_graph.building.constants import array_constant
from ....op_graph.op_graph import Op, Tensor
from ....op_graph.rows.complex_numbers import as_complex, conj, real
from ....op_graph.rows.concatenation import concat, pad
from ....op_graph.rows.contraction import contract_two
from ....op_graph.rows.elementwise import multiply
from ....op_graph.rows.fourier import FourierAttributes
from ....op_graph.rows.movement import _flatten, _unflatten, flip, rename, reorder
from ....op_graph.rows.slicing import take
from ....op_graph.values.dtypes import DType
from ...sizes.limits import LONG_LOOP_TURNS

MAX_MATRIX_LENGTH = LONG_LOOP_TURNS
"""Longest transform that is one product; its matrix has as many bytes as a tile of products."""
MAX_PRIME_LENGTH = 4 * MAX_MATRIX_LENGTH
"""Longest transform of a prime length that is one product: Bluestein's takes three of twice it."""


def as_products(op: Op) -> Tensor | None:
    """Return a transform of a known length as products with matrices; None if it is open."""
    a: FourierAttributes = op.attrs
    if isinstance(a.n, Length):
        return None
    x: Any = op.args[0]
    if a.form == "c2c":
        return _transformed(x, a.axis, a.inverse)
    if a.form == "r2c":
        return take(_transformed(as_complex(x), a.axis, False), {a.axis: slice(0, a.n // 2 + 1)})
    rest = take(x, {a.axis: slice(1, a.n - a.n // 2)})
    whole = concat([x, flip(conj(rest), rest.axes[a.axis])], x.axes[a.axis])
    return real(_transformed(whole, a.axis, True))


def _transformed(z: Tensor, name: str, inverse: bool) -> Tensor:
    """Return the transform of a complex tensor along an axis of known length."""
    axis = z.axes[name]
    n = int(axis.expression)
    first = _first_factor(n)
    if n <= 1:
        return z
    if first == n and n > MAX_PRIME_LENGTH:
        return _chirped(z, axis, inverse)
    if first == n:
        return _product(z, axis, inverse)
    outer, inner = Axis(f"{name}*{n}o", first), Axis(f"{name}*{n}i", n // first)
    made = _transformed(_unflatten(z, axis, Axes(outer, inner)), outer.name, inverse)
    made = multiply.apply(made, _roots(Axes(outer, inner), n, inverse, z.dtype))
    made = _transformed(made, inner.name, inverse)
    order = [inner if a.name == outer.name else outer if a.name == inner.name else a
             for a in made.axes]  # fmt: skip
    return _flatten(reorder(made, Axes(order)), (inner.name, outer.name), axis)


def _product(z: Tensor, axis: Axis, inverse: bool) -> Tensor:
    """Return a transform as one contraction with a matrix."""
    frequency = Axis(f"{axis.name}*k", axis.expression)
    matrix = _roots(Axes(axis, frequency), int(axis.expression), inverse, z.dtype)
    made = rename(contract_two(z, matrix, (axis.name,)), {frequency: axis})
    return reorder(made, z.axes)


def _chirped(z: Tensor, axis: Axis, inverse: bool) -> Tensor:
    """Return a transform as a convolution: j k = (j² + k² - (k - j)²) / 2."""
    n = int(axis.expression)
    size = 1 << (2 * n - 2).bit_length()
    number = np.arange(n)
    chirp = _unit(number * number % (2 * n), 2 * n, inverse)
    kernel = np.zeros(size, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[:0:-1].conj()
    long = axis.with_length(size)
    spectrum = _constant(np.fft.fft(kernel) / size, Axes(long), z.dtype)
    factor = _constant(chirp, Axes(axis), z.dtype)
    widened = pad(multiply.apply(z, factor), {axis.name: (0, size - n)})
    made = multiply.apply(_transformed(widened, axis.name, False), spectrum)
    made = take(_transformed(made, axis.name, True), {axis.name: slice(0, n)})
    return multiply.apply(made, factor)


def _roots(axes: Axes, n: int, inverse: bool, dtype: DType) -> Tensor:
    """Return exp(-+2 pi i j k / n) for the indices j and k along two axes."""
    first, second = (np.arange(int(axis.expression)) for axis in axes)
    return _constant(_unit(np.outer(first, second) % n, n, inverse), axes, dtype)


def _unit(number: Any, n: int, inverse: bool) -> Any:
    """Return the roots of unity exp(-+2 pi i number / n)."""
    angle = (2 if inverse else -2) * np.pi / n * number
    return np.cos(angle) + 1j * np.sin(angle)


def _constant(array: Any, axes: Axes, dtype: DType) -> Tensor:
    return array_constant(array.astype(dtype), axes)


@cache
def _first_factor(n: int) -> int:
    """Return the largest divisor of ``n`` of at most ``MAX_MATRIX_LENGTH``; else its least prime.

    It is ``n`` itself for a length that is not split.
    """
    for divisor in range(min(n, MAX_MATRIX_LENGTH), 1, -1):
        if n % divisor == 0:
            return divisor
    divisor = MAX_MATRIX_LENGTH + 1
    while divisor * divisor <= n:
        if n % divisor == 0:
            return divisor
        divisor += 1
    return n
