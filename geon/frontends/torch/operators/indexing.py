"""Gather, scatter, embeddings and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import Length
from ...positional.elementwise import elementwise, expand
from ...positional.movement import Part, flip, slices, with_axis
from ...positional.picking import gather_at, numbers, scatter_at
from ...positional.programs import cast
from ...positional.reshaping import transpose, unsqueeze
from ...positional.values import Value, array, as_array, host, position
from .common import filled, value_of

Indices = Sequence[Value | None]


def index_tensors(x: Value, indices: Indices) -> Value:
    """Return the elements at index tensors along some dimensions, as ``x[i, :, j]`` does."""
    at = _checked(x, indices)
    found = gather_at(x, at)
    rank = max(len(index.shape) for index in at.values())
    return _placed(found, at, rank, len(x.shape))


def put_tensors(x: Value, indices: Indices, values: Value, accumulate: bool = False) -> Value:
    """Return ``x`` with values set at, or added to, the elements at index tensors."""
    if all(index is None or index.dtype.kind == "b" for index in indices):
        return _put_masked(x, indices, values, accumulate)
    at = _checked(x, indices)
    rank = max(len(index.shape) for index in at.values())
    whole = rank + len(x.shape) - len(at)
    wide = unsqueeze(values, list(range(whole - len(values.shape))))
    order = list(range(whole))
    first = _first(at)
    moved = [*order[first : first + rank], *order[:first], *order[first + rank :]]
    mode = "add" if accumulate else "set"
    return scatter_at(x, at, transpose(wide, moved), mode)


def _checked(x: Value, indices: Indices) -> dict[int, Value]:
    at = {k: index for k, index in enumerate(indices) if index is not None}
    if any(index.dtype.kind == "b" for index in at.values()):
        raise ArgumentError(
            f"{x} is indexed by a mask, so that the result's shape depends on its elements; use "
            "torch.where"
        )
    return at


def _put_masked(x: Value, indices: Indices, values: Value, accumulate: bool) -> Value:
    """Set elements where masks are true, which needs values that are the same for all of them."""
    masks = [index for index in indices if index is not None]
    if len(masks) != 1 or indices[0] is None or int(np.prod([1, *map(_one, values.shape)])) != 1:
        raise ArgumentError("elements where a mask is true are set to several values")
    mask = unsqueeze(masks[0], range(len(masks[0].shape), len(x.shape)))
    single = cast(values, x.dtype)
    single = single if not single.shape else as_array(_first_element(single))
    new = elementwise(geon.add, x, single) if accumulate else single
    return expand(elementwise(geon.where, mask, new, x), x.shape)


def _one(length: Any) -> int:
    return length if isinstance(length, int) else 2


def _first_element(value: Value) -> Value:
    from ...positional.reshaping import reshape

    return reshape(value, [])


def _first(at: dict[int, Value]) -> int:
    """Return the place of the indices' dimensions: that of the first, or 0 if they are apart."""
    keys = sorted(at)
    return keys[0] if keys == list(range(keys[0], keys[0] + len(keys))) else 0


def _placed(found: Value, at: dict[int, Value], rank: int, whole: int) -> Value:
    """Move the indices' dimensions from the front to their place."""
    first = _first(at)
    rest = list(range(rank, rank + whole - len(at)))
    return transpose(found, [*rest[:first], *range(rank), *rest[first:]])


def _as_vector(x: Value) -> Value:
    return x if x.shape else unsqueeze(x, [0])


def _cut(x: Value, index: Value, dim: int) -> Value:
    """Return the part of ``x`` that an index of smaller lengths reads."""
    uneven = {k: Part(0, n) for k, n in enumerate(index.shape) if k != dim and n != x.shape[k]}
    return slices(x, uneven) if uneven else x


