"""A model on geon and on ONNX Runtime, in processes of their own that take turns."""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

TURNS = 5
SECONDS = 0.3  # of a turn
REST = 0.1  # seconds before a turn: threads of the other process spin on for a while

Arrays = Sequence[np.ndarray[Any, Any]]
Run = Callable[[], Sequence[Any]]


def compare(options: argparse.Namespace, arrays: Arrays) -> Iterator[str]:
    """Yield lines with the medians of both, their ratio and how far the results differ."""
    if importlib.util.find_spec("onnxruntime") is None:
        yield "bench      ONNX Runtime is not installed: pip install onnxruntime"
        return
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    workers = []
    for name in ("geon", "onnxruntime"):
        ours, theirs = context.Pipe()
        keywords = (name, options.file, options.transformer, options.threads, list(arrays))
        workers.append(context.Process(target=serve, args=(theirs, *keywords), daemon=True))
        workers[-1].start()
        pipes[name] = ours
    results = {name: pipe.recv() for name, pipe in pipes.items()}
    times: dict[str, list[float]] = {name: [] for name in pipes}
    for _ in range(TURNS):
        for name, pipe in pipes.items():
            time.sleep(REST)
            pipe.send(SECONDS)
            times[name].append(pipe.recv())
    for pipe, worker in zip(pipes.values(), workers, strict=True):
        pipe.send(None)
        worker.join()
    found = {name: statistics.median(each) for name, each in times.items()}
    shown = ", ".join(f"{name} {1e3 * seconds:.3f} ms" for name, seconds in found.items())
    yield f"bench      {shown}, ratio {found['onnxruntime'] / found['geon']:.2f}"
    yield f"difference {difference(*results.values()):.2g} of the largest element of an output"


def difference(ours: Arrays, theirs: Arrays) -> float:
    """Return the largest difference, relative to the largest element of each output."""
    worst = 0.0
    for x, y in zip(ours, theirs, strict=True):
        if y.size and y.dtype.kind in "fiub":
            x, y = x.astype(np.float64), y.astype(np.float64)
            scale = np.abs(y[np.isfinite(y)]).max(initial=0)
            worst = max(worst, float(np.nanmax(np.abs(x - y)) / (scale or 1)))
    return worst


def serve(
    pipe: Connection, name: str, file: str, transformer: str, threads: int | None, arrays: Arrays
) -> None:
    """Send the results of a contender, then the median seconds of a call for each request."""
    run = (geon_run if name == "geon" else onnxruntime_run)(file, transformer, threads, arrays)
    pipe.send([np.asarray(value) for value in run()])
    while (seconds := pipe.recv()) is not None:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        pipe.send(statistics.median(times))


def geon_run(file: str, transformer: str, threads: int | None, arrays: Arrays) -> Run:
    """Return a call of geon."""
    from ...transformers.base import make_transformer
    from .model import load

    keywords = {} if threads is None else {"threads": threads}
    f = load(file).computation(make_transformer(transformer, **keywords))
    return lambda: [each for each in f(*arrays).values() if not isinstance(each, list)]


def onnxruntime_run(file: str, transformer: str, threads: int | None, arrays: Arrays) -> Run:
    """Return a call of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options)
    given = dict(zip([each.name for each in session.get_inputs()], arrays, strict=True))
    return lambda: [each for each in session.run(None, given) if not isinstance(each, list)]
