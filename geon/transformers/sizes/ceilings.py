"""``Ceilings``: the rates that a machine reached at most."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ...op_graph.values.dtypes import as_dtype

Array = np.ndarray[Any, Any]

# Reads and writes for which rates are known, in the order of ``Ceilings.rates``.
MIXES = ((1, 0), (0, 1), (1, 1), (2, 1), (3, 1))
# The share of writes of each, in order, and which it is.
BY_SHARE = sorted((write / (read + write), k) for k, (read, write) in enumerate(MIXES))
SHARES = [share for share, _ in BY_SHARE]


@dataclass(frozen=True)
class Ceilings:
    """The most that ``threads`` threads of a machine did.

    ``rates`` has for each of ``MIXES`` the bytes a second at ``sizes`` (bytes); ``arithmetic`` the
    floating-point operations a second by the bytes of an element, two for each multiply-add.
    ``plain`` are the rates without stores that bypass the caches, where these were the faster ones.
    """

    threads: int
    sizes: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    arithmetic: Mapping[int, float] = field(hash=False)
    plain: tuple[tuple[float, ...], ...] = ()

    def bandwidth(self, size: float, reads: float, writes: float, plain: bool = False) -> float:
        """Bytes a second where ``size`` bytes of memory are touched and ``reads`` bytes are read
        for every ``writes`` that are written; with ``plain`` stores, or the faster ones.

        Between sizes the rate is linear in their logarithm, between mixes the time per byte is
        linear in the share of writes; beyond the sizes measured, it is that of the nearest.
        """
        share = writes / (reads + writes) if reads + writes else 0.0
        table = self.plain if plain and self.plain else self.rates
        k = min(max(bisect_left(SHARES, share), 1), len(SHARES) - 1)
        (low, less), (high, more) = BY_SHARE[k - 1], BY_SHARE[k]
        slow, fast = (
            interpolated(self.sizes, table[less], size),
            interpolated(self.sizes, table[more], size),
        )
        part = min(max((share - low) / (high - low), 0.0), 1.0)
        return 1 / ((1 - part) / slow + part / fast)

    def passes(self) -> bool:
        """Whether stores that bypass the caches are the faster ones in the most memory that was
        measured, for a copy and for a sum of two arrays."""
        if not self.plain:
            return False
        return all(self.rates[k][-1] > self.plain[k][-1] for k in (2, 3))

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


def interpolated(sizes: tuple[int, ...], table: tuple[float, ...], size: float) -> float:
    """A number between those of a table for these sizes, linear in their logarithm."""
    return float(np.interp(math.log(max(size, 1)), _logarithms(sizes), table))


@cache
def _logarithms(sizes: tuple[int, ...]) -> Array:
    return np.array([math.log(each) for each in sizes])
