"""Processes of contenders: started with the same threads, asked one at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

CONTENDERS = {
    "geon": "geon",
    "geon_base": "geon before",
    "jax": "JAX",
    "torch": "PyTorch",
    "compiled_torch": "torch.compile",
    "onnx": "ONNX Runtime",
    "pytensor": "PyTensor",
    "tinygrad": "tinygrad",
    "numba": "Numba",
    "numpy": "NumPy by hand",
    "c": "C by hand",
}
OURS, BASE = "geon", "geon_base"  # the working tree, and another revision of it
BY_HAND = "c"  # loops in C, with derivatives written out
REFERENCES = ("numpy", BY_HAND, BASE)  # what is no peer
ROOT = Path(__file__).resolve().parents[2]


def environment(threads: int) -> dict[str, str]:
    """The environment of every contender, in which all have the same number of threads."""
    count = str(threads)
    counted = "OMP MKL OPENBLAS BLIS VECLIB_MAXIMUM NUMEXPR NUMBA".split()
    # Byte code is kept for all: installed packages have theirs already.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        **{f"{library}_NUM_THREADS": count for library in counted},
        "GEON_THREADS": count,
        "CPU_COUNT": count,  # tinygrad
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join(
            part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part
        ),
    }


class Lost(Exception):
    """A contender's process could not do what it was asked to; the text says why."""


class Process:
    """One contender's process, which sleeps until it is asked.

    ``base`` is the folder that ``BASE`` is installed in.
    """

    def __init__(
        self,
        contender: str,
        threads: int,
        extra: Mapping[str, str] | None = None,
        base: Path | None = None,
    ):
        self.contender, self.threads, self.extra = contender, threads, dict(extra or {})
        self.folder = ROOT
        if contender == BASE:
            if base is None:
                raise Lost("no revision was given")
            # What lies in the folder is found before the working tree, the benchmark in the latter.
            self.contender, self.folder = OURS, base
            self.extra = {
                "PYTHONPATH": os.pathsep.join([str(base), str(ROOT)]),
                "GEON_CACHE": str(base.with_name(f"{base.name}-cache")),
                **self.extra,
            }
        self.process: subprocess.Popen[bytes] | None = None

    def _start(self) -> None:
        self.connection, theirs = Pipe()
        module = [sys.executable, "-m", "benchmarks.peers.worker"]
        # The connection is inherited by number, so that nothing printed can disturb it.
        self.process = subprocess.Popen(
            [*module, self.contender, str(self.threads), str(theirs.fileno())],
            env={**environment(self.threads), **self.extra},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        theirs.close()

    def ask(self, command: str, *arguments: Any, limit: float = 120.0) -> Any:
        """What the process answers; ``Lost`` with the reason where it fails or takes too long."""
        if self.process is None:
            self._start()
        try:
            self.connection.send((command, arguments))
            if not self.connection.poll(limit):
                self.stop()
                raise Lost(f"{command} took longer than {limit:.0f} s")
            done, value = self.connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            assert self.process is not None
            code = self.process.wait()
            self.stop()
            raise Lost(f"its process ended with {code}") from None
        if not done:
            raise Lost(value)
        return value

    def stop(self) -> None:
        """End the process; the next question starts another."""
        if self.process is not None:
            self.connection.close()
            self.process.kill()
            self.process.wait()
            self.process = None


def pin(threads: int) -> None:
    """Let this process and all that it starts run on the first ``threads`` processors alone."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