def gather_along(x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    """Return ``x[i][index[i][j]]`` along a dimension."""
    shape = index.shape
    x, index = _as_vector(x), _as_vector(index)
    at = position(dim, len(x.shape))
    batch = {k: k for k in range(len(x.shape)) if k != at}
    found = gather_at(_cut(x, index, at), {at: index}, batch)
    return found if shape else _first_element(found)


def scatter_along(mode: str) -> Callable[..., Value]:
    """Return the builder that combines a tensor with values at an index along a dimension."""

    def build(x: Value, dim: int, index: Value, source: Any, *, reduce: str | None = None) -> Value:
        used = {None: mode, "add": "add", "multiply": "multiply"}[reduce]
        shape = x.shape
        x, index = _as_vector(x), _as_vector(index)
        at = position(dim, len(x.shape))
        values = _as_vector(value_of(source, x.dtype))
        if len(values.shape) == len(index.shape) and values.shape != (1,):
            values = slices(values, {k: Part(0, n) for k, n in enumerate(index.shape)})
        batch = {k: k for k in range(len(x.shape)) if k != at}
        if _cut(x, index, at) is not x:
            return _scatter_part(x, at, index, values, used)
        return _shaped(scatter_at(x, {at: index}, values, used, batch), shape)

    return build


def _shaped(x: Value, shape: Sequence[Any]) -> Value:
    return x if len(x.shape) == len(shape) else _first_element(x)


def _scatter_part(x: Value, at: int, index: Value, values: Value, mode: str) -> Value:
    """Scatter where the index is smaller than ``x`` along further dimensions."""
    rank = len(x.shape)
    indices = {k: numbers(index.shape[k], rank, k) for k in range(rank) if k != at}
    return scatter_at(x, {**indices, at: index}, values, mode)


def scatter_reduced(
    x: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    """Return ``x`` combined with values at an index; without itself if not ``include_self``."""
    modes = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}
    if reduce == "mean":
        total = scatter_reduced(x, dim, index, source, "sum", include_self=include_self)
        ones = filled(1, source.shape, x.dtype)
        zero = filled(1 if include_self else 0, x.shape, x.dtype)
        count = scatter_along("add")(zero, dim, index, ones)
        return elementwise(
            lambda t, n: t / geon.maximum(n, 1) if t.dtype.kind not in "iu"
            else geon.floordivide(t, geon.maximum(n, 1)), total, count
        )  # fmt: skip
    if not include_self:
        x = scatter_along("set")(x, dim, index, host(_identity(reduce, x.dtype), x.dtype))
    return scatter_along(modes[reduce])(x, dim, index, source)


def _identity(reduce: str, dtype: np.dtype[Any]) -> Any:
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    low, high = (
        (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-np.inf, np.inf)
    )
    return low if reduce == "amax" else high


def select_indices(x: Value, dim: int, index: Value) -> Value:
    """Return the elements at a vector of indices along a dimension."""
    at = position(dim, max(len(x.shape), 1))
    found = gather_at(_as_vector(x), {at: index})
    return _placed(found, {at: index}, len(index.shape), max(len(x.shape), 1))


def embedding(
    weight: Value, index: Value, padding: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Value:
    """Return the rows of a table at indices; that of ``padding`` has no derivative."""
    rows = gather_at(weight, {0: index})
    if padding < 0:
        return rows
    padded = unsqueeze(elementwise(geon.equal, cast(index, "int64"), host(padding, "int64")),
                       [len(index.shape)])  # fmt: skip
    return elementwise(lambda p, t: geon.where(p, geon.stop_gradient(t), t), padded, rows)


def embedding_backward(
    gradient: Value, index: Value, count: int, padding: int, by_frequency: bool
) -> Value:
    """Return the derivative of ``embedding`` with respect to the table."""
    if by_frequency:
        raise ArgumentError("gradients of an embedding by frequency")
    zero = filled(0, [count, gradient.shape[-1]], gradient.dtype)
    if padding >= 0:
        live = elementwise(geon.not_equal, cast(index, "int64"), host(padding, "int64"))
        mask = unsqueeze(live, [len(index.shape)])
        gradient = elementwise(lambda m, g: geon.where(m, g, 0 * g), mask, gradient)
    return scatter_at(zero, {0: index}, gradient, "add")


def masked_scatter(x: Value, mask: Value, source: Value) -> Value:
    """Return ``x`` with the elements where the mask is true replaced by those of ``source``."""
    from ....op_graph.axes.lengths import product
    from ...positional.reshaping import reshape

    mask = expand(mask, x.shape)
    given = as_array(mask)
    line = as_array(reshape(given, [product(given.shape)]))
    dim = line.dims[0]
    if dim is None:
        order: Value = host([0], "int64")
    else:
        counts = geon.cumsum(geon.cast(line.tensor, "int64"), dim) - 1
        order = array(geon.maximum(counts, 0), [dim])
    values = gather_at(reshape(source, [product(source.shape)]), {0: order})
    return elementwise(geon.where, mask, reshape(values, x.shape), x)


def sort(x: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """Return the elements in order along a dimension, and their indices; stable."""
    if not x.shape:
        return x, host(0, "int64")
    at = position(dim, len(x.shape))
    given = with_axis(as_array(flip(x, [at]) if descending else x), at)
    order: Value = array(geon.argsort(given.tensor, given.dims[at]), given.dims)
    if descending:  # the stable order of the reversed elements, reversed
        last = host(x.shape[at] - 1, "int64")
        order = flip(elementwise(geon.subtract, last, order), [at])
    batch = {k: k for k in range(len(x.shape)) if k != at}
    return gather_at(x, {at: order}, batch), order


def sort_stable(
    x: Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Value, Value]:
    """Return ``sort``, which is stable anyway."""
    return sort(x, dim, descending)


def top_k(
    x: Value, k: Any, dim: int = -1, largest: bool = True, is_sorted: bool = True
) -> tuple[Value, Value]:
    """Return the ``k`` largest or smallest elements along a dimension, and their indices."""
    if isinstance(k, Length):
        raise ArgumentError(f"top_k of {k} elements: their number must be known")
    if not x.shape:
        return x, host(0, "int64")
    at = position(dim, len(x.shape))
    given = with_axis(as_array(x), at)
    axis = given.dims[at]
    if largest and axis is not None:
        values, index = geon.top_k(given.tensor, k, axis)
        return array(values, given.dims), array(index, given.dims)
    found = sort(x, at)
    return slices(found[0], {at: Part(0, k)}), slices(found[1], {at: Part(0, k)})


def extreme_along(f: Callable[..., Any], arg: Callable[..., Any]) -> Callable[..., Any]:
    """Return the builder of the extreme along a dimension, and its index."""

    def build(x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        from .reductions import argument, extreme

        return extreme(f)(x, [dim], keepdim), argument(arg)(x, dim, keepdim)

    return build


def cumulative(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of running sums or products along a dimension."""

    def build(x: Value, dim: int, *, dtype: Any = None, result: Any) -> Value:
        x = cast(x, result.dtype)
        if not x.shape:
            return x
        given = as_array(x)
        axis = given.dims[position(dim, len(x.shape))]
        return x if axis is None else array(f(given.tensor, axis), given.dims)

    return build


ROWS: dict[str, Callable[..., Any]] = {
    "index.Tensor": index_tensors,
    "index_put": put_tensors,
    "index_select": select_indices,
    "gather": gather_along,
    "scatter.src": scatter_along("set"),
    "scatter.value": scatter_along("set"),
    "scatter_add": scatter_along("add"),
    "scatter_reduce.two": scatter_reduced,
    "masked_scatter": masked_scatter,
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
    "sort": sort,
    "sort.stable": sort_stable,
    "topk": top_k,
    "max.dim": extreme_along(geon.max, geon.argmax),
    "min.dim": extreme_along(geon.min, geon.argmin),
    "cumsum": cumulative(geon.cumsum),
    "cumprod": cumulative(geon.cumprod),
}
