"""Operators of networks: convolutions, pools, normalisation, embeddings, recurrent units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise, expand
from ...positional.indexing import gather
from ...positional.movement import split
from ...positional.products import matmul
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.reshaping import reshape, squeeze, unsqueeze
from ...positional.sliding import Slide, convolve, pooled
from ...positional.values import Size, Value, host, position
from ..values import SelectedRows
from .rows import Function, Row


def spread(numbers: Sequence[int], rank: int) -> list[int]:
    """Return one number for each of ``rank`` dimensions; a single one stands for all."""
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def convolution(rank: int, is_transposed: bool = False, is_depthwise: bool = False) -> Function:
    """Return the function of a convolution operator on ``rank`` spatial positions."""

    def build(
        x: Value,
        w: Value,
        bias: Value | None,
        *,
        strides: Any = (1,),
        paddings: Any = (0,),
        dilations: Any = (1,),
        groups: int = 1,
    ) -> Value:
        steps, pads, gaps = (spread(each, rank) for each in (strides, paddings, dilations))
        slides = [
            Slide(int(w.shape[2 + k]), steps[k], gaps[k], (pads[k], pads[k])) for k in range(rank)
        ]
        lengths = [
            (n - 1) * s.stride + s.dilation * (s.length - 1) + 1 - 2 * s.pad[0]
            for n, s in zip(x.shape[2:], slides, strict=True)
        ]
        count = int(x.shape[1]) if is_depthwise else groups
        found = convolve(x, w, slides, count, lengths if is_transposed else None)
        return found if bias is None else elementwise(geon.add, found, by_channel(bias, rank + 2))

    return build


def by_channel(x: Value, rank: int) -> Value:
    """Return a vector of channels with the positions of images (N, C, ...) after it."""
    return unsqueeze(x, range(1, rank - 1)) if rank > 2 else x


def pool(rank: int) -> Function:
    """Return the function of a pooling operator on ``rank`` spatial positions."""

    def build(
        x: Value,
        *,
        pooling_type: str = "max",
        ksize: Any = (2,),
        strides: Any = (1,),
        paddings: Any = (0,),
        global_pooling: bool = False,
        ceil_mode: bool = False,
        exclusive: bool = True,
    ) -> Value:
        if global_pooling:
            f = geon.max if pooling_type == "max" else geon.mean
            return reduce(f, x, range(2, rank + 2))
        sizes, steps, pads = (spread(each, rank) for each in (ksize, strides, paddings))
        slides = {
            k + 2: Slide(sizes[k], steps[k], 1, (pads[k], pads[k]), ceil_mode) for k in range(rank)
        }
        if pooling_type == "max":
            return pooled(geon.max_pool, x, slides)
        return pooled(lambda t, w: geon.average_pool(t, w, count_pad=not exclusive), x, slides)

    return build


def normal(x: Value, mean: Value, variance: Value, epsilon: float) -> Value:
    """Return (x - mean) / sqrt(variance + epsilon)."""
    return elementwise(lambda t, m, v: (t - m) * geon.rsqrt(v + epsilon), x, mean, variance)


def moments(x: Value, at: Sequence[int]) -> tuple[Value, Value]:
    """Return the mean and the variance over positions, which stay with length 1."""
    mean = reduce(geon.mean, x, at)
    squares = elementwise(lambda t, m: geon.square(t - m), x, mean)
    return mean, reduce(geon.mean, squares, at)


def affine(x: Value, scale: Value | None, bias: Value | None) -> Value:
    """Return scale * x + bias, without what is None."""
    x = x if scale is None else elementwise(geon.multiply, x, scale)
    return x if bias is None else elementwise(geon.add, x, bias)


def batch_norm(
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    is_test: bool = False,
) -> tuple[Value, ...]:
    """Return channels with mean 0 and variance 1, scaled; and the running statistics."""
    rank, channels = len(x.shape), x.shape[1]
    own_mean, own_variance = mean, variance
    if not is_test:
        own = moments(x, [0, *range(2, rank)])
        own_mean, own_variance = (reshape(each, [channels]) for each in own)

        def moved(old: geon.Tensor, new: geon.Tensor) -> geon.Tensor:
            return momentum * old + (1 - momentum) * new

        mean = elementwise(moved, mean, own_mean)
        variance = elementwise(moved, variance, own_variance)
    parts = [by_channel(each, rank) for each in (own_mean, own_variance, scale, bias)]
    y = affine(normal(x, parts[0], parts[1], epsilon), parts[2], parts[3])
    return y, mean, variance, own_mean, own_variance


def layer_norm(
    x: Value,
    scale: Value | None,
    bias: Value | None,
    *,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-5,
) -> tuple[Value, Value, Value]:
    """Return rows with mean 0 and variance 1 over positions from begin_norm_axis on, scaled."""
    first = position(begin_norm_axis, len(x.shape))
    mean, variance = moments(x, range(first, len(x.shape)))
    tail = x.shape[first:]
    parts = [None if each is None else reshape(each, tail) for each in (scale, bias)]
    rows = [product(x.shape[:first])]
    whole = affine(normal(x, mean, variance, epsilon), parts[0], parts[1])
    return whole, reshape(mean, rows), reshape(variance, rows)


def group_norm(
    x: Value, scale: Value | None, bias: Value | None, *, groups: int = 1, epsilon: float = 1e-5
) -> Value:
    """Return groups of channels with mean 0 and variance 1, scaled by channel."""
    n, c, *rest = x.shape
    parts = reshape(x, [n, groups, c // groups, *rest])
    found = normal(parts, *moments(parts, range(2, len(rest) + 3)), epsilon)
    given = [None if each is None else by_channel(each, len(rest) + 2) for each in (scale, bias)]
    return affine(reshape(found, x.shape), given[0], given[1])


def lookup_table(w: Value, ids: Value, *, padding_idx: int = -1, is_sparse: bool = False) -> Value:
    """Return the rows of W at the indices Ids (..., 1); 0 for padding_idx.

    With is_sparse the gradient of W is kept as the rows that were read.
    """
    del is_sparse
    flat = (
        squeeze(ids, [len(ids.shape) - 1]) if ids.shape[-1:] == (1,) and len(ids.shape) > 1 else ids
    )
    index = cast(flat, "int64")
    found = gather(w, index, 0)
    if padding_idx < 0:
        return found
    known = unsqueeze(
        elementwise(lambda i: geon.not_equal(i, padding_idx), index), [len(index.shape)]
    )
    return elementwise(lambda kept, row: geon.where(kept, row, 0), known, found)


def lookup_gradient(
    W: Value, Ids: Value, Out_grad: Value, padding_idx: int, is_sparse: bool
) -> dict[str, Any]:
    """Return the gradient of the table: the rows that were read, or all of them."""
    index = reshape(cast(Ids, "int64"), [product(Ids.shape)])
    values = reshape(Out_grad, [index.shape[0], W.shape[1]])
    if padding_idx >= 0:
        known = elementwise(lambda i: geon.not_equal(i, padding_idx), unsqueeze(index, [1]))
        values = elementwise(lambda kept, row: geon.where(kept, row, 0), known, values)
    rows = SelectedRows(index, values, W.shape[0])
    return {"W": rows if is_sparse else rows.dense()}


def prelu(x: Value, alpha: Value, *, mode: str = "all") -> Value:
    """Return x where it is positive, else Alpha * x; Alpha by mode: all, channel or element."""
    shapes = {"all": [], "channel": [x.shape[1], *[1] * (len(x.shape) - 2)], "element": x.shape[1:]}
    if mode not in shapes:
        raise ArgumentError(f"mode={mode!r} of prelu is none of {', '.join(shapes)}")
    slope = reshape(alpha, shapes[mode])
    return elementwise(lambda t, s: geon.where(t > 0, t, s * t), x, slope)


def lstm_unit(x: Value, previous: Value, *, forget_bias: float = 0.0) -> tuple[Value, Value]:
    """Return the state and output of an LSTM cell; X has the gates i, f, o and the candidate."""
    i, f, o, g = split(x, 1, [x.shape[1] // 4] * 4)
    return lstm_cell(g, i, f, o, previous, forget_bias)


def lstm_cell(
    g: Value, i: Value, f: Value, o: Value, previous: Value, forget_bias: float = 0.0
) -> tuple[Value, Value]:
    """Return the new state and output of an LSTM cell for the sums of its gates."""
    cell = elementwise(
        lambda g, i, f, c: geon.sigmoid(f + forget_bias) * c + geon.sigmoid(i) * geon.tanh(g),
        g, i, f, previous,
    )  # fmt: skip
    return cell, elementwise(lambda o, c: geon.sigmoid(o) * geon.tanh(c), o, cell)


def gru_unit(
    x: Value, previous: Value, weight: Value, bias: Value | None
) -> tuple[Value, Value, Value]:
    """Return the gates, the reset state and the new state of a GRU cell.

    Input has the sums for update, reset and candidate; Weight (D, 3 D) the recurrent weights.
    """
    width = previous.shape[1]
    x = x if bias is None else elementwise(geon.add, x, bias)
    u, r, c = split(x, 1, [width] * 3)
    for_gates, for_candidate = split(weight, 1, [width * 2, width])
    hu, hr = split(matmul(previous, for_gates), 1, [width] * 2)
    update = elementwise(lambda a, b: geon.sigmoid(a + b), u, hu)
    reset = elementwise(lambda a, b, h: geon.sigmoid(a + b) * h, r, hr, previous)
    gate = elementwise(lambda a, b: geon.tanh(a + b), c, matmul(reset, for_candidate))
    new = elementwise(lambda u, c, h: u * c + (1 - u) * h, update, gate, previous)
    return gate, reset, new


def zeros(shape: Sequence[Size], dtype: object) -> Value:
    """Return zeros of a shape."""
    return expand(host(0, dtype), shape)


ROWS = [
    *[
        Row(name, f, f"Return images (N, C, ...) {text} by filters, plus a bias by channel.",
            "Input Filter Bias?", "Output")
        for name, f, text in [
            ("conv2d", convolution(2), "convolved"),
            ("conv3d", convolution(3), "convolved"),
            ("depthwise_conv2d", convolution(2, is_depthwise=True), "convolved channel by channel"),
            ("conv2d_transpose", convolution(2, is_transposed=True), "spread"),
            ("conv3d_transpose", convolution(3, is_transposed=True), "spread"),
        ]
    ],
    *[Row(f"pool{n}d", pool(n), "Return the largest or mean elements of windows.") for n in (2, 3)],
    Row("batch_norm", batch_norm, "", "X Scale Bias Mean Variance",
        "Y MeanOut VarianceOut SavedMean~ SavedVariance~"),
    Row("layer_norm", layer_norm, "", "X Scale? Bias?", "Y Mean~ Variance~"),
    Row("group_norm", group_norm, "", "X Scale? Bias?", "Y"),
    Row("prelu", prelu, "", "X Alpha"),
    Row("lstm_unit", lstm_unit, "", "X C_prev", "C H"),
    Row("gru_unit", gru_unit, "", "Input HiddenPrev Weight Bias?", "Gate~ ResetHiddenPrev~ Hidden"),
    Row("lookup_table", lookup_table, "", "W Ids", gradient=lookup_gradient),
]  # fmt: skip
