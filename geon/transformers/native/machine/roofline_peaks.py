"""Peak arithmetic rates and memory bandwidths of this machine, measured once and cached on disk.

The C of ``ceilings.c`` runs on the same thread pool as computations. A kernel takes at least the
time of its arithmetic and of its traffic at these rates: S. Williams, A. Waterman, D. Patterson,
"Roofline: an insightful visual performance model for multicore architectures", 2009.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os

import numpy as np

from ....errors import UnavailableError
from ...cache import disk
from ...sizes.ceilings import READ_WRITE_MIXES, Ceilings
from ...sizes.limits import MIN_LAST_CACHE_BYTES, PAGE_BYTES
from ..names.c_texts import c_text
from ..toolchain.compilers import Toolchain, find_toolchain, missing_compiler
from ..toolchain.shared_objects import shared_object
from .threads import default_threads, load_pool

WORKING_SET_BYTES = tuple(
    (32 << 10) << 2 * k for k in range(8)
)  # 32 KiB to 512 MiB, all arrays together
# Repetitions of all measurements; the best counts, as a disturbance hits only some.
MEASUREMENT_ROUNDS = 4
MIN_MEASUREMENT_SECONDS = 0.0025  # minimum duration of one measurement
SLACK_BYTES = 2 * PAGE_BYTES  # bytes behind the largest array that the C may access

_known: dict[str, Ceilings] = {}
_lock = disk.fork_safe_lock()


def ceilings(threads: int | None = None, *, fresh: bool = False) -> Ceilings:
    """Return the peak rates of this machine on ``threads`` threads, by default those of a call.

    Unknown rates are measured, which takes one to two seconds, and kept in the cache folder.
    ``fresh`` measures again, for instance if the machine was busy the first time. Raises
    ``UnavailableError`` if there is no C compiler.
    """
    threads = default_threads() if threads is None else threads
    toolchain = find_toolchain()
    if toolchain is None:
        raise UnavailableError(missing_compiler())
    with _lock:
        found = None if fresh else kept_ceilings(threads)
        if found is None:
            name = _name(toolchain, threads)
            found = _measured(toolchain, c_text("ceilings.c"), threads)
            disk.keep_bytes(name, json.dumps(dataclasses.asdict(found)).encode())
            _known[name] = found
    return found


def kept_ceilings(threads: int) -> Ceilings | None:
    """Return the peak rates that were measured before on ``threads`` threads, or None."""
    toolchain = find_toolchain()
    if toolchain is None:
        return None
    name = _name(toolchain, threads)
    if name not in _known:
        content = disk.load(name)
        if content is None:
            return None
        row = json.loads(content)
        rates, plain = (tuple(map(tuple, row[each])) for each in ("rates", "plain"))
        arithmetic = {int(element): rate for element, rate in row["arithmetic"].items()}
        _known[name] = Ceilings(row["threads"], tuple(row["sizes"]), rates, arithmetic, plain)
    return _known[name]


def _name(toolchain: Toolchain, threads: int) -> str:
    parts = ("ceilings 2", toolchain.cpu, toolchain.version, str(threads), str(WORKING_SET_BYTES))
    return "ceilings-" + disk.digest(*parts, c_text("ceilings.c"))


def _measured(toolchain: Toolchain, text: str, threads: int) -> Ceilings:
    # -ffp-contract fuses multiplications and additions, -O3 unrolls their loops.
    flags = ["-ffp-contract=fast", "-O3"]
    library = ctypes.CDLL(str(shared_object(toolchain, [text], flags)))

    flops, bandwidth = library.geon_ceiling_flops, library.geon_ceiling_bandwidth
    flops.restype = bandwidth.restype = ctypes.c_double
    pool = ctypes.c_void_p(load_pool().run_address)
    count = ctypes.c_int32(threads)
    limit = ctypes.c_double(MIN_MEASUREMENT_SECONDS)
    sizes = tuple(size for size in WORKING_SET_BYTES if size <= _room()) or WORKING_SET_BYTES[:1]
    memory = np.empty(sizes[-1] + SLACK_BYTES, np.uint8)
    base = memory.ctypes.data
    start = ctypes.c_void_p(base + -base % 64)
    touched = ctypes.c_int64(memory.nbytes - 64)
    library.geon_ceiling_touch.restype = None
    library.geon_ceiling_touch(pool, count, start, touched)

    def rate(size: int, mix: int, way: int) -> float:
        """Return the bytes per second of one size and mix, for one kind of stores (0 plain, 1
        non-temporal).
        """
        numbers = ctypes.c_int64(size), ctypes.c_int32(mix), ctypes.c_int32(way)
        return float(bandwidth(pool, count, start, *numbers, limit))

    arithmetic = {4: 0.0, 8: 0.0}
    ways = [[[0.0] * len(sizes) for _ in READ_WRITE_MIXES] for _ in range(2)]
    for _ in range(MEASUREMENT_ROUNDS):
        for way, rates in enumerate(ways):
            for mix, row in enumerate(rates):
                for k, size in enumerate(sizes):
                    if way == 0 or size >= MIN_LAST_CACHE_BYTES:
                        row[k] = max(row[k], rate(size, mix, way))
            for element, best in arithmetic.items():
                reached = flops(pool, count, ctypes.c_int32(element), limit)
                arithmetic[element] = max(best, reached)
    plain = tuple(map(tuple, ways[0]))
    faster = tuple([tuple(map(max, *rows)) for rows in zip(*ways, strict=True)])
    return Ceilings(threads, sizes, faster, arithmetic, plain)


def _room() -> int:
    """Return the maximum bytes to measure in: a quarter of the free memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") // 4
    except (OSError, ValueError):  # not every system reports it
        return WORKING_SET_BYTES[-1]
