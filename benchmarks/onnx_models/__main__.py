"""Measure imported models: ``python -m benchmarks.onnx_models [--only NAME]``.

Inference is compared with ONNX Runtime, a training step with PyTorch. Each contender has a process
of its own, and they take turns; a figure is the median of the turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..peers.processes import ROOT, environment, pin
from . import models
from .worker import SESSIONS, STEPS

MODELS = {
    "residual_net": models.residual_net,
    "mobile_net": models.mobile_net,
    "encoder": models.encoder,
    "forest": models.forest,
    "residual_step": models.residual_net,  # of training, beside PyTorch
}
# The work of each model: the kind of its inputs and their sizes.
WORK = {
    "residual_net": ("image", [[1], [8]]),
    "mobile_net": ("image", [[1], [8]]),
    "encoder": ("text", [[1, 16], [1, 64], [1, 256], [8, 128]]),
    "forest": ("table", [[1], [1000], [10000]]),
    "residual_step": ("labelled", [[8]]),
}
REST = 0.25  # seconds: threads of the contender before spin on for a while
SLACK = 2e-3  # of the largest element, between the results of the contenders


class Contender:
    """A process of one contender."""

    def __init__(self, name: str, threads: int, folder: Path) -> None:
        module = [sys.executable, "-m", "benchmarks.onnx_models.worker"]
        self.process = subprocess.Popen(
            [*module, name, str(threads), str(folder)],
            env=environment(threads) | {"GEON_CACHE": str(folder / "cache")},
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, *request: Any) -> Any:
        """Return the answer to a request."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{request}: the process ended with {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(name: str, arguments: argparse.Namespace, folder: Path) -> list[float]:
    """Print the figures of a model; return the ratios of their times."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        path.write_bytes(MODELS[name]().SerializeToString())
    kind, sizes = WORK[name]
    peers = STEPS if kind == "labelled" else SESSIONS
    for cold in (True, False):  # the second time, code is in geon's cache
        contenders = {each: Contender(each, arguments.threads, folder) for each in peers}
        loads = {each: one.ask("load", name, kind, sizes[0]) for each, one in contenders.items()}
        shown = ", ".join(f"{each} {seconds:.3f} s" for each, seconds in loads.items())
        print(f"{name}: first result {'' if cold else 'from the cache '}after {shown}", flush=True)
        if cold:
            for one in contenders.values():
                one.close()
    ratios = []
    for size in sizes:
        first, second = [
            np.array(one.ask("result", name, kind, size)) for one in contenders.values()
        ]
        off = float(np.abs(first - second).max() / np.abs(second).max())
        if off > SLACK:
            raise SystemExit(f"{name} {size}: results differ by {off:.2g} of the largest")
        times: dict[str, list[float]] = {each: [] for each in contenders}
        for _ in range(arguments.rounds):
            for each, one in contenders.items():
                time.sleep(REST)
                times[each].append(one.ask("time", name, kind, size, arguments.seconds))
        found = {each: statistics.median(seconds) for each, seconds in times.items()}
        ours, peer = found.values()
        ratio = peer / ours
        ratios.append(ratio)
        shown = ", ".join(f"{each} {1e3 * seconds:.3f} ms" for each, seconds in found.items())
        print(f"{name} {size}: {shown}, ratio {ratio:.2f}", flush=True)
    for one in contenders.values():
        one.close()
    return ratios


def main() -> None:
    """Measure all models."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onnx_models")
    parser.add_argument("--only", choices=MODELS, action="append")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="the models are kept here")
    arguments = parser.parse_args()
    pin(arguments.threads)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="geon-onnx-models-"))
    folder.mkdir(parents=True, exist_ok=True)
    ratios = [r for name in arguments.only or MODELS for r in measure(name, arguments, folder)]
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"the others' time over geon's, geometric mean of {len(ratios)}: {mean:.2f}")


if __name__ == "__main__":
    main()
