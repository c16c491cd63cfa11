"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError, AxisError
from ....positional.elementwise import elementwise, expand
from ....positional.movement import with_axis
from ....positional.reductions import reduce
from ....positional.reshaping import reshape, unsqueeze
from ....positional.values import PositionalArray, Value, array, as_array, fresh, host, renamed
from ...node import NodeInfo
from ...table import row
from ..common import channels

FILTERS = "K"
KERNEL = "RSTUV"  # names of the positions inside of a filter, in order


def windows(
    lengths: Sequence[Any],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil: bool = False,
) -> list[geon.Window]:
    """Return the windows along spatial positions of these lengths."""
    rank = len(lengths)
    stride = list(strides or [1] * rank)
    dilation = list(dilations or [1] * rank)
    pad = list(pads or [0] * (2 * rank))
    if not len(kernel) == len(stride) == len(dilation) == rank or len(pad) != 2 * rank:
        raise AxisError(
            f"windows over {rank} positions: kernel_shape {list(kernel)}, strides {stride}, "
            f"dilations {dilation} and pads {pad} do not fit"
        )
    found = []
    for k, length in enumerate(lengths):
        both: Any = (pad[k], pad[k + rank])
        if auto_pad == "VALID":
            both = (0, 0)
        elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            both = _same(length, kernel[k], stride[k], dilation[k], auto_pad == "SAME_LOWER")
        found.append(geon.Window(int(kernel[k]), stride[k], dilation[k], both, ceil))
    return found


