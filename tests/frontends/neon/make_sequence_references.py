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


def alignments():
    """Rows of labels: repeated, none, too many for the times; the blank first, and last."""
    labels = np.array(
        [[1, 2, 3, 1], [2, 2, 2, 1], [1, 1, 3, 3], [3, 1, 2, 1], [2, 3, 1, 2], [1, 1, 1, 1]]
    )
    lengths, label_lengths = np.array([7, 7, 5, 1, 0, 5]), np.array([4, 3, 0, 1, 0, 4])
    for blank in (0, 3):
        own = labels if blank == 0 else labels - 1
        x = draw(7, 6, 4)
        options = {"blank": blank, "reduction": "none"}
        counts = torch.tensor(lengths), torch.tensor(label_lengths)
        given = (F.log_softmax(x, 2), torch.tensor(own), *counts)
        y = F.ctc_loss(*given, **options)
        finite = F.ctc_loss(*given, zero_infinity=True, **options)
        record(f"ctc_{blank}", finite, x=x)
        keep(f"ctc_{blank}", labels=own, lengths=lengths, label_lengths=label_lengths, y=y)


def experts():
    """Five experts of three features, six hidden and two results; all, but two of them count."""
    x, gate = draw(9, 3), draw(3, 5)
    w, b, out, out_bias = draw(5, 3, 6), draw(5, 6), draw(5, 6, 2), draw(5, 2)
    for k in (1, 2):
        for leaf in (x, gate, w, b, out, out_bias):
            leaf.grad = None
        likely = torch.softmax(x @ gate, 1)
        best, which = likely.topk(k)
        shares = best / best.sum(1, keepdim=True) if k > 1 else best
        hidden = F.gelu(torch.einsum("nc,ech->neh", x, w) + b)
        each = torch.einsum("neh,ehy->ney", hidden, out) + out_bias
        mixed = torch.einsum("nk,nky->ny", shares, each[torch.arange(9)[:, None], which])
        counts = torch.bincount(which.reshape(-1), minlength=5) / (9 * k)
        keep(f"experts_{k}", balance=5 * (counts * likely.mean(0)).sum())
        leaves = {"gate": gate, "w": w, "b": b, "out": out, "out_bias": out_bias}
        record(f"experts_{k}", mixed, x=x, **leaves)


def attention_between_sequences():
    """Another sequence of other features, of which the last times are padding in one example."""
    layer = nn.MultiheadAttention(6, 3, kdim=5, vdim=5, batch_first=True)
    for leaf in layer.parameters():
        leaf.data = draw(*leaf.shape).detach()
    x, memory = draw(2, 5, 6), draw(2, 4, 5)
    real = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    y, _ = layer(x, memory, memory, need_weights=False, key_padding_mask=~torch.tensor(real))
    record("attention_between", y, x=x, memory=memory, **dict(layer.named_parameters()))
    keep("attention_between", real=real)


def attention_with_shares_left_out():
    """Two heads of three elements; a quarter of the shares become 0, the others larger."""
    x, out = draw(2, 5, 4), draw(2, 3, 4)
    w = {"query": draw(4, 2, 3), "key": draw(4, 2, 3), "value": draw(4, 2, 3)}
    kept = np.random.default_rng(2).random((2, 2, 5, 5)) < 0.75
    q, k, v = (torch.einsum("nte,ehk->nhtk", x, each) for each in w.values())
    scores = torch.einsum("nhtk,nhsk->nhts", q, k) / 3**0.5
    scores = scores.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
    shares = torch.softmax(scores, 3) * torch.tensor(kept) / 0.75
    y = torch.einsum("nhts,nhsk,hke->nte", shares, v, out)
    record("attention_dropped", y, x=x, out=out, **w)
    keep("attention_dropped", kept=kept)


if __name__ == "__main__":
    torch.manual_seed(0)
    for make in (
        whole_attention, grouped_attention, alignments, experts, attention_between_sequences,
        attention_with_shares_left_out,
    ):  # fmt: skip
        make()
    np.savez_compressed(Path(__file__).with_name("sequence_references.npz"), **ARRAYS)
    print(f"PyTorch {torch.__version__}: {len(ARRAYS)} arrays")
