# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""In PyTorch: loops. Each function takes sizes and data and gives a call without arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .loops import ring_step
from .workloads import Sizes

Data = dict[str, Any]
Made = Callable[[], Any]


def layer(kind: Any, sizes: Sizes, data: Data) -> Any:
    """PyTorch's own layer, with the weights given; it has two biases, of which one stays zero."""
    made = kind(sizes["inputs"], sizes["hidden"])
    for name, value in (("weight_ih_l0", data["w"].T), ("weight_hh_l0", data["u"].T),
                        ("bias_ih_l0", data["b"]), ("bias_hh_l0", 0 * data["b"])):  # fmt: skip
        with torch.no_grad():
            getattr(made, name).copy_(torch.tensor(value))
    made.bias_hh_l0.requires_grad_(False)
    return made


def lstm_forward(sizes: Sizes, data: Data) -> Made:
    """The outputs of all steps."""
    made, x = layer(torch.nn.LSTM, sizes, data), torch.tensor(data["x"])

    def call() -> Any:
        with torch.inference_mode():
            return made(x)[0]

    return call


def slopes(kind: Any, sizes: Sizes, data: Data) -> Made:
    """The derivatives of the sum of squares with respect to inputs and weights."""
    made, x = layer(kind, sizes, data), torch.tensor(data["x"]).requires_grad_()
    wanted = [x, made.weight_ih_l0, made.weight_hh_l0, made.bias_ih_l0]

    def call() -> Any:
        found = torch.autograd.grad(made(x)[0].square().sum(), wanted)
        return [found[0], found[1].T, found[2].T, found[3]]

    return call


def lstm_gradient(sizes: Sizes, data: Data) -> Made:
    """Derivatives with respect to inputs and weights."""
    return slopes(torch.nn.LSTM, sizes, data)


def gru_gradient(sizes: Sizes, data: Data) -> Made:
    """The same of the gated unit."""
    return slopes(torch.nn.GRU, sizes, data)


def products_gradient(sizes: Sizes, data: Data) -> Made:
    """Derivatives of what matrices make of one, step by step, with respect to them."""
    m, start = torch.tensor(data["m"]).requires_grad_(), torch.tensor(data["start"])

    def call() -> Any:
        end = start
        for each in m.unbind():
            end = each @ end
        return [end.detach(), torch.autograd.grad(end.square().sum(), m)[0]]

    return call


def after_ring(force: Any, at: Any) -> Any:
    """The sum of squares of the values on a ring after all steps."""
    for each in force.unbind():
        at = ring_step(at.roll(2), at.roll(1), at, at.roll(-1), each)
    return at.square().sum()


def ring(sizes: Sizes, data: Data) -> Made:
    """Of values that are one vector."""
    force, start = torch.tensor(data["force"]), torch.tensor(data["start"])

    def call() -> Any:
        with torch.inference_mode():
            return after_ring(force, start)

    return call


def ring_gradient(sizes: Sizes, data: Data) -> Made:
    """Its derivatives."""
    given = [torch.tensor(data[name]).requires_grad_() for name in ("force", "start")]
    return lambda: torch.autograd.grad(after_ring(*given), given)


# An ensemble of systems takes seconds there, an op for each op of each step, and is left out.
LOOPS: dict[str, Callable[[Sizes, Data], Made]] = {
    f.__name__: f
    for f in (lstm_forward, lstm_gradient, gru_gradient, products_gradient, ring, ring_gradient)
}
