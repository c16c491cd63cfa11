"""Unroll and jam: compute neighbouring iterations of the second innermost loop together.

Windows of neighbouring positions overlap and share their weights. Common loads are executed once
and stay in registers. The statements are explicit vectors, since autovectorised code loads them
again for each use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.axes.lengths import is_multiple, product
from ....op_graph.values.dtypes import BOOL, DType, name_of
from ...kernels.analysis.index_boxes import nominal_length
from ...kernels.analysis.loop_depth import Depths
from ...kernels.analysis.work_estimate import weight
from ...kernels.ir.nest import Loop, Nest, Pass, Store
from ...kernels.ir.scalar_code import Apply, IndexNumber, Load, Scalar, indices, walk
from ...printing.nests.pass_text import PrintedPass, PrintedStore, PrintedTurns, first_turn
from ...printing.nests.scalar_statements import ScalarPrinter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.nests.transposed_passes import is_direct
from ...printing.scalars import c_expressions
from ..names.naming import KernelNames
from .vector_ops import has_vector, is_number, row_text, vector_type, vectors

JAM_FACTORS = (4, 5, 3, 2)  # unroll factors, the first that divides all; registers hold their sums
MIN_LOADED_VECTORS = 6  # minimum vector loads per element: with fewer, memory is the bottleneck
MAX_LOAD_SHARE = 0.75  # maximum ratio of loads after and before sharing
MAX_JAM_NODES = 256  # maximum nodes per element: code size grows with nodes times unroll factor
MIN_JAM_POSITIONS = 64  # minimum iterations of the two innermost row loops, for enough work
MIN_ROW_VECTORS = 4  # minimum vectors of a row, so that the remainder is a small part of it


@dataclass(frozen=True, slots=True)
class Jam:
    """An unroll and jam of a nest.

    ``step`` is the pass, ``number`` its number. ``outer`` is the unrolled row loop, ``turns`` the
    unroll factor. ``inner`` is the vectorised loop, ``lanes`` the vector length.
    """

    step: Pass
    number: int
    outer: Loop
    inner: Loop
    turns: int
    lanes: int


def choose_jam(nest: Nest, vector_bytes: int) -> Jam | None:
    """Return the unroll and jam of a nest, or None if it is illegal or saves too little."""
    if not nest.rows or nest.across is not None or nest.ending or nest.pieces:
        return None
    if not all(map(only_stores, nest.steps)):
        return None
    number = longest(nest.passes)
    step, outer = nest.passes[number], nest.rows[-1]
    (inner,), dtype = step.loops, step.stores[0].dtype
    places = product([loop.extent for loop in nest.rows[-2:]])
    lanes = lanes_of(inner, vector_bytes // dtype.itemsize)
    if lanes == 0 or (isinstance(places, int) and places < MIN_JAM_POSITIONS):
        return None
    nodes = list(walk(*[store.value for store in step.stores]))
    if len(nodes) > MAX_JAM_NODES or not are_vectors(nodes, step.stores, inner, dtype.itemsize):
        return None
    turns = next((n for n in JAM_FACTORS if is_multiple(outer.extent, n)), JAM_FACTORS[0])
    if isinstance(outer.extent, int) and outer.extent < turns:
        return None
    found = Jam(step, number, outer, inner, turns, lanes)
    return found if shares(nodes, found) else None


def only_stores(step: Pass | Store) -> bool:
    """Return True if a step is a pass of one loop that only stores."""
    if not isinstance(step, Pass) or len(step.loops) != 1:
        return False
    return not step.reductions and not step.keeps


def longest(passes: Sequence[Pass]) -> int:
    """Return the number of the pass with the most iterations; the others are borders."""
    sizes = [nominal_length(step.loops[0].extent) for step in passes]
    return sizes.index(max(sizes))


def lanes_of(inner: Loop, lanes: int) -> int:
    """Return the vector length for a loop, 0 if it is too short.

    A half-length vector that fills the loop is better than a full one with a remainder.
    """
    fitting = [n for n in (lanes, lanes // 2) if n > 1 and is_multiple(inner.extent, n)]
    if fitting:
        return fitting[0]
    long = not isinstance(inner.extent, int) or inner.extent >= MIN_ROW_VECTORS * lanes
    return lanes if long else 0


def are_vectors(nodes: list[Scalar], stores: Sequence[Store], inner: Loop, itemsize: int) -> bool:
    """Return True if all computed values can be vectors of elements of ``itemsize`` bytes, or
    masks.

    Values that are the same for a whole vector may have any dtype.
    """
    wide = vectors(nodes, inner.name)
    stored = all(
        id(store.value) in wide
        and is_number(store.dtype, itemsize)
        and is_direct(store.offset)
        and store.offset.step(inner.name) == 1
        for store in stores
    )
    return stored and all(has_vector(node, wide, inner.name, itemsize) for node in nodes)


def shift_offset(offset: AffineIndex, loop: Loop, turn: int) -> AffineIndex:
    """Return an offset after ``turn`` iterations of a loop."""
    return offset + offset.step(loop.name) * turn


def shares(nodes: list[Scalar], jam: Jam) -> bool:
    """Return True if the unrolled iterations share enough loads."""
    each = vector_loads(nodes, jam)
    return len(each) >= MIN_LOADED_VECTORS * jam.turns and len(set(each)) <= MAX_LOAD_SHARE * len(
        each
    )


def overlaps(nodes: list[Scalar], jam: Jam) -> bool:
    """Return True if the iterations share loads that vary along rows."""
    moving = [x for x in nodes if isinstance(x, Load) and x.offset.step(jam.outer.name) != 0]
    each = vector_loads(moving, jam)
    return len(set(each)) < len(each)


def vector_loads(nodes: Sequence[Scalar], jam: Jam) -> list[tuple[int, AffineIndex]]:
    """Return the vector loads of all unrolled iterations as (operand, offset)."""
    loads = [x for x in nodes if isinstance(x, Load) and x.offset.step(jam.inner.name) != 0]
    turns = range(jam.turns)
    return [(x.operand, shift_offset(x.offset, jam.outer, turn)) for x in loads for turn in turns]


def print_jam(nest: Nest, jam: Jam, names: KernelNames) -> PrintedTurns:
    """Return the statements of the unrolled iterations, and those before all vectors."""
    return _JamPrinter(nest, jam, names).printed()


NAMED = (Load, IndexNumber, Apply)  # nodes that get a name; others are written at their uses


class _JamPrinter:
    def __init__(self, nest: Nest, jam: Jam, kernel: KernelNames) -> None:
        self.jam, self.kernel = jam, kernel
        self.depths = Depths.of(nest)
        self.scalars, self.block = ScalarPrinter(kernel, self.depths), StatementBlock()
        self.known = StatementBlock()  # values that are the same for all elements of a row
        self.nodes = list(walk(*[store.value for store in jam.step.stores]))
        self.wide = vectors(self.nodes, jam.inner.name)
        self.varying = self.varies()
        self.names: dict[Hashable, str] = {}
        self.users = self.counted()

    def type(self, dtype: DType) -> str:
        """Return the vector type of a dtype; booleans are masks as wide as the elements."""
        if name_of(dtype) == "bool":
            return f"i{8 * self.jam.step.stores[0].dtype.itemsize}x{self.jam.lanes}"
        return vector_type(c_expressions.C_TYPES[name_of(dtype)], self.jam.lanes)

    def varies(self) -> set[int]:
        """Return the ids of nodes that differ between unrolled iterations."""
        found: set[int] = set()
        for node in self.nodes:
            own = any(index.step(self.jam.outer.name) != 0 for index in indices(node))
            below = isinstance(node, Apply) and any(id(arg) in found for arg in node.args)
            if own or below:
                found.add(id(node))
        return found

    def key(self, node: Scalar, turn: int) -> Hashable:
        """Return a key that is equal for equal values of unrolled iterations."""
        if isinstance(node, Load):
            return node.operand, shift_offset(node.offset, self.jam.outer, turn)
        return id(node), turn if id(node) in self.varying else 0

    def counted(self) -> Counter[Hashable]:
        """Return the number of uses of each value in all unrolled iterations."""
        found: Counter[Hashable] = Counter()
        applied = [node for node in self.nodes if isinstance(node, Apply)]
        for node in applied:
            for turn in range(self.jam.turns if id(node) in self.varying else 1):
                found.update([self.key(arg, turn) for arg in node.args])
        return found

    def printed(self) -> PrintedTurns:
        """Return the pass, each statement for all iterations before the next one."""
        jam, step = self.jam, self.jam.step
        self.kernel.calls(["geon_vectors"])
        for node in self.nodes:
            if isinstance(node, NAMED):
                for turn in range(jam.turns):
                    self.statement(node, turn)
        made = PrintedPass(step.loops, self.block, weight(step, self.depths))
        made.stores = [self.store(x, turn) for turn in range(jam.turns) for x in step.stores]
        return PrintedTurns(
            made,
            self.known,
            jam.number,
            jam.outer,
            jam.turns,
            jam.lanes,
            divide=is_multiple(jam.outer.extent, jam.turns),
            filled=is_multiple(jam.inner.extent, jam.lanes),
            overlap=overlaps(self.nodes, jam),
        )

    def statement(self, node: Load | IndexNumber | Apply, turn: int) -> None:
        """Emit a value of an iteration, unless an equal value has been emitted."""
        key = self.key(node, turn)
        if key in self.names:
            return
        name = self.names[key] = f"v{len(self.names) + 1}"  # differs from names in rows
        if id(node) not in self.wide:
            ctype = c_expressions.C_TYPES[name_of(node.dtype)]
            self.known.lines.append(f"const {ctype} {name} = {self.number(node, turn)};")
            return
        assert not isinstance(node, IndexNumber), "vectors are of what is loaded"
        self.block.lines.append(f"{self.type(node.dtype)} {name} = {self.vector(node, turn)};")
        again = isinstance(node, Load) and self.users[key] > 1
        summed = isinstance(node, Apply) and any(isinstance(arg, Apply) for arg in node.args)
        if name_of(node.dtype) != "bool" and (again or summed):
            self.block.lines.append(f"GEON_KEPT({name})")

    def number(self, node: Load | IndexNumber | Apply, turn: int) -> str:
        """Return the text of a value that is the same for a whole vector."""
        result = name_of(node.dtype)
        if isinstance(node, Load):
            element = self.element(node.operand, shift_offset(node.offset, self.jam.outer, turn))
            return f"{element} != 0" if result == "bool" else element
        if isinstance(node, IndexNumber):
            index = self.scalars.index(self.block, shift_offset(node.index, self.jam.outer, turn))
            return self.scalars.cast(self.block, "int64", result, f"({index})")
        kinds = [name_of(arg.dtype) for arg in node.args]
        operands = [self.operand(arg, turn) for arg in node.args]
        row = node.row.name
        return self.scalars.expression(self.block, row, kinds, result, operands, node.attrs)

    def vector(self, node: Load | Apply, turn: int) -> str:
        """Return the text of a vector of an iteration."""
        if isinstance(node, Load):
            element = self.element(node.operand, shift_offset(node.offset, self.jam.outer, turn))
            return f"GEON_AT({self.type(node.dtype)}, {element})"
        operands = [self.operand(arg, turn) for arg in node.args]
        each = [self.spread(arg, turn) for arg in node.args]
        types = (self.type(node.dtype), self.type(BOOL))
        return row_text(node.row.name, name_of(node.dtype), types, operands, each)

    def spread(self, node: Scalar, turn: int) -> str:
        """Return a value as a vector: a scalar comparison is 1, not all ones."""
        text = self.operand(node, turn)
        return text if id(node) in self.wide else f"GEON_EACH({self.type(node.dtype)}, {text})"

    def operand(self, node: Scalar, turn: int) -> str:
        """Return the name of a value of an iteration, or its text if it has no name."""
        if isinstance(node, NAMED):
            return self.names[self.key(node, turn)]
        found = self.scalars.direct(self.block, node)
        assert found is not None, "numbers and lengths need no name"
        return found

    def element(self, operand: int, offset: AffineIndex) -> str:
        """Return the element of an operand at an offset."""
        return f"{self.kernel.operand(operand)}[{self.scalars.index(self.block, offset)}]"

    def store(self, store: Store, turn: int) -> PrintedStore:
        """Return the store of a vector of an iteration."""
        offset, inner = shift_offset(store.offset, self.jam.outer, turn), self.jam.inner.name
        first = first_turn(inner)
        self.scalars.spelled = {inner: first}
        operand = self.kernel.operand(store.operand)
        start = f"{operand} + {self.scalars.index(self.block, offset)}"
        self.scalars.spelled = {}
        return PrintedStore(
            self.element(store.operand, offset),
            self.operand(store.value, turn),
            c_expressions.C_TYPES[name_of(store.dtype)],
            store.operand,
            store.dtype.itemsize,
            start=start,
            index=f"{inner} - {first}",
            vector=self.type(store.dtype),
        )
