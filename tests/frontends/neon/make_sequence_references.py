"""What PyTorch computes of sequences, as arrays: ``sequence_references.npz``.

    python tests/frontends/neon/make_sequence_references.py

As ``make_references.py``, whose functions it has: attention, experts and CTC.
"""

from pathlib import Path

import numpy as np
import torch
from make_references import ARRAYS, draw, keep, record
from torch import nn
from torch.nn import functional as F


def whole_attention():
    """PyTorch's layer: three heads of two; then what is seen under two masks."""
    for case in ("attention", "attention_masked"):
        layer = nn.MultiheadAttention(6, 3, batch_first=True)
        for leaf in layer.parameters():
            leaf.data = draw(*leaf.shape).detach()
        x, options = draw(2, 5, 6), {}
        if case == "attention_masked":
            seen = np.random.default_rng(1).random((5, 5)) < 0.5
            seen[:, 0] = True
            real = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
            keep(case, seen=seen[None] & real[:, None])
            options = {
                "attn_mask": ~torch.tensor(seen),
                "key_padding_mask": ~torch.tensor(real),
            }
        y, _ = layer(x, x, x, need_weights=False, **options)
        record(case, y, x=x, **dict(layer.named_parameters()))


def rotated(x, base):
    """``x`` over batch, heads, times and elements, turned as complex numbers."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rates
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.complex(x[..., :half].double(), x[..., half:].double()) * turns
    return torch.cat([pairs.real, pairs.imag], -1).float()


def grouped_attention():
    """Four heads of queries and two of keys and values, of four elements, turned and causal."""
    x = draw(2, 7, 5)
    w = {"query": draw(5, 4, 4), "key": draw(5, 2, 4), "value": draw(5, 2, 4)}
    out = draw(4, 4, 3)
    q, k, v = (torch.einsum("nte,ehk->nhtk", x, each) for each in w.values())
    q, k = rotated(q, 100.0), rotated(k, 100.0)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    record("attention_grouped", torch.einsum("nhtk,hke->nte", y, out), x=x, out=out, **w)


if __name__ == "__main__":
    torch.manual_seed(0)
    for make in (whole_attention, grouped_attention):
        make()
    np.savez_compressed(Path(__file__).with_name("sequence_references.npz"), **ARRAYS)
    print(f"PyTorch {torch.__version__}: {len(ARRAYS)} arrays")
