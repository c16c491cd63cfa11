"""Small functions of tensors, one or more for each row of the operators of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def floats(*shape: int) -> torch.Tensor:
    """Return floats of both signs, none of them near a rounding border."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(*shape, generator=generator)


def positive(*shape: int) -> torch.Tensor:
    """Return floats from 0.1 to 0.9."""
    return torch.sigmoid(floats(*shape)) * 0.8 + 0.1


def whole(*shape: int) -> torch.Tensor:
    """Return integers from -5 to 5 without 0."""
    found = (floats(*shape) * 3).round().clamp(-5, 5).to(torch.int64)
    return torch.where(found == 0, 1, found)


def below(count: int, *shape: int) -> torch.Tensor:
    """Return indices below ``count``."""
    generator = torch.Generator().manual_seed(count)
    return torch.randint(0, count, shape, generator=generator)


def truths(*shape: int) -> torch.Tensor:
    """Return truth values."""
    return floats(*shape) > 0


X, Y, P, Q = floats(3, 4), floats(4), positive(3, 4), positive(3, 4)
W, J, B = whole(3, 4), whole(4), truths(3, 4)
IMAGE = floats(2, 4, 6, 5)

OF_ANY = """
    abs asinh atan ceil cos cosh erf erfc exp exp2 expm1 floor neg reciprocal relu sigmoid sign silu
    sin sinh square tan tanh trunc isinf isnan isfinite round gelu elu leaky_relu hardtanh softplus
"""
OF_POSITIVE = "acos asin atanh log log10 log1p log2 rsqrt sqrt digamma lgamma erfinv"
OF_TWO = "add sub mul div pow remainder fmod atan2 maximum minimum eq ne lt le gt ge"