def _same(length: Any, kernel: int, stride: int, dilation: int, lower: bool) -> Any:
    """Return the padding that gives one window for each ``stride`` elements."""
    reach = dilation * (kernel - 1) + 1
    if isinstance(length, int):
        total = max((-(-length // stride) - 1) * stride + reach - length, 0)
    elif stride == 1:
        total = reach - 1
    elif lower:
        raise ArgumentError("SAME_LOWER with a stride along an open length; give the length")
    else:
        return "same"
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


def convolution(
    x: Value,
    w: Value,
    bias: Value | None = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Return the convolution of images with filters, in groups of channels."""
    rank = len(x.shape)
    if len(w.shape) != rank or rank < 3:
        raise AxisError(
            f"a convolution of {x} with filters {w}: both need the same rank, 3 or more"
        )
    kernel = [int(n) for n in w.shape[2:]]
    if kernel_shape is not None and list(kernel_shape) != kernel:
        raise AxisError(f"kernel_shape is {list(kernel_shape)}, and the filters are {w}")
    if w.shape[1] * group != x.shape[1] and isinstance(x.shape[1], int):
        raise AxisError(
            f"a convolution of {x} with filters {w} in {group} groups: the filters read "
            f"{w.shape[1] * group} channels"
        )
    images = as_array(x)
    names = [geon.Axis(FILTERS), images.dims[1], *[geon.Axis(n) for n in KERNEL[: rank - 2]]]
    filters = as_array(w, names)
    result = grouped(images, filters, group, kernel, strides, dilations, pads, auto_pad)
    return result if bias is None else elementwise(geon.add, result, channels(bias, rank))


def grouped(
    images: PositionalArray,
    filters: PositionalArray,
    group: int,
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Value:
    """Convolve each group of channels with its filters."""
    n, c, *lengths = images.shape
    k, inner = filters.shape[:2]
    x = spatial_from(as_array(reshape(images, [n, group, c // group, *lengths])), 3)
    w = spatial_from(as_array(reshape(filters, [group, k // group, inner, *kernel])), 3)
    used = list(x.tensor.axes.names)
    places = [_name(x, 1), None, _name(x, 2)]
    for position, dim in enumerate(w.dims):
        if position == 1 or position > 2:
            name = None if dim is None else fresh(dim.name, used)
            used += [] if name is None else [name]
            places[position : position + 1] = [name]
    own = [None if dim is None else name for dim, name in zip(w.dims, places, strict=True)]
    w = renamed(w, own)
    made = windows(lengths, kernel, strides, dilations, pads, auto_pad)
    at: dict[Any, Any] = {}
    for position, window in enumerate(made, 3):
        axis = w.dims[position]
        assert axis is not None
        at[_name(x, position) or ""] = geon.Window(
            axis, window.stride, window.dilation, window.pad, window.ceil
        )
    over = [] if x.dims[2] is None else [x.dims[2]]
    result = geon.convolution(x.tensor, w.tensor, at, over)
    dims = [_name(x, 0), _name(x, 1), places[1], *[_name(x, p) for p in range(3, len(x.dims))]]
    whole = array(result, dims)
    return reshape(whole, [n, k, *whole.shape[3:]])


def spatial_from(value: PositionalArray, first: int) -> PositionalArray:
    """Return an array with an axis at each position from ``first`` on."""
    for k in range(first, len(value.dims)):
        value = with_axis(value, k)
    return value


def _name(value: PositionalArray, position: int) -> str | None:
    dim = value.dims[position]
    return None if dim is None else dim.name


def pooled(f: Any, x: Value, made: Sequence[geon.Window], **options: Any) -> Value:
    """Return ``f(tensor, windows)`` over the spatial positions."""
    given = spatial_from(as_array(x), 2)
    at = {_name(given, k): window for k, window in enumerate(made, 2)}
    names = [None if dim is None else dim.name for dim in given.dims]
    return array(f(given.tensor, at, **options), names)


def max_pool(
    x: Value,
    /,
    *,
    node: NodeInfo,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> tuple[Value, ...]:
    """Return the largest element of each window, and its number in the whole tensor.

    Numbers are row-major, or with a ``storage_order`` column-major among spatial positions.
    """
    made = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    result = pooled(geon.max_pool, x, made)
    if not node.wants(1):
        return (result,)
    first = reshape(_first_of_largest(x, made), result.shape)
    spots: list[Value] = []
    for k, window in reversed(list(enumerate(made))):
        at, first = (
            elementwise(f, first, host(int(kernel_shape[k]), "int64"))
            for f in (geon.mod, geon.floordivide)
        )
        if not isinstance(window.pad, tuple):
            raise ArgumentError(f"indices of a max pool of {x}: its lengths must be known")
        start = counted(result, k + 2)
        stride, dilation, before = window.stride, window.dilation, window.pad[0]
        spots.insert(
            0,
            elementwise(
                lambda s, a, m=(stride, dilation, before): s * m[0] + a * m[1] - m[2], start, at
            ),
        )
    axes = [*range(2, len(x.shape))][:: -1 if storage_order else 1]
    places = {0: counted(result, 0), 1: counted(result, 1), **dict(enumerate(spots, 2))}
    number: Value = host(0, "int64")
    for k in [0, 1, *axes]:
        length = host(x.shape[k], "int64")
        number = elementwise(lambda f, n, i: f * n + i, number, length, places[k])
    return (result, expand(number, result.shape))


def counted(value: Value, k: int) -> Value:
    """Return the numbers of the elements along a position, aligned with the value."""
    line = geon.Axis("count", value.shape[k])
    return unsqueeze(array(geon.iota(line), [line]), range(1, len(value.shape) - k))


def _first_of_largest(x: Value, made: Sequence[geon.Window]) -> Value:
    """Return the number of the first largest element of each window among its positions."""
    lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    given = spatial_from(as_array(x), 2)
    at = {_name(given, k): window for k, window in enumerate(made, 2)}
    wide = geon.window(given.tensor, at, lowest)  # type: ignore[arg-type]  # spatial_from gave names
    inner = tuple(wide.axes)[-len(made) :]
    line = geon.Axis(fresh("inner", wide.axes.names))
    found = geon.argmax(geon.flatten(wide, inner, line), line)
    return array(found, [None if dim is None else dim.name for dim in given.dims])


def average_pool(
    x: Value,
    /,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Return the mean of each window."""
    made = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    return pooled(geon.average_pool, x, made, count_pad=bool(count_include_pad))


def lp_pool(
    x: Value,
    /,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: float = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Return the p-norm of each window."""
    made = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    return pooled(geon.lp_pool, x, made, p=p)


def global_lp_pool(x: Value, /, *, p: float = 2) -> Value:
    """Return the p-norm of whole images."""

    def norm(t: geon.Tensor, axes: Any) -> geon.Tensor:
        return geon.sum(geon.absolute(t) ** p, axes) ** (1 / p)

    return reduce(norm, x, range(2, len(x.shape)))


def global_pool(f: Any) -> Any:
    """Return the builder of a pool over whole images."""

    def build(x: Value, /) -> Value:
        return reduce(f, x, range(2, len(x.shape)))

    return build


ROWS = [
    row("Conv", convolution),
    row("MaxPool", max_pool),
    row("AveragePool", average_pool),
    row("LpPool", lp_pool),
    row("GlobalLpPool", global_lp_pool),
    row("GlobalAveragePool", global_pool(geon.mean)),
    row("GlobalMaxPool", global_pool(geon.max)),
]
