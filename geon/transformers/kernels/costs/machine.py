"""``Machine``: an immutable description of the hardware, with the numbers that predictions need.

Nothing here measures: a target creates its machine from its measurements or from stated numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ....lazy_dataclasses import dataclass
from ...sizes.ceilings import Ceilings, interpolate
from ...sizes.product_blocks import Shape
from ..analysis.op_counts import MULTIPLY_ADD


@dataclass(frozen=True, slots=True)
class RowCost:
    """Cost of one element of an elementwise primitive.

    ``operations`` are floating-point operations as usually counted: two for a multiply-add.
    ``statements`` are machine operations in sequence: one for a multiply-add; comparisons, selects
    and bit operations count too. ``divisions`` is the number of quotients and roots among them.
    ``serial`` is True if the primitive is not vectorised: a C library function or an integer
    division.
    """

    operations: int = 1
    statements: int = 1
    divisions: int = 0
    serial: bool = False


@dataclass(frozen=True)
class Speeds:
    """Costs of one thread that the ceilings do not cover, in seconds unless stated otherwise.

    ``start``: an empty kernel. ``wake``: handing work to one more thread. ``chain``: an addition
    that depends on the previous one. ``statement``: one vector operation of straight-line code.
    ``division``: a vector of quotients, by the bytes of an element. ``serial``: a step of scalar
    code. ``call``: a C library function or an integer division. ``far`` and ``latency`` are tables
    over memory ``sizes`` in bytes: ``far`` is one of many independent accesses that each touch
    another cache line, ``latency`` one access whose address was not known before. ``tile`` and
    ``stream`` are operations per second, by the bytes of an element: of the register tiles of
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
        """Interpolate ``table`` (``far`` or ``latency``), in seconds, at ``size`` bytes."""
        return interpolate(self.sizes, table, size)


@dataclass(frozen=True)
class Machine:
    """Hardware that code will run on.

    ``name`` identifies it. ``measured`` is True if its numbers were measured on it.
    ``vector_bytes`` is the size of a vector register. ``caches`` are the bytes of a core's caches,
    nearest first. ``cores`` is the number of cores. ``ceilings`` are by thread count, one thread
    included. ``speeds`` are costs of one thread. ``shapes`` are the block sizes of products, by the
    bytes of an element. ``rows`` are costs of elementwise primitives by (primitive name, dtype
    name). ``side_by_side`` is the number of adjacent rows that are processed together.
    """

    name: str
    measured: bool
    vector_bytes: int
    caches: tuple[int, ...]
    cores: int
    ceilings: Mapping[int, Ceilings] = field(hash=False)
    speeds: Speeds = field(hash=False)
    shapes: Mapping[int, Shape] = field(hash=False)
    rows: Mapping[tuple[str, str], RowCost] = field(hash=False)
    side_by_side: int

    def row(self, row: str, dtype: str) -> RowCost:
        """Return the cost of one element of a primitive; one operation if it is not listed."""
        return row_cost(self.rows, row, dtype)

    def lanes(self, itemsize: int) -> int:
        """Return the elements per vector register; elements below 4 bytes are widened to 4."""
        return self.vector_bytes // max(itemsize, 4)

    def on(self, threads: int) -> Ceilings:
        """Return the ceilings for ``threads``, or for the largest listed count below."""
        return self.ceilings[max(each for each in self.ceilings if each <= max(threads, 1))]


def row_cost(rows: Mapping[tuple[str, str], RowCost], row: str, dtype: str) -> RowCost:
    """Return the cost of one element of a primitive according to ``rows``."""
    return _FUSED if row == MULTIPLY_ADD else rows.get((row, dtype), _ONE)


_ONE = RowCost()
_FUSED = RowCost(operations=2)
