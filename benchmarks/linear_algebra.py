"""Linear algebra beside SciPy, JAX and PyTorch: ``python -m benchmarks.linear_algebra``.

Each contender runs in a process of its own, one after another, on two threads. Printed are medians
in microseconds. JAX and PyTorch run with ``--peers PYTHON``, an interpreter that has them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

SIZES = (10, 30, 100, 300, 1000, 2000)
BATCH, STEPS, POINTS = 10_000, 10_000, 2_000
SECONDS = 2.0  # of each measurement, if it takes less than a third of that

Work = Callable[[], Any]


def median(work: Work) -> float:
    """The median of the microseconds of calls."""
    work()
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(times) < 3 or (time.perf_counter() < until and len(times) < 1000):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def positive(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A positive definite matrix and a right-hand side."""
    random = np.random.default_rng(0)
    x = random.normal(size=(n, n))
    return x @ x.T / n + np.eye(n), random.normal(size=n)


def small() -> tuple[np.ndarray, np.ndarray]:
    """A batch of 4x4 systems."""
    random = np.random.default_rng(0)
    a = random.normal(size=(BATCH, 4, 4)) + 4 * np.eye(4)
    return a.astype(np.float32), random.normal(size=(BATCH, 4)).astype(np.float32)


# A Kalman filter of four states, two of which are seen.
MOVE, LOOK = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4)


def seen() -> np.ndarray:
    """What the filter sees."""
    return 0.1 * np.random.default_rng(0).normal(size=(STEPS, 2)).cumsum(0)


def points() -> tuple[np.ndarray, np.ndarray]:
    """Places and values of a Gaussian process."""
    random = np.random.default_rng(0)
    t = np.sort(random.uniform(0, 50, POINTS))
    return t, np.sin(t) + 0.1 * random.normal(size=POINTS)


# geon ---------------------------------------------------------------------------------------------


def geon_works() -> Iterator[tuple[str, Work]]:
    """The work of geon's native code."""
    import geon
    from geon import linalg

    native = geon.make_transformer("native", threads=2)
    i, j = geon.Axis("I"), geon.Axis("J")
    a, b = geon.placeholder([i, j], "float64"), geon.placeholder([i], "float64")
    functions = {
        "cholesky": linalg.cholesky(a, [i, j]),
        "solve": linalg.solve(a, b, [i, j]),
        "qr": list(linalg.qr(a, [i, j])),
        "eigh": list(linalg.eigh(a, [i, j])),
    }
    for name, result in functions.items():
        given = (a, b) if name == "solve" else (a,)
        f = native.computation(result, *given)
        for n in SIZES:
            arrays = positive(n)[: len(given)]
            yield f"{name} {n}", partial(f, *arrays)

    n, r, c = geon.Axis("N"), i.with_length(4), j.with_length(4)
    a, b = geon.placeholder([n, r, c]), geon.placeholder([n, r])
    loss = geon.sum(geon.square(linalg.solve(a, b, [i, j])))
    f = native.computation([loss, *geon.deriv(loss, [a, b])], a, b)
    yield "10,000 solves of 4x4, gradient", partial(f, *small())

    s, o, t = geon.Axis("S", 4), geon.Axis("O", 2), geon.Axis("T")
    move = geon.constant(MOVE, [s, s.prime], dtype="float64")
    look = geon.constant(LOOK, [o, s], dtype="float64")
    ys = geon.placeholder([t, o], "float64")
    drift, noise = (geon.placeholder([], "float64") for _ in range(2))
    unit = geon.constant(np.eye(4), [s, s.prime], dtype="float64")
    small_unit = geon.constant(np.eye(2), [o, o.prime], dtype="float64")

    def step(known: Any, y: Any) -> Any:
        mean, covariance = known
        mean = geon.dot(move, mean.rename({s: s.prime}), s.prime)
        half = geon.dot(move, covariance.rename({s: s.prime, s.prime: "K"}), s.prime)
        covariance = geon.dot(half, move.rename({s: s.prime, s.prime: "K"}), "K") + drift * unit
        cross = geon.dot(look, covariance, s)
        spread = geon.dot(cross, look.rename({o: o.prime, s: s.prime}), s.prime)
        factor = linalg.cholesky(spread + noise * small_unit, [o, o.prime])
        gap = linalg.triangular_solve(factor, y - geon.dot(look, mean, s), [o, o.prime])
        gain = linalg.triangular_solve(factor, cross, [o, o.prime]).rename({s.prime: s})
        logs = geon.sum(geon.log(geon.diagonal(factor, [o, o.prime])))
        mean = mean + geon.dot(gain, gap, o.prime)
        covariance = covariance - geon.dot(gain, gain.rename({s: s.prime}), o.prime)
        return (mean, covariance), -geon.sum(geon.square(gap)) / 2 - logs

    begin = geon.constant(np.zeros(4), [s], dtype="float64"), unit
    total = geon.sum(geon.scan(step, begin, ys, over=t)[1])
    f = native.computation([total, *geon.deriv(total, [drift, noise])], ys, drift, noise)
    yield "Kalman filter, 10,000 steps, gradient", partial(f, seen(), 0.1, 0.5)

    n = geon.Axis("N")
    place, value = (geon.placeholder([n], "float64") for _ in range(2))
    length, noise = (geon.placeholder([], "float64") for _ in range(2))
    far = geon.outer(geon.subtract, place, place.rename({n: n.prime}))
    same = geon.outer(geon.equal, geon.iota(n), geon.iota(n.prime)).cast("float64")
    covariance = geon.exp(-geon.square(far / length) / 2) + geon.square(noise) * same
    factor = linalg.cholesky(covariance, [n, n.prime])
    white = linalg.triangular_solve(factor, value, [n, n.prime])
    logs = geon.sum(geon.log(geon.diagonal(factor, [n, n.prime])))
    likelihood = -geon.sum(geon.square(white)) / 2 - logs
    f = native.computation(
        [likelihood, *geon.deriv(likelihood, [length, noise])], place, value, length, noise
    )
    yield "Gaussian process, 2,000 points, gradient", partial(f, *points(), 1.0, 0.3)


