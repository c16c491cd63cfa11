"""Microbenchmarks of one thread: latencies and overheads beyond the roofline, cached on disk."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...cache import disk
from ...kernels.costs.machine import Speeds
from ..names.c_texts import c_text
from ..toolchain.compilers import Toolchain
from ..toolchain.shared_objects import shared_object
from .roofline_peaks import SLACK_BYTES
from .threads import load_pool

WORKING_SET_BYTES = tuple((16 << 10) << 2 * k for k in range(7))  # 16 KiB to 64 MiB
# Repetitions of all measurements; the best counts, as a disturbance hits only some
MEASUREMENT_ROUNDS = 5
WAKE_TASK_ADDITIONS = 20_000  # additions of a task that wakes another thread: about 20 microseconds
RATES = ("tile", "stream")  # fields in operations per second; all others are seconds
TABLES = ("sizes", "far", "latency")

_known: dict[str, Speeds] = {}
_lock = disk.fork_safe_lock()


def speeds(toolchain: Toolchain, *, fresh: bool = False) -> Speeds:
    """Return the speeds of this machine; measure them, in half a second, if they are unknown.

    ``fresh`` measures again, for instance if the machine was busy the first time.
    """
    with _lock:
        found = None if fresh else kept_speeds(toolchain)
        if found is None:
            found = _measured(toolchain)
            name = _name(toolchain)
            disk.keep_bytes(name, json.dumps(dataclasses.asdict(found)).encode())
            _known[name] = found
    return found


def kept_speeds(toolchain: Toolchain) -> Speeds | None:
    """Return the speeds that were measured before, or None."""
    name = _name(toolchain)
    if name not in _known:
        content = disk.load(name)
        if content is None:
            return None
        row: dict[str, Any] = json.loads(content)
        for each in ("division", *RATES):
            row[each] = {int(element): value for element, value in row[each].items()}
        for each in TABLES:
            row[each] = tuple(row[each])
        _known[name] = Speeds(**row)
    return _known[name]


def _name(toolchain: Toolchain) -> str:
    parts = ("speeds", toolchain.cpu, toolchain.version, str(WORKING_SET_BYTES), c_text("speeds.c"))
    return "speeds-" + disk.digest(*parts)


def _measured(toolchain: Toolchain) -> Speeds:
    flags = ["-ffp-contract=fast", "-O3", "-lm"]
    library = ctypes.CDLL(str(shared_object(toolchain, [c_text("speeds.c")], flags)))
    memory = np.empty(WORKING_SET_BYTES[-1] + SLACK_BYTES, np.uint8)
    memory.fill(0)  # commits a physical page for each virtual one
    pool = ctypes.c_void_p(load_pool().run_address)

    def of(name: str, *arguments: Any) -> float:
        function = getattr(library, f"geon_speed_{name}")
        function.restype = ctypes.c_double
        return float(function(*arguments))

    def tasks(count: int, turns: int) -> float:
        return of("tasks", pool, ctypes.c_int32(count), ctypes.c_int64(turns))

    def over(name: str) -> tuple[float, ...]:
        base = ctypes.c_void_p(memory.ctypes.data)
        return tuple([of(name, base, ctypes.c_int64(size)) for size in WORKING_SET_BYTES])

    def by_element(name: str) -> Mapping[int, float]:
        return {element: of(name, ctypes.c_int32(element)) for element in (4, 8)}

    def once() -> Speeds:
        return Speeds(
            start=tasks(1, 0),
            wake=max(tasks(2, WAKE_TASK_ADDITIONS) - tasks(1, WAKE_TASK_ADDITIONS), 0.0),
            chain=of("chain"),
            statement=of("statement"),
            division=by_element("division"),
            serial=of("serial"),
            call=of("call"),
            sizes=WORKING_SET_BYTES,
            far=over("far"),
            latency=over("latency"),
            tile=by_element("tile"),
            stream=by_element("stream"),
        )

    rounds = [once() for _ in range(MEASUREMENT_ROUNDS)]
    found: dict[str, Any] = {
        each.name: _best([getattr(made, each.name) for made in rounds], each.name in RATES)
        for each in dataclasses.fields(Speeds)
    }
    return Speeds(**found)


def _best(values: list[Any], most: bool) -> Any:
    """Return the fastest of several rounds: the minimum of seconds, the maximum of rates."""
    choose = max if most else min
    first = values[0]
    if isinstance(first, dict):
        return {key: choose(value[key] for value in values) for key in first}
    if isinstance(first, tuple):
        return tuple([choose(each) for each in zip(*values, strict=True)])
    return choose(values)
