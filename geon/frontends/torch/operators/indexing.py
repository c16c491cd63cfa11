"""Gather, scatter, embeddings and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import Length, product
from ...positional import functions
from ...positional.elementwise import elementwise, expand
from ...positional.functions import bounds_of, order_along, running, take_along
from ...positional.indexing import gather_elements, scatter_elements
from ...positional.movement import Part, flip, slices
from ...positional.picking import gather_at, scatter_at
from ...positional.programs import cast, value_of
from ...positional.reshaping import reshape, transpose, unsqueeze
from ...positional.values import Value, host, position
from .common import Builder, Rows, filled
from .reductions import argument_along, extreme_over

Indices = Sequence[Value | None]


def index_tensors(x: Value, indices: Indices) -> Value:
    """Return the elements at index tensors along some dimensions, as ``x[i, :, j]`` does."""
    at = _checked(x, indices)
    return transpose(gather_at(x, at), _order(at, len(x.shape)))


def put_tensors(x: Value, indices: Indices, values: Value, accumulate: bool = False) -> Value:
    """Return ``x`` with values set at, or added to, the elements at index tensors."""
    if all(index is None or index.dtype.kind == "b" for index in indices):
        return _put_masked(x, indices, values, accumulate)
    at = _checked(x, indices)
    order = _order(at, len(x.shape))
    shown = unsqueeze(values, range(len(order) - len(values.shape)))
    back = sorted(range(len(order)), key=order.__getitem__)
    return scatter_at(x, at, transpose(shown, back), "add" if accumulate else "set")


def _checked(x: Value, indices: Indices) -> dict[int, Value]:
    at = {k: index for k, index in enumerate(indices) if index is not None}
    if any(index.dtype.kind == "b" for index in at.values()):
        raise ArgumentError(
            f"{x} is indexed by a mask, so that the result's shape depends on its elements; use "
            "torch.where"
        )
    return at


def _put_masked(x: Value, indices: Indices, values: Value, accumulate: bool) -> Value:
    """Set elements where a mask is true, which needs a value that is the same for all of them."""
    mask = indices[0]
    if mask is None or len(indices) != 1 or product(values.shape) != 1:
        raise ArgumentError("elements where a mask is true are set to several values")
    single = reshape(cast(values, x.dtype), [])
    new = elementwise(geon.add, x, single) if accumulate else single
    shown = unsqueeze(mask, range(len(mask.shape), len(x.shape)))
    return expand(elementwise(geon.where, shown, new, x), x.shape)


def _order(at: dict[int, Value], whole: int) -> list[int]:
    """Return the order of dimensions that moves those of indices from the front to their place.

    That is the place of the first index, or the front if there are others between them.
    """
    rank = max(len(index.shape) for index in at.values())
    keys = sorted(at)
    first = keys[0] if keys == list(range(keys[0], keys[0] + len(keys))) else 0
    rest = list(range(rank, rank + whole - len(at)))
    return [*rest[:first], *range(rank), *rest[first:]]


def _as_vector(x: Value) -> Value:
    return x if x.shape else unsqueeze(x, [0])


def gather_along(x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    """Return ``x[i][index[i][j]]`` along a dimension; other dimensions of the index are shorter."""
    shape, x, index = index.shape, _as_vector(x), _as_vector(index)
    found = gather_elements(x, index, dim)
    return found if shape else reshape(found, [])


def scatter_along(mode: str) -> Builder:
    """Return the builder that combines a tensor with values at an index along a dimension."""

    def build(x: Value, dim: int, index: Value, source: Any) -> Value:
        shape, x, index = x.shape, _as_vector(x), _as_vector(index)
        values = value_of(source, x.dtype)
        if values.shape:
            values = slices(values, {k: Part(0, n) for k, n in enumerate(index.shape)})
        at = position(dim, len(x.shape))
        found = scatter_elements(x, index, expand(values, index.shape), at, mode)
        return found if shape else reshape(found, [])

    return build


MODES = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def scatter_reduced(
    x: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    """Return ``x`` combined with values at an index; without itself if not ``include_self``."""
    if reduce == "mean":
        total = scatter_reduced(x, dim, index, source, "sum", include_self=include_self)
        ones = filled(int(include_self), x.shape, x.dtype)
        added = filled(1, source.shape, x.dtype)
        count = scatter_along("add")(ones, dim, index, added)
        divide = geon.floordivide if x.dtype.kind in "iu" else geon.divide
        return elementwise(lambda t, n: divide(t, geon.maximum(n, 1)), total, count)
    if not include_self:
        low, high = bounds_of(x.dtype)
        neutral = {"sum": 0, "prod": 1, "amax": low, "amin": high}[reduce]
        x = scatter_along("set")(x, dim, index, host(neutral, x.dtype))
    return scatter_along(MODES[reduce])(x, dim, index, source)


def select_indices(x: Value, dim: int, index: Value) -> Value:
    """Return the elements at a vector of indices along a dimension."""
    vector = _as_vector(x)
    at = {position(dim, len(vector.shape)): index}
    return transpose(gather_at(vector, at), _order(at, len(vector.shape)))


def embedding(
    weight: Value, index: Value, padding: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Value:
    """Return the rows of a table at indices; that of ``padding`` has no derivative."""
    rows = gather_at(weight, {0: index})
    if padding < 0:
        return rows
    is_padding = elementwise(geon.equal, cast(index, "int64"), host(padding, "int64"))
    shown = unsqueeze(is_padding, [len(index.shape)])
    return elementwise(lambda p, t: geon.where(p, geon.stop_gradient(t), t), shown, rows)


def masked_scatter(x: Value, mask: Value, source: Value) -> Value:
    """Return ``x`` with the elements where the mask is true replaced by those of ``source``."""
    mask = expand(mask, x.shape)
    line = reshape(cast(mask, "int64"), [product(x.shape)])
    before = running(geon.cumsum, line, 0, exclusive=True)
    last = host(product(source.shape) - 1, "int64")
    values = gather_at(
        reshape(source, [product(source.shape)]), {0: elementwise(geon.minimum, before, last)}
    )
    return elementwise(geon.where, mask, reshape(values, x.shape), x)


def sort(x: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """Return the elements in order along a dimension, and their indices; stable."""
    vector = _as_vector(x)
    at = position(dim, len(vector.shape))
    order = order_along(flip(vector, [at]) if descending else vector, at)
    if descending:  # the stable order of the reversed elements, reversed
        last = host(vector.shape[at] - 1, "int64")
        order = flip(elementwise(geon.subtract, last, order), [at])
    found = take_along(vector, order, at), order
    return found if x.shape else (x, reshape(order, []))


def top_k(
    x: Value, k: Any, dim: int = -1, largest: bool = True, is_sorted: bool = True
) -> tuple[Value, Value]:
    """Return the ``k`` largest or smallest elements along a dimension, and their indices."""
    if isinstance(k, Length):
        raise ArgumentError(f"top_k of {k} elements: their number must be known")
    if x.shape:
        return functions.top_k(x, k, dim, largest)
    return sort(x, dim, largest)


def extreme_along(f: Callable[..., Any], arg: Callable[..., Any]) -> Builder:
    """Return the builder of the extreme along a dimension, and its index."""
    return lambda x, dim, keepdim=False: (
        extreme_over(f)(x, dim, keepdim), argument_along(arg)(x, dim, keepdim)
    )  # fmt: skip


def cumulative(f: Callable[..., Any]) -> Builder:
    """Return the builder of running sums or products along a dimension."""

    def build(x: Value, dim: int, *, dtype: Any = None, result: Any) -> Value:
        x = cast(x, result.dtype)
        return running(f, x, dim) if x.shape else x

    return build


ROWS: Rows = {
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
    "sort": sort,
    "sort.stable": lambda x, *, stable=None, dim=-1, descending=False: sort(x, dim, descending),
    "topk": top_k,
    "max.dim": extreme_along(geon.max, geon.argmax),
    "min.dim": extreme_along(geon.min, geon.argmin),
    "cumsum": cumulative(geon.cumsum),
    "cumprod": cumulative(geon.cumprod),
}
