"""A chain of cheap ops with three results: a system of three values, in steps of Runge-Kutta."""

from __future__ import annotations

from typing import Any

STEP = 0.01


def slopes(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    """E. N. Lorenz, "Deterministic nonperiodic flow", 1963."""
    return 10 * (y - x), x * (28 - z) - y, x * y - 2.6666667 * z


def moved(at: Any, by: Any, step: float) -> tuple[Any, ...]:
    """Three values after a step along slopes."""
    return tuple(value + step * slope for value, slope in zip(at, by, strict=True))


def stepped(at: Any) -> tuple[Any, ...]:
    """A step of the classical Runge-Kutta method, 71 ops."""
    h = STEP
    first = slopes(*at)
    second = slopes(*moved(at, first, h / 2))
    third = slopes(*moved(at, second, h / 2))
    last = slopes(*moved(at, third, h))
    parts = zip(at, first, second, third, last, strict=True)
    return tuple(x + h / 6 * ((a + 2 * b) + (2 * c + d)) for x, a, b, c, d in parts)
