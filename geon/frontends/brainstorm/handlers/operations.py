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

ELEMENTWISE: dict[str, tuple[str, Callable[..., Any]]] = {
    "abs_t": ("the absolute values", lambda a: geon.absolute(a)),
    "sign_t": ("the signs: -1, 0 or 1", lambda a: geon.sign(a)),
    "sqrt_t": ("the square roots", lambda a: geon.sqrt(a)),
    "log_t": ("the natural logarithms", lambda a: geon.log(a)),
    "clip_t": (
        "the elements clipped to an interval",
        lambda a, a_min, a_max: geon.clip(a, a_min, a_max),
    ),
    "add_st": ("s + t", lambda s, t: s + t),
    "mult_st": ("s * t", lambda s, t: s * t),
    "mult_add_st": ("out + s * t", lambda s, t, out: out + s * t),
    "add_tt": ("a + b", lambda a, b: a + b),
    "subtract_tt": ("a - b", lambda a, b: a - b),
    "mult_tt": ("a * b", lambda a, b: a * b),
    "mult_add_tt": ("out + a * b", lambda a, b, out: out + a * b),
    "divide_tt": ("a / b", lambda a, b: a / b),
    "modulo_tt": ("the remainders of a / b, with the signs of b", lambda a, b: geon.mod(a, b)),
    "add_into_if": (
        "out + a where cond is not 0",
        lambda a, out, cond: geon.where(geon.not_equal(cond, 0), out + a, out),
    ),
    "rel": ("max(x, 0)", lambda x: geon.relu(x)),
    "sigmoid": ("1 / (1 + exp(-x))", lambda x: geon.sigmoid(x)),
    "tanh": ("the hyperbolic tangent", lambda x: geon.tanh(x)),
    "el": ("x for positive x, else exp(x) - 1", lambda x: geon.elu(x)),
    "rel_deriv": ("dx from y and dy", lambda x, y, dy: geon.where(y > 0, dy, 0)),
    "sigmoid_deriv": ("dx from y and dy", lambda x, y, dy: dy * y * (1 - y)),
    "tanh_deriv": ("dx from y and dy", lambda x, y, dy: dy * (1 - y * y)),
    "el_deriv": ("dx from y and dy", lambda x, y, dy: geon.where(y > 0, dy, dy * (y + 1))),
    "add_mv": ("m + v", lambda m, v: m + v),
    "subtract_mv": ("m - v", lambda m, v: m - v),
    "mult_mv": ("m * v", lambda m, v: m * v),
    "divide_mv": ("m / v", lambda m, v: m / v),
    "mult_add_mv": ("out + m * v", lambda m, v, out: out + m * v),
}
"""Operations on each element: what they compute, and the formula.

Its parameters are those of the operation, which has one more at the end for the result, ``y`` of an
activation function, ``dx`` of a derivative, else ``out``, unless the formula reads that, too.
``s``, ``a_min`` and ``a_max`` are numbers, ``v`` a row or a column; ``x`` of a derivative may be
None.
"""
NUMBERS = frozenset(["s", "a_min", "a_max"])


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
    """Return the convolution of x over (..., h, w, i), filters over (c, r, s, i), bias over c.

    The result is over (..., h, w, c).
    """

    def function(x: Any, filters: Any, bias: Any) -> Any:
        found = geon.convolution(x, filters, windows(window, padding, stride), over="i") + bias
        return geon.reorder(found, [*[axis for axis in x.axes if axis.name != "i"], "c"])

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
