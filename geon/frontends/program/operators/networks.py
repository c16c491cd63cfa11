"""Operators of networks: convolutions, pools, normalisation, embeddings, recurrent units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise, expand
from ...positional.indexing import gather
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.reshaping import reshape, unsqueeze
from ...positional.sliding import Slide, convolve, pooled
from ...positional.values import Value, position
from ..values import SelectedRows, chosen
from .rows import INT, Function, Row, matched


def spread(numbers: Sequence[int], rank: int) -> list[int]:
    """Return one number for each of ``rank`` dimensions; a single one stands for all."""
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def by_channel(x: Value, rank: int) -> Value:
    """Return a vector of channels with the positions of images (N, C, ...) after it."""
    return unsqueeze(x, range(1, rank - 1)) if rank > 2 else x


def convolution(rank: int, is_transposed: bool = False, is_depthwise: bool = False) -> Function:
    """Return the function of a convolution operator on ``rank`` spatial positions."""

    def build(
        x: Value, w: Value, bias: Value | None, *,
        strides: Any = (1,), paddings: Any = (0,), dilations: Any = (1,), groups: int = 1,
    ) -> Value:  # fmt: skip
        options = matched(rank, strides=spread(strides, rank), dilations=spread(dilations, rank),
                          paddings=spread(paddings, rank))  # fmt: skip
        lengths = [int(n) for n in w.shape[2:]]
        slides = [Slide(n, s, d, (p, p)) for n, (s, d, p) in zip(lengths, options, strict=True)]
        wide = [
            (n - 1) * s.stride + s.dilation * (s.length - 1) + 1 - 2 * s.pad[0]
            for n, s in zip(x.shape[2:], slides, strict=True)
        ]
        count = int(x.shape[1]) if is_depthwise else groups
        found = convolve(x, w, slides, count, wide if is_transposed else None)
        return found if bias is None else elementwise(geon.add, found, by_channel(bias, rank + 2))

    return build


def pool(rank: int) -> Function:
    """Return the function of a pooling operator on ``rank`` spatial positions."""

    def build(
        x: Value, *, pooling_type: str = "max", ksize: Any = (2,), strides: Any = (1,),
        paddings: Any = (0,), global_pooling: bool = False, ceil_mode: bool = False,
        exclusive: bool = True,
    ) -> Value:  # fmt: skip
        is_max = pooling_type == "max"
        if global_pooling:
            return reduce(geon.max if is_max else geon.mean, x, range(2, rank + 2))
        options = matched(rank, ksize=spread(ksize, rank), strides=spread(strides, rank),
                          paddings=spread(paddings, rank))  # fmt: skip
        slides = {k: Slide(n, s, 1, (p, p), ceil_mode) for k, (n, s, p) in enumerate(options, 2)}
        if is_max:
            return pooled(geon.max_pool, x, slides)
        return pooled(lambda t, w: geon.average_pool(t, w, count_pad=not exclusive), x, slides)

    return build


def normal(x: Value, found: Sequence[Value], epsilon: float, *affine: Value | None) -> Value:
    """Return x of a mean and variance with mean 0 and variance 1, scaled, plus a bias."""
    x = elementwise(lambda t, m, v: (t - m) * geon.rsqrt(v + epsilon), x, *found)
    for f, value in zip((geon.multiply, geon.add), affine, strict=False):
        x = x if value is None else elementwise(f, x, value)
    return x


def moments(x: Value, at: Sequence[int]) -> tuple[Value, Value]:
    """Return the mean and the variance over positions, which stay with length 1."""
    return reduce(geon.mean, x, at), reduce(geon.variance, x, at)


def batch_norm(
    x: Value, scale: Value, bias: Value, mean: Value, variance: Value, *,
    momentum: float = 0.9, epsilon: float = 1e-5, is_test: bool = False,
) -> tuple[Value, ...]:  # fmt: skip
    """Return channels with mean 0 and variance 1, scaled; and the running statistics."""
    rank, used, kept = len(x.shape), [mean, variance], [mean, variance]
    if not is_test:
        used = [reshape(each, mean.shape) for each in moments(x, [0, *range(2, rank)])]
        kept = [
            elementwise(lambda o, n: momentum * o + (1 - momentum) * n, *pair)
            for pair in zip(kept, used, strict=True)
        ]
    parts = [by_channel(each, rank) for each in (*used, scale, bias)]
    return (normal(x, parts[:2], epsilon, *parts[2:]), *kept, *used)


def layer_norm(
    x: Value, scale: Value | None, bias: Value | None, *,
    begin_norm_axis: int = 1, epsilon: float = 1e-5,
) -> tuple[Value, ...]:  # fmt: skip
    """Return rows with mean 0 and variance 1 over positions from begin_norm_axis on, scaled."""
    first = position(begin_norm_axis, len(x.shape))
    found = moments(x, range(first, len(x.shape)))
    parts = [v if v is None else reshape(v, x.shape[first:]) for v in (scale, bias)]
    flat = [reshape(each, [product(x.shape[:first])]) for each in found]
    return (normal(x, found, epsilon, *parts), *flat)


def grouped(x: Value, count: int) -> list[Any]:
    """Return the shape of x (N, C, ...) with its channels as ``count`` groups."""
    n, channels, *rest = x.shape
    if channels % count:
        raise ArgumentError(f"{channels} channels of {x} are no multiple of {count} groups")
    return [n, count, channels // count, *rest]


def group_norm(
    x: Value, scale: Value | None, bias: Value | None, *, groups: int = 1, epsilon: float = 1e-5
) -> Value:
    """Return groups of channels with mean 0 and variance 1, scaled by channel."""
    shape = grouped(x, groups)
    found = [expand(v, shape) for v in moments(reshape(x, shape), range(2, len(shape)))]
    parts = [v if v is None else by_channel(v, len(x.shape)) for v in (scale, bias)]
    return normal(x, [reshape(v, x.shape) for v in found], epsilon, *parts)


def unpadded(rows: Value, index: Value, padding_idx: int) -> Value:
    """Return rows, with zeros where the index is ``padding_idx``."""
    is_word = elementwise(lambda i: geon.not_equal(i, padding_idx), index)
    return rows if padding_idx < 0 else chosen(is_word, rows, 0)


def lookup_table(w: Value, ids: Value, *, padding_idx: int = -1, is_sparse: bool = False) -> Value:
    """Return the rows of W at the indices Ids (..., 1); 0 for padding_idx.

    With is_sparse the gradient of W is kept as the rows that were read.
    """
    shape = ids.shape[:-1] if len(ids.shape) > 1 and ids.shape[-1] == 1 else ids.shape
    index = reshape(cast(ids, "int64"), shape)
    return unpadded(gather(w, index, 0), index, padding_idx)


def lookup_gradient(
    W: Value, Ids: Value, Out_grad: Value, padding_idx: int, is_sparse: bool
) -> dict[str, Any]:
    """Return the gradient of the table: the rows that were read, or all of them."""
    index = reshape(cast(Ids, "int64"), [product(Ids.shape)])
    values = unpadded(reshape(Out_grad, [index.shape[0], W.shape[1]]), index, padding_idx)
    rows = SelectedRows(index, values, W.shape[0])
    return {"W": rows if is_sparse else rows.dense()}


def prelu(x: Value, alpha: Value, *, mode: str = "all") -> Value:
    """Return x where it is positive, else Alpha * x; Alpha by mode: all, channel or element."""
    shapes = {"all": [], "channel": [x.shape[1], *[1] * (len(x.shape) - 2)], "element": x.shape[1:]}
    if mode not in shapes:
        raise ArgumentError(f"mode={mode!r} of prelu is none of {', '.join(shapes)}")
    slope = reshape(alpha, shapes[mode])
    return elementwise(lambda t, s: geon.where(t > 0, t, s * t), x, slope)


def lrn(
    x: Value, *, n: int = 5, k: float = 2.0, alpha: float = 1e-4, beta: float = 0.75
) -> tuple[Value, Value]:
    """Return images (N, C, ...) divided by s**beta, and s = k + alpha * (a sum of squares).

    The squares are those of the n channels around each one (Krizhevsky et al., 2012).
    """
    window = {1: Slide(n, 1, 1, ((n - 1) // 2, n // 2))}
    means = pooled(
        lambda t, w: geon.average_pool(t, w, count_pad=True), elementwise(geon.square, x), window
    )
    scale = elementwise(lambda m: k + alpha * n * m, means)
    return elementwise(lambda t, s: t * geon.power(s, -beta), x, scale), scale


def maxout(x: Value, *, groups: int = INT) -> Value:
    """Return the largest of each ``groups`` channels of (N, C, ...): (N, C / groups, ...)."""
    n, count, width, *rest = grouped(x, groups)
    return reduce(geon.max, reshape(x, [n, width, count, *rest]), [2], False)


ROWS = [
    *[
        Row(name, f, f"Return images (N, C, ...) {text} by filters, plus a bias by channel.",
            f"Input@{rank} Filter@{rank} Bias?@1", "Output")
        for rank, name, f, text in [
            (4, "conv2d", convolution(2), "convolved"),
            (5, "conv3d", convolution(3), "convolved"),
            (4, "depthwise_conv2d", convolution(2, is_depthwise=True),
             "convolved channel by channel"),
            (4, "conv2d_transpose", convolution(2, is_transposed=True), "spread"),
            (5, "conv3d_transpose", convolution(3, is_transposed=True), "spread"),
        ]
    ],
    *[Row(f"pool{n}d", pool(n), "Return the largest or mean elements of windows.", f"X@{n + 2}")
        for n in (2, 3)],
    Row("batch_norm", batch_norm, "", "X@2+ Scale@1 Bias@1 Mean@1 Variance@1",
        "Y MeanOut VarianceOut SavedMean~ SavedVariance~"),
    Row("layer_norm", layer_norm, "", "X@1+ Scale? Bias?", "Y Mean~ Variance~"),
    Row("group_norm", group_norm, "", "X@2+ Scale?@1 Bias?@1", "Y"),
    Row("prelu", prelu, "", "X@2+ Alpha"),
    Row("lrn", lrn, "", "X@2+", "Out MidOut~"),
    Row("maxout", maxout, "", "X@2+"),
    Row("lookup_table", lookup_table, "", "W@2 Ids", gradient=lookup_gradient),
]  # fmt: skip
