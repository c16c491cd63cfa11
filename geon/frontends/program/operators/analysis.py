"""Operators of signals and data: Fourier transforms, windows, statistics, distances, searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import geon

from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise
from ...positional.movement import with_axis
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.reductions import along, reduce
from ...positional.reshaping import reshape
from ...positional.values import Value, array, as_array, position, positions
from .elementwise import of_elements
from .patterns import over
from .rows import FLOAT, INT, STRING, Function, Row, with_attributes

Tensor = geon.Tensor


def transform(f: Function) -> Function:
    """Return the function of an operator for ``f(tensor, axes, norm=)`` along some positions."""

    def build(x: Value, *, axes: Sequence[int], normalization: str, **settings: Any) -> Value:
        given, at = as_array(x), positions(axes, len(x.shape))
        for k in at:
            given = with_axis(given, k)
        names = [d.name for d in map(given.dims.__getitem__, at) if d is not None]
        made = f(given.tensor, names, norm=normalization, **settings)
        return array(made, [None if dim is None else dim.name for dim in given.dims])

    return with_attributes(build, {"axes": (-1,), "normalization": "backward"}, f)


def complex_transform(t: Tensor, axes: list[str], norm: str, *, is_forward: bool = True) -> Tensor:
    """Return the Fourier transform of complex numbers, or its inverse."""
    z = t if t.dtype.kind == "c" else geon.as_complex(t)
    made: Tensor = (geon.fft.fftn if is_forward else geon.fft.ifftn)(z, axes, norm=norm)
    return made


def real_transform(t: Tensor, axes: list[str], norm: str, *, last_dim_size: int = 0) -> Tensor:
    """Return the real numbers of a length, by default an even one, with these frequencies."""
    return geon.fft.irfftn(t, axes, last_dim_size or None, norm=norm)


def cosine_window(*terms: float) -> Function:
    """Return the function of an operator for the window sum_k (-1)^k a_k cos(2 pi k n / N).

    N is the length of a periodic window, else one less. ``terms`` are the a_k.
    """

    def build(*, window_length: int = INT, periodic: bool = True, dtype: str = "float32") -> Value:
        count = max(window_length - (not periodic), 1)

        def window(n: Tensor) -> Tensor:
            parts = [
                (-1) ** k * a * geon.cos(2 * math.pi * k / count * n) for k, a in enumerate(terms)
            ]
            return sum(parts[1:], parts[0])

        return elementwise(window, cast(numbers(window_length), dtype))

    return build


def of_vectors(function: Function) -> Function:
    """Return the function of an operator that takes the elements of each input as a vector."""

    def build(*values: Value, **settings: Any) -> Any:
        return function(*[reshape(v, [product(v.shape)]) for v in values], **settings)

    return with_attributes(build, function)


def unique(x: Tensor, n: str) -> tuple[Tensor, ...]:
    """Return the distinct elements with 0 behind, the number of each element, and counts."""
    found = geon.unique(x)
    return found.values, found.inverse, found.counts, found.count


def masked_select(x: Tensor, mask: Tensor, n: str, *, fill: float = 0.0) -> tuple[Tensor, Tensor]:
    """Return the elements where the mask is true, with ``fill`` behind, and their number."""
    found = geon.compress(x, mask, fill=fill)
    return found.values, found.count


def masked_scatter(x: Value, mask: Value, source: Value) -> Value:
    """Return X with its elements where Mask is true replaced by those of Source, in order."""
    put = of_vectors(over("N, N, M -> N", lambda t, m, s, n, k: geon.masked_scatter(t, m, s, k)))
    return reshape(put(x, mask, source), x.shape)


def histogram(x: Tensor, n: str, *, bins: int, min: float, max: float) -> Tensor:
    """Return the number of elements in each of the equal parts of ``min`` to ``max``."""
    return geon.histogram(x, geon.Axis("bins", bins), min, max)


def bincount(x: Tensor, n: str, *, bins: int) -> Tensor:
    """Return how often each number from 0 up to, without, ``bins`` occurs."""
    return geon.bincount(geon.cast(x, "int64"), geon.Axis("bins", bins))


def vander(x: Tensor, n: str, *, num: int, increasing: bool = True) -> Tensor:
    """Return the powers of x from 0 on."""
    return geon.vander(x, geon.Axis("powers", num), increasing=increasing)


def renorm(x: Value, *, axis: int = INT, max_norm: float = FLOAT, p: float = 2.0) -> Value:
    """Return x with the part at each index along a position scaled to a p-norm of at most max_norm.

    Parts of a smaller norm stay as they are.
    """
    at = position(axis, len(x.shape))
    rest = [k for k in range(len(x.shape)) if k != at]
    return along(lambda t, axes: geon.renorm(t, axes, max_norm, order=p), x, rest)


def trapezoid(x: Value, *, axis: int = -1, dx: float = 1.0) -> Value:
    """Return the integral along a position by the trapezoidal rule, of samples dx apart."""
    at = position(axis, len(x.shape))
    given = with_axis(as_array(x), at)
    return reduce(lambda t, axes: geon.trapezoid(t, axes[0], dx=dx), given, [at], keep=False)


def logspace(*, start: float = FLOAT, stop: float = FLOAT, num: int = INT, base: float = 10.0,
             dtype: str = "float32") -> Value:  # fmt: skip
    """Return num powers of base, whose exponents go from start to stop, equally far apart."""
    step = (stop - start) / max(num - 1, 1)
    return elementwise(lambda t: geon.power(base, t * step + start), cast(numbers(num), dtype))


VALUES, POINTS = "X@1+ Points@1 Values@1", "X@1+ SortedSequence@1"
WINDOWS = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46), "blackman": (0.42, 0.5, 0.08)}
ROWS = [
    Row("fft_c2c", transform(complex_transform),
        "Return the Fourier transform along positions, or its inverse."),
    Row("fft_r2c", transform(lambda t, axes, norm: geon.fft.rfftn(t, axes, norm=norm)),
        "Return the Fourier transform of real numbers along positions: half of the last of axes."),
    Row("fft_c2r", transform(real_transform), "Return the real numbers whose fft_r2c is X."),
    *[Row(f"{name}_window", cosine_window(*terms), f"Return the {name.capitalize()} window.", "",
          gradient=False) for name, terms in WINDOWS.items()],
    Row("complex", lambda x, y: elementwise(geon.as_complex, x, y), "Return X + i Y.", "X Y"),
    Row("cov", over("V O -> V W", geon.cov),
        "Return the covariances of rows, of which columns are observations.", "X@2"),
    Row("corrcoef", over("V O -> V W", geon.corrcoef),
        "Return the correlation coefficients of rows, of which columns are observations.", "X@2"),
    Row("cdist", over("... P M, ... R M -> ... P R", lambda x, y, n, m, r, **given: geon.cdist(
        x, y, m, **given), p=2.0), "Return the p-norms of differences of rows of X and of Y.",
        "X@2+ Y@2+"),
    Row("interp", over("..., P, P -> ...", geon.interp),
        "Return the piecewise linear function that has Values at ascending Points.", VALUES),
    Row("searchsorted", over("..., P -> ...", lambda x, points, p, *, side="left":
        geon.searchsorted(points, x, p, side=side)),
        "Return where each element would be inserted into an ascending sequence.", POINTS,
        gradient=False),
    Row("isin", over("..., P -> ...", lambda x, values, p: geon.isin(x, values)),
        "Return True where an element is among those of Values.", "X@1+ Values@1", gradient=False),
    Row("histogram", of_vectors(over("N -> B", histogram, bins=INT, min=FLOAT, max=FLOAT)),
        histogram.__doc__ or "", gradient=False),
    Row("bincount", of_vectors(over("N -> B", bincount, bins=INT)), bincount.__doc__ or "",
        gradient=False),
    Row("unique", of_vectors(over("N -> M, N, M, ", unique)), unique.__doc__ or "", "X",
        "Out Index Counts Count", gradient=False),
    Row("masked_select", of_vectors(over("N, N -> M, ", masked_select)),
        masked_select.__doc__ or "", "X Mask", "Y Count"),
    Row("masked_scatter", masked_scatter, "", "X Mask Source"),
    Row("vander", over("... N -> ... N P", vander, num=INT),
        "Return the powers of X from 0 on along a new last position.", "X@1+"),
    Row("renorm", renorm, "", "X@1+"),
    Row("trapezoid", trapezoid, "", "X@1+"),
    Row("logspace", logspace, "", "", gradient=False),
    Row("frexp", over("... -> ..., ...", geon.frexp),
        "Return the mantissa and the exponent: X = mantissa 2 ** exponent.", "X",
        "Mantissa Exponent"),
    Row("lerp", lambda x, y, w: elementwise(geon.interpolation, x, y, w),
        "Return (1 - Weight) X + Weight Y.", "X Y Weight"),
    Row("orthogonal_polynomial", of_elements(lambda x, *, family=STRING, n=INT:
        geon.orthogonal_polynomial(family, n, x)),
        "Return the polynomial of degree n of a family, such as legendre or chebyshev_t."),
]  # fmt: skip
