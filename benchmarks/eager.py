"""Times of eager arrays beside PyTorch eager and JAX op by op, each in processes of its own.

    python benchmarks/eager.py                           # geon alone
    python benchmarks/eager.py --peers /path/to/python   # of an environment with torch and jax
    python benchmarks/eager.py --system geon --work mlp32   # one process, which prints JSON

The systems take turns, so that a change of the machine's load meets all of them. A figure is the
median of the medians of the processes, the first step apart. The steps are those of a program that
knows nothing of compiling: data come from NumPy in each step, and the loss is read in each.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

WORKS = {"mlp32": 200, "mlp512": 60, "transformer": 20, "large": 3, "small": 20}  # steps
RNG = np.random.default_rng(0)
LAYERS, HEADS, WIDTH, TIMES, BATCH = 3, 4, 64, 32, 8


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return (RNG.normal(size=shape) * 0.1).astype(np.float32)


def targets(count: int) -> np.ndarray[Any, Any]:
    return np.eye(10, dtype=np.float32)[RNG.integers(0, 10, count)]


MLP = [(64, 256), (256,), (256, 256), (256,), (256, 10), (10,)]
BLOCK = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]


# geon ----------------------------------------------------------------------------------------


def geon_work(work: str) -> Callable[[], float]:
    import geon
    from geon import eager

    if work in ("large", "small"):
        size = 10**6 if work == "large" else 100
        A, data = geon.Axis("A", size), drawn(size)

        def chain() -> float:
            y = eager.array(data, [A])
            for k in range(500):
                y = y * 0.999 + 0.001 if k % 2 or work == "small" else geon.tanh(y) * 0.999
                if work == "small":
                    y.numpy()
            return float(y.numpy()[0])

        return chain

    N, O = geon.Axis("N"), geon.Axis("O", 10)  # noqa: E741  # names of axes
    if work.startswith("mlp"):
        C, H, K = geon.Axis("C", 64), geon.Axis("H", 256), geon.Axis("K", 256)
        axes = [[C, H], [H], [H, K], [K], [K, O], [O]]
        weights = [
            geon.Variable(a, initial_value=drawn(*s)) for a, s in zip(axes, MLP, strict=True)
        ]
        inputs, wanted = drawn(int(work[3:]), 64), targets(int(work[3:]))

        def cost() -> Any:
            x, t = eager.array(inputs, [N, C]), eager.array(wanted, [N, O])
            w1, b1, w2, b2, w3, b3 = weights
            h = geon.relu(geon.dot(x, w1) + b1)
            h = geon.relu(geon.dot(h, w2) + b2)
            y = geon.softmax(geon.dot(h, w3) + b3, normalization_axes=O)
            return geon.mean(geon.cross_entropy_multi(y, t, out_axes=[N]))

    else:
        T, D, E = geon.Axis("T", TIMES), geon.Axis("D", WIDTH), geon.Axis("E", 4 * WIDTH)
        Q, R = geon.Axis("Q", 3 * WIDTH), geon.Axis("R", HEADS)
        S, V = geon.Axis("S", TIMES), geon.Axis("V", WIDTH // HEADS)
        axes = [[D, Q], [D, D.prime], [D, E], [E, D]] * LAYERS
        weights = [
            geon.Variable(a, initial_value=drawn(*s))
            for a, s in zip(axes, BLOCK * LAYERS, strict=True)
        ]
        weights.append(geon.Variable([D, O], initial_value=drawn(WIDTH, 10)))
        inputs, wanted = drawn(BATCH, TIMES, WIDTH), targets(BATCH)

        def norm(x: Any) -> Any:
            centred = x - geon.mean(x, D)
            return centred * geon.rsqrt(geon.mean(geon.square(centred), D) + 1e-5)

        def cost() -> Any:
            x, t = eager.array(inputs, [N, T, D]), eager.array(wanted, [N, O])
            for k in range(LAYERS):
                wq, wo, w1, w2 = weights[4 * k : 4 * k + 4]
                heads = geon.unflatten(geon.dot(norm(x), wq), Q, [geon.Axis("three", 3), R, V])
                q, k_, v = (heads[{"three": part}] for part in range(3))
                k_, v = k_.rename({"T": S}), v.rename({"T": S})
                scores = geon.dot(q, k_, over=V) * 0.25
                mixed = geon.dot(geon.softmax(scores, normalization_axes=S), v, over=S)
                mixed = geon.flatten(mixed, [R, V], D)
                x = x + geon.dot(mixed, wo).rename({"D'": "D"})
                x = x + geon.dot(geon.relu(geon.dot(norm(x), w1)), w2)
            y = geon.softmax(geon.dot(geon.mean(x, T), weights[-1]), normalization_axes=O)
            return geon.mean(geon.cross_entropy_multi(y, t, out_axes=[N]))

    def step() -> float:
        loss = cost()
        for w, slope in zip(weights, eager.grad(loss, weights), strict=True):
            geon.assign(w, w - 0.01 * slope)
        return float(loss)

    return step


# PyTorch ---------------------------------------------------------------------------------------


def torch_work(work: str) -> Callable[[], float]:
    import torch
    from torch.nn import functional

    if work in ("large", "small"):
        data = torch.tensor(drawn(10**6 if work == "large" else 100))

        def chain() -> float:
            y = data
            for k in range(500):
                y = y * 0.999 + 0.001 if k % 2 or work == "small" else torch.tanh(y) * 0.999
                if work == "small":
                    y.numpy()
            return float(y.numpy()[0])

        return chain
    if work.startswith("mlp"):
        weights = [torch.tensor(drawn(*s), requires_grad=True) for s in MLP]
        inputs, wanted = drawn(int(work[3:]), 64), targets(int(work[3:]))

        def outputs(x: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = weights
            return torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3

    else:
        weights = [torch.tensor(drawn(*s), requires_grad=True) for s in BLOCK * LAYERS]
        weights.append(torch.tensor(drawn(WIDTH, 10), requires_grad=True))
        inputs, wanted = drawn(BATCH, TIMES, WIDTH), targets(BATCH)

        def outputs(x: Any) -> Any:
            for k in range(LAYERS):
                wq, wo, w1, w2 = weights[4 * k : 4 * k + 4]
                heads = functional.layer_norm(x, (WIDTH,)) @ wq
                q, k_, v = heads.reshape(BATCH, TIMES, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
                mixed = torch.softmax(q @ k_.transpose(-1, -2) * 0.25, -1) @ v
                x = x + mixed.transpose(1, 2).reshape(BATCH, TIMES, WIDTH) @ wo
                x = x + torch.relu(functional.layer_norm(x, (WIDTH,)) @ w1) @ w2
            return x.mean(1) @ weights[-1]

    def step() -> float:
        loss = functional.cross_entropy(outputs(torch.tensor(inputs)), torch.tensor(wanted))
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, slope in zip(weights, slopes, strict=True):
                w -= 0.01 * slope
        return loss.item()

    return step


# JAX -------------------------------------------------------------------------------------------


def jax_work(work: str) -> Callable[[], float]:
    import jax
    import jax.numpy as jnp

    if work in ("large", "small"):
        data = jnp.asarray(drawn(10**6 if work == "large" else 100))

        def chain() -> float:
            y = data
            for k in range(500):
                y = y * 0.999 + 0.001 if k % 2 or work == "small" else jnp.tanh(y) * 0.999
                if work == "small":
                    np.asarray(y)
            return float(np.asarray(y)[0])

        return chain
    if work.startswith("mlp"):
        weights = [jnp.asarray(drawn(*s)) for s in MLP]
        inputs, wanted = drawn(int(work[3:]), 64), targets(int(work[3:]))

        def outputs(weights: Any, x: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = weights
            return jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3

    else:
        weights = [jnp.asarray(drawn(*s)) for s in BLOCK * LAYERS] + [jnp.asarray(drawn(WIDTH, 10))]
        inputs, wanted = drawn(BATCH, TIMES, WIDTH), targets(BATCH)

        def norm(x: Any) -> Any:
            centred = x - x.mean(-1, keepdims=True)
            return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

        def outputs(weights: Any, x: Any) -> Any:
            for k in range(LAYERS):
                wq, wo, w1, w2 = weights[4 * k : 4 * k + 4]
                heads = (norm(x) @ wq).reshape(BATCH, TIMES, 3, HEADS, -1)
                q, k_, v = jnp.transpose(heads, (2, 0, 3, 1, 4))
                mixed = jax.nn.softmax(q @ jnp.swapaxes(k_, -1, -2) * 0.25) @ v
                x = x + jnp.swapaxes(mixed, 1, 2).reshape(BATCH, TIMES, WIDTH) @ wo
                x = x + jax.nn.relu(norm(x) @ w1) @ w2
            return x.mean(1) @ weights[-1]

    def cost(weights: Any, x: Any, t: Any) -> Any:
        return -(jax.nn.log_softmax(outputs(weights, x)) * t).sum(-1).mean()

    def step() -> float:
        nonlocal weights
        loss, slopes = jax.value_and_grad(cost)(weights, jnp.asarray(inputs), jnp.asarray(wanted))
        weights = [w - 0.01 * slope for w, slope in zip(weights, slopes, strict=True)]
        return float(loss)

    return step


SYSTEMS = {"geon": geon_work, "torch": torch_work, "jax": jax_work}


def timed(system: str, work: str) -> dict[str, float]:
    """The seconds of the first step, the median and the least of the others, and the last loss."""
    step = SYSTEMS[system](work)
    times = []
    for _ in range(WORKS[work]):
        begin = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begin)
    rest = times[min(3, len(times) - 1) :]
    return {"first": times[0], "median": float(np.median(rest)), "least": min(rest), "loss": loss}


def compared(peers: str | None, processes: int) -> None:
    """Run every system on every work in turn, and print a table."""
    pythons = {"geon": sys.executable, **({"torch": peers, "jax": peers} if peers else {})}
    ratios = []
    print("work, then for each system: first step ms, median step µs, least step µs")
    for work in WORKS:
        found: dict[str, list[dict[str, float]]] = {system: [] for system in pythons}
        for _ in range(processes):
            for system, python in pythons.items():
                command = [python, __file__, "--system", system, "--work", work]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[system].append(json.loads(done.stdout.splitlines()[-1]))
        row, medians = [work], {}
        for system, runs in found.items():
            first, median, least = (
                float(np.median([run[kind] for run in runs]))
                for kind in ("first", "median", "least")
            )
            medians[system] = median
            row.append(f"{system} {first * 1e3:.1f} {median * 1e6:.0f} {least * 1e6:.0f}")
        if peers:
            ratios.append(min(medians["torch"], medians["jax"]) / medians["geon"])
            row.append(f"best peer / geon {ratios[-1]:.2f}")
        print("; ".join(row), flush=True)
    if ratios:
        print(f"geometric mean {math.exp(np.mean(np.log(ratios))):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of an environment with torch and jax")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--work", choices=WORKS)
    options = parser.parse_args()
    if options.system:
        print(json.dumps(timed(options.system, options.work)))
    else:
        compared(options.peers, options.processes)


if __name__ == "__main__":
    main()
