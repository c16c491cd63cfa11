"""Complex numbers and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import geon

from ...positional.elementwise import elementwise
from ...positional.fourier import half_transform, real_transform, transform
from ...positional.indexing import select
from ...positional.movement import concat
from ...positional.reshaping import unsqueeze
from ...positional.values import Size, Value
from .common import Rows, positions

BY_ROOT, BY_LENGTH = 1, 2  # what transforms are divided by; 0 is nothing


def divided(x: Value, lengths: Sequence[Size], norm: int, inverse: bool) -> Value:
    """Return a transform over these lengths as ``norm`` divides it; inverse ones are by length."""
    by = norm - BY_LENGTH if inverse else norm
    exponent = {BY_ROOT: -0.5, BY_LENGTH: -1.0, BY_ROOT - BY_LENGTH: 0.5, -BY_LENGTH: 1.0}.get(by)
    if exponent is None:
        return x
    total: Any = math.prod(lengths)
    return elementwise(lambda t: t * total**exponent, x)


def complex_transform(x: Value, dims: Any, normalization: int, forward: bool) -> Value:
    """Return the transform of complex numbers along some dimensions, or its inverse."""
    made, along = x, positions(dims, len(x.shape))
    for at in along:
        made = transform(made, at, inverse=not forward)
    return divided(made, [x.shape[at] for at in along], normalization, not forward)


def transform_of_real(x: Value, dims: Any, normalization: int, onesided: bool) -> Value:
    """Return the transform of real numbers; ``onesided`` halves the last of the dimensions."""
    along = positions(dims, len(x.shape))
    made: Value = half_transform(x, along[-1]) if onesided else transform(x, along[-1])
    for at in along[:-1]:
        made = transform(made, at)
    return divided(made, [x.shape[at] for at in along], normalization, False)


def transform_to_real(x: Value, dims: Any, normalization: int, length: Any) -> Value:
    """Return the inverse of ``transform_of_real`` with so many numbers along the last dimension."""
    made, along = x, positions(dims, len(x.shape))
    for at in along[:-1]:
        made = transform(made, at, inverse=True)
    made = real_transform(made, along[-1], length)
    return divided(made, [made.shape[at] for at in along], normalization, True)


def parts(x: Value) -> Value:
    """Return the real and the imaginary parts along a new last dimension."""
    last = len(x.shape)
    both = [elementwise(f, x) for f in (geon.real, geon.imag)]
    return concat([unsqueeze(part, [last]) for part in both], last)


def of_parts(x: Value) -> Value:
    """Return complex numbers whose parts are along the last dimension."""
    last = len(x.shape) - 1
    return elementwise(geon.as_complex, *[select(x, last, k) for k in (0, 1)])


ROWS: Rows = {
    "_fft_c2c": complex_transform,
    "_fft_r2c": transform_of_real,
    "_fft_c2r": transform_to_real,
    "complex": lambda x, y: elementwise(geon.as_complex, x, y),
    "angle": lambda x: elementwise(geon.angle, x),
    "real": lambda x: elementwise(geon.real, x),
    "imag": lambda x: elementwise(geon.imag, x),
    **dict.fromkeys(
        ("_conj", "conj_physical", "_conj_physical"), lambda x: elementwise(geon.conj, x)
    ),
    "view_as_real": parts,
    "view_as_complex": of_parts,
}
