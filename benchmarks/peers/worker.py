"""A process for one contender: it prepares a workload and times it when told to.

    python -m benchmarks.peers.worker CONTENDER THREADS DESCRIPTOR

answers requests ``(command, arguments)`` on an inherited connection with ``(True, value)``, or
``(False, reason)`` for what could not be done.
"""

from __future__ import annotations

import gc
import importlib
import statistics
import sys
import time
from itertools import repeat
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .prepared import Prepared
from .workloads import named

clock = time.perf_counter
SAMPLE = 5e-4  # seconds that a sample takes at least: shorter calls are repeated within it
SHOWN = 100_000  # elements of a result that are compared one by one

Digest = list[tuple[int, float, Any]]


def digest(values: list[Any]) -> Digest:
    """Of each result its size, its norm, and elements spread over it."""
    made = []
    for value in values:
        flat = np.asarray(value, np.float64).ravel()
        step = max(1, flat.size // SHOWN) | 1  # odd: no multiple of a row
        made.append((flat.size, float(np.linalg.norm(flat)), flat[::step].copy()))
    return made


class Worker:
    """The contender's module, and the workload that is prepared."""

    def __init__(self, contender: str, threads: int) -> None:
        self.module = importlib.import_module(f".{contender}_work", __package__)
        self.module.start(threads)
        self.prepared: Prepared | None = None
        self.repeats = 1

    def version(self) -> str:
        """Of what is measured."""
        return str(self.module.version())

    def notes(self) -> list[str]:
        """What a reader of the figures should know."""
        return list(self.module.notes)

    def kinds(self) -> list[str]:
        """The workloads that the contender has."""
        return list(self.module.BUILDERS)

    def prepare(self, name: str, quick: bool) -> dict[str, Any]:
        """Build a workload; its results, the seconds until they were there and of a call."""
        self.prepared = None
        gc.collect()
        workload = named(name)
        inputs = workload.inputs(quick)
        start = clock()
        made = self.module.BUILDERS[workload.kind](workload.sized(quick), inputs)
        results = made.results()
        first = clock() - start
        made.call()
        start = clock()
        made.call()
        call = clock() - start
        self.repeats = max(1, round(SAMPLE / max(call, 1e-7)))
        self.prepared = made
        return {"results": digest(results), "first": first, "call": call}

    def run(self, seconds: float) -> list[float]:
        """Seconds per call, sampled for about as long as is said, after one sample to warm up."""
        assert self.prepared is not None
        call = self.prepared.call
        times: list[float] = []
        gc.collect()
        gc.disable()
        end = clock() + seconds
        try:
            while not times or clock() < end:
                start = clock()
                for _ in repeat(None, self.repeats):
                    call()
                times.append((clock() - start) / self.repeats)
        finally:
            gc.enable()
        return times[1:] or times

    def memory(self) -> int | None:
        """Bytes beside inputs and state, where the contender can say."""
        assert self.prepared is not None
        found = self.prepared.memory()
        return None if found is None else int(found)

    def drop(self) -> None:
        """Free the workload."""
        self.prepared = None
        gc.collect()

    def compile(self, name: str, quick: bool) -> dict[str, Any]:
        """Seconds from the first op written to the first result, less those of a later call."""
        workload = named(name)
        inputs = workload.inputs(quick)
        start = clock()
        made = self.module.BUILDERS[workload.kind](workload.sized(quick), inputs)
        made.call()
        first = clock() - start
        later = []
        for _ in range(3):
            start = clock()
            made.call()
            later.append(clock() - start)
        return {"seconds": max(0.0, first - statistics.median(later))}


def serve(connection: Connection, contender: str, threads: int) -> None:
    """Answer requests until there are no more."""
    worker: Worker | None = None
    while True:
        try:
            command, arguments = connection.recv()
        except EOFError:
            return
        try:
            if worker is None:
                worker = Worker(contender, threads)
            connection.send((True, getattr(worker, command)(*arguments)))
        except Exception as error:
            text = " ".join(str(error).split())
            connection.send((False, f"{type(error).__name__}: {text[:300]}"))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[3])), sys.argv[1], int(sys.argv[2]))
