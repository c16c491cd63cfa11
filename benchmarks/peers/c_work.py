"""The workloads of loops by hand in C, compiled by the system's compiler: ``loops.c``.

A reference, not a peer: derivatives are written out there.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .ceilings import compiler
from .prepared import Builder, Prepared, plain
from .workloads import Sizes

Array = np.ndarray[Any, Any]
Data = dict[str, Any]
notes: list[str] = []
SOURCE = Path(__file__).with_name("loops.c")
OPTIONS = ["-O3", "-march=native", "-std=gnu11", "-fopenmp", "-shared", "-fPIC"]


def version() -> str:
    """Of the compiler."""
    command = compiler()
    assert command is not None  # `start` said so
    ran = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[0]


library: ctypes.CDLL


def start(threads: int) -> None:
    """Compile; the number of threads is in the environment.

    Raises ``RuntimeError`` without a compiler, or where it fails.
    """
    global library
    command = compiler()
    if command is None:
        raise RuntimeError("there is no C compiler: set CC, or install cc, gcc or clang")
    with tempfile.TemporaryDirectory() as folder:
        made = str(Path(folder, "loops.so"))
        built = subprocess.run(
            [*command, *OPTIONS, str(SOURCE), "-o", made], capture_output=True, text=True
        )
        if built.returncode:
            raise RuntimeError(f"{command[0]} did not compile {SOURCE.name}: {built.stderr[:500]}")
        library = ctypes.CDLL(made)
    library.ring.restype = ctypes.c_float


def at(array: Array) -> ctypes.c_void_p:
    """Where an array lies, which is kept as long as that."""
    assert array.flags.c_contiguous and array.dtype == np.float32
    return array.ctypes.data_as(ctypes.c_void_p)


def ring(sizes: Sizes, data: Data) -> Prepared:
    """The sum of squares of values on a ring."""
    steps, count = sizes["steps"], sizes["count"]
    force, start = at(data["force"]), at(data["start"])
    return plain(lambda: np.float32(library.ring(steps, count, force, start)))


def ring_gradient(sizes: Sizes, data: Data) -> Prepared:
    """Its derivatives."""
    steps, count = sizes["steps"], sizes["count"]
    states = np.empty((steps + 1, count + 4), np.float32)
    slopes = [np.empty_like(data[name]) for name in ("force", "start")]
    places = [at(a) for a in (data["force"], data["start"], states, *slopes)]

    def call() -> list[Array]:
        library.ring_gradient(steps, count, *places)
        return slopes

    return plain(call)


def lorenz(sizes: Sizes, data: Data) -> Prepared:
    """Where each system is after all steps."""
    steps, count = sizes["steps"], sizes["count"]

    def call() -> list[Array]:
        found = [data[name].copy() for name in "xyz"]
        library.lorenz(steps, count, *map(at, found))
        return found

    return plain(call)


def products_gradient(sizes: Sizes, data: Data) -> Prepared:
    """Derivatives of what matrices make of one, step by step, with respect to them."""
    steps, n = sizes["steps"], sizes["n"]
    states = np.empty((steps + 1, n, n), np.float32)
    slope = np.empty_like(data["m"])
    places = [at(a) for a in (data["m"], data["start"], states, slope)]

    def call() -> list[Array]:
        library.products_gradient(steps, n, *places)
        return [states[-1], slope]

    return plain(call)


BUILDERS: dict[str, Builder] = {
    f.__name__: f for f in (ring, ring_gradient, lorenz, products_gradient)
}
