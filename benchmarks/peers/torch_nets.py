# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""In PyTorch: networks, written as functions of their parameters, which it holds in its own forms:
filters as (K, C, R, S) in the channels-last format, what attention projects as one matrix.

``STEPS`` take sizes and values by the names of geon's layers, and give the loss, a function of
data and a dictionary of parameters, and the optimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from .prepared import MOMENTUM, NET_DECAY, NET_EPSILON, NET_RATE, NORM_EPSILON, ROTARY
from .torch_windows import taken
from .workloads import Sizes

Values = Mapping[str, Any]
QKV = ("query", "key", "value")


@dataclass
class Training:
    """What a step is made of: ``shown`` gives a value by its name in geon."""

    loss: Callable[..., Any]
    trained: dict[str, Any]
    kept: dict[str, Any]
    optimiser: Any
    shown: Callable[[str], Any]


def tensors(values: Mapping[str, Any], kept: bool = False) -> dict[str, Any]:
    """Leaf tensors."""
    return {name: value.clone().requires_grad_(not kept) for name, value in values.items()}


def normed(x: Any, p: Values, place: str) -> Any:
    """Batch norm that moves its running statistics."""
    found = [p[f"{place}.{part}"] for part in ("mean", "variance", "scale", "shift")]
    return F.batch_norm(x, *found, True, 0.1, NORM_EPSILON)


