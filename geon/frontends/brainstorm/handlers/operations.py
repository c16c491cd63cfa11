"""The formulas of handlers' operations, as functions of geon's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "rel": geon.relu,
    "sigmoid": geon.sigmoid,
    "tanh": geon.tanh,
    "el": geon.elu,
}
"""Activation functions by Brainstorm's names, besides ``linear``."""

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "abs_t": geon.absolute,
    "sign_t": geon.sign,
    "sqrt_t": geon.sqrt,
    "log_t": geon.log,
    "clip_t": geon.clip,
    "add_st": lambda t, s: s + t,
    "mult_st": lambda t, s: s * t,
    "mult_add_st": lambda t, out, s: out + s * t,
    "add_tt": lambda a, b: a + b,
    "subtract_tt": lambda a, b: a - b,
    "mult_tt": lambda a, b: a * b,
    "mult_add_tt": lambda a, b, out: out + a * b,
    "divide_tt": lambda a, b: a / b,
    "modulo_tt": geon.mod,
    "add_into_if": lambda a, out, cond: geon.where(geon.not_equal(cond, 0), out + a, out),
    **ACTIVATIONS,
    "rel_deriv": lambda y, dy: geon.where(y > 0, dy, 0),
    "sigmoid_deriv": lambda y, dy: dy * y * (1 - y),
    "tanh_deriv": lambda y, dy: dy * (1 - y * y),
    "el_deriv": lambda y, dy: geon.where(y > 0, dy, dy * (y + 1)),
}

VECTOR: dict[str, Callable[..., Any]] = {
    "add_mv": lambda m, v: m + v,
    "subtract_mv": lambda m, v: m - v,
    "mult_mv": lambda m, v: m * v,
    "divide_mv": lambda m, v: m / v,
    "mult_add_mv": lambda m, v, out: out + m * v,
}


def activation(name: str) -> Callable[[Any], Any]:
    """Return an activation function by its name."""
    return ACTIVATIONS.get(name, lambda x: x)


def windows(window: Sequence[int], padding: int, stride: Sequence[int]) -> dict[Any, Any]:
    """Return windows along the axes h and w, whose positions are the axes r and s."""
    return {
        axis: geon.Window(geon.Axis(inner, size), stride=step, pad=padding)
        for axis, inner, size, step in zip("hw", "rs", window, stride, strict=True)
    }


def convolve(window: Sequence[int], padding: int, stride: Sequence[int]) -> Callable[..., Any]:
    """Return the convolution of x over (..., h, w, c), filters over (k, r, s, c), bias over k."""

    def function(x: Any, filters: Any, bias: Any) -> Any:
        found = geon.convolution(x, filters, windows(window, padding, stride), over="c") + bias
        return geon.reorder(found, [*[axis for axis in x.axes if axis.name != "c"], "k"])

    return function


def pool(
    kind: str, window: Sequence[int], padding: int, stride: Sequence[int]
) -> Callable[[Any], Any]:
    """Return the pooling of x along h and w; ``avg`` counts padding as 0."""

    def function(x: Any) -> Any:
        placed = windows(window, padding, stride)
        if kind == "max":
            return geon.max_pool(x, placed)
        return geon.average_pool(x, placed, count_pad=True)

    return function


def deriv_of(function: Callable[..., Any], count: int) -> Callable[..., list[Any]]:
    """Return the derivatives of a function by its ``count`` arguments, for a seed after these."""

    def derivatives(*args: Any) -> list[Any]:
        y = function(*args[:count])
        seed = geon.cast_axes(args[count], y.axes)
        return list(geon.deriv(y, list(args[:count]), seed=seed))

    return derivatives
