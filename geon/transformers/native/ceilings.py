"""What this machine can do at most: arithmetic and memory traffic, measured once and kept.

The C of ``ceilings.c`` is run on the pool that computations run on. A kernel cannot take less time
than its arithmetic and its traffic take at these rates: S. Williams, A. Waterman, D. Patterson,
"Roofline: an insightful visual performance model for multicore architectures", 2009.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import math
import os
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UnavailableError
from ...op_graph.dtypes import as_dtype
from . import disk_cache
from .c_files import c_text
from .objects import shared_object
from .threads import default_threads, load_pool
from .toolchain import Toolchain, find_toolchain, missing_compiler

# Reads and writes, in the order of the tasks in ceilings.c.
MIXES = ((1, 0), (0, 1), (1, 1), (2, 1), (3, 1))
SIZES = tuple((32 << 10) << 2 * k for k in range(8))  # 32 KiB to 512 MiB, all arrays together
STREAMED = 4 << 20  # from here on stores that bypass the caches may be the faster ones
ROUNDS = 3  # each thing is measured so often, apart in time: what disturbs one may spare another
SECONDS = 0.0025  # of each measurement at least
SLACK = 1 << 12  # bytes behind an array of that size which the C may touch

_known: dict[str, Ceilings] = {}
_lock = disk_cache.fork_safe_lock()


@dataclass(frozen=True)
class Ceilings:
    """The most that ``threads`` threads of this machine did.

    ``rates`` has for each of ``MIXES`` the bytes a second at ``sizes`` (bytes); ``arithmetic`` the
    floating-point operations a second by the bytes of an element, two for each multiply-add.
    """

    threads: int
    sizes: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    arithmetic: Mapping[int, float] = dataclasses.field(hash=False)

    def bandwidth(self, size: float, reads: float, writes: float) -> float:
        """Bytes a second where ``size`` bytes of memory are touched and ``reads`` bytes are read
        for every ``writes`` that are written.

        Between sizes the rate is linear in their logarithm, between mixes the time per byte is
        linear in the share of writes; beyond the sizes measured, it is that of the nearest.
        """
        share = writes / (reads + writes) if reads + writes else 0.0
        points = sorted(
            (write / (read + write), self._at(size, rates))
            for (read, write), rates in zip(MIXES, self.rates, strict=True)
        )
        shares = [each for each, _ in points]
        k = min(max(bisect_left(shares, share), 1), len(points) - 1)
        (low, slow), (high, fast) = points[k - 1], points[k]
        part = min(max((share - low) / (high - low), 0.0), 1.0)
        return 1 / ((1 - part) / slow + part / fast)

    def _at(self, size: float, rates: tuple[float, ...]) -> float:
        logarithms = [math.log(each) for each in self.sizes]
        return float(np.interp(math.log(max(size, 1)), logarithms, rates))

    def flops(self, dtype: Any) -> float:
        """Operations a second on elements of a dtype.

        Measured are fused multiply-adds, two operations each, of float32 and float64. Half formats
        are computed as float32; integers and bools count as floats of that size, or of 4 bytes
        where they are smaller.
        """
        return self.arithmetic[8 if as_dtype(dtype).itemsize == 8 else 4]

    def seconds(
        self, size: float, reads: float, writes: float, operations: Mapping[Any, float]
    ) -> float:
        """The least time of work that touches ``size`` bytes, reads and writes so many, and does
        these operations by dtype, with arithmetic and traffic side by side."""
        arithmetic = sum(count / self.flops(dtype) for dtype, count in operations.items())
        return max((reads + writes) / self.bandwidth(size, reads, writes), arithmetic)


def ceilings(threads: int | None = None, *, fresh: bool = False) -> Ceilings:
    """The ceilings of this machine on ``threads`` threads, else as many as a computation uses.

    They are measured where they are not known yet, which takes one to two seconds, and kept in the
    cache folder; ``fresh`` measures again, for instance where the machine was busy the first time.
    Raises ``UnavailableError`` where there is no C compiler.
    """
    threads = default_threads() if threads is None else threads
    toolchain = find_toolchain()
    if toolchain is None:
        raise UnavailableError(missing_compiler())
    text = c_text("ceilings.c")
    parts = ("ceilings", toolchain.cpu, toolchain.version, str(threads), str(SIZES), text)
    name = "ceilings-" + disk_cache.digest(*parts)
    with _lock:
        found = None if fresh else _known.get(name) or _kept(name)
        if found is None:
            found = _measured(toolchain, text, threads)
            disk_cache.keep_bytes(name, json.dumps(dataclasses.asdict(found)).encode())
        _known[name] = found
    return found


def _kept(name: str) -> Ceilings | None:
    content = disk_cache.load(name)
    if content is None:
        return None
    row = json.loads(content)
    rates = tuple(tuple(each) for each in row["rates"])
    arithmetic = {int(element): rate for element, rate in row["arithmetic"].items()}
    return Ceilings(row["threads"], tuple(row["sizes"]), rates, arithmetic)


def _measured(toolchain: Toolchain, text: str, threads: int) -> Ceilings:
    # Contraction makes the products and sums of the C multiply-adds, -O3 unrolls their loops.
    flags = ["-ffp-contract=fast", "-O3"]
    library = ctypes.CDLL(str(shared_object(toolchain, [text], flags)))

    flops, bandwidth = library.geon_ceiling_flops, library.geon_ceiling_bandwidth
    flops.restype = bandwidth.restype = ctypes.c_double
    pool = ctypes.c_void_p(load_pool().run_address)
    count = ctypes.c_int32(threads)
    limit = ctypes.c_double(SECONDS)
    sizes = tuple(size for size in SIZES if size <= _room()) or SIZES[:1]
    memory = np.empty(sizes[-1] + SLACK, np.uint8)
    base = memory.ctypes.data
    start = ctypes.c_void_p(base + -base % 64)
    touched = ctypes.c_int64(memory.nbytes - 64)
    library.geon_ceiling_touch.restype = None
    library.geon_ceiling_touch(pool, count, start, touched)

    def rate(size: int, mix: int) -> float:
        """Bytes per second of one size and mix, by the faster way of storing."""
        ways = (0, 1) if size >= STREAMED else (0,)
        whole = ctypes.c_int64(size)
        return max(
            bandwidth(pool, count, start, whole, ctypes.c_int32(mix), ctypes.c_int32(way), limit)
            for way in ways
        )

    arithmetic = {4: 0.0, 8: 0.0}
    rates = [[0.0] * len(sizes) for _ in MIXES]
    for _ in range(ROUNDS):
        for mix, row in enumerate(rates):
            for k, size in enumerate(sizes):
                row[k] = max(row[k], rate(size, mix))
            for element, best in arithmetic.items():
                reached = flops(pool, count, ctypes.c_int32(element), limit)
                arithmetic[element] = max(best, reached)
    return Ceilings(threads, sizes, tuple(map(tuple, rates)), arithmetic)


def _room() -> int:
    """The most memory to measure in: a quarter of what is free."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") // 4
    except (OSError, ValueError):  # not every system tells
        return SIZES[-1]
