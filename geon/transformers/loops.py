"""Loop nests: a fused kernel as loops over rows and passes over what each row holds.

A nest goes over its rows (in parallel) and, for each row, makes one or more passes: loops that
reduce, or store, or both. What a later pass needs of an earlier one is a scalar of the row, an
element that was stored, or is computed again. A nest without rows is one pass, divided over threads
along its outermost loop; its reductions end in partial values that are combined in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..op_graph.dtypes import kind, name_of
from ..op_graph.lengths import product
from ..op_graph.op_graph import Op, among
from . import c_expressions
from .forms import Form, Size, strides, variable
from .fusion import Fused
from .scalars import Block, Index, LanesError, Names, Scalars
from .schedule import Kernel

BUFFERED = 1 << 16  # elements of one row of a costly value that are kept between passes


@dataclass(slots=True)
class Loop:
    """A loop variable and the axes it walks, outermost first, as one."""

    name: str
    axes: tuple[str, ...]
    extent: Size


@dataclass(eq=False, slots=True)
class Accumulator:
    """A reduction in a pass: ``text`` is combined into ``name``; ``spoiled`` notes a NaN."""

    op: Op
    name: str
    ctype: str
    kind: str
    dtype: str
    text: str
    spoiled: str | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """``value`` put at ``place``; ``direct`` where the place needs no statement of the body."""

    place: str
    value: str
    ctype: str
    direct: bool

    def __str__(self) -> str:
        return f"{self.place} = {self.value};"


@dataclass(slots=True)
class Pass:
    """Loops, outermost first, with the statements of one element, what it reduces and stores."""

    loops: list[Loop]
    body: Block
    sums: list[Accumulator] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of one row, filled in one pass and read in later ones."""

    name: str
    ctype: str
    size: Size
    itemsize: int


@dataclass(slots=True)
class Nest:
    """``rows`` (empty where a single pass is divided), then statements and passes in order.

    ``top`` are statements that run once in each task; ``lanes`` the loop of the last row axis,
    which is taken in blocks; ``ending`` what is computed after all partial values were combined;
    ``buffers`` what a task declares for its rows.
    """

    rows: list[Loop]
    top: Block
    row: Block
    lanes: Loop | None
    ending: Block
    weight: int
    buffers: list[Buffer] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class _Item:
    """A store or reduction, with the pass it belongs to and the axes its loops go over."""

    op: Op
    reduces: bool
    level: int
    inner: tuple[str, ...]


def make_nest(kernel: Kernel, names: Names) -> Nest:
    """The loops of a fused kernel."""
    try:
        return _Maker(kernel, names, lanes=True).make()
    except LanesError:
        return _Maker(kernel, names, lanes=False).make()


