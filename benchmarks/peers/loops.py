"""What the workloads of loops compute, said once for contenders whose arrays do arithmetic."""

from __future__ import annotations

from typing import Any

RING_STEP = 0.01


def ring_step(left2: Any, left: Any, at: Any, right: Any, force: Any) -> Any:
    """A step of one of the values on a ring.

    E. N. Lorenz, "Predictability: a problem partly solved", 1996, by Euler's method.
    """
    return at + RING_STEP * ((right - left2) * left - at + force)


def lstm_step(z: Any, c: Any, sigmoid: Any, tanh: Any) -> tuple[Any, Any]:
    """The new output and state of a cell from the sums of its four gates, one after the other."""
    i, f, g, o = z
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def gru_step(a: Any, z: Any, h: Any, sigmoid: Any, tanh: Any) -> Any:
    """The new state of a gated unit from three sums of its inputs, and of its old state."""
    reset, keep = sigmoid(a[0] + z[0]), sigmoid(a[1] + z[1])
    return (1 - keep) * tanh(a[2] + reset * z[2]) + keep * h
