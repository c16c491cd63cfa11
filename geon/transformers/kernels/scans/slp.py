"""Superword-level parallelism: packs isomorphic scalars of an ordered loop into vector lanes.

Nodes of one kind in neighbouring carries, or stored to neighbouring offsets, are computed together.
Each has one home, a lane of one vector, where all its users read it. So nothing is computed twice
and no sum is reordered: the results have the bits of the scalar code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ....lazy_dataclasses import dataclass
from ....op_graph.values.dtypes import DType
from ..analysis.loop_depth import ELEMENT_DEPTH, Depths
from ..ir.nest import Store
from ..ir.scalar_code import Apply, Load, Running, Scalar, children_of, walk
from .sequential_scan import ROW, TURN, OrderedLoop

ROWS = ("add", "subtract", "multiply", "divide", "negative", "square")  # primitives that are packed
DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False, slots=True)
class Vector:
    """Packed scalars.

    All ``lanes`` apply one elementwise primitive; otherwise they are adjacent loads
    (``neighbours``), carries, or lanes that are inserted one by one. A short vector repeats its
    last lane.
    """

    lanes: tuple[Scalar, ...]
    neighbours: bool = False

    @property
    def apply(self) -> Apply | None:
        """Return the first lane if the lanes apply a primitive, else None."""
        first = self.lanes[0]
        return first if isinstance(first, Apply) else None


Lane = tuple[Vector, int]  # a vector and the number of a lane
Picked = tuple[Lane | Scalar, ...]  # the source of each lane
Operand = Vector | Scalar | Picked  # a vector, a broadcast scalar, or a source for each lane
At = TypeVar("At", Load, Store)


@dataclass(frozen=True, eq=False, slots=True)
class Packed:
    """An ordered loop of one row, packed into vectors of ``width`` lanes of ``dtype``.

    ``carries`` are vectors of ``Running`` nodes with the numbers of the carries. ``vectors`` are
    those computed in an iteration, operands first. ``stores`` are groups of adjacent stores.
    ``homes`` maps ids of nodes to their lanes. Other carries and stores of the loop stay scalar.
    """

    dtype: DType
    width: int
    carries: tuple[tuple[Vector, tuple[int, ...]], ...]
    vectors: tuple[Vector, ...]
    stores: tuple[tuple[Store, ...], ...]
    homes: dict[int, Lane]

    def operand(self, lanes: Sequence[Scalar]) -> Operand:
        """Return the operand with these lanes: a scalar, a vector, or the sources of its lanes."""
        if all(lane is lanes[0] for lane in lanes):
            return lanes[0]
        found = tuple([self.homes.get(id(lane), lane) for lane in lanes])
        first = found[0]
        if isinstance(first, tuple) and _are(lanes, first[0].lanes):
            return first[0]
        return found

    def next(self, work: OrderedLoop, numbers: Sequence[int]) -> Operand:
        """Return the value of a vector of carries after an iteration."""
        last = [numbers[-1]] * (self.width - len(numbers))
        return self.operand([work.carries[number].value for number in (*numbers, *last)])

    def results(self, work: OrderedLoop) -> list[Operand]:
        """Return the vectors that an iteration ends with."""
        found = [self.next(work, numbers) for _, numbers in self.carries]
        return found + [self.operand([s.value for s in stores]) for stores in self.stores]

    def alone(self, work: OrderedLoop) -> list[Scalar]:
        """Return the scalars that an iteration ends with."""
        carried = {number for _, numbers in self.carries for number in numbers}
        stored = {id(store) for stores in self.stores for store in stores}
        found = [c.value for k, c in enumerate(work.carries) if k not in carried]
        return found + [store.value for store in work.stores if id(store) not in stored]

    def chain(self, work: OrderedLoop) -> list[Scalar]:
        """Return the final scalars and the applications they depend on, except packed ones."""
        found = walk(*self.alone(work), known=self.homes)
        return [node for node in found if isinstance(node, Apply)]

    def operands(self, vector: Vector) -> list[Operand]:
        """Return the operands of a vector that applies a primitive."""
        assert vector.apply is not None
        count = len(vector.apply.args)
        return [self.operand([_args(lane)[k] for lane in vector.lanes]) for k in range(count)]


def _are(some: Sequence[Scalar], others: Sequence[Scalar]) -> bool:
    """Return True if these are the same nodes, pairwise."""
    return all(one is other for one, other in zip(some, others, strict=True))


def _args(value: Scalar) -> tuple[Scalar, ...]:
    assert isinstance(value, Apply)
    return value.args


class Nodes:
    """Heights and loop depths of all scalars of a loop."""

    def __init__(self, work: OrderedLoop) -> None:
        values = [*(c.value for c in work.carries), *(s.value for s in work.stores)]
        self.heights: dict[int, int] = {}
        self.running: dict[int, Running] = {}
        for node in walk(*values):
            heights = [self.heights[id(part)] for part in children_of(node)]
            self.heights[id(node)] = max(heights, default=-1) + 1
            if isinstance(node, Running):
                self.running[node.part] = node
        self.depths = Depths({TURN: ELEMENT_DEPTH, ROW: ELEMENT_DEPTH, **_rows(work)}, 0)

    def key(self, node: Scalar) -> Hashable:
        """Return a key that is equal for nodes that may be packed: they are independent."""
        kind = (node.row, node.attrs) if isinstance(node, Apply) else ()
        return type(node), kind, node.dtype, self.heights[id(node)], self.depths.value(node)


def _rows(work: OrderedLoop) -> dict[str, int]:
    """Return the names of axes that are rows, with their depth."""
    return {name: ELEMENT_DEPTH for op in work.op.bodies[0].results for name in op.axes.names}


class SlpPacker:
    """Finds vectors of ``width`` lanes of a dtype, from the results of an iteration downwards."""

    def __init__(self, work: OrderedLoop, nodes: Nodes, dtype: DType, width: int) -> None:
        self.work, self.nodes, self.dtype, self.width = work, nodes, dtype, width
        self.homes: dict[int, Lane] = {}
        self.vectors: list[Vector] = []
        self.loads: dict[int, Load] = {}

    def made(self) -> Packed:
        """Return the packed loop."""
        carries = list(self.of_carries())
        stores = list(self.of_stores())
        values = [self.work.carries[k].value for _, part in carries for k in part]
        waiting = deque([values, [store.value for part in stores for store in part]])
        while waiting:
            waiting.extend(self.families(waiting.popleft()))
        self.of_loads()
        made = Packed(
            self.dtype, self.width, tuple(carries), tuple(self.vectors), tuple(stores), self.homes
        )
        return replace(made, vectors=tuple(_ordered(made)))

    def chunks(self, nodes: Sequence[Scalar]) -> Iterator[Sequence[Scalar]]:
        """Yield chunks of vector width, and a last one if it is at least half full."""
        for first in range(0, len(nodes), self.width):
            part = nodes[first : first + self.width]
            if len(part) > 1 and 2 * len(part) >= self.width:
                yield part

    def home(self, nodes: Sequence[Scalar], neighbours: bool = False) -> Vector:
        """Assign these nodes to the lanes of a new vector."""
        last = [nodes[-1]] * (self.width - len(nodes))
        vector = Vector((*nodes, *last), neighbours)
        for lane, node in enumerate(nodes):
            self.homes.setdefault(id(node), (vector, lane))
        return vector

    def of_carries(self) -> Iterator[tuple[Vector, tuple[int, ...]]]:
        """Yield vectors of carries that are read and whose next values are isomorphic."""
        groups: dict[Hashable, list[int]] = {}
        for number, carry in enumerate(self.work.carries):
            if carry.dtype is self.dtype and number in self.nodes.running:
                groups.setdefault(self.nodes.key(carry.value), []).append(number)
        for numbers in groups.values():
            running = [self.nodes.running[number] for number in numbers]
            for part in self.chunks(running):
                vector = self.home(part)
                yield vector, tuple([node.part for node in part if isinstance(node, Running)])

    def of_stores(self) -> Iterator[tuple[Store, ...]]:
        """Yield groups of stores to adjacent offsets, one group per vector."""
        stores = [store for store in self.work.stores if store.dtype is self.dtype]
        for group in _by_place(stores):
            for run in _runs(group, self.width, False):
                yield tuple([group[place] for place in run])

    def families(self, nodes: Sequence[Scalar]) -> Iterator[list[Scalar]]:
        """Assign lanes to isomorphic nodes without a home; yield their arguments."""
        groups: dict[Hashable, list[Scalar]] = {}
        for node in {id(node): node for node in nodes}.values():
            if id(node) not in self.homes and id(node) not in self.loads:
                groups.setdefault(self.nodes.key(node), []).append(node)
        for group in groups.values():
            if len(group) < 2:
                continue
            first = group[0]
            if isinstance(first, Load):
                if first.dtype is self.dtype:
                    self.loads.update({id(n): n for n in group if isinstance(n, Load)})
            elif isinstance(first, Apply) and first.args:
                together = first.row.name in ROWS and first.dtype is self.dtype
                parts = list(self.chunks(group)) if together else []
                self.vectors += [self.home(part) for part in parts]
                if parts or not together:
                    for k in range(len(first.args)):
                        yield [_args(node)[k] for node in group]

    def of_loads(self) -> None:
        """Assign lanes to loads: adjacent ones together, then the remaining ones."""
        for group in _by_place(self.loads.values()):
            for run in _runs(group, self.width, True):
                self.vectors.append(self.home([group[place] for place in run], True))
        others: dict[Hashable, list[Scalar]] = {}
        for load in self.loads.values():
            if id(load) not in self.homes:
                others.setdefault(self.nodes.key(load), []).append(load)
        for rest in others.values():
            self.vectors += [self.home(part) for part in self.chunks(rest)]


def _ordered(made: Packed) -> list[Vector]:
    """Return the vectors of an iteration, operands first and close to their uses."""
    held = {vector for vector, _ in made.carries}
    found: dict[Vector | Scalar, None] = {}
    for root in made.vectors:
        _put(made, root, held, found)
    return [vector for vector in found if isinstance(vector, Vector)]


def _put(made: Packed, root: Vector, held: set[Vector], found: dict[Vector | Scalar, None]) -> None:
    """Append a vector after the vectors it needs; those in ``held`` are carries."""
    stack = [(root, False)]
    while stack:
        vector, ready = stack.pop()
        if ready:
            found[vector] = None
        elif vector not in found and vector not in held:
            stack.append((vector, True))
            stack += [(each, False) for each in reversed(_needed(made, vector))]


def steps(work: OrderedLoop, made: Packed) -> list[Vector | Scalar]:
    """Return the vectors of an iteration in order, with the scalars spread among them.

    A dependent chain of scalars waits for each of its results, and a processor looks ahead only a
    few hundred instructions: after all vectors, the chain would run alone.
    """
    chain = made.chain(work)
    held = {vector for vector, _ in made.carries}
    found: dict[Vector | Scalar, None] = {}
    done = 0
    for number, vector in enumerate(made.vectors, 1):
        _put(made, vector, held, found)
        until = number * len(chain) // len(made.vectors)
        for node in chain[done:until]:
            for part in children_of(node):
                if id(part) in made.homes:
                    _put(made, made.homes[id(part)][0], held, found)
            found[node] = None
        done = until
    return list(found)


def _needed(made: Packed, vector: Vector) -> list[Vector]:
    """Return the vectors whose lanes a vector needs, in the order of its operands."""
    operands = made.operands(vector) if vector.apply is not None else []
    lanes = vector.lanes if vector.apply is None else ()
    scalars = [part for lane in lanes for part in children_of(lane)]
    found: dict[Vector, None] = {}
    for operand in operands:
        for each in operand if isinstance(operand, tuple) else (operand,):
            if isinstance(each, Vector):
                found[each] = None
            elif isinstance(each, tuple):
                found[each[0]] = None
            else:
                scalars.append(each)
    for node in packed_nodes(made, scalars):
        found[made.homes[id(node)][0]] = None
    return list(found)


def packed_nodes(made: Packed, scalars: Sequence[Scalar]) -> list[Scalar]:
    """Return the packed nodes among scalars and what they depend on."""
    known = made.homes
    found = {id(node): node for node in scalars if id(node) in known}
    for node in walk(*scalars, known=known):
        found.update({id(part): part for part in children_of(node) if id(part) in known})
    return list(found.values())


def _by_place(found: Iterable[At]) -> Iterable[dict[int, At]]:
    """Group loads or stores of one operand that differ by a constant offset; map offset to node."""
    groups: dict[Hashable, dict[int, At]] = {}
    for each in found:
        constant = each.offset.constant
        if isinstance(constant, int):
            key = each.operand, frozenset(each.offset.terms.items())
            groups.setdefault(key, {})[constant] = each
    return groups.values()


def _runs(places: Iterable[int], width: int, again: bool) -> Iterator[range]:
    """Yield ranges of ``width`` adjacent offsets; if ``again``, the last may overlap."""
    found = sorted(places)
    first = 0
    while first < len(found):
        stop = first
        while stop < len(found) and found[stop] - found[first] == stop - first:
            stop += 1
        low, high = found[first], found[stop - 1] + 1
        for place in range(low, high - width + 1, width):
            yield range(place, place + width)
        if again and high - low > width and (high - low) % width:
            yield range(high - width, high)
        first = stop
