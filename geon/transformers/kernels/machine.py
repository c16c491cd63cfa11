"""``Machine``: a frozen description of where code will run, with the numbers that predictions need.

Nothing here measures: a target makes its machine, from what it has measured or from stated numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ...op_graph.dtypes import as_dtype
from .counting import MULTIPLY_ADD

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


@dataclass(frozen=True, slots=True)
class RowCost:
    """What one element of an elementwise row takes.

    ``operations`` are floating-point operations as people count them, two for a multiply-add;
    ``statements`` what a processor does one after another, one for a multiply-add, comparisons,
    choices and bits too; ``divisions`` how many of these are quotients or roots. A ``serial`` row
    is done one element at a time, by a function of the C library or a division of integers.
    """

    operations: int = 1
    statements: int = 1
    divisions: int = 0
    serial: bool = False


@dataclass(frozen=True, slots=True)
class Tile:
    """How a product is cut into blocks, in elements.

    A register tile has ``height`` rows and ``panel`` columns; packed blocks are of so many
    ``rows``, ``columns`` and summed indices (``depth``). Up to ``few`` rows are not packed; columns
    that adjoin along the depth are, unless that is ``dots`` for each row, up to ``dot_rows``.
    """

    height: int
    panel: int
    rows: int
    columns: int
    depth: int
    few: int
    dots: int = 0
    dot_rows: int = 0

    def in_place(self, rows: int, depth: int, dots: bool) -> bool:
        """Whether so few rows read columns where they lie, as ``dots`` along a depth or not."""
        return rows <= self.few and not (dots and depth < self.dots * min(rows, self.dot_rows))


@dataclass(frozen=True)
class Speeds:
    """What one thread takes for what ceilings do not say, in seconds.

    ``start`` is for a kernel that does nothing, ``wake`` for handing work to one further thread,
    ``chain`` for an addition that waits for the one before, ``statement`` for a statement of
    straight-line code on a vector, ``division`` for a vector of quotients by the bytes of an
    element, ``serial`` for a step of scalar code, ``call`` for a function of the C library or a
    division of integers. In memory of ``sizes`` bytes ``far`` is for one of many elements that each
    lie in another line of cache, ``latency`` for one whose place was not known before. ``tile`` and
    ``stream`` are operations a second, by the bytes of an element: of the register tiles of
    products, and of products of few rows.
    """

    start: float
    wake: float
    chain: float
    statement: float
    division: Mapping[int, float] = field(hash=False)
    serial: float
    call: float
    sizes: tuple[int, ...]
    far: tuple[float, ...]
    latency: tuple[float, ...]
    tile: Mapping[int, float] = field(hash=False)
    stream: Mapping[int, float] = field(hash=False)

    def at(self, table: tuple[float, ...], size: float) -> float:
        """The seconds of a table, ``far`` or ``latency``, in memory of ``size`` bytes."""
        return interpolated(self.sizes, table, size)


@dataclass(frozen=True)
class Machine:
    """Where code will run: ``name`` says which, ``measured`` whether its numbers are its own.

    ``vector_bytes`` are those of a vector register, ``caches`` the bytes of the caches that a core
    has, nearest first, ``cores`` how many work side by side. ``ceilings`` are by threads, one
    thread among them; ``tiles`` by the bytes of an element; ``rows`` what elementwise rows take, by
    the names of row and dtype. So many rows that adjoin in memory are taken ``side_by_side``.
    """

    name: str
    measured: bool
    vector_bytes: int
    caches: tuple[int, ...]
    cores: int
    ceilings: Mapping[int, Ceilings] = field(hash=False)
    speeds: Speeds = field(hash=False)
    tiles: Mapping[int, Tile] = field(hash=False)
    rows: Mapping[tuple[str, str], RowCost] = field(hash=False)
    side_by_side: int

    def row(self, row: str, dtype: str) -> RowCost:
        """What one element of a row takes; one operation where nothing else is known."""
        return row_cost(self.rows, row, dtype)

    def lanes(self, itemsize: int) -> int:
        """How many elements of so many bytes a vector holds; small ones are widened to 4."""
        return self.vector_bytes // max(itemsize, 4)

    def on(self, threads: int) -> Ceilings:
        """The ceilings on so many threads, or on the most below that are known."""
        return self.ceilings[max(each for each in self.ceilings if each <= max(threads, 1))]


def row_cost(rows: Mapping[tuple[str, str], RowCost], row: str, dtype: str) -> RowCost:
    """What one element of a row takes, of those that ``rows`` has."""
    return _FUSED if row == MULTIPLY_ADD else rows.get((row, dtype), _ONE)


_ONE = RowCost()
_FUSED = RowCost(operations=2)


def interpolated(sizes: tuple[int, ...], table: tuple[float, ...], size: float) -> float:
    """A number between those of a table for these sizes, linear in their logarithm."""
    return float(np.interp(math.log(max(size, 1)), _logarithms(sizes), table))


@cache
def _logarithms(sizes: tuple[int, ...]) -> Array:
    return np.array([math.log(each) for each in sizes])
