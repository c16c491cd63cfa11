"""What is measured: each workload's sizes, the work it cannot do without, and its data.

All arrays are float32, drawn from a seed that is the workload's own, so that every process has the
same without sending them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import costs, data

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Workload:
    """One line of the table; ``kind`` says what contenders compute, ``sizes`` how large it is."""

    name: str
    title: str
    kind: str
    sizes: Sizes
    small: Sizes  # the sizes of a trial run
    rtol: float = 1e-3  # of an element against its own size and the array's root mean square

    def sized(self, quick: bool) -> Sizes:
        """The sizes to use."""
        return self.small if quick else self.sizes

    def inputs(self, quick: bool) -> dict[str, Any]:
        """The arrays by name, the same in every process."""
        seed = zlib.crc32(self.kind.encode())
        make: Callable[..., dict[str, Any]] = getattr(data, self.kind)
        return make(np.random.default_rng(seed), **self.sized(quick))

    def cost(self, quick: bool) -> costs.Cost | None:
        """Operations and bytes that no implementation can avoid; None where calls cost most."""
        count: Callable[..., costs.Cost] | None = getattr(costs, self.kind, None)
        return None if count is None else count(**self.sized(quick))


MLP = {"batch": 128, "inputs": 784, "hidden": 512, "classes": 10}
SMALL_MLP = {"batch": 16, "inputs": 20, "hidden": 12, "classes": 5}
BLOCK = {"batch": 4, "tokens": 256, "width": 512, "heads": 8}
SMALL_BLOCK = {"batch": 2, "tokens": 8, "width": 16, "heads": 2}
GRID, SMALL_GRID = {"side": 256}, {"side": 12}
TABLE, SMALL_TABLE = {"rows": 4096, "columns": 1024}, {"rows": 16, "columns": 24}


def product(m: int, k: int, n: int, name: str | None = None, title: str | None = None) -> Workload:
    """A matrix product (m, k) by (k, n)."""
    return Workload(
        name or f"matmul-{m}x{k}x{n}",
        title or f"matrix product {m}×{k}×{n}",
        "matmul",
        {"m": m, "k": k, "n": n},
        {"m": min(m, 24), "k": min(k, 24), "n": min(n, 24)},
    )


SWEEP = [
    *(product(n, n, n) for n in (64, 128, 256, 512, 2048)),
    *(product(*shape) for shape in ((1, 1024, 1024), (8, 1024, 1024), (1024, 8, 1024))),
    *(product(*shape) for shape in ((1024, 1024, 8), (16384, 64, 64), (65536, 16, 16))),
]

# What moves, joins and orders elements, and what reduces a product at once.
MOVES = [
    Workload("prefix-sums", "prefix sums along rows of 4096×1024", "prefix_sums", TABLE,
             SMALL_TABLE),
    Workload("prefix-line", "prefix sums of one line of 4,000,000", "prefix_sums",
             {"rows": 1, "columns": 4_000_000}, {"rows": 1, "columns": 4_000}),
    Workload("join", "two computed halves of 2,000,000 values, joined", "join",
             {"count": 2_000_000}, {"count": 2_000}),
    Workload("scatter-add", "1,000,000 values added up in 1,000 places", "scatter_add",
             {"count": 1_000_000, "places": 1_000}, {"count": 1_000, "places": 10}),
    Workload("long-chain", "355 cheap ops on three vectors of 1,000,000, three results",
             "long_chain", {"count": 1_000_000, "steps": 5}, {"count": 1_000, "steps": 2}),
    Workload("attention", "attention, 8 heads of 2,048 tokens, depth 64", "attention",
             {"heads": 8, "tokens": 2048, "depth": 64}, {"heads": 2, "tokens": 16, "depth": 8}),
    Workload("attention-short", "attention, 32 heads of 256 tokens, depth 32", "attention",
             {"heads": 32, "tokens": 256, "depth": 32}, {"heads": 2, "tokens": 12, "depth": 4}),
    Workload("nearest", "nearest of 512 centres of 16 numbers, for 65,536 points", "nearest",
             {"count": 65_536, "centres": 512, "depth": 16},
             {"count": 64, "centres": 8, "depth": 4}),
    Workload("transposed-sum", "matrix 2048×2048 plus a transposed one", "transposed_sum",
             {"side": 2048}, {"side": 24}),
    Workload("top-k", "the 10 largest of each row of 4096×1024, and where", "top_k",
             {**TABLE, "k": 10}, {**SMALL_TABLE, "k": 3}),
    Workload("sort", "each row of 4096×1024 sorted", "sort", TABLE, SMALL_TABLE),
]  # fmt: skip

LSTM = {"steps": 32, "batch": 64, "inputs": 128, "hidden": 256}
SMALL_LSTM = {"steps": 3, "batch": 4, "inputs": 5, "hidden": 6}
RING, SMALL_RING = {"steps": 614, "count": 60}, {"steps": 10, "count": 5}

# What goes on from step to step.
LOOPS = [
    Workload("lstm", "LSTM, 32 steps of a batch of 64, 128 to 256, forward and gradient",
             "lstm_gradient", LSTM, SMALL_LSTM, rtol=5e-3),
    Workload("lstm-forward", "the same, forward", "lstm_forward", LSTM, SMALL_LSTM),
    Workload("gru", "GRU, 32 steps of a batch of 64, 128 to 256, forward and gradient",
             "gru_gradient", LSTM, SMALL_LSTM, rtol=5e-3),
    Workload("lstm-one", "LSTM, 1,000 steps of one example, 128 to 256, forward", "lstm_forward",
             {**LSTM, "steps": 1000, "batch": 1}, {**SMALL_LSTM, "batch": 1}),
    Workload("lstm-one-gradient", "the same, with gradient", "lstm_gradient",
             {**LSTM, "steps": 1000, "batch": 1}, {**SMALL_LSTM, "batch": 1}, rtol=5e-3),
    Workload("lorenz", "1,000 Runge-Kutta steps of 100,000 Lorenz systems", "lorenz",
             {"count": 100_000, "steps": 1000}, {"count": 100, "steps": 10}, rtol=0.1),
    Workload("products", "10,000 products of 4×4 matrices, one after the other, with gradient",
             "products_gradient", {"steps": 10_000, "n": 4}, {"steps": 10, "n": 4}, rtol=5e-3),
    Workload("scalars", "60 scalars carried over 614 steps", "ring", RING, SMALL_RING),
    Workload("scalars-gradient", "the same, gradient", "ring_gradient", RING, SMALL_RING,
             rtol=5e-3),
]  # fmt: skip


def images(name: str, title: str, kind: str, batch: int, side: int, channels: int,
           **further: int) -> Workload:  # fmt: skip
    """Work on square images."""
    sizes = {"batch": batch, "side": side, "channels": channels, **further}
    small = {"batch": 2, "side": 9, "channels": 3, **further}
    return Workload(
        name, title, kind, sizes, small | ({"filters": 4} if "filters" in sizes else {})
    )


SHAPES = [
    (3, 16, 64), (3, 64, 64), (8, 8, 64), (8, 16, 64), (16, 16, 64),
    (32, 32, 32), (64, 64, 32), (128, 128, 16), (256, 256, 8), (512, 512, 8),
]  # fmt: skip

# Windows: channels are the innermost axis of images.
WINDOWS = [
    *(images(f"convolution-{c}-{k}", f"3×3 convolution of {c} to {k} channels, 16 of {n}×{n}",
             "convolution", 16, n, c, filters=k) for c, k, n in SHAPES),
    images("strided-gradient", "3×3 convolution in steps of 2 with slopes, 64 to 64, 16 of 32×32",
           "convolution_gradient", 16, 32, 64, filters=64, stride=2),
    images("depthwise", "3×3 depthwise convolution, 128 channels, 16 of 32×32", "depthwise", 16,
           32, 128, stride=1),
    images("depthwise-gradient", "the same with slopes", "depthwise_gradient", 16, 32, 128,
           stride=1),
    images("depthwise-strided", "the same with slopes, in steps of 2", "depthwise_gradient", 16,
           32, 128, stride=2),
    images("pooling", "largest of 3×3 in steps of 2 with its slope, 64 channels, 16 of 56×56",
           "pooling", 16, 56, 64, window=3, stride=2),
    images("pooling-close", "the same in steps of 1", "pooling", 16, 56, 64, window=3, stride=1),
    images("pooling-apart", "largest of 2×2 in steps of 2 with its slope", "pooling", 16, 56, 64,
           window=2, stride=2),
    Workload("convolution-step", "training step of two convolutions and pools on 64 28×28 images",
             "convolution_step",
             {"batch": 64, "side": 28, "first": 16, "second": 32, "classes": 10},
             {"batch": 3, "side": 16, "first": 3, "second": 4, "classes": 5}, rtol=5e-3),
]  # fmt: skip

TEXT = {"width": 256, "words": 256}
SMALL_TEXT = {"width": 8, "words": 11}
GPT, SMALL_GPT = {**TEXT, "layers": 4, "heads": 4}, {**SMALL_TEXT, "layers": 2, "heads": 2}

# Networks of layers, of whose steps all that has moved is compared, and a block of one.
NETS = [
    Workload("residual-step", "residual net, 16 to 64 channels, 32 of 32×32, training step",
             "residual_step",
             {"batch": 32, "side": 32, "channels": 16, "blocks": 2, "classes": 10},
             {"batch": 4, "side": 9, "channels": 3, "blocks": 2, "classes": 5}, rtol=2e-2),
    Workload("residual-block",
             "residual block, 32 channels, batch norm, 32 of 32×32, forward and gradient",
             "residual_block", {"batch": 32, "side": 32, "channels": 32},
             {"batch": 4, "side": 9, "channels": 3}, rtol=5e-3),
    Workload("gpt-step", "GPT, 4 layers of width 256, 16×128 tokens, AdamW, training step",
             "gpt_step", {**GPT, "batch": 16, "tokens": 128},
             {**SMALL_GPT, "batch": 3, "tokens": 7}, rtol=2e-2),
    Workload("lstm-model-step", "LSTM language model, width 256, 32×64 tokens, training step",
             "lstm_model_step", {**TEXT, "batch": 32, "tokens": 64},
             {**SMALL_TEXT, "batch": 3, "tokens": 7}, rtol=2e-2),
    Workload("sampling", "64 tokens from the GPT, one after another, with a cache", "sampling",
             {**GPT, "tokens": 64, "places": 128}, {**SMALL_GPT, "tokens": 5, "places": 9}),
]  # fmt: skip

WORKLOADS = [
    Workload("mlp-step", "784-512-512-10 MLP training step, batch 128, momentum SGD", "mlp_step",
             MLP, SMALL_MLP),
    Workload("gelu", "tanh-GELU on 4,000,000 values", "gelu", {"count": 4_000_000},
             {"count": 4_000}),
    product(1024, 1024, 1024, "matmul-1024", "1024³ matrix product"),
    Workload("block-forward", "transformer block forward, 4×256 tokens, width 512, 8 heads",
             "block_forward", BLOCK, SMALL_BLOCK),
    Workload("block-gradient", "the same, forward and backward", "block_gradient", BLOCK,
             SMALL_BLOCK, rtol=5e-3),
    Workload("plus-one", "x + 1 on a scalar, per call", "plus_one", {}, {}),
    Workload("stencil-forward", "stencil with several reductions over 256³, forward",
             "stencil_forward", GRID, SMALL_GRID, rtol=5e-3),
    Workload("stencil-gradient", "the same, gradient", "stencil_gradient", GRID, SMALL_GRID),
    Workload("softmax-forward", "softmax over 4096×1024, forward", "softmax_forward", TABLE,
             SMALL_TABLE),
    Workload("softmax-backward", "softmax over 4096×1024, gradient", "softmax_backward", TABLE,
             SMALL_TABLE),
    Workload("layernorm-forward", "layer norm over 4096×1024, forward", "layernorm_forward", TABLE,
             SMALL_TABLE),
    Workload("layernorm-backward", "layer norm over 4096×1024, gradients", "layernorm_backward",
             TABLE, SMALL_TABLE),
    Workload("adam", "Adam update of 10 million parameters", "adam", {"count": 10_000_000},
             {"count": 1_000}),
    Workload("logsumexp", "log-sum-exp over columns of 4096×1024", "logsumexp", TABLE,
             SMALL_TABLE),
    Workload("matvec", "matrix-vector product 4096×4096", "matvec", {"m": 4096, "k": 4096},
             {"m": 24, "k": 24}),
    Workload("batch-matmul", "batch of 512 products of 64×64", "batch_matmul",
             {"batch": 512, "n": 64}, {"batch": 6, "n": 8}),
    Workload("logistic", "logistic regression training step on 128×4", "logistic",
             {"batch": 128, "features": 4}, {"batch": 16, "features": 4}),
    Workload("deep-mlp", "200-layer MLP training step, 128 wide, batch 32, SGD", "deep_mlp",
             {"layers": 200, "width": 128, "batch": 32}, {"layers": 6, "width": 8, "batch": 4},
             rtol=1e-2),
    *SWEEP,
    *MOVES,
    *LOOPS,
    *WINDOWS,
    *NETS,
]  # fmt: skip

# What is compiled in a fresh process, from the first op written to the first result.
COMPILED = [
    WORKLOADS[0],
    Workload("chain", "chain of 3,000 elementwise ops", "chain", {"count": 1024, "length": 3000},
             {"count": 8, "length": 30}),
    Workload("chain-gradient", "chain of 900 elementwise ops with gradient", "chain_gradient",
             {"count": 1024, "length": 900}, {"count": 8, "length": 30}),
    *(w for w in LOOPS if w.name in ("lstm", "gru")),
    *(w for w in NETS if w.name in ("residual-step", "gpt-step")),
]  # fmt: skip


def named(name: str) -> Workload:
    """The workload called ``name``."""
    return next(w for w in (*WORKLOADS, *COMPILED) if w.name == name)
