"""Whether an ordered loop runs on vectors, and how wide they are: by what a turn takes.

A turn takes as long as its instructions, or as long as the chain of those that the next turn waits
for: small systems wait, and lanes that are moved lengthen the chain.
"""

from __future__ import annotations

from ....op_graph.values.dtypes import name_of
from ..analysis.work_estimate import EXPENSIVE
from ..ir.scalar_code import Apply, Load, Scalar, below, walk
from .sequential_scan import OrderedLoop
from .slp import DTYPES, Nodes, Operand, Packed, Packing, Vector, homed

AT_ONCE = 2.5  # instructions that a processor runs side by side
ROW = 4  # cycles until the result of a row is there,
MOVED, PUT = (1, 5), (2, 4)  # a lane that was moved, and a scalar put beside others:
NARROW = 16  # in vectors of so many bytes, and in wider ones, whose halves are apart
WORTH = 0.85  # of the time of scalars


def packed(work: OrderedLoop, vector_bytes: int) -> Packed | None:
    """An ordered loop of one row on vectors of at most so many bytes; None where scalars are as
    fast.
    """
    if work.rows != 1 or not work.carries:
        return None
    nodes = Nodes(work)
    best, least = None, WORTH * time(work, Packed(work.carries[0].dtype, 1, (), (), (), {}))
    dtypes = {carry.dtype for carry in work.carries if name_of(carry.dtype) in DTYPES}
    for dtype in sorted(dtypes, key=name_of):
        width = vector_bytes // dtype.itemsize
        while width > 1:
            made = Packing(work, nodes, dtype, width).made()
            found = time(work, made)
            if found < least:
                best, least = made, found
            width //= 2
    return best


def time(work: OrderedLoop, made: Packed) -> float:
    """About the cycles of a turn; of two that wait as long, the one with less to do has fewer."""
    count = instructions(work, made) / AT_ONCE
    return max(count, _Waits(made).turn(work)) + count / 8


def instructions(work: OrderedLoop, made: Packed) -> int:
    """About the instructions of a turn: what is picked takes one for each vector it is from."""
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
        cost += _expense(node) if isinstance(node, (Apply, Load)) else 0
    return cost + len(homed(made, scalars)) + len(made.alone(work))


def _expense(node: Scalar) -> int:
    """How many cheap rows a node is."""
    return EXPENSIVE if isinstance(node, Apply) and node.row.cost == "expensive" else 1


class _Waits:
    """The cycles until each value of a turn is there, from the carries on."""

    def __init__(self, made: Packed) -> None:
        self.made = made
        wide = made.width * made.dtype.itemsize > NARROW
        self.moving, self.putting = MOVED[wide], PUT[wide]
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
                self.vectors[vector] = max(found) + ROW
            self.lanes(vector)

    def lanes(self, vector: Vector) -> None:
        """Note when the lanes of a vector are there as scalars: the first is one."""
        for lane, node in enumerate(vector.lanes):
            if self.made.homes[id(node)] == (vector, lane):
                self.scalars[id(node)] = self.vectors[vector] + (self.moving if lane else 0)

    def scalar(self, value: Scalar) -> int:
        """When a scalar is there."""
        for node in walk(value, known=self.scalars):
            found = max([self.scalars[id(part)] for part in below(node)], default=0)
            takes = ROW * _expense(node) if isinstance(node, Apply) else 0
            self.scalars[id(node)] = found + takes
        return self.scalars[id(value)]

    def operand(self, operand: Operand) -> int:
        """When a vector of these lanes is there."""
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
        """When lanes are there that were moved, if the chain of carries is waited for at all."""
        return cycles + self.moving + sources - 1

    def turn(self, work: OrderedLoop) -> int:
        """When all carries are there."""
        numbers = {number for _, each in self.made.carries for number in each}
        alone = [c.value for k, c in enumerate(work.carries) if k not in numbers]
        found = [self.operand(self.made.next(work, each)) for _, each in self.made.carries]
        return max([*found, *(self.scalar(value) for value in alone)], default=0)