# The others ---------------------------------------------------------------------------------------


def scipy_works() -> Iterator[tuple[str, Work]]:
    """The work of SciPy."""
    import scipy.linalg as sl

    for n in SIZES:
        a, b = positive(n)
        yield f"cholesky {n}", lambda a=a: sl.cholesky(a, lower=True)
        yield f"solve {n}", lambda a=a, b=b: sl.solve(a, b)
        yield f"qr {n}", lambda a=a: sl.qr(a, mode="economic")
        yield f"eigh {n}", lambda a=a: sl.eigh(a)


def jax_works() -> Iterator[tuple[str, Work]]:
    """The work of JAX, compiled."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def ready(f: Any, *arrays: Any) -> Work:
        return lambda: jax.block_until_ready(f(*arrays))

    def solved(a: Any, b: Any) -> Any:
        return jnp.sum(jnp.linalg.solve(a, b[..., None]) ** 2)

    f = jax.jit(jax.value_and_grad(solved, (0, 1)))
    yield "10,000 solves of 4x4, gradient", ready(f, *map(jnp.asarray, small()))

    def filtered(drift: Any, noise: Any, ys: Any) -> Any:
        solve = jax.scipy.linalg.solve_triangular

        def step(known: Any, y: Any) -> Any:
            mean, covariance = known
            mean = MOVE @ mean
            covariance = MOVE @ covariance @ MOVE.T + drift * jnp.eye(4)
            cross = LOOK @ covariance
            factor = jnp.linalg.cholesky(cross @ LOOK.T + noise * jnp.eye(2))
            gap = solve(factor, y - LOOK @ mean, lower=True)
            gain = solve(factor, cross, lower=True)
            likely = -jnp.sum(gap**2) / 2 - jnp.sum(jnp.log(jnp.diagonal(factor)))
            return (mean + gain.T @ gap, covariance - gain.T @ gain), likely

        return jnp.sum(jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1])

    f = jax.jit(jax.value_and_grad(filtered, (0, 1)))
    yield "Kalman filter, 10,000 steps, gradient", ready(f, 0.1, 0.5, jnp.asarray(seen()))


def torch_works() -> Iterator[tuple[str, Work]]:
    """The work of PyTorch."""
    import torch

    torch.set_num_threads(2)
    t, y = (torch.tensor(each) for each in points())

    def process() -> None:
        length = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        noise = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        far = (t[:, None] - t[None]) / length
        covariance = torch.exp(-far.square() / 2)
        covariance = covariance + noise**2 * torch.eye(POINTS, dtype=torch.float64)
        factor = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        likelihood = -white.square().sum() / 2 - factor.diagonal().log().sum()
        likelihood.backward()

    yield "Gaussian process, 2,000 points, gradient", process


WORKS = {"geon": geon_works, "scipy": scipy_works, "jax": jax_works, "torch": torch_works}
PEERS = ("jax", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear_algebra")
    parser.add_argument("--peers", help="an interpreter that has JAX and PyTorch")
    parser.add_argument("--only", default="", help="works whose names contain this")
    parser.add_argument("--contender", choices=WORKS, help="measure this one, and print JSON")
    chosen = parser.parse_args()
    if chosen.contender:
        found = {
            name: median(work) for name, work in WORKS[chosen.contender]() if chosen.only in name
        }
        print(json.dumps(found))
        return
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    table: dict[str, dict[str, float]] = {}
    for contender in WORKS:
        python = chosen.peers if contender in PEERS else sys.executable
        if python is None:
            continue
        command = [python, __file__, "--contender", contender, "--only", chosen.only]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        for name, microseconds in json.loads(done.stdout.splitlines()[-1]).items():
            table.setdefault(name, {})[contender] = microseconds
    print(f"| work | {' | '.join(WORKS)} |")
    print("|---" * (len(WORKS) + 1) + "|")
    for name, row in table.items():
        shown = [f"{row[each]:,.1f}" if each in row else "" for each in WORKS]
        print(f"| {name} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
