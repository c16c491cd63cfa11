"""How long a first call takes in a fresh process, geon beside JAX.

``python -m benchmarks.compile_times`` (with JAX installed beside geon; ``make bench`` has such an
environment in ``.venv-bench``) prints medians of interleaved trials: of the very first program of
a machine, of a new program on a machine that has compiled another one before, and of one that was
compiled before. Counted is from the first op written to the first result; importing is not.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {
    "mlp": "784-512-512-10 MLP training step",
    "chain": "chain of 900 ops with gradient",
    "gpt": "GPT training step, three layers",
    "gru": "GRU over 20 steps, unrolled, with gradient",
    "lstm": "LSTM of 8 units over open axes, with gradient",
    "third": "third derivative of two layers",
    "deep": "200-layer MLP training step",
}
BEFORE = "third"  # the other program of a machine that has compiled one; for that one, mlp


def seconds(contender: str, program: str, folder: str) -> float:
    """What a fresh process takes for a program, with its caches in ``folder``."""
    settings = {
        "GEON_CACHE": f"{folder}/geon",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-m", f"benchmarks.compile_times.{contender}_programs", program]
    ran = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    return float(ran.stdout.split()[-1])


def trial(contender: str, program: str) -> dict[str, float]:
    """One measurement of each kind."""
    found = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found["first"] = seconds(contender, program, folder)
        found["cached"] = seconds(contender, program, folder)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seconds(contender, BEFORE if program != BEFORE else "mlp", folder)
        found["new"] = seconds(contender, program, folder)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_times")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    chosen = parser.parse_args()
    kinds = ("first", "new", "cached")
    ratios: dict[str, list[float]] = {kind: [] for kind in kinds}
    print("| program | " + " | ".join(f"{k}: geon | JAX | ratio" for k in kinds) + " |")
    print("|---" * 10 + "|")
    for program in chosen.only.split(","):
        taken: dict[str, list[dict[str, float]]] = {"geon": [], "jax": []}
        for _ in range(chosen.trials):
            for contender, found in taken.items():
                found.append(trial(contender, program))
        cells = []
        for kind in kinds:
            own, other = (
                statistics.median(found[kind] for found in taken[name]) for name in ("geon", "jax")
            )
            ratios[kind].append(own / other)
            cells.append(f"{own:.3f} s | {other:.3f} s | {own / other:.2f}")
        print(f"| {PROGRAMS[program]} | {' | '.join(cells)} |", flush=True)
    means = {k: math.exp(statistics.fmean(map(math.log, each))) for k, each in ratios.items()}
    print("geometric means: " + ", ".join(f"{k} {mean:.2f}" for k, mean in means.items()))


if __name__ == "__main__":
    main()
