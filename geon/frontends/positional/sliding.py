"""Convolutions, pools and zeros between elements, by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from ...errors import AxisError
from .elementwise import elementwise, expand
from .functions import bounds_of
from .indexing import scatter_tuples
from .movement import Part, slices, with_axis
from .reshaping import reshape, transpose
from .values import PositionalArray, Size, Value, array, as_array, fresh, host, renamed


@dataclass(frozen=True)
class Slide:
    """Windows along a position: their length, steps, and elements before and after.

    ``pad`` is as for ``geon.Window``.
    """

    length: int
    stride: int = 1
    dilation: int = 1
    pad: Any = (0, 0)
    ceil: bool = False


def convolve(
    images: Value,
    filters: Value,
    slides: Sequence[Slide],
    groups: int = 1,
    lengths: Sequence[Size] | None = None,
) -> Value:
    """Return the convolution of images (N, C, ...) with filters (K, C / groups, ...).

    With ``lengths``, those of the result, it is the transposed convolution by filters
    (C, K / groups, ...) instead.
    """
    n, c, *spatial = images.shape
    rank = len(slides)
    if not len(spatial) == rank == len(filters.shape) - 2:
        raise AxisError(f"a convolution of {images} with {filters}: {rank} windows do not fit")
    whole, inner = filters.shape[:2]
    x = as_array(reshape(images, [n, groups, c // groups, *spatial]))
    w = as_array(reshape(filters, [groups, whole // groups, inner, *filters.shape[2:]]))
    for k in range(3, 3 + rank):
        x, w = with_axis(x, k), with_axis(w, k)
    summed, made = (2, 1) if lengths is None else (1, 2)
    # The filters' names: groups and summed channels as in the images, the others apart.
    taken = list(x.tensor.axes.names)
    names: list[str | None] = []
    for k, dim in enumerate(w.dims):
        same = x.dims[1] if k == 0 else x.dims[2] if k == summed else None
        name = None
        if dim is not None:
            name = same.name if same is not None else fresh(dim.name, taken)
            taken.append(name)
        names.append(name)
    w = renamed(w, names)
    at: dict[Any, Any] = {}
    for k, slide in enumerate(slides, 3):
        axis = w.dims[k]
        assert axis is not None
        window = geon.Window(axis, slide.stride, slide.dilation, slide.pad, slide.ceil)
        at[_name(x, k)] = window
    over = [] if x.dims[2] is None else [x.dims[2]]
    if lengths is None:
        tensor = geon.convolution(x.tensor, w.tensor, at, over)
    else:
        wanted = {_name(x, k): length for k, length in enumerate(lengths, 3)}
        tensor = geon.transposed_convolution(x.tensor, w.tensor, at, over, lengths=wanted)  # type: ignore[arg-type]  # names
    dims = [_name(x, 0), _name(x, 1), names[made], *[_name(x, k) for k in range(3, 3 + rank)]]
    found = array(tensor, dims)
    channels = whole if lengths is None else groups * inner
    return reshape(found, [n, channels, *found.shape[3:]])


def pooled(f: Callable[..., geon.Tensor], value: Value, slides: Mapping[int, Slide]) -> Value:
    """Return ``f(tensor, windows)``, such as ``geon.max_pool``, over windows along positions."""
    given = as_array(value)
    for k in slides:
        given = with_axis(given, k)
    at = {
        _name(given, k): geon.Window(s.length, s.stride, s.dilation, s.pad, s.ceil)
        for k, s in slides.items()
    }
    return array(f(given.tensor, at), [None if d is None else d.name for d in given.dims])


def folded_windows(
    f: Callable[..., geon.Tensor], value: Value, slides: Mapping[int, Slide], fill: Any
) -> Value:
    """Return ``f(windows, axes)``, a reduction of each window; outside elements are ``fill``."""
    given = as_array(value)
    for k in slides:
        given = with_axis(given, k)
    taken = list(given.tensor.axes.names)
    at: dict[Any, geon.Window] = {}
    inside: list[str] = []
    for k, s in slides.items():
        inside.append(fresh(f"window_{k}", [*taken, *inside]))
        axis = geon.Axis(inside[-1], s.length)
        at[_name(given, k)] = geon.Window(axis, s.stride, s.dilation, s.pad, s.ceil)
    windows = geon.window(given.tensor, at, fill)
    return array(f(windows, inside), [None if d is None else d.name for d in given.dims])


def extreme_places(
    f: Callable[..., geon.Tensor], value: Value, slides: Mapping[int, Slide], fill: Any
) -> Value:
    """Return the number of the first extreme of each window among its elements.

    ``f`` is ``geon.argmax`` or ``geon.argmin``.
    """
    return folded_windows(lambda t, inside: f(_flat(t, inside), "place"), value, slides, fill)


def elements_at(value: Value, places: Value, slides: Mapping[int, Slide], fill: Any) -> Value:
    """Return the element of each window with these numbers, those of ``extreme_places``.

    Axes of ``value`` have the names that they have in ``places``.
    """
    index = as_array(places).tensor
    found = folded_windows(
        lambda t, inside: geon.gather(_flat(t, inside), index, "place"), value, slides, fill
    )
    return array(as_array(found).tensor, as_array(places).dims)


def _flat(windows: geon.Tensor, inside: Sequence[str]) -> geon.Tensor:
    return geon.flatten(windows, list(inside), geon.Axis("place"))


def first_largest(images: Value, slides: Mapping[int, Slide], column_major: bool = False) -> Value:
    """Return the index, within its image, of the first largest element of each window.

    Images are over the positions of ``slides``; their elements are numbered in row-major order.
    """
    given = as_array(images)
    for k in slides:
        given = with_axis(given, k)
    index: Value = host(0, "int64")
    for at in sorted(slides, reverse=column_major):
        dims = tuple([dim if k == at else None for k, dim in enumerate(given.dims)])
        line = PositionalArray(geon.iota(dims[at]), dims)  # type: ignore[arg-type]  # with_axis gave it one
        index = elementwise(lambda i, k, n: i * n + k, index, line, host(given.shape[at], "int64"))
    low = geon.constant(bounds_of(given.dtype)[0], dtype=given.dtype)
    return elements_at(index, extreme_places(geon.argmax, given, slides, low), slides, 0)


def summed_columns(x: Value, image: Sequence[int], slides: Sequence[Slide]) -> Value:
    """Return images that are sums of blocks, the columns of ``x`` (N, C * block, blocks)."""
    rank = len(image)
    flat, inside = np.zeros((), np.int64), np.ones((), bool)
    for k, (length, s) in enumerate(zip(image, slides, strict=True)):
        count = (length + sum(s.pad) - s.dilation * (s.length - 1) - 1) // s.stride + 1
        place = s.stride * np.arange(count) + s.dilation * np.arange(s.length)[:, None] - s.pad[0]
        # Positions: those inside of a block, then the blocks.
        shape = [1] * (2 * rank)
        shape[k], shape[rank + k] = place.shape
        place = place.reshape(shape)
        inside = inside & (place >= 0) & (place < length)
        flat = flat * length + place
    n, c = x.shape[0], x.shape[1] // math.prod(s.length for s in slides)
    size = math.prod(image)
    index = np.where(inside, flat, size).reshape(-1, 1)
    elements = transpose(reshape(x, [n * c, len(index)]), [1, 0])
    zeros = expand(host(np.zeros((), x.dtype)), [size + 1, n * c])
    sums = scatter_tuples(zeros, host(index), elements, "add")
    return reshape(transpose(slices(sums, {0: Part(0, size)}), [1, 0]), [n, c, *image])


def spread(value: Value, position: int, step: int, fill: Any = 0) -> Value:
    """Return the elements along a position ``step`` apart, with ``fill`` between them."""
    if step == 1:
        return value
    given = with_axis(as_array(value), position)
    dim = given.dims[position]
    assert dim is not None
    gap = geon.Axis(fresh("gap", given.tensor.axes.names), 1)
    wide = geon.pad(geon.expand(given.tensor, gap), {gap: (0, step - 1)}, value=fill)
    length = dim.expression
    tensor = geon.flatten(wide, [dim.name, gap.name], geon.Axis(dim.name, length * step))
    whole = PositionalArray(
        tensor, tuple([None if d is None else tensor.axes[d.name] for d in given.dims])
    )
    return slices(whole, {position: Part(0, (length - 1) * step + 1)})


def _name(value: PositionalArray, position: int) -> str | None:
    dim = value.dims[position]
    return None if dim is None else dim.name
