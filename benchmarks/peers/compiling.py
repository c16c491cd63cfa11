"""Seconds to compile, in fresh processes with an empty cache and a filled one, and to import."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .processes import ROOT, Lost, Process, environment
from .workloads import Workload

LIMIT = 60.0  # seconds after which compiling is given up
TRIALS = 3
SLOW = 5.0  # seconds from which one trial is enough

IMPORTED = {
    "geon": "geon", "jax": "jax", "torch": "torch", "onnx": "onnxruntime",
    "pytensor": "pytensor", "tinygrad": "tinygrad", "numpy": "numpy",
}  # fmt: skip
UNCOMPILED = ("numpy", "torch")


def caches(folder: str) -> dict[str, str]:
    """Settings that put every contender's cache into ``folder``."""
    return {
        "GEON_CACHE": f"{folder}/geon",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        "PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
        "CACHEDB": f"{folder}/tinygrad.db",
        "XDG_CACHE_HOME": f"{folder}/other",
    }


def once(
    contender: str,
    workload: Workload,
    threads: int,
    quick: bool,
    folder: str,
    base: Path | None = None,
) -> float:
    """Seconds that a fresh process takes from the first op written to the first result."""
    process = Process(contender, threads, caches(folder), base)
    try:
        if workload.kind not in process.ask("kinds"):
            raise Lost("not expressed")
        answer: dict[str, float] = process.ask("compile", workload.name, quick, limit=LIMIT)
        return answer["seconds"]
    finally:
        process.stop()


def compiled(
    contender: str, workload: Workload, threads: int, quick: bool, base: Path | None = None
) -> dict[str, Any]:
    """Medians with an empty cache and with a filled one, or the reason why there are none."""
    if contender in UNCOMPILED:
        return {"reason": "compiles nothing"}
    cold: list[float] = []
    cached: list[float] = []
    try:
        while len(cold) < (1 if quick or (cold and max(cold) > SLOW) else TRIALS):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                for times in (cold, cached):
                    times.append(once(contender, workload, threads, quick, folder, base))
    except Lost as lost:
        if not cold:
            return {"reason": str(lost)}
    return {
        "cold": statistics.median(cold),
        "cached": statistics.median(cached) if cached else None,
        "samples": len(cold),
    }


def imported(contender: str, threads: int) -> dict[str, Any]:
    """The median seconds of an import in fresh processes, or the reason why there is none."""
    module = IMPORTED.get(contender)
    if module is None:
        return {"reason": "no module of its own"}
    code = (
        "import time; start = time.perf_counter(); import {0}; print(time.perf_counter() - start)"
    )
    taken = []
    for _ in range(6):
        ran = subprocess.run(
            [sys.executable, "-c", code.format(module)],
            env=environment(threads), capture_output=True, text=True, cwd=Path(ROOT),
        )  # fmt: skip
        if ran.returncode:
            return {"reason": ran.stderr.strip().splitlines()[-1][:300]}
        taken.append(float(ran.stdout.split()[-1]))
    return {"median": statistics.median(taken[1:])}