CASES: dict[str, Case] = {
    **{name: (lambda x, n=name: getattr(aten, n)(x), (X,)) for name in OF_ANY.split()},
    **{name: (lambda x, n=name: getattr(aten, n)(x), (P,)) for name in OF_POSITIVE.split()},
    **{name: (lambda x, y, n=name: getattr(aten, n)(x, y), (Q, P)) for name in OF_TWO.split()},
    **{
        f"{name} of integers": (lambda x, y, n=name: getattr(aten, n)(x, y), (W, J))
        for name in "add sub mul div remainder fmod eq ne lt le gt ge maximum minimum".split()
    },
    **{
        f"{name} of a number": (lambda x, n=name: getattr(aten, n)(x, 2), (P,))
        for name in "add sub mul div pow remainder fmod eq ne lt le gt ge".split()
    },
    **{
        f"{name} of mixed dtypes": (lambda x, y, n=name: getattr(aten, n)(x, y), (X, J))
        for name in "add mul div lt".split()
    },
    **{
        f"{name}": (lambda x, y, n=name: getattr(aten, n)(x, y), (W, J))
        for name in "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor".split()
    },
    **{
        f"{name} of a number": (lambda x, n=name: getattr(aten, n)(x, 6), (W,))
        for name in "bitwise_and bitwise_or bitwise_xor".split()
    },
    "acosh": (torch.acosh, (P + 1,)),
    "bitwise_not": (torch.bitwise_not, (W,)),
    "bitwise_not of bool": (torch.bitwise_not, (B,)),
    "logical_not": (torch.logical_not, (W - 1,)),
    "add with a factor": (lambda x, y: torch.add(x, y, alpha=3), (X, Y)),
    "integers and a float": (lambda x: x * 0.5 + 1, (W,)),
    "scalar tensor of float64": (lambda x, y: x * y, (X, torch.tensor(2.0, dtype=torch.float64))),
    "sin of integers": (torch.sin, (W,)),
    "pow of a number and a tensor": (lambda x: 2.0**x, (X,)),
    **{
        f"division, {mode}": (lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), given)
        for mode in ("trunc", "floor")
        for given in [(X * 3, Y)]
    },
    **{
        f"division of integers, {mode}": (
            lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), (W, J)
        )
        for mode in ("trunc", "floor")
    },
    "division by a number, floor": (lambda x: aten.div(x, 2, rounding_mode="floor"), (X * 5,)),
    "where": (torch.where, (B, X, Y)),
    "where of a number": (lambda b, x: torch.where(b, x, 0.0), (B, X)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), (X,)),
    "clamp by tensors": (lambda x, y: torch.clamp(x, -y, y), (X, Y.abs())),
    "to int": (lambda x: (x * 4).to(torch.int32), (X,)),
    "to half": (lambda x: x.half() + x.half(), (X,)),
    "clone": (lambda x: x.clone() + 1, (X,)),
    "alias": (lambda x: aten.alias(x) + 1, (X,)),
    "round to decimals": (lambda x: torch.round(x, decimals=2), (X,)),
    "gelu by tanh": (lambda x: torch.nn.functional.gelu(x, approximate="tanh"), (X,)),
    "selu": (torch.selu, (X,)),
    "fill": (lambda x: aten.fill(x, 3), (X,)),
    "copy": (lambda x, y: aten.copy(x, y), (X, J)),
    "full": (lambda x: torch.full((2, 3), 1.5) + torch.full_like(x[:2, :3], 2), (X,)),
    "empty": (lambda x: torch.empty(3, 4).fill_(2) + x, (X,)),
    "scalar_tensor": (lambda x: x + aten.scalar_tensor(2.0), (X,)),
    "arange": (lambda x: x + torch.arange(1, 9, 2), (X,)),
    "arange of floats": (lambda x: x + torch.arange(0.5, 2.5, 0.5), (X,)),
    "tril": (torch.tril, (X,)),
    "triu": (lambda x: torch.triu(x, 1), (X,)),
    # Movement
    "view": (lambda x: x.view(2, 6), (X,)),
    "reshape to rank 4": (lambda x: x.reshape(1, 3, 2, 2), (X,)),
    "permute": (lambda x: x.permute(2, 0, 3, 1), (IMAGE,)),
    "transpose": (lambda x: x.transpose(0, 1) * 2, (X,)),
    "expand": (lambda x: x[:, None].expand(-1, 3, 4), (X,)),
    "squeeze": (lambda x: x[:, :1].squeeze(1) + x[:1].squeeze(), (floats(4, 4),)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), (X,)),
    "cat": (lambda x, y: torch.cat([x, y[None], x], 0), (X, Y)),
    "cat of dtypes": (lambda x, y: torch.cat([x, y], 1), (X, W)),
    "stack": (lambda x: torch.stack([x, x + 1], 1), (X,)),
    "slice": (lambda x: x[1:, -3:-1:2], (X,)),
    "select": (lambda x: x[1] + x[-1], (X,)),
    "split": (lambda x: torch.cat(x.split([1, 3], 1)[::-1], 1), (X,)),
    "chunk": (lambda x: x.chunk(2, 1)[1], (X,)),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y[None].expand(2, 4), 0, 1), (X, Y)),
    "slice_scatter with a step": (lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 0, 4, 2), (X,)),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 0, 1), (X, Y)),
    "assignment to a part": (lambda x: x.clone().index_fill(1, torch.tensor([1, 3]), 5.0), (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 3), (X,)),
    "flip": (lambda x: x.flip(0, 1), (X,)),
    "pad": (lambda x: torch.nn.functional.pad(x, (1, 2, -1, 0), value=7.0), (X,)),
    "reflect 1d": (lambda x: torch.nn.functional.pad(x, (1, 2), mode="reflect"), (X,)),
    "reflect 2d": (lambda x: torch.nn.functional.pad(x, (1, 2, 0, 3), mode="reflect"), (IMAGE,)),
    "reflect 3d": (
        lambda x: torch.nn.functional.pad(x[None], (1, 2, 0, 3, 1, 1), mode="reflect"), (IMAGE,)
    ),
    "replicate 2d": (
        lambda x: torch.nn.functional.pad(x, (1, 2, 0, 3), mode="replicate"), (IMAGE,)
    ),
    "replicate 3d": (
        lambda x: torch.nn.functional.pad(x[None], (1, 2, 0, 3, 1, 1), mode="replicate"), (IMAGE,)
    ),
    "diagonal": (lambda x: torch.diagonal(x, 0, 0, 1), (X,)),
    "diagonal above": (lambda x: torch.diagonal(x, 1, -2, -1), (IMAGE,)),
    "as_strided": (lambda x: torch.as_strided(x, (2, 3), (1, 2), 1), (X,)),
    "windows": (lambda x: x.unfold(-1, 3, 2), (IMAGE,)),
    "windows of rows": (lambda x: x.unfold(0, 2, 1), (X,)),
    "nearest": (lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0), (IMAGE,)),
    "nearest to a size": (lambda x: torch.nn.functional.interpolate(x, (4, 7)), (IMAGE,)),
    "bilinear": (
        lambda x: torch.nn.functional.interpolate(x, (9, 7), mode="bilinear"), (IMAGE,)
    ),
    **{
        f"bicubic {corners}": (
            lambda x, c=corners: torch.nn.functional.interpolate(
                x, (9, 7), mode="bicubic", align_corners=c
            ),
            (IMAGE,),
        )
        for corners in (False, True)
    },
    **{
        f"grid_sample {mode} {padding}": (
            lambda x, g, m=mode, p=padding: torch.nn.functional.grid_sample(
                x, g, m, p, align_corners=True
            ),
            (IMAGE, floats(2, 5, 6, 2)),
        )
        for mode, padding in (("nearest", "border"), ("bicubic", "reflection"))
    },
    "bilinear of corners": (
        lambda x: torch.nn.functional.interpolate(x, (9, 7), mode="bilinear", align_corners=True),
        (IMAGE,),
    ),
    # Indexing
    "index": (lambda x, i: x[i], (X, below(3, 2, 5))),
    "two indices": (lambda x, i, j: x[i, j], (X, below(3, 5), below(4, 2, 5))),
    "indices apart": (lambda x, i, j: x[i, :, j], (IMAGE, below(2, 3), below(6, 3))),
    "indices in the middle": (lambda x, i, j: x[:, i, j], (IMAGE, below(4, 3), below(6, 3) - 6)),
    "index_put": (lambda x, i, y: x.index_put((i,), y), (X, torch.tensor([2, 0]), floats(2, 4))),
    "index_put in the middle": (
        lambda x, i, j: aten.index_put(x, [None, i, j], x[:, :2, 0] * 2),
        (IMAGE, torch.tensor([2, 0]), torch.tensor([1, 3])),
    ),
    "index_put that adds": (
        lambda x, i, y: x.index_put((i,), y, accumulate=True), (X, below(3, 5), floats(5, 4))
    ),
    "index_put by a mask": (lambda x, m: x.index_put((m,), torch.tensor(2.0)), (X, B)),
    "index_select": (lambda x, i: x.index_select(1, i), (X, below(4, 6))),
    "gather": (lambda x, i: x.gather(1, i), (X, below(4, 3, 2))),
    "gather of fewer rows": (lambda x, i: x.gather(1, i), (X, below(4, 2, 6))),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), (X, torch.tensor([[0, 2]] * 3), floats(3, 2))),
    "scatter of a number": (lambda x, i: x.scatter(1, i, 5.0), (X, below(4, 3, 2))),
    "scatter_add": (lambda x, i, y: x.scatter_add(0, i, y), (X, below(3, 5, 4), floats(5, 4))),
    "scatter_add of fewer columns": (
        lambda x, i, y: x.scatter_add(0, i, y), (X, below(3, 5, 2), floats(5, 4))
    ),
    **{
        f"scatter_reduce, {mode}, {kept}": (
            lambda x, i, y, m=mode, k=kept: x.scatter_reduce(0, i, y, m, include_self=k),
            (X, below(2, 5, 4), floats(5, 4)),
        )
        for mode in ("sum", "prod", "amax", "amin", "mean")
        for kept in (True, False)
    },
    "masked_scatter": (lambda x, m, y: x.masked_scatter(m, y), (X, B, floats(20))),
    "embedding": (lambda w, i: torch.nn.functional.embedding(i, w), (X, below(3, 2, 5))),
    "embedding with padding": (
        lambda w, i: torch.nn.functional.embedding(i, w, padding_idx=1), (X, below(3, 2, 5))
    ),
    "embedding_dense_backward": (
        lambda g, i: aten.embedding_dense_backward(g, i, 3, 1, False),
        (floats(2, 5, 4), below(3, 2, 5)),
    ),
    "sort": (lambda x: torch.sort(x, 0), (X,)),
    "sort downwards, of ties": (lambda x: torch.sort(x, dim=1, descending=True, stable=True), (W,)),
    "topk": (lambda x: torch.topk(x, 2, 1), (X,)),
    "topk of the smallest": (lambda x: torch.topk(x, 2, 1, largest=False), (X,)),
    "max along": (lambda x: torch.max(x, 1), (X,)),
    "min along": (lambda x: torch.min(x, 0, keepdim=True), (X,)),
    "cumsum": (lambda x: x.cumsum(1), (X,)),
    "cumsum of integers": (lambda x: x.to(torch.int32).cumsum(0), (W,)),
    "cumprod": (lambda x: x.cumprod(1), (X,)),
    # Reductions
    **{
        f"{name} along": (lambda x, n=name: getattr(torch, n)(x, 1), (P,))
        for name in "sum mean prod amax amin argmax argmin any all var std".split()
    },
    **{
        f"{name} of all": (lambda x, n=name: getattr(torch, n)(x), (P,))
        for name in "sum mean prod max min argmax argmin any all var".split()
    },
    "sum of two, kept": (lambda x: x.sum((0, 2), keepdim=True), (IMAGE,)),
    "sum of bool": (lambda x: x.sum(1), (B,)),
    "any of two": (lambda x: aten.any.dims(x, [0, 1]), (B,)),
    "amax of bool": (lambda x: x.amax(1), (B,)),
    "var without correction": (lambda x: x.var((0, 1), unbiased=False), (X,)),
    "logsumexp": (lambda x: torch.logsumexp(x, (0, 1)), (X,)),
    "softmax": (lambda x: x.softmax(0), (X,)),
    "log_softmax": (lambda x: x.log_softmax(1), (X,)),
    # Products
    "mm": (lambda x, y: x @ y, (X, floats(4, 2))),
    "bmm": (torch.bmm, (floats(2, 3, 4), floats(2, 4, 5))),
    "matmul with batches": (torch.matmul, (floats(2, 1, 3, 4), floats(5, 4, 2))),
    "addmm": (
        lambda x, a, b: torch.addmm(x, a, b, beta=2, alpha=3), (floats(2), X[:2], floats(4, 2))
    ),
    "baddbmm": (torch.baddbmm, (floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5))),
    "linear": (torch.nn.functional.linear, (floats(2, 3, 4), floats(5, 4), floats(5))),
    "attention": (
        torch.nn.functional.scaled_dot_product_attention,
        (floats(2, 3, 5, 4), floats(2, 3, 6, 4), floats(2, 3, 6, 4)),
    ),
    "causal attention": (
        lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True),
        (floats(2, 3, 5, 4),),
    ),
    "masked attention": (
        lambda q, m: torch.nn.functional.scaled_dot_product_attention(q, q, q, m, scale=0.3),
        (floats(2, 3, 5, 4), truths(5, 5) | torch.eye(5, dtype=torch.bool)),
    ),
    "grouped attention": (
        lambda q, k: torch.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        (floats(2, 4, 5, 4), floats(2, 2, 5, 4)),
    ),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->ibk", x, y), (floats(2, 3, 4), floats(2, 5, 4))),
    "_cdist_forward": (lambda x, y: aten._cdist_forward(x, y, 1.0, None), (X, floats(5, 4))),
    # Normalisation
    "layer_norm": (
        lambda x, w, b: torch.nn.functional.layer_norm(x, (6, 5), w, b),
        (IMAGE, floats(6, 5), floats(6, 5)),
    ),
    "group_norm": (
        lambda x, w, b: torch.nn.functional.group_norm(x, 2, w, b), (IMAGE, floats(4), floats(4))
    ),
    "batch_norm": (
        lambda x, m, v, w: torch.nn.functional.batch_norm(x, m, v, w, w),
        (IMAGE, floats(4), positive(4), floats(4)),
    ),
    "batch_norm of a batch": (
        lambda x, w: torch.nn.functional.batch_norm(x, None, None, w, w, training=True),
        (IMAGE, floats(4)),
    ),
    "instance_norm": (torch.nn.functional.instance_norm, (IMAGE,)),
    "native_layer_norm_backward": (
        lambda g, x, w, b: aten.native_layer_norm_backward(
            g, x, [5], *aten.native_layer_norm(x, [5], w, b, 1e-5)[1:], w, b, [True] * 3
        ),
        (floats(2, 4, 6, 5), IMAGE * 2, floats(5), floats(5)),
    ),
    "native_group_norm_backward": (
        lambda g, x, w, b: aten.native_group_norm_backward(
            g, x, *aten.native_group_norm(x, w, b, 2, 4, 30, 2, 1e-5)[1:], w, 2, 4, 30, 2,
            [True] * 3,
        ),
        (floats(2, 4, 6, 5) + 1, IMAGE, floats(4), floats(4)),
    ),
    # Convolutions and pools
    "conv1d": (
        lambda x, w: torch.nn.functional.conv1d(x, w, stride=2), (floats(2, 4, 9), floats(3, 4, 3))
    ),
    "conv2d": (
        lambda x, w, b: torch.nn.functional.conv2d(x, w, b, (2, 1), (1, 2), (1, 2)),
        (IMAGE, floats(3, 4, 3, 2), floats(3)),
    ),
    "conv2d in groups": (
        lambda x, w: torch.nn.functional.conv2d(x, w, groups=2), (IMAGE, floats(6, 2, 3, 3))
    ),
    "conv2d of each channel": (
        lambda x, w: torch.nn.functional.conv2d(x, w, groups=4), (IMAGE, floats(4, 1, 3, 3))
    ),
    "conv3d": (torch.nn.functional.conv3d, (floats(1, 2, 4, 4, 4), floats(3, 2, 2, 3, 1))),
    "conv_transpose2d": (
        lambda x, w, b: torch.nn.functional.conv_transpose2d(x, w, b, 2, 1, 1),
        (IMAGE, floats(4, 3, 3, 2), floats(3)),
    ),
    "conv_transpose2d in groups": (
        lambda x, w: torch.nn.functional.conv_transpose2d(x, w, groups=2, dilation=2),
        (IMAGE, floats(4, 3, 3, 2)),
    ),
    "convolution_backward": (
        lambda g, x, w: aten.convolution_backward(
            g, x, w, [3], [2, 1], [1, 0], [1, 1], False, [0, 0], 1, [True] * 3
        ),
        (floats(2, 3, 3, 4), IMAGE, floats(3, 4, 3, 2)),
    ),
    "max_pool1d": (lambda x: torch.nn.functional.max_pool1d(x, 3, 2, 1), (floats(2, 3, 9),)),
    "max_pool2d": (lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE,)),
    "max_pool2d with indices": (
        lambda x: aten.max_pool2d_with_indices(x, [3, 2], [2, 1], [1, 0]), (IMAGE,)
    ),
    "max_pool3d": (lambda x: torch.nn.functional.max_pool3d(x, 2), (floats(2, 3, 4, 4, 4),)),
    "max_pool2d_with_indices_backward": (
        lambda g, x: aten.max_pool2d_with_indices_backward(
            g, x, [2, 2], [2, 2], [0, 0], [1, 1], False,
            aten.max_pool2d_with_indices(x, [2, 2], [2, 2])[1],
        ),
        (floats(2, 4, 3, 2), IMAGE),
    ),
    "avg_pool1d": (lambda x: torch.nn.functional.avg_pool1d(x, 3, 2, 1), (floats(2, 3, 9),)),
    "avg_pool2d": (lambda x: torch.nn.functional.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "avg_pool2d without pad": (
        lambda x: torch.nn.functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (IMAGE,)
    ),
    "avg_pool2d by a divisor": (
        lambda x: torch.nn.functional.avg_pool2d(x, 2, divisor_override=3), (IMAGE,)
    ),
    "avg_pool3d": (lambda x: torch.nn.functional.avg_pool3d(x, 2), (floats(2, 3, 4, 4, 4),)),
    "avg_pool2d_backward": (
        lambda g, x: aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
        (floats(2, 4, 3, 2), IMAGE),
    ),
    "adaptive_avg_pool1d": (
        lambda x: torch.nn.functional.adaptive_avg_pool1d(x, 4), (floats(2, 3, 9),)
    ),
    "adaptive_avg_pool2d": (
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (4, 1)), (IMAGE,)
    ),
    "adaptive_avg_pool3d": (
        lambda x: torch.nn.functional.adaptive_avg_pool3d(x, 2), (floats(2, 3, 5, 4, 4),)
    ),
    "_adaptive_avg_pool2d_backward": (
        lambda g, x: aten._adaptive_avg_pool2d_backward(g, x), (floats(2, 4, 3, 2), IMAGE)
    ),
    "fold": (
        lambda x: torch.nn.functional.fold(x, (5, 4), (3, 2), padding=1, stride=(2, 1)),
        (floats(2, 12, 15),),
    ),
    "unfold": (lambda x: torch.nn.functional.unfold(x, (3, 2)), (IMAGE,)),
    # Recurrent layers
    "gru": (
        lambda x, h, *w: aten.gru.input(x, h, list(w), True, 1, 0.0, False, False, True),
        (floats(2, 5, 3), floats(1, 2, 4), floats(12, 3), floats(12, 4), floats(12), floats(12)),
    ),
    "rnn_tanh": (
        lambda x, h, *w: aten.rnn_tanh.input(x, h, list(w), False, 1, 0.0, *[False] * 3),
        (floats(5, 2, 3), floats(1, 2, 4), floats(4, 3), floats(4, 4)),
    ),
    "rnn_relu": (
        lambda x, h, *w: aten.rnn_relu.input(x, h, list(w), True, 1, 0.0, False, True, False),
        (floats(5, 2, 3), floats(2, 2, 4), *[floats(4, 3), floats(4, 4), floats(4), floats(4)] * 2),
    ),
    # Forms that exported modules rarely have
    **{
        f"{name}.Scalar": (lambda x, n=name: getattr(aten, n).Scalar(x, 2), (X,))
        for name in "add sub mul div".split()
    },
    "div.Scalar_mode": (lambda x: aten.div.Scalar_mode(x, 2, rounding_mode="trunc"), (X * 5,)),
    "mm by name": (lambda x, y: aten.mm(x, y), (X, floats(4, 2))),
    "all of two": (lambda x: aten.all.dims(x, [0, 1]), (B,)),
    "detach": (lambda x: x.detach() + 1, (X,)),
    "empty_strided": (lambda x: torch.empty_strided((3, 4), (4, 1)).fill_(2) + x, (X,)),
    "replicate 1d": (lambda x: torch.nn.functional.pad(x, (1, 2), mode="replicate"), (X,)),
    "a number of a tensor": (lambda x, y: x * y.item(), (X, torch.tensor(2.5))),
    "elu with a factor": (lambda x: torch.nn.functional.elu(x, 0.7), (X,)),
    "grid_sample": (
        lambda x, g: torch.nn.functional.grid_sample(x, g, align_corners=False),
        (IMAGE, torch.tanh(floats(2, 3, 4, 2)) * 0.9),
    ),
}  # fmt: skip
