"""Emit the statements of a sequential scan whose carries are packed in vectors (SLP)."""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.values.dtypes import DType, name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Load, Scalar
from ...kernels.scans.sequential_scan import TURN, OrderedLoop
from ...kernels.scans.slp import Operand, Packed, Picked, Vector, steps
from ...printing.nests.scalar_statements import ScalarPrinter
from ...printing.nests.scan_statements import PrintedOrdered, row_of, store_statement
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_expressions import C_TYPES
from ..names.naming import KernelNames


def vector_type(dtype: DType, width: int) -> tuple[str, str]:
    """Return the name of a vector type and its definition."""
    ctype, size = C_TYPES[name_of(dtype)], dtype.itemsize
    name = f"geon_{ctype}s_{width}"
    attributes = f"vector_size({width * size}), aligned({size}), may_alias"
    return name, f"typedef {ctype} {name} __attribute__(({attributes}));"


def print_packed(work: OrderedLoop, packed: Packed, names: KernelNames) -> PrintedOrdered:
    """Return the statements of a scan of one row, with ``part`` as the index in stacks."""
    return _SlpPrinter(work, packed, names).printed()


class _SlpPrinter:
    def __init__(self, work: OrderedLoop, packed: Packed, names: KernelNames) -> None:
        self.work, self.packed, self.names = work, packed, names
        row = row_of(work)
        self.depths = Depths({TURN: ELEMENT_DEPTH, row: ELEMENT_DEPTH}, 0)
        self.scalars = ScalarPrinter(names, self.depths)
        self.scalars.spelled = {TURN: "part", row: "row"}
        self.type, _ = vector_type(packed.dtype, packed.width)
        self.top = StatementBlock()
        self.inner = StatementBlock(StatementBlock(self.top))
        self.held: dict[Vector, str] = {}

    def printed(self) -> PrintedOrdered:
        """Return all statements."""
        carried = {number for _, numbers in self.packed.carries for number in numbers}
        alone = [k for k in range(len(self.work.carries)) if k not in carried]
        first, declared = self.begun(alone)
        for step in steps(self.work, self.packed):
            if isinstance(step, Vector):
                self.compute(step)
            else:
                self.scalars.value(self.inner, step)
        nexts, moves = self.moved(alone)
        stores = self.stores()
        after = StatementBlock(StatementBlock(self.top))
        kept = [carry.store for carry in self.work.carries if carry.store is not None]
        last = [store_statement(self.scalars, self.names, after, store) for store in kept]
        return PrintedOrdered(
            list(map(str, self.top.lines)),
            first,
            [*map(str, self.inner.lines), *nexts, *stores, *moves],
            [*map(str, after.lines), *last],
            declared,
        )

    def begun(self, alone: Sequence[int]) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the statements that initialise carries, and their declarations as (type, name)."""
        before, lines, declared = StatementBlock(StatementBlock(self.top)), [], []
        carries = self.work.carries
        texts = [self.scalars.value(before, carry.first) for carry in carries]
        for k in alone:
            name, ctype = f"c{k}", C_TYPES[name_of(carries[k].dtype)]
            self.scalars.running[k, False] = name
            declared.append((ctype, name))
            lines.append(f"{name} = {texts[k]};")
        for number, (vector, numbers) in enumerate(self.packed.carries):
            name = self.held[vector] = f"v{number}"
            for lane, k in enumerate(numbers):
                self.scalars.running[k, False] = f"{name}[{lane}]"
            declared.append((self.type, name))
            rest = [texts[numbers[-1]]] * (self.packed.width - len(numbers))
            lines.append(f"{name} = {self.joined([*(texts[k] for k in numbers), *rest])};")
        return [*map(str, before.lines), *lines], declared

    def joined(self, texts: Sequence[str]) -> str:
        """Return a vector of these scalars."""
        return f"({self.type}){{{', '.join(texts)}}}"

    def compute(self, vector: Vector) -> None:
        """Emit a vector and record the names of its lanes."""
        block = self.inner.at(max(self.depths.value(lane) for lane in vector.lanes))
        first = vector.lanes[0]
        if vector.neighbours:
            text = f"*(const {self.type} *)&{self.place(block, first)}"
        elif vector.apply is None:
            text = self.joined([self.scalars.value(block, lane) for lane in vector.lanes])
        else:
            operands = [self.operand(block, each) for each in self.packed.operands(vector)]
            kind = name_of(first.dtype)
            row = vector.apply.row.name
            text = self.scalars.expression(block, row, [kind] * len(operands), kind, operands)
        name = self.held[vector] = self.let(block, text)
        for lane, node in enumerate(vector.lanes):
            if not self.scalars.named(block, node) and self.packed.homes[id(node)][0] is vector:
                block.names[node] = f"{name}[{lane}]"

    def place(self, block: StatementBlock, load: Scalar) -> str:
        """Return an element of memory."""
        assert isinstance(load, Load)
        operand = self.names.operand(load.operand)
        return f"{operand}[{self.scalars.index(block, load.offset)}]"

    def operand(self, block: StatementBlock, operand: Operand) -> str:
        """Return the text of an operand of a vector; name a permutation of lanes."""
        if isinstance(operand, Vector):
            return self.held[operand]
        if not isinstance(operand, tuple):
            return self.scalars.value(block, operand)
        found = block.find(operand)
        if found is None:
            found = block.names[operand] = self.picked(block, operand)
        return found

    def picked(self, block: StatementBlock, lanes: Picked) -> str:
        """Emit a vector of these lanes and return its name.

        Compilers make one or two instructions of a shuffle of two vectors and of a scalar insert.
        From a single expression of both they extract every lane.
        """
        held = {each[0]: self.held[each[0]] for each in lanes if isinstance(each, tuple)}
        texts = [
            f"{held[each[0]]}[{each[1]}]"
            if isinstance(each, tuple)
            else self.scalars.value(block, each)
            for each in lanes
        ]
        put = [lane for lane, each in enumerate(lanes) if not isinstance(each, tuple)]
        if not put or len(held) not in (1, 2) or 2 * len(put) > len(lanes):
            return self.let(block, self.joined(texts))
        first = next(iter(held.values()))
        taken = [f"{first}[{lane}]" if lane in put else text for lane, text in enumerate(texts)]
        name = self.let(block, self.joined(taken))
        block.lines[-1] = block.lines[-1].removeprefix("const ")
        block.lines += [f"{name}[{lane}] = {texts[lane]};" for lane in put]
        return name

    def let(self, block: StatementBlock, text: str) -> str:
        """Emit a vector and return its name."""
        name = self.scalars.fresh("p")
        block.lines.append(f"const {self.type} {name} = {text};")
        return name

    def whole(self, operand: Operand) -> str:
        """Return an operand as a vector; broadcast a scalar."""
        text = self.operand(self.inner, operand)
        if isinstance(operand, (Vector, tuple)):
            return text
        return self.joined([text] * self.packed.width)

    def moved(self, alone: Sequence[int]) -> tuple[list[str], list[str]]:
        """Return the statements that compute the next carries, and those that assign them."""
        lines, moves = [], []
        carries = self.work.carries
        for k in alone:
            ctype = C_TYPES[name_of(carries[k].dtype)]
            text = self.scalars.value(self.inner, carries[k].value)
            lines.append(f"const {ctype} next{k} = {text};")
            moves.append(f"c{k} = next{k};")
        for number, (_, numbers) in enumerate(self.packed.carries):
            text = self.whole(self.packed.next(self.work, numbers))
            lines.append(f"const {self.type} after{number} = {text};")
            moves.append(f"v{number} = after{number};")
        return lines, moves

    def stores(self) -> list[str]:
        """Return the stores of an iteration."""
        lines = []
        together = {id(store) for stores in self.packed.stores for store in stores}
        for stores in self.packed.stores:
            first = stores[0]
            at = f"&{self.names.operand(first.operand)}[{self.at(first)}]"
            text = self.whole(self.packed.operand([store.value for store in stores]))
            lines.append(f"*({self.type} *){at} = {text};")
        for store in self.work.stores:
            if id(store) not in together:
                lines.append(store_statement(self.scalars, self.names, self.inner, store))
        return lines

    def at(self, store: Store) -> str:
        """Return the offset of a store."""
        return self.scalars.index(self.inner, store.offset)
