"""Convolutions, pools, resampling and borders of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ....errors import ArgumentError, AxisError
from .. import movement
from ..reshaping import reshape, transpose, unsqueeze
from ..sliding import Slide, convolve, pooled
from ..values import Value, array, as_array
from .common import channels_back, channels_first, ew, pair, sizes


def _borders(border: Any) -> list[tuple[int, int]]:
    """Return elements before and after for rows and columns.

    ``border`` is one number, two (rows, columns), or two pairs (before), (after).
    """
    if isinstance(border, (list, tuple)) and border and isinstance(border[0], (list, tuple)):
        before, after = pair(border[0]), pair(border[1])
    else:
        before = after = pair(border)
    return list(zip(before, after, strict=True))


def slides_of(size: Any, stride: Any, border: Any, dilation: Any = 1) -> list[Slide]:
    """Return the windows of rows and columns."""
    return [
        Slide(n, s, d, b)
        for n, s, d, b in zip(
            pair(size), pair(stride), pair(dilation), _borders(border), strict=True
        )
    ]


def _filters(w: Value, format: str) -> Value:
    if len(w.shape) != 4:
        raise AxisError(f"filters {w} have 4 dimensions: the count, then those of an image")
    return channels_first(w, "NHWC" if format == "NHWC" else "NCHW")


def _biased(x: Value, bias: Value | None) -> Value:
    if bias is None:
        return x
    return ew(geon.add, x, unsqueeze(reshape(bias, [x.shape[1]]), [1, 2]))


def _check_filters(w: Value, count: int | None, size: Any) -> None:
    for what, stated, found in (
        ("count", count, w.shape[0]),
        ("size", None if size is None else pair(size), tuple(w.shape[2:])),
    ):
        if stated is not None and stated != found:
            raise AxisError(f"the attribute {what}={stated}, and the filters have {found}")


def convolution(
    x: Value, w: Value, bias: Value | None = None, *, groups: int = 1, count: int | None = None,
    size: Any = None, stride: Any = 1, border: Any = 0, dilation: Any = 1,
    format: str | None = None,
) -> Value:  # fmt: skip
    """Return the convolution of images with filters.

    Filters are (count, rows, columns, channels / groups) for the layout NHWC, else (count,
    channels / groups, rows, columns). ``count`` and ``size`` are checked if given.
    """
    layout = format or "NHWC"
    images, filters = channels_first(x, layout), _filters(w, layout)
    _check_filters(filters, count, size)
    slides = slides_of(sizes(filters.shape[2:]), stride, border, dilation)
    return channels_back(_biased(convolve(images, filters, slides, groups), bias), layout, x)


def convolution_transpose(
    x: Value, w: Value, bias: Value | None = None, *, groups: int = 1, size: Any = None,
    stride: Any = 1, border: Any = 0, dilation: Any = 1, output_padding: Any = 0,
    format: str | None = None,
) -> Value:  # fmt: skip
    """Return the transposed convolution by filters whose first dimension is the input channels."""
    layout = format or "NHWC"
    images, filters = channels_first(x, layout), _filters(w, layout)
    _check_filters(filters, None, size)
    slides = slides_of(sizes(filters.shape[2:]), stride, border, dilation)
    lengths = spread_lengths(images.shape[2:], slides, output_padding)
    found = convolve(images, filters, slides, groups, lengths)
    return channels_back(_biased(found, bias), layout, x)


def spread_lengths(lengths: Sequence[Any], slides: Sequence[Slide], padding: Any) -> list[Any]:
    """Return the lengths of a transposed convolution of ``lengths`` rows and columns.

    ``padding`` elements are added at the end: one number, or one for each.
    """
    return [
        (n - 1) * s.stride + s.dilation * (s.length - 1) + 1 - sum(s.pad) + extra
        for n, s, extra in zip(lengths, slides, pair(padding), strict=True)
    ]


def pool(f: Any) -> Any:
    """Return the function that pools images by ``f(tensor, windows)``, as ``geon.max_pool``."""

    def build(
        x: Value, *, size: Any = 2, stride: Any = None, border: Any = 0, format: str | None = None
    ) -> Value:
        """Return a pool over windows; ``stride`` is ``size`` by default."""
        layout = format or "NHWC"
        images = channels_first(x, layout)
        slides = slides_of(size, size if stride is None else stride, border)
        return channels_back(pooled(f, images, dict(enumerate(slides, 2))), layout, x)

    return build


def upsample(
    x: Value, *, type: str = "nearest", scale: Any = 2.0, align_corners: bool = False,
    format: str | None = None,
) -> Value:  # fmt: skip
    """Return images with ``scale`` times as many rows and columns."""
    layout = format or "NHWC"
    factors = scale if isinstance(scale, (list, tuple)) else (scale, scale)
    images = as_array(channels_first(x, layout))
    if type not in ("nearest", "bilinear"):
        raise ArgumentError(f"type={type!r} is neither 'nearest' nor 'bilinear'; give one of them")
    for k in (2, 3):
        images = movement.with_axis(images, k)
    dims = [None if d is None else d.name for d in images.dims]
    lengths: dict[Any, Any] = {dims[k]: int(images.shape[k] * factors[k - 2]) for k in (2, 3)}
    if type == "nearest":
        found = geon.resize(images.tensor, lengths, "nearest", "starts")
    else:
        align = "corners" if align_corners else "centers"
        found = geon.resize(images.tensor, lengths, "linear", align)
    return channels_back(array(found, dims), layout, x)


PADS = {"zero": "constant", "replicate": "edge"}


def pad(x: Value, *, type: str = "zero", begin: Any = (), end: Any = ()) -> Value:
    """Return ``x`` with elements added before and after each dimension: 0, or the outermost."""
    if type not in PADS:
        raise ArgumentError(f"type={type!r} is none of {', '.join(PADS)}")
    rank = len(x.shape)
    before, after = ([*each, *[0] * (rank - len(each))] for each in (begin, end or begin))
    return movement.pad(x, list(zip(before, after, strict=True)), PADS[type], 0)


def format_transform(x: Value, *, to: str = "NCHW", format: str | None = None) -> Value:
    """Return ``x`` with its dimensions in the order of another layout."""
    given = format or "NHWC"
    wanted = {"NHWC", "NCHW", "CHWN"}
    if to not in wanted or len(x.shape) not in (3, 4):
        raise ArgumentError(
            f"{x} from {given} to {to!r}: give 3 or 4 dimensions, and one of {sorted(wanted)}"
        )
    letters = [letter for letter in given if len(x.shape) == 4 or letter != "N"]
    return transpose(x, [letters.index(letter) for letter in to if letter in letters])