def convolved(x: Any, p: Values, place: str, stride: int = 1) -> Any:
    """A convolution with a border, and batch norm."""
    w = p[f"{place}.w"]
    return normed(F.conv2d(x, w, None, stride, w.shape[2] // 2), p, f"{place}_norm")


def residual_loss(blocks: int, x: Any, t: Any, trained: Values, kept: Values) -> Any:
    """Of the residual net."""
    p = {**trained, **kept}
    x = F.relu(convolved(taken(x), p, "stem"))
    for number in range(3 * blocks):
        place, further = f"blocks.{number}", number >= blocks and number % blocks == 0
        stride = 2 if further else 1
        y = F.relu(convolved(x, p, f"{place}.first", stride))
        y = convolved(y, p, f"{place}.second")
        x = F.relu(y + (convolved(x, p, f"{place}.shortcut", stride) if further else x))
    return F.cross_entropy(torch.addmm(p["head.b"], x.mean((2, 3)), p["head.w"]), t)


def residual_step(sizes: Sizes, values: Values) -> Training:
    """Momentum SGD."""
    given = {name: torch.tensor(value) for name, value in values.items()}
    for name, value in given.items():
        if value.ndim == 4:
            own = value.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            given[name] = own
    moving = [name for name in given if name.endswith((".mean", ".variance"))]
    kept = tensors({name: given.pop(name) for name in moving}, True)
    trained = tensors(given)

    def shown(name: str) -> Any:
        value = {**trained, **kept}[name].detach()
        return value.permute(2, 3, 1, 0) if value.ndim == 4 else value

    optimiser = torch.optim.SGD(trained.values(), NET_RATE, MOMENTUM, fused=True)
    return Training(partial(residual_loss, sizes["blocks"]), trained, kept, optimiser, shown)


def turns(tokens: int, key: int) -> tuple[Any, Any]:
    """Cosines and sines of what queries and keys are turned by, over tokens and half a row."""
    half = key // 2
    rates = ROTARY ** (-torch.arange(half) / half)
    angles = torch.arange(tokens)[:, None] * rates
    return angles.cos(), angles.sin()


def turned(x: Any, c: Any, s: Any) -> Any:
    """Halves of rows turned."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * c - b * s, a * s + b * c], -1)


def layer_norm(x: Any, p: Values, place: str) -> Any:
    """Over the width."""
    return F.layer_norm(x, x.shape[-1:], p[f"{place}.scale"], p[f"{place}.shift"], NORM_EPSILON)


def scores(
    sizes: Sizes, x: Any, p: Values, attend: Callable[[int, Any, Any, Any], Any], c: Any, s: Any
) -> Any:
    """Of the next tokens; ``attend`` takes the number of a block, queries, keys and values."""
    width, heads = sizes["width"], sizes["heads"]
    x = F.embedding(x, p["table.w"])
    batch, count = x.shape[:2]
    for number in range(sizes["layers"]):
        place = f"blocks.{number}"
        qkv = F.linear(layer_norm(x, p, f"{place}.before"), p[f"{place}.qkv"])
        q, k, v = qkv.view(batch, count, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        y = attend(number, turned(q, c, s), turned(k, c, s), v)
        y = y.transpose(1, 2).reshape(batch, count, width)
        x = x + F.linear(y, p[f"{place}.out"])
        y = F.linear(layer_norm(x, p, f"{place}.between"), p[f"{place}.wide.w"],
                     p[f"{place}.wide.b"])  # fmt: skip
        y = F.gelu(y, approximate="tanh")
        x = x + F.linear(y, p[f"{place}.narrow.w"], p[f"{place}.narrow.b"])
    return F.linear(layer_norm(x, p, "norm"), p["head.w"])


def transformer(sizes: Sizes, values: Values) -> tuple[dict[str, Any], Callable[[str, Any], Any]]:
    """Weights as (out, in), queries, keys and values together; and back to geon's."""
    width = sizes["width"]
    given = {name: torch.tensor(value) for name, value in values.items()}
    for number in range(sizes["layers"]):
        place = f"blocks.{number}"
        parts = [given.pop(f"{place}.attention.{part}").reshape(width, -1).T for part in QKV]
        given[f"{place}.qkv"] = torch.cat(parts)
        given[f"{place}.out"] = given.pop(f"{place}.attention.out").reshape(-1, width).T
        for part in ("wide", "narrow"):
            given[f"{place}.{part}.w"] = given[f"{place}.{part}.w"].T
    given["head.w"] = given["head.w"].T
    given = {name: value.contiguous() for name, value in given.items()}

    def shown(name: str, held: Any) -> Any:
        part = name.rpartition(".")[2]
        if ".attention." not in name:
            value = held[name].detach()
            return value.T if part == "w" and name != "table.w" else value
        place = name.partition(".attention.")[0]
        if part == "out":
            return held[f"{place}.out"].detach().T
        return held[f"{place}.qkv"].detach().chunk(3)[QKV.index(part)].T

    return given, shown


def gpt_step(sizes: Sizes, values: Values) -> Training:
    """AdamW."""
    given, shown = transformer(sizes, values)
    trained = tensors(given)
    c, s = turns(sizes["tokens"], sizes["width"] // sizes["heads"])

    def attend(number: int, q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def loss(x: Any, t: Any, p: Values, kept: Values) -> Any:
        return F.cross_entropy(scores(sizes, x, p, attend, c, s).flatten(0, 1), t.flatten())

    optimiser = torch.optim.AdamW(
        trained.values(), NET_RATE, eps=NET_EPSILON, weight_decay=NET_DECAY, fused=True
    )
    return Training(loss, trained, {}, optimiser, lambda name: shown(name, trained))


def lstm_model_step(sizes: Sizes, values: Values) -> Training:
    """Adam, and PyTorch's own layer, with its two biases of which one stays 0."""
    width = sizes["width"]
    given = {name: torch.tensor(value) for name, value in values.items()}
    layer = torch.nn.LSTM(width, width, batch_first=True)
    layer.bias_hh_l0.requires_grad_(False)
    with torch.no_grad():
        for own, name in (("weight_ih_l0", "w"), ("weight_hh_l0", "u"), ("bias_ih_l0", "b")):
            first = given.pop(f"lstm.{name}")
            getattr(layer, own).copy_(first.reshape(-1, 4 * width).T.squeeze())
        layer.bias_hh_l0.zero_()
    trained = tensors(given)

    def loss(x: Any, t: Any, p: Values, kept: Values) -> Any:
        y, _ = layer(F.embedding(x, p["table.w"]))
        y = torch.addmm(p["head.b"], y.flatten(0, 1), p["head.w"])
        return F.cross_entropy(y, t.flatten())

    def shown(name: str) -> Any:
        place, _, part = name.partition(".")
        if place != "lstm":
            return trained[name].detach()
        own = {"w": "weight_ih_l0", "u": "weight_hh_l0", "b": "bias_ih_l0"}[part]
        value = getattr(layer, own).detach()
        return value.T if value.ndim == 2 else value

    moved = [*trained.values(), *(p for p in layer.parameters() if p.requires_grad)]
    optimiser = torch.optim.Adam(moved, NET_RATE, eps=NET_EPSILON, fused=True)
    return Training(loss, trained, {}, optimiser, shown)


STEPS: dict[str, Callable[[Sizes, Values], Training]] = {
    f.__name__: f for f in (residual_step, gpt_step, lstm_model_step)
}


class Sampler:
    """Tokens one after another; keys and values are written into memory that is there."""

    def __init__(self, sizes: Sizes, values: Values) -> None:
        self.sizes = sizes
        self.weights, _ = transformer(sizes, values)
        heads, key = sizes["heads"], sizes["width"] // sizes["heads"]
        shape = (sizes["layers"], 2, 1, heads, sizes["places"], key)
        self.kept = torch.zeros(shape)
        self.turns = turns(sizes["places"], key)

    def step(self, token: Any, position: int) -> Any:
        """The scores after a token."""
        end = position + 1

        def attend(number: int, q: Any, k: Any, v: Any) -> Any:
            keys, values = self.kept[number]
            keys[:, :, position:end], values[:, :, position:end] = k, v
            return F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end])

        c, s = (each[position:end] for each in self.turns)
        return scores(self.sizes, token, self.weights, attend, c, s)[0, 0]

    def run(self, first: int) -> tuple[Any, Any]:
        """The tokens, each the likeliest, and the last scores."""
        said = []
        with torch.inference_mode():
            token = torch.tensor([[first]])
            for position in range(self.sizes["tokens"]):
                found = self.step(token, position)
                said.append(int(found.argmax()))
                token = torch.tensor([[said[-1]]])
        return torch.tensor(said), found