class _Maker:
    def __init__(self, kernel: Kernel, names: Names, lanes: bool) -> None:
        self.kernel, self.names, self.wants_lanes = kernel, names, lanes
        self.form: Fused = kernel.form
        self.reductions: tuple[Op, ...] = self.form.reductions
        self.reduced = set(self.reductions)
        self.extents: dict[str, Size] = {}
        for op in (*kernel.results, *(a for r in self.reductions for a in r.args)):
            for axis in op.axes:
                self.extents.setdefault(axis.name, axis.expression)
        self.levels: dict[Op, int] = {}
        self.items = self.find_items()

    # What is computed in which pass -------------------------------------------------------------

    def level(self, root: Op) -> int:
        """The pass in which ``root`` can be computed."""
        stack = [(root, False)]
        while stack:
            op, ready = stack.pop()
            if op in self.levels:
                continue
            if self.names.stored(op):
                self.levels[op] = 0
            elif ready:
                level = max((self.levels[arg] for arg in op.args), default=0)
                self.levels[op] = level + (op in self.reduced)
            else:
                stack.append((op, True))
                stack += [(arg, False) for arg in op.args]
        return self.levels[root]

    def find_items(self) -> list[_Item]:
        """What is reduced and stored, and in which pass."""
        rows = self.form.rows or frozenset()
        found = []
        for op in self.reductions:
            order = self.loop_order(op)
            inner = tuple(n for n in order if n not in rows)
            self.level(op)
            found.append(_Item(op, True, max(self.level(arg) for arg in op.args), inner))
        for op in self.kernel.results:
            if op not in self.reduced:
                inner = tuple(n for n in self.names.order(op) if n not in rows)
                found.append(_Item(op, False, self.level(op), inner))
        return found

    def loop_order(self, op: Op) -> tuple[str, ...]:
        """The axes a reduction goes over, kept ones included, in the order of memory."""
        widest = max(op.args, key=lambda arg: len(arg.axes))
        order = list(self.names.order(widest))
        for arg in op.args:
            order = [n for n in arg.axes.names if n not in order] + order
        return tuple(order)

    # Loops --------------------------------------------------------------------------------------

    def make(self) -> Nest:
        """The nest, with neighbouring loops merged where all offsets allow it."""
        if self.form.rows is None:
            return self.map_nest()
        order = self.row_order()
        lanes = None
        reads = self.loop_order(self.reductions[0]) if self.reductions else ()
        if self.wants_lanes and reads and reads[-1] in self.form.rows:
            lanes = reads[-1]
        first = self.build([(n,) for n in order if n != lanes], lanes, {})
        merged = self.merged_inner(first)
        return self.build([(n,) for n in order if n != lanes], lanes, merged) if merged else first

    def row_order(self) -> list[str]:
        source = self.kernel.results[0]
        order = self.loop_order(self.reductions[0]) if self.reductions else self.names.order(source)
        rows = self.form.rows or frozenset()
        return [n for n in order if n in rows]

    def map_nest(self) -> Nest:
        """One pass over all axes: a single loop where memory allows, else rows and a last loop."""
        order = self.names.order(self.kernel.results[0])
        if not order:
            return self.build([], None, {})
        groups: list[tuple[str, ...]] = [(n,) for n in order]
        if len(order) > 1:
            self.form = Fused(self.form.kind, frozenset(), None, ())
            self.items = [_Item(i.op, False, 0, order) for i in self.items]
            first = self.build([], None, {})
            groups = self.merged(order, first)
        if len(groups) == 1:
            self.items = [_Item(i.op, False, 0, order) for i in self.items]
            return self.build([], None, {order: groups})
        inner, across = groups[-1], self.across(order)
        self.items = [_Item(i.op, False, 0, inner) for i in self.items]
        if across is not None and self.wants_lanes:
            rows: list[tuple[str, ...]] = [
                (n,) for group in groups[:-1] for n in group if n != across
            ]
            return self.build(rows, across, {inner: [inner]})
        return self.build(groups[:-1], None, {inner: [inner]})

    def across(self, order: tuple[str, ...]) -> str | None:
        """The axis along which a load is adjacent where the last loop would jump through it.

        Its indices are then taken side by side, so that each line of cache is used as a whole.
        """
        names = {f"i_{self.number[n]}": n for n in order}
        last = f"i_{self.number[order[-1]]}"
        for form in self.scalars.offsets:
            if form.terms.get(last, 0) not in (0, 1):
                for name, step in form.terms.items():
                    if step == 1 and name in names:
                        return names[name]
        return None

    def merged_inner(self, nest: Nest) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
        """For each set of inner loops those that can be walked as one."""
        found = {}
        for inner in {item.inner for item in self.items}:
            groups = self.merged(inner, nest)
            if len(groups) < len(inner):
                found[inner] = groups
        return found

    def merged(self, order: Sequence[str], nest: Nest) -> list[tuple[str, ...]]:
        """Neighbouring axes that every offset walks as one."""
        groups: list[tuple[str, ...]] = []
        for name in order:
            if groups and self.mergeable(groups[-1][-1], name):
                groups[-1] = (*groups[-1], name)
            else:
                groups.append((name,))
        return groups

    def mergeable(self, outer: str, inner: str) -> bool:
        """Whether every offset walks two neighbouring axes as one."""
        variables = [f"i_{self.number[outer]}", f"i_{self.number[inner]}"]
        if any(v in self.scalars.lone for v in variables):
            return False
        extent = self.extents[inner]
        for form in self.scalars.offsets:
            step = form.terms.get(variables[1], 0)
            if form.terms.get(variables[0], 0) != step * extent:
                return False
        return True

    # Building -----------------------------------------------------------------------------------

    def build(
        self,
        rows: list[tuple[str, ...]],
        lanes: str | None,
        merged: dict[tuple[str, ...], list[tuple[str, ...]]],
    ) -> Nest:
        """A nest with these loops."""
        self.scalars = Scalars(self.names)
        self.number = {name: k for k, name in enumerate(self.extents)}
        self.index: dict[str, Form] = {}
        top = Block()
        self.lane_loop = None
        row = Block(top, "lanes" if lanes is not None else None)
        row_loops = [self.loop(axes, 1) for axes in rows]
        if lanes is not None:
            self.lane_loop = Loop("lane", (lanes,), self.extents[lanes])
            self.index[lanes] = variable("first_lane") + variable("lane")
            self.scalars.depths.update({"first_lane": 1, "lane": 1})
        self.buffered: list[tuple[Op, object, str]] = []
        self.buffers: list[Buffer] = []
        ending = Block()
        weight = 0
        target = row
        divided = not rows and lanes is None
        last = max((item.level for item in self.items), default=0)
        for level in range(last + 1):
            if divided and level > 0:
                target = ending
            weight += self.make_level(level, target, ending, divided, merged)
        return Nest(row_loops, top, row, self.lane_loop, ending, max(weight, 1), self.buffers)

    def loop(self, axes: tuple[str, ...], depth: int) -> Loop:
        name = f"i_{self.number[axes[0]]}" if len(axes) == 1 else f"j_{self.number[axes[0]]}"
        self.scalars.depths[name] = depth
        parts = self.scalars.split(variable(name), [self.extents[n] for n in axes])
        self.index.update(zip(axes, parts, strict=True))
        return Loop(name, axes, product(self.extents[n] for n in axes))

    def make_level(
        self,
        level: int,
        row: Block,
        ending: Block,
        divided: bool,
        merged: dict[tuple[str, ...], list[tuple[str, ...]]],
    ) -> int:
        """The passes of one level; those over the same axes are one. The work of one element."""
        weight = 0
        shapes: dict[tuple[str, ...], list[_Item]] = {}
        for item in self.items:
            if item.level == level:
                shapes.setdefault(item.inner, []).append(item)
        for inner, items in sorted(shapes.items(), key=lambda pair: len(pair[0])):
            if not inner and not any(item.reduces for item in items):
                self.store_row(ending if divided and len(shapes) > 1 else row, items)
                continue
            made = self.make_pass(level, row, inner, items, merged.get(inner))
            row.lines.append(made)
            weight += len(made.body.lines) + len(made.sums)
            for total in made.sums:
                self.finish(ending if divided else row, total)
        self.release()
        return weight

    def store_row(self, row: Block, items: Iterable[_Item]) -> None:
        """Stores of values of the row itself."""
        for item in items:
            index = self.index_of(item.op)
            value = self.scalars.value(row, item.op, index)
            offset = self.scalars.offset(row, item.op, index)
            line = f"{self.names.pointer(item.op)}[{offset}] = {value};"
            if row.lanes is not None:
                line = f"for (int64_t lane = 0; lane < {row.lanes}; lane++) {line}"
            row.lines.append(line)

    def make_pass(
        self,
        level: int,
        row: Block,
        inner: tuple[str, ...],
        items: list[_Item],
        groups: list[tuple[str, ...]] | None,
    ) -> Pass:
        """The loops of one pass with all that is computed in it."""
        body = Block(row)
        loops = [self.loop(axes, 2) for axes in groups or [(n,) for n in inner]]
        made = Pass(loops, body)
        written: list[Op] = []
        for item in items:
            if item.reduces:
                made.sums.append(self.accumulator(body, item.op))
                continue
            index = self.index_of(item.op)
            value = self.scalars.value(body, item.op, index)
            before = len(body.lines)
            offset = self.scalars.offset(body, item.op, index)
            direct = len(body.lines) == before and not set(self.scalars.offsets[-1].terms) & set(
                self.scalars.halves
            )
            place = f"{self.names.pointer(item.op)}[{offset}]"
            ctype = c_expressions.C_TYPES[name_of(item.op.dtype)]
            made.stores.append(Store(place, value, ctype, direct))
            written.append(item.op)
        body.lines += self.keep_costly(level, inner, row, body)
        self.scalars.readable.update(written)
        return made

    def index_of(self, op: Op) -> dict[str, Form]:
        return {n: self.index[n] for n in op.axes.names}

    def accumulator(self, body: Block, op: Op) -> Accumulator:
        """The step of a reduction."""
        dtype = name_of(op.dtype)
        if op.primitive.name == "dot":
            x, y = (self.scalars.value(body, arg, self.index_of(arg)) for arg in op.args)
            text, what = c_expressions.expression("multiply", [dtype, dtype], dtype, [x, y]), "sum"
        else:
            arg, what = op.args[0], op.primitive.name
            element = self.scalars.value(body, arg, self.index_of(arg))
            text = c_expressions.ELEMENTS[what](name_of(arg.dtype), dtype, element)
        name = self.scalars.fresh("s")
        spoiled = f"{name}_nan" if what in ("max", "min") and kind(op.dtype) == "f" else None
        return Accumulator(op, name, c_expressions.C_TYPES[dtype], what, dtype, text, spoiled)

    def finish(self, row: Block, total: Accumulator) -> None:
        """What later passes, and the store, call a reduction."""
        name = f"{total.name}[lane]" if row.lanes is not None else total.name
        self.scalars.depths[total.name] = 1
        self.scalars.known[total.op] = lambda index: name
        if among(total.op, self.kernel.results):
            self.store_row(row, [_Item(total.op, False, 0, ())])

    # What later passes use again ----------------------------------------------------------------

    def later_needs(self, level: int) -> set[Op]:
        """Costly ops, not in memory, that are computed at ``level`` and used in later passes."""
        found: set[Op] = set()
        for item in self.items:
            if item.level <= level:
                continue
            stack = list(item.op.args) if item.reduces else [item.op]
            seen = set(stack)
            while stack:
                op = stack.pop()
                if self.names.stored(op) or op in self.reduced:
                    continue
                if op.primitive.cost == "expensive" and self.level(op) <= level:
                    found.add(op)
                new = [arg for arg in op.args if arg not in seen]
                seen.update(new)
                stack += new
        return found

    def keep_costly(self, level: int, inner: tuple[str, ...], row: Block, body: Block) -> list[str]:
        """Statements that keep costly values in a buffer of the row, for later passes."""
        size = product(self.extents[n] for n in inner)
        long = isinstance(size, int) and size > BUFFERED
        if row.lanes is not None or not self.form.rows or long:
            return []
        found = []
        form = Form()
        for name, step in zip(inner, strides(tuple(self.extents[n] for n in inner)), strict=True):
            form = form + self.index[name].times(step)
        needed = {id(op): op for op in self.later_needs(level)}
        for key, name in list(body.names.items()):
            op = needed.get(key[0]) if isinstance(key, tuple) else None
            if op is None or among(op, self.kernel.results) or op in self.scalars.known:
                continue
            buffer = self.scalars.fresh("w")
            ctype = c_expressions.C_TYPES[name_of(op.dtype)]
            self.buffers.append(Buffer(buffer, ctype, size, op.dtype.itemsize))
            place = f"{buffer}[{self.scalars.index_text(body, form, lone=False)}]"
            found.append(f"{place} = {name};")
            self.buffered.append((op, key[1], place))
        return found

    def release(self) -> None:
        """Let the passes that follow read the buffers that were filled."""
        for op, key, place in self.buffered:

            def kept(
                index: Index, op: Op = op, key: object = key, place: str = place
            ) -> str | None:
                same = tuple([index[n].key for n in op.axes.names]) == key
                return place if same else None

            self.scalars.known[op] = kept
        self.buffered = []
