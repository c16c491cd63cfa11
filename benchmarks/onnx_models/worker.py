"""A process that loads and times models for one contender: ``worker CONTENDER THREADS FOLDER``.

It answers JSON requests, one a line, on standard output.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import models

Run = Callable[[dict[str, Any]], list[Any]]
clock = time.perf_counter


def geon_session(path: Path, threads: int) -> Run:
    """Return a function of inputs by geon's native code."""
    import geon
    from geon.frontends import onnx

    model = onnx.load(path)
    f = model.computation(geon.make_transformer("native", threads=threads))
    names = list(model.inputs)
    return lambda inputs: list(f(*[inputs[name] for name in names]).values())


def onnxruntime_session(path: Path, threads: int) -> Run:
    """Return a function of inputs by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options)
    return lambda inputs: session.run(None, inputs)


SESSIONS = {"geon": geon_session, "onnxruntime": onnxruntime_session}
INPUTS = {"image": models.image, "text": models.text, "table": models.table}


class Worker:
    """The sessions that are open."""

    def __init__(self, contender: str, threads: int, folder: Path) -> None:
        self.make, self.threads, self.folder = SESSIONS[contender], threads, folder
        self.runs: dict[str, Run] = {}

    def load(self, name: str, kind: str, sizes: list[int]) -> float:
        """Load a model; return the seconds until the first result is there."""
        inputs = INPUTS[kind](*sizes)
        start = clock()
        run = self.make(self.folder / f"{name}.onnx", self.threads)
        run(inputs)
        self.runs[name] = run
        return clock() - start

    def result(self, name: str, kind: str, sizes: list[int]) -> list[float]:
        """Return elements of the first result, at most a thousand."""
        value = np.asarray(self.runs[name](INPUTS[kind](*sizes))[0], np.float64).ravel()
        return list(map(float, value[:: max(1, value.size // 1000)]))

    def time(self, name: str, kind: str, sizes: list[int], seconds: float) -> float:
        """Return the median seconds of a call, of calls for so many seconds."""
        inputs, run = INPUTS[kind](*sizes), self.runs[name]
        run(inputs)
        times: list[float] = []
        end = clock() + seconds
        while len(times) < 3 or clock() < end:
            start = clock()
            run(inputs)
            times.append(clock() - start)
        return statistics.median(times)


def serve() -> None:
    """Answer requests ``[command, *arguments]`` until there are no more."""
    contender, threads, folder = sys.argv[1:]
    worker = Worker(contender, int(threads), Path(folder))
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, command)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    serve()
