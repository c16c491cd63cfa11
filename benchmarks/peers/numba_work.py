# mypy: disable-error-code="import-not-found,import-untyped,misc,untyped-decorator,unused-ignore"
"""The workloads of loops in Numba: loops over elements, derivatives written out."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import njit, prange

from .prepared import Builder, Prepared, plain
from .workloads import Sizes

Array = np.ndarray[Any, Any]
Data = dict[str, Any]
notes: list[str] = []
f32 = np.float32
RING = f32(0.01)
BLOCK = 64  # systems that go through all steps together
H, HALF, SIXTH = f32(0.01), f32(0.01 / 2), f32(0.01 / 6)
TEN, RHO, BETA, TWO = f32(10), f32(28), f32(2.6666667), f32(2)


def version() -> str:
    """Of Numba."""
    return str(numba.__version__)


def start(threads: int) -> None:
    """Set the number of threads."""
    numba.set_num_threads(threads)


# Values on a ring -------------------------------------------------------------------------------


@njit(fastmath={"contract"})
def ring_states(force: Array, start: Array) -> Array:
    """The values before each step and after the last, with two of each end beside them."""
    steps, count = len(force), len(start)
    found = np.empty((steps + 1, count + 4), f32)
    found[0, 2:-2] = start
    for t in range(steps + 1):
        at = found[t]
        at[0], at[1] = at[count], at[count + 1]
        at[count + 2], at[count + 3] = at[2], at[3]
        if t < steps:
            after = found[t + 1]
            for k in range(2, count + 2):
                after[k] = at[k] + RING * ((at[k + 1] - at[k - 2]) * at[k - 1] - at[k] + force[t])
    return found


@njit(fastmath={"contract"})
def after_ring(force: Array, start: Array) -> Any:
    """The sum of squares after all steps."""
    last = ring_states(force, start)[-1, 2:-2]
    total = f32(0)
    for value in last:
        total += value * value
    return total


@njit(fastmath={"contract"})
def before_ring(force: Array, start: Array) -> tuple[Array, Array]:
    """The slopes of that sum."""
    states = ring_states(force, start)
    steps, count = len(force), len(start)
    slope, before = TWO * states[-1], np.empty(count + 4, f32)
    for_force = np.empty(steps, f32)
    for back in range(steps):
        t = steps - 1 - back
        at, total = states[t], f32(0)
        for k in range(2, count + 2):
            moved = slope[k + 1] * (at[k + 2] - at[k - 1]) + slope[k - 1] * at[k - 2]
            moved -= slope[k + 2] * at[k + 1] + slope[k]
            before[k] = slope[k] + RING * moved
            total += slope[k]
        for_force[t] = RING * total
        before[0], before[1] = before[count], before[count + 1]
        before[count + 2], before[count + 3] = before[2], before[3]
        slope, before = before, slope
    return for_force, slope[2:-2].copy()


def ring(sizes: Sizes, data: Data) -> Prepared:
    """The sum of squares of values on a ring."""
    return plain(lambda: after_ring(data["force"], data["start"]))


def ring_gradient(sizes: Sizes, data: Data) -> Prepared:
    """Its derivatives."""
    return plain(lambda: list(before_ring(data["force"], data["start"])))


# Systems of three values --------------------------------------------------------------------------


@njit(fastmath={"contract"})
def slopes(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    """E. N. Lorenz, "Deterministic nonperiodic flow", 1963."""
    return TEN * (y - x), x * (RHO - z) - y, x * y - BETA * z


@njit(fastmath={"contract"})
def stepped(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    """A step of the classical Runge-Kutta method."""
    a, b, c = slopes(x, y, z)
    d, e, f = slopes(x + HALF * a, y + HALF * b, z + HALF * c)
    p, q, r = slopes(x + HALF * d, y + HALF * e, z + HALF * f)
    u, v, w = slopes(x + H * p, y + H * q, z + H * r)
    return (
        x + SIXTH * ((a + TWO * d) + (TWO * p + u)),
        y + SIXTH * ((b + TWO * e) + (TWO * q + v)),
        z + SIXTH * ((c + TWO * f) + (TWO * r + w)),
    )


@njit(parallel=True, fastmath={"contract"})
def all_stepped(steps: int, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Where each system is after all steps, block by block."""
    x, y, z = x.copy(), y.copy(), z.copy()
    count = len(x)
    for block in prange((count + BLOCK - 1) // BLOCK):
        first, end = block * BLOCK, min(count, (block + 1) * BLOCK)
        for _ in range(steps):
            for k in range(first, end):
                x[k], y[k], z[k] = stepped(x[k], y[k], z[k])
    return x, y, z


def lorenz(sizes: Sizes, data: Data) -> Prepared:
    """Where each system is after all steps."""
    return plain(lambda: list(all_stepped(sizes["steps"], data["x"], data["y"], data["z"])))


# Products of small matrices -----------------------------------------------------------------------


@njit(fastmath={"contract"})
def multiply(a: Array, b: Array, made: Array) -> None:
    """A product by three loops."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = f32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            made[i, j] = total


@njit(fastmath={"contract"})
def chained(m: Array, start: Array) -> tuple[Array, Array]:
    """All products, one after the other, and the slopes of the last one's squares."""
    steps = len(m)
    states = np.empty((steps + 1, *start.shape), f32)
    states[0] = start
    for t in range(steps):
        multiply(m[t], states[t], states[t + 1])
    slope, before, found = TWO * states[steps], np.empty_like(start), np.empty_like(m)
    for back in range(steps):
        t = steps - 1 - back
        multiply(slope, states[t].T, found[t])
        multiply(m[t].T, slope, before)
        slope, before = before, slope
    return states[steps].copy(), found


def products_gradient(sizes: Sizes, data: Data) -> Prepared:
    """Derivatives of what matrices make of one, step by step, with respect to them."""
    return plain(lambda: list(chained(data["m"], data["start"])))


BUILDERS: dict[str, Builder] = {
    f.__name__: f for f in (ring, ring_gradient, lorenz, products_gradient)
}
