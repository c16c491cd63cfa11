"""``Ceilings``: the peak arithmetic rates and memory bandwidths of a machine (roofline model)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np

from ...lazy_dataclasses import dataclass
from ...op_graph.values.dtypes import as_dtype

Array = np.ndarray[Any, Any]

# Measured ratios of reads to writes, in the order of ``Ceilings.rates``.
READ_WRITE_MIXES = ((1, 0), (0, 1), (1, 1), (2, 1), (3, 1))
# Of working sets that are read at more than so many times the rate of memory, caches hold a part.
MAX_MEMORY_RATE = 1.1
COPY, SUM = 2, 3  # the mixes of a copy, and of a sum of two arrays
# (fraction of writes, index in MIXES), sorted.
BY_SHARE = sorted((write / (read + write), k) for k, (read, write) in enumerate(READ_WRITE_MIXES))
SHARES = [share for share, _ in BY_SHARE]


@dataclass(frozen=True)
class Ceilings:
    """The peak rates of a machine on ``threads`` threads.

    ``sizes`` are the measured working sets in bytes. ``rates`` has the bytes per second for each of
    ``READ_WRITE_MIXES`` at each size, with the faster kind of stores. ``arithmetic`` has the
    floating-point
    operations per second by bytes of an element; a multiply-add counts as two. ``plain`` are the
    rates without non-temporal stores; empty if unknown.
    """

    threads: int
    sizes: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    arithmetic: Mapping[int, float] = field(hash=False)
    plain: tuple[tuple[float, ...], ...] = ()

    def bandwidth(self, size: float, reads: float, writes: float, plain: bool = False) -> float:
        """Return the bytes per second for a working set of ``size`` bytes and this ratio of reads
        to writes.

        With ``plain`` it is the rate of plain stores. Between sizes the rate is linear in the
        logarithm of the size; between mixes the time per byte is linear in the fraction of writes.
        Beyond the measured sizes it is that of the nearest one.
        """
        share = writes / (reads + writes) if reads + writes else 0.0
        table = self.plain if plain and self.plain else self.rates
        k = min(max(bisect_left(SHARES, share), 1), len(SHARES) - 1)
        (low, less), (high, more) = BY_SHARE[k - 1], BY_SHARE[k]
        slow, fast = (
            interpolate(self.sizes, table[less], size),
            interpolate(self.sizes, table[more], size),
        )
        part = min(max((share - low) / (high - low), 0.0), 1.0)
        return 1 / ((1 - part) / slow + part / fast)

    def streams_from(self, rereads: bool = False) -> int | None:
        """Return the bytes of a working set from which on non-temporal stores are faster.

        They are for a copy and for a sum of two arrays, at this measured size and all larger ones;
        None if never. With ``rereads``, what was stored is read again: no cache may hold a part of
        it.
        """
        found = len(self.sizes)
        while self.plain and found > 0 and self._streams_at(found - 1, rereads):
            found -= 1
        if found == len(self.sizes):
            return None
        return self.sizes[found]

    def _streams_at(self, size: int, rereads: bool) -> bool:
        """Return True if non-temporal stores are faster at the measured size of this number."""
        if rereads and self.rates[0][size] > MAX_MEMORY_RATE * self.rates[0][-1]:
            return False
        return all(self.rates[mix][size] > self.plain[mix][size] for mix in (COPY, SUM))

    def flops(self, dtype: Any) -> float:
        """Return the operations per second on elements of a dtype.

        The measurements are of fused multiply-adds (two operations each) of float32 and float64.
        Half precision is computed as float32. Other dtypes count as floats of that size, or of 4
        bytes if they are smaller.
        """
        return self.arithmetic[8 if as_dtype(dtype).itemsize == 8 else 4]

    def seconds(
        self, size: float, reads: float, writes: float, operations: Mapping[Any, float]
    ) -> float:
        """Return the minimum time of work on a working set of ``size`` bytes: the larger of the
        time of its traffic (bytes read and written) and of its operations, by dtype.
        """
        arithmetic = sum(count / self.flops(dtype) for dtype, count in operations.items())
        return max((reads + writes) / self.bandwidth(size, reads, writes), arithmetic)


def interpolate(sizes: tuple[int, ...], table: tuple[float, ...], size: float) -> float:
    """Interpolate a table over ``sizes`` at ``size``, linear in the logarithm of the size."""
    return float(np.interp(math.log(max(size, 1)), _logarithms(sizes), table))


@cache
def _logarithms(sizes: tuple[int, ...]) -> Array:
    return np.array([math.log(each) for each in sizes])
