"""Resize and Upsample: gathers along each axis, weighted by factors that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import geon

from .....errors import ArgumentError
from ....positional.elementwise import elementwise
from ....positional.programs import cast
from ....positional.reductions import along_axis
from ....positional.reshaping import unsqueeze
from ....positional.sampling import (
    COORDINATES,
    interpolated_along,
    nearest_along,
    scaled_length,
)
from ....positional.values import Size, Value, host, positions
from ...table import row

# The mode and alignment of geon.resize, which takes open lengths.
OPEN = {
    ("linear", "half_pixel"): ("linear", "centers"),
    ("linear", "pytorch_half_pixel"): ("linear", "centers"),
    ("linear", "align_corners"): ("linear", "corners"),
    ("nearest", "asymmetric"): ("nearest", "starts"),
    ("nearest", "tf_half_pixel_for_nn"): ("nearest", "centers"),
}
MAX_LENGTH = 1 << 26  # of a resized axis, whose coordinates are computed when a model is loaded
HALF_PIXEL = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")


def resize(
    x: Value,
    roi: Sequence[float] = (),
    scales: Sequence[float] = (),
    sizes: Sequence[Size] = (),
    /,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Value:
    """Return ``x`` resampled to lengths, or by scales; axes whose length stays are left alone."""
    at = positions(axes, len(x.shape))
    old = [x.shape[k] for k in at]
    new, factors = _targets(old, scales, sizes, keep_aspect_ratio_policy)
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    result = x if x.dtype.kind == "f" or mode == "nearest" else cast(x, "float32")
    for number, k in enumerate(at):
        n, length, scale = old[number], new[number], factors[number]
        if n == length and scale == 1 and not cropped:
            continue
        if not isinstance(n, int) or not isinstance(length, int):
            how = _open_mode(x, scale, mode, coordinate_transformation_mode, nearest_mode)
            result = along_axis(
                lambda t, a, to=length, how=how: geon.resize(t, {a: to}, *how), result, k
            )
            continue
        if length > MAX_LENGTH:
            raise ArgumentError(f"a resize of {n} elements to {length:,}; at most {MAX_LENGTH:,}")
        i, wide = np.arange(length, dtype=np.float64), float(scale * n)
        if cropped:
            start, end = roi[number], roi[number + len(at)]
            step = i / (wide - 1) if wide != 1 else 0 * i + 0.5
            place = (start + step * (end - start)) * (n - 1)
        else:
            place = COORDINATES[coordinate_transformation_mode](i, scale, n, wide)
        if mode == "nearest":
            result = nearest_along(result, k, place, nearest_mode)
        else:
            shrink = min(float(scale), 1.0) if antialias else 1.0
            result = interpolated_along(
                result, k, place, mode, cubic_coeff_a, shrink, bool(exclude_outside)
            )
        if cropped:
            inside = host((place >= 0) & (place <= n - 1))
            wide_inside = unsqueeze(inside, range(1, len(x.shape) - k))
            result = elementwise(
                lambda t, c: geon.where(c, t, extrapolation_value), result, wide_inside
            )
    return cast(result, x.dtype)


def _targets(
    old: Sequence[Size], scales: Sequence[float], sizes: Sequence[Size], policy: str
) -> tuple[list[Size], list[float]]:
    """Return new lengths and the scales to them; a scale of an open length is not read."""
    if scales:
        return [scaled_length(n, s) for n, s in zip(old, scales, strict=True)], list(scales)
    if not sizes:
        raise ArgumentError("a resize needs scales or sizes")
    pairs = zip(sizes, old, strict=True)
    factors = [a / b if isinstance(a, int) and isinstance(b, int) else 0.0 for a, b in pairs]
    if policy != "stretch":
        if not all(factors):
            raise ArgumentError("a resize that keeps the aspect ratio needs known lengths")
        factor = min(factors) if policy == "not_larger" else max(factors)
        return [int(factor * n + 0.5) for n in old if isinstance(n, int)], [factor] * len(old)
    return list(sizes), factors


def _open_mode(
    x: Value, scale: float, mode: str, coordinates: str, nearest: str
) -> tuple[str, str]:
    """Return mode and alignment of ``geon.resize`` for an open length.

    ``scale`` is an integer, or 0 if it is not known.
    """
    if mode == "nearest" and coordinates in HALF_PIXEL and nearest.startswith("round") and scale:
        # An integer scale s: (i + 1/2) / s - 1/2 is never halfway, and is rounded to floor(i / s).
        return "nearest", "starts"
    found = OPEN.get((mode, coordinates))
    if found is None or (mode == "nearest" and nearest != "floor"):
        raise ArgumentError(
            f"a resize of {x} in the mode {mode!r} with coordinates {coordinates!r} needs known "
            "lengths; give them to load as axes"
        )
    return found


def resize_by_scales(x: Value, scales: Sequence[float], /, *, mode: str = "nearest") -> Value:
    """Return ``x`` resampled by scales, at the starts of elements."""
    return resize(
        x,
        (),
        scales,
        mode="linear" if mode in ("linear", "bilinear") else mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def upsample_planes(
    x: Value, /, *, height_scale: float, width_scale: float, mode: str = "nearest"
) -> Value:
    """Return images resampled by two scales."""
    return resize_by_scales(x, [1, 1, height_scale, width_scale], mode=mode)


ROWS = [
    row("Resize", resize, 11),
    row("Resize", resize_by_scales, 10, 10),
    row("Upsample", resize_by_scales, 7, attributes={"scales": 1}),
    row("Upsample", upsample_planes, 1, 6),
]
