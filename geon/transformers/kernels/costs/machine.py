"""``Machine``: a frozen description of where code will run, with the numbers that predictions need.

Nothing here measures: a target makes its machine, from what it has measured or from stated numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...sizes.ceilings import Ceilings, interpolated
from ..analysis.op_counts import MULTIPLY_ADD


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
