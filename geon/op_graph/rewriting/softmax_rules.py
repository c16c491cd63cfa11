"""Rewrites the derivative of softmax in terms of its result alone.

With y = exp(z) / s, where s = sum(exp(z)), and a cotangent g, the chain rule gives

    exp(z) * (g / s - sum(g * y / s)) = y * (g - sum(g * y)).

The left side reads both exp(z) and y, and divides for each element.
"""

from __future__ import annotations

from ..op_graph import Op
from ..rows.elementwise import multiply, subtract
from ..rows.movement import sum_over
from .driver import Rules
from .matching import is_of, over_axes, tensor

softmax = Rules("softmax")


@softmax.on("multiply")
def derivative_of_softmax(op: Op) -> Op | None:
    """exp(z) * (g / s + sum(g * (-y / s))) is y * (g - sum(g * y)) for y = exp(z) / s."""
    for powers, rest in (op.args, op.args[::-1]):
        if not is_of(powers, "exp") or not is_of(rest, "add"):
            continue
        for scaled, shared in (rest.args, rest.args[::-1]):
            parts = _softmax(powers, scaled, _inner(shared))
            if parts is not None:
                y, g, names = (tensor(parts[0]), tensor(parts[1]), parts[2])
                meets = sum_over(multiply.apply(g, y), names)
                return over_axes(multiply.apply(y, subtract.apply(g, meets)), op)
    return None


def _softmax(powers: Op, scaled: Op, shared: Op) -> tuple[Op, Op, tuple[str, ...]] | None:
    """Return the softmax, its cotangent and its axes if the terms match the pattern; else None."""
    if not is_of(shared, "sum") or not is_of(shared.args[0], "multiply"):
        return None
    names = shared.attrs.reduced
    for g, other in (shared.args[0].args, shared.args[0].args[::-1]):
        if not is_of(other, "divide") or not is_of(other.args[0], "negative"):
            continue
        y, s = other.args[0].args[0], _inner(other.args[1])
        if not is_of(s, "sum") or s.args[0] is not powers or s.attrs.reduced != names:
            continue
        of_powers = is_of(y, "divide") and y.args[0] is powers and _inner(y.args[1]) is s
        if of_powers and y.axes is powers.axes and _is_over(scaled, g, s):
            return y, g, names
    return None


def _is_over(scaled: Op, g: Op, s: Op) -> bool:
    """Return True if ``scaled`` is g / s, as a quotient or by a reciprocal."""
    if is_of(scaled, "divide"):
        return scaled.args[0] is g and _inner(scaled.args[1]) is s
    if not is_of(scaled, "multiply"):
        return False
    for x, y in (scaled.args, scaled.args[::-1]):
        if x is g and is_of(y, "reciprocal") and _inner(y.args[0]) is s:
            return True
    return False


def _inner(op: Op) -> Op:
    """Return the op below broadcasts."""
    while is_of(op, "broadcast"):
        op = op.args[0]
    return op


SOFTMAX_RULES = softmax.done()
