"""Cost model of superword-level parallelism: decides if an ordered loop is packed, and the width.

An iteration takes as long as its instructions, or as the dependent chain that the next iteration
waits for. Small systems are latency-bound, and lane moves lengthen the chain.
"""

from __future__ import annotations

from ....op_graph.values.dtypes import name_of
from ...sizes.limits import MIN_SIZE_RATIO, OP_LATENCY_CYCLES, SSE_BYTES
from ..analysis.op_counts import operations
from ..ir.scalar_code import Apply, Load, Scalar, children_of, walk
from .sequential_scan import OrderedLoop
from .slp import DTYPES, Nodes, Operand, Packed, SlpPacker, Vector, packed_nodes

INSTRUCTIONS_PER_CYCLE = 2.5  # instructions per cycle
# Latency in cycles of a lane move and of a scalar insert: in vectors of up to 16 bytes, and in
# wider ones, where it crosses halves.
MOVE_LANE_COSTS, INSERT_LANE_COSTS = (1, 5), (2, 4)
MAX_PACKED_TIME_SHARE = 1 - 1 / MIN_SIZE_RATIO  # maximum time of a packed loop over scalars


def choose_packing(work: OrderedLoop, vector_bytes: int) -> Packed | None:
    """Return an ordered loop of one row packed into vectors of up to ``vector_bytes``.

    Return None if scalars are as fast.
    """
    if work.rows != 1 or not work.carries:
        return None
    nodes = Nodes(work)
    best, least = (
        None,
        MAX_PACKED_TIME_SHARE * time(work, Packed(work.carries[0].dtype, 1, (), (), (), {})),
    )
    dtypes = {carry.dtype for carry in work.carries if name_of(carry.dtype) in DTYPES}
    for dtype in sorted(dtypes, key=name_of):
        width = vector_bytes // dtype.itemsize
        while width > 1:
            made = SlpPacker(work, nodes, dtype, width).made()
            found = time(work, made)
            if found < least:
                best, least = made, found
            width //= 2
    return best


def time(work: OrderedLoop, made: Packed) -> float:
    """Return the approximate cycles of an iteration; instruction counts break ties of latency."""
    count = instructions(work, made) / INSTRUCTIONS_PER_CYCLE
    return max(count, _Waits(made).turn(work)) + count / 8


def instructions(work: OrderedLoop, made: Packed) -> int:
    """Return the approximate instructions of an iteration; a shuffle takes one per source."""
    scalars, cost = made.alone(work), len(made.carries) + len(made.stores)
    for vector in made.vectors:
        together = vector.neighbours or vector.apply is not None
        cost += 1 if together else made.width
    applied = [vector for vector in made.vectors if vector.apply is not None]
    wanted = [operand for vector in applied for operand in made.operands(vector)]
    for operand in dict.fromkeys([*wanted, *made.results(work)]):
        if isinstance(operand, tuple):
            others = [each for each in operand if not isinstance(each, tuple)]
            sources = len({id(each[0]) for each in operand if isinstance(each, tuple)})
            cost += len(others) + (sources if sources < 3 else made.width)
            scalars += others
        elif not isinstance(operand, Vector):
            scalars.append(operand)
    for node in walk(*scalars, known=made.homes):
        cost += operations(node) if isinstance(node, (Apply, Load)) else 0
    return cost + len(packed_nodes(made, scalars)) + len(made.alone(work))


class _Waits:
    """Cycles until each value of an iteration is available, counted from the carries."""

    def __init__(self, made: Packed) -> None:
        self.made = made
        wide = made.width * made.dtype.itemsize > SSE_BYTES
        self.moving, self.putting = MOVE_LANE_COSTS[wide], INSERT_LANE_COSTS[wide]
        self.scalars: dict[int, int] = {}
        self.vectors: dict[Vector, int] = {}
        for vector, _ in made.carries:
            self.vectors[vector] = 0
            self.lanes(vector)
        for vector in made.vectors:
            if vector.apply is None:
                self.vectors[vector] = max(self.scalar(lane) for lane in vector.lanes)
            else:
                found = [self.operand(operand) for operand in made.operands(vector)]
                self.vectors[vector] = max(found) + OP_LATENCY_CYCLES
            self.lanes(vector)

    def lanes(self, vector: Vector) -> None:
        """Record when a vector's lanes are available as scalars; lane 0 needs no move."""
        for lane, node in enumerate(vector.lanes):
            if self.made.homes[id(node)] == (vector, lane):
                self.scalars[id(node)] = self.vectors[vector] + (self.moving if lane else 0)

    def scalar(self, value: Scalar) -> int:
        """Return the cycle at which a scalar is available."""
        for node in walk(value, known=self.scalars):
            found = max([self.scalars[id(part)] for part in children_of(node)], default=0)
            takes = OP_LATENCY_CYCLES * operations(node) if isinstance(node, Apply) else 0
            self.scalars[id(node)] = found + takes
        return self.scalars[id(value)]

    def operand(self, operand: Operand) -> int:
        """Return the cycle at which a vector of these lanes is available."""
        if isinstance(operand, Vector):
            return self.vectors[operand]
        if not isinstance(operand, tuple):
            return self.moved(self.scalar(operand), 1)
        sources = {each[0] for each in operand if isinstance(each, tuple)}
        others = [each for each in operand if not isinstance(each, tuple)]
        found = [self.moved(self.vectors[vector], len(sources)) for vector in sources]
        found += [self.scalar(each) + self.putting * len(others) for each in others]
        return max(found)

    def moved(self, cycles: int, sources: int) -> int:
        """Return the cycle at which moved lanes from several source vectors are available."""
        return cycles + self.moving + sources - 1

    def turn(self, work: OrderedLoop) -> int:
        """Return the cycle at which all carries are available."""
        numbers = {number for _, each in self.made.carries for number in each}
        alone = [c.value for k, c in enumerate(work.carries) if k not in numbers]
        found = [self.operand(self.made.next(work, each)) for _, each in self.made.carries]
        return max([*found, *(self.scalar(value) for value in alone)], default=0)
