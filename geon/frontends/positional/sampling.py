"""Samples at coordinates: weighted sums of neighbours, at computed places and along one axis.

Cubic convolution is that of R. G. Keys, "Cubic convolution interpolation for digital image
processing" (1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product as combinations
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import product
from .elementwise import chain, elementwise
from .indexing import gather, matched, select
from .movement import with_axis
from .programs import cast
from .reductions import reduce
from .reshaping import reshape, unsqueeze
from .values import Size, Value, array, as_array, host

Array = np.ndarray[Any, Any]
CUBIC_SLOPE = -0.75  # of the kernel at 1, in PyTorch and by default in ONNX


def cubic_near(d: Any, a: float) -> Any:
    """Return the cubic kernel with the slope ``a`` for distances up to 1."""
    return ((a + 2) * d - (a + 3)) * d * d + 1


def cubic_far(d: Any, a: float) -> Any:
    """Return the cubic kernel with the slope ``a`` for distances from 1 to 2."""
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


# At computed places -------------------------------------------------------------------------------


Tap = tuple[Value, Value | None]  # an index along an axis, and its weight


def read(x: Value, places: Sequence[Value]) -> Value:
    """Return the elements of images (N, C, ...) at indices (N, P...) along each axis: (N, C, P...).

    The indices of all axes are broadcast with each other.
    """
    flat: Value = host(0, "int64")
    for place, length in zip(places, x.shape[2:], strict=True):
        flat = elementwise(lambda f, i, n: f * n + i, flat, place, host(length, "int64"))
    images = with_axis(as_array(reshape(x, [*x.shape[:2], product(x.shape[2:])])), 2)
    at = matched(as_array(flat), images, [0])
    line = images.dims[2]
    assert line is not None
    return array(geon.gather(images.tensor, at.tensor, line), [*images.dims[:2], *at.dims[1:]])


def sampled(
    x: Value, taps: Sequence[Sequence[Tap]], f: Callable[..., geon.Tensor] = geon.add
) -> Value:
    """Return ``f``, a sum, over all combinations of the taps of axes, times their weights."""
    terms = []
    for each in combinations(*taps):
        term = read(x, [place for place, _ in each])
        for _, weight in each:
            if weight is not None:
                term = elementwise(geon.multiply, term, unsqueeze(weight, [1]))
        terms.append(term)
    return chain(f, terms)


def _reflected(x: geon.Tensor, low: float, high: float) -> geon.Tensor:
    """Return coordinates reflected at two borders until they lie between them."""
    if high <= low:
        return 0 * x + low
    rest = geon.mod(x - low, 2 * (high - low))
    return low + geon.minimum(rest, 2 * (high - low) - rest)


def linear(part: geon.Tensor) -> list[geon.Tensor]:
    """Return the weights of two neighbours, the coordinate ``part`` after the first."""
    return [1 - part, part]


def cubic(part: geon.Tensor) -> list[geon.Tensor]:
    """Return the weights of four neighbours by cubic convolution."""
    near, far = (partial(f, a=CUBIC_SLOPE) for f in (cubic_near, cubic_far))
    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


# The first neighbour, counted from the element before the coordinate, and the weights of all.
KERNELS: dict[str, tuple[int, Callable[[geon.Tensor], list[geon.Tensor]]]] = {
    "linear": (0, linear),
    "bilinear": (0, linear),
    "cubic": (-1, cubic),
    "bicubic": (-1, cubic),
}


def taps_of(
    place: Value, length: Size, mode: str, padding: str, edges: tuple[float, float]
) -> list[Tap]:
    """Return the neighbours of coordinates along an axis; ``edges`` are its reflecting borders."""
    if not isinstance(length, int):
        raise ArgumentError(f"samples along the open length {length}; give the length")
    last = length - 1

    def moved(x: geon.Tensor) -> geon.Tensor:
        x = geon.round(x) if mode == "nearest" else x
        if padding == "border":
            outside = geon.logical_or(x < edges[0], x > edges[1])
            return geon.where(outside, geon.clip(x, 0, last), x)
        return _reflected(x, *edges) if padding == "reflection" else x

    def tap(k: int, number: int) -> Tap:
        def index(x: geon.Tensor) -> geon.Tensor:
            found = geon.floor(x) + k
            if padding == "reflection":
                found = geon.floor(_reflected(found, *edges))
            return geon.cast(geon.clip(found, 0, last), "int64")

        def weight(x: geon.Tensor) -> geon.Tensor:
            base = geon.floor(x)
            factor = x * 0 + 1 if mode == "nearest" else KERNELS[mode][1](x - base)[number]
            if padding != "zeros":
                return factor
            inside = geon.logical_and(base + k >= 0, base + k <= last)
            return geon.where(inside, factor, 0)

        weighs = mode != "nearest" or padding == "zeros"
        return elementwise(index, spot), elementwise(weight, spot) if weighs else None

    spot = elementwise(moved, place)
    if mode == "nearest":
        return [tap(0, 0)]
    first, kernel = KERNELS[mode]
    count = 2 if kernel is linear else 4
    return [tap(first + number, number) for number in range(count)]


def grid_sample(x: Value, grid: Value, mode: str, padding_mode: str, align_corners: bool) -> Value:
    """Return samples of images at coordinates from -1 to 1, those of the last axis first.

    ``mode`` is "nearest" or in ``KERNELS``, ``padding_mode`` "zeros", "border" or "reflection".
    """
    taps = []
    rank = len(x.shape) - 2
    for k, length in enumerate(x.shape[2:]):
        n = float(length) if isinstance(length, int) else 0.0

        def place(g: geon.Tensor, n: float = n) -> geon.Tensor:
            return (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2

        edges = (0.0, n - 1) if align_corners else (-0.5, n - 0.5)
        spot = elementwise(place, select(grid, rank + 1, rank - 1 - k))
        taps.append(taps_of(spot, length, mode, padding_mode, edges))
    return cast(sampled(x, taps), x.dtype)


# Along one axis, at places that are known ---------------------------------------------------------


def scaled_length(length: Size, factor: float) -> Size:
    """Return the whole part of a length times a factor.

    Raises ``ArgumentError`` for an open length and a factor that is no integer.
    """
    if isinstance(length, int):
        return math.floor(length * factor)
    if factor != int(factor):
        raise ArgumentError(
            f"the open length {length} is scaled by {factor}, which is no integer; give the length"
        )
    return length * int(factor)


def _half_pixel(i: Array, scale: float, n: int, wide: float) -> Array:
    return (i + 0.5) / scale - 0.5


def _symmetric(i: Array, scale: float, n: int, wide: float) -> Array:
    return n / 2 * (1 - len(i) / wide) + _half_pixel(i, scale, n, wide)


def _pytorch(i: Array, scale: float, n: int, wide: float) -> Array:
    return _half_pixel(i, scale, n, wide) if wide > 1 else 0 * i


def _corners(i: Array, scale: float, n: int, wide: float) -> Array:
    return i * (n - 1) / (wide - 1) if wide != 1 else 0 * i


# Coordinates in an axis of length ``n`` of the numbers ``i`` in one of the length ``wide``, which
# is ``scale * n`` and may be no integer.
COORDINATES: dict[str, Callable[[Array, float, int, float], Array]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _pytorch,
    "align_corners": _corners,
    "asymmetric": lambda i, scale, n, wide: i / scale,
    "tf_half_pixel_for_nn": lambda i, scale, n, wide: (i + 0.5) / scale,
}
NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def nearest_along(x: Value, axis: int, place: Array, rounding: str) -> Value:
    """Return the elements along an axis that are nearest to coordinates."""
    last = int(x.shape[axis]) - 1  # a known length
    return gather(x, host(np.clip(NEAREST[rounding](place), 0, last).astype(np.int64)), axis)


def interpolated_along(
    x: Value,
    axis: int,
    place: Array,
    mode: str,
    slope: float = CUBIC_SLOPE,
    shrink: float = 1.0,
    outside: bool = False,
) -> Value:
    """Return weighted sums of neighbours of coordinates along an axis.

    ``mode`` is "linear" or "cubic", with a ``slope``. ``shrink`` below 1 makes the kernel wider.
    With ``outside`` the neighbours outside of the axis have no weight; else border elements stand
    for them.
    """
    kernel: Callable[[Array], Array] = lambda d: np.clip(1 - np.abs(d), 0, None)  # noqa: E731
    if mode == "cubic":
        kernel = partial(cubic_kernel, a=slope)
    n, reach = int(x.shape[axis]), 2 if mode == "cubic" else 1  # a known length
    taps, weights = _weights(place, n, shrink, kernel, reach, outside)
    factors = unsqueeze(host(weights, x.dtype), range(2, len(x.shape) - axis + 1))
    near = elementwise(geon.multiply, gather(x, host(taps), axis), factors)
    return reduce(geon.sum, near, [axis + 1], keep=False)


def cubic_kernel(x: Array, a: float) -> Array:
    """Return the cubic convolution kernel with the slope ``a`` at 1."""
    x = np.abs(x)
    return np.where(x <= 1, cubic_near(x, a), np.where(x < 2, cubic_far(x, a), 0))


def _weights(
    x: Array, n: int, scale: float, kernel: Callable[[Array], Array], reach: int, outside: bool
) -> tuple[Array, Array]:
    """Return the indices of neighbours of coordinates ``x``, and their weights: (out, taps)."""
    first = math.floor(-reach / scale) + 1
    taps = np.arange(first, 2 - first)
    base = np.ceil(x)[:, None] - 1
    factors = kernel((taps - (x[:, None] - base)) * scale)
    index = (base + taps).astype(np.int64)
    if outside:
        factors = np.where((index < 0) | (index >= n), 0, factors)
    return np.clip(index, 0, n - 1), factors / factors.sum(1, keepdims=True)
