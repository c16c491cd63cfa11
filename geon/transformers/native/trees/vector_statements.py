"""Emit the statements of a loop tree as C: vectors where a loop is one, scalars elsewhere.

Statements of unrolled copies are interleaved, and a value that copies share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ....op_graph.axes.affine import AffineIndex, variable
from ....op_graph.rows.logic import bitwise_and, logical_and
from ....op_graph.values.dtypes import kind, name_of
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.loop_variables import variables
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Kept, Load, Scalar, indices
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.access import is_unrolled, only_folds
from ...loops.gather_prefetch import MAX_PREFETCHED_LINES
from ...loops.rules.forwarded_copies import TRANSPOSED_ITEMSIZES, spread_row
from ...loops.rules.interleaved_loops import INTERLEAVED_VECTORS
from ...loops.rules.transposed_tiles import MIN_TRANSPOSED_ITEM_BYTES
from ...loops.substitution import Substitution
from ...loops.tree import (
    Body,
    CachePrefetch,
    Combine,
    Draw,
    Fold,
    Kind,
    LoopNode,
    Role,
    Statement,
    Tree,
    Write,
    constant,
    loops_of,
    values_of,
    walk,
)
from ...printing.nests.loop_lines import for_loop, indent, stepped_loop
from ...printing.nests.parameters import Parameter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import buffer_name
from ...printing.trees.tree_statements import TreeStatements
from ...sizes.blocks import CACHE_LINE_BYTES
from ..library.random_words import words_function
from ..names.dialect import SIMD
from ..names.naming import KernelNames
from ..vectors.interleave import interleaved
from ..vectors.lanes import Vectors
from ..vectors.scan_copies import MAX_INTERLEAVED_ELEMENTS
from ..vectors.vector_ops import vector_type
from .lane_lines import LANE, lane_loops
from .lane_scalars import HIDDEN, LaneScalars
from .reduction_clauses import (
    EXTREMES,
    REDUCTIONS,
    extreme,
    nan_result,
    reduction_clause,
)
from .row_arrays import LaneBuffers

UNROLLED = "#pragma GCC unroll 16"  # by itself a compiler unrolls only shorter loops


class VectorStatements(TreeStatements):
    """Emits the loops and statements of a tree for one C function.

    ``told`` are the parameters of the function that are private buffers, by number. ``tasks``
    returns the statements that run a loop as tasks.
    """

    scalars: LaneScalars

    def __init__(
        self,
        tree: Tree,
        names: KernelNames,
        vectors: Vectors,
        tasks: Callable[[LoopNode], list[str]] | None = None,
        told: Mapping[int, Parameter] | None = None,
    ) -> None:
        buffers = LaneBuffers(tree, told, names)
        assert tree.vectors is not None
        scalars = LaneScalars(names, Depths.of_tree(), vectors, tree.vectors)
        super().__init__(tree, names, scalars, buffers)
        self.vectors, self.tasks = vectors, tasks
        self.streamed = frozenset[int]()  # operands whose stores read the flag ``passes``
        self.begins: list[str] = []  # declarations at the beginning of the function
        self.streams: list[str] = []  # names of the streams of copies past the caches
        self.flagged: set[int] = set()  # extremes of the current loop with a flag for NaN

    def body(self, body: Body, block: StatementBlock) -> None:
        """Emit statements; buffers that are copied past the caches are declared first."""
        for each in body:
            if isinstance(each, Draw):
                self.buffers.declare(each.into)  # as the pointer that the call returns
                self.buffers.registers.discard(each.into)
            copy = streaming_copy(each)
            if copy is not None:
                self.declare_copied(*copy, block)
        super().body(body, block)

    def declare_copied(
        self, store: Store, kept: Kept, copy: LoopNode, block: StatementBlock
    ) -> None:
        """Emit a buffer and the pointer to it, or to the memory of a call that writes little."""
        name, ctype = buffer_name(kept.number), self.buffers.ctype(kept.number)
        self.buffers.declare(kept.number)
        self.buffers.registers.discard(kept.number)
        held, size = f"{name}_held", self.buffers.size(kept.number)
        start = self.start(store, copy, block)
        block.lines += [
            f"{ctype} {held}[{size}] GEON_LINES;",
            f"{ctype} *const restrict {name} = passes ? {held} : {start};",
        ]

    def start(self, store: Store, copy: LoopNode, block: StatementBlock) -> str:
        """Return the pointer to the first element that a loop copies."""
        offset = store.offset - variable(copy.variable)
        return f"{self.names.operand(store.operand)} + {self.scalars.index(block, offset)}"

    def copy(self, store: Store, kept: Kept, loop: LoopNode, block: StatementBlock) -> None:
        """Emit the copy of a buffer past the caches, through a stream of its own."""
        stream = f"past_{len(self.streams)}"
        self.streams.append(stream)
        self.begins.append(f"struct geon_past {stream} = {{.held = 0}};")
        name, size = buffer_name(kept.number), self.scalars.index(block, loop.extent)
        target = f"&{stream}, {self.start(store, loop, block)}"
        put = f"geon_past_put({target}, {name}, ({size}) * sizeof *{name});"
        block.lines += ["if (passes)", *indent([put])]

    def ends(self) -> list[str]:
        """Return the statements behind stores past the caches, at the end of the function."""
        if not self.streamed:
            return []
        ends = [f"geon_past_end(&{name});" for name in self.streams]
        return ends or ["geon_past_done(passes);"]

    def copy_run(self, keep: Keep, load: Load, loop: LoopNode, block: StatementBlock) -> None:
        """Emit the copy of a short contiguous run of known length to a buffer."""
        first, name = variable(loop.variable), buffer_name(keep.number)
        source, target = (self.scalars.index(block, x.offset - first) for x in (load, keep))
        places = f"{name} + {target}, {self.names.operand(load.operand)} + {source}"
        block.lines.append(f"memcpy({places}, {loop.size} * sizeof *{name});")

    def task(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit the statements that run a loop as tasks."""
        assert self.tasks is not None, "tasks have no tasks"
        block.lines += self.tasks(loop)

    def together(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a vector, or copies of statements, each of all copies before the next one."""
        for statement, copies, lanes in straight_copies(loop, [{}]):
            self.scalars.vectors = self.vectors.of(lanes)
            self.straight((statement,), copies, block)

    def counted(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop over all iterations; one over vectors may count elements."""
        copy, run = streaming_copy(loop), copied_run(loop)
        if copy is not None:
            self.copy(*copy, block)
            return
        if run is not None:
            self.copy_run(*run, block)
            return
        by = next((x.size for x in loops_of(loop.body) if x.role is Role.VECTOR), None)
        turned, row = transposed(loop), spread_row(loop)
        if turned is not None:
            self.transpose(loop, turned, block)
        elif row is not None:
            self.spread(*row, loop, block)
        elif isinstance(by, int) and counts_elements(loop, by):
            self.blocks(loop, by, block)
        else:
            super().counted(loop, block)

    def serial(self, loop: LoopNode, block: StatementBlock, low: str, high: str) -> None:
        """Emit a C loop; strides of columns that are apart in memory may be hidden from gcc."""
        outer = self.scalars.columns
        self.scalars.columns = loop.variable if loop.hides_strides else ""
        self.flagged = {x.into[0] for x in self.reduced(loop) if self.is_float_extreme(x)}
        found = sorted(self.flagged)
        block.lines += [self.nan_flag(number, buffer_name(number)) for number in found]
        super().serial(loop, block, low, high)
        block.lines += [nan_result(buffer_name(number)) for number in found]
        self.flagged = set()
        self.scalars.columns = outer
        if self.scalars.hides and not any(HIDDEN in line.split() for line in self.begins):
            positive = "threads" if self.tasks is not None else "grain"
            self.begins.append(f"const int64_t {HIDDEN} = {positive} > 0;")

    def blocks(self, loop: LoopNode, by: int, block: StatementBlock) -> None:
        """Emit a C loop over vectors of ``by`` elements, which counts elements."""
        inner = StatementBlock(block)
        self.depths.variables[loop.variable] = inner.depth
        self.scalars.scales[loop.variable] = by
        self.body(loop.body, inner)
        end = self.scalars.index(block, loop.extent * by)
        block.lines += stepped_loop(loop.variable, by, self.text(inner), "0", end)

    def transpose(self, loop: LoopNode, write: Write, block: StatementBlock) -> None:
        """Emit the calls that copy elements to where they are adjacent along the inner loop."""
        (inner,) = loop.body
        assert isinstance(inner, LoopNode)
        scalars, sides = self.scalars, [scalars_of.extent for scalars_of in (inner, loop)]
        extents = ", ".join([scalars.index(block, each) for each in sides])
        for store in write.stores:
            value = store.value
            assert isinstance(value, (Load, Kept))
            function = f"geon_transpose_{value.dtype.itemsize}"
            self.names.calls([function])
            whole = value.dtype.itemsize >= MIN_TRANSPOSED_ITEM_BYTES
            if whole and isinstance(store, Store) and isinstance(value, Load):
                function += "_turned"
                self.names.calls([function])
            ends = []
            for name, offset, far in (
                (self.memory(value), value.offset, inner.variable),
                (self.memory(store), store.offset, loop.variable),
            ):
                near = {inner.variable, loop.variable}
                first = AffineIndex(
                    [(a, s) for a, s in offset.terms.items() if a not in near], offset.constant
                )
                ends.append(
                    f"{name} + {scalars.index(block, first)}, {self.names.length(offset.step(far))}"
                )
            block.lines.append(f"{function}({ends[0]}, {ends[1]}, {extents});")

    def spread(
        self, keep: Keep, load: Load, inner: LoopNode, loop: LoopNode, block: StatementBlock
    ) -> None:
        """Emit the call that repeats elements as often as there are iterations of ``inner``."""
        function, scalars = f"geon_transpose_{load.dtype.itemsize}", self.scalars
        self.names.calls([function, f"{function}_spread"])
        source = scalars.index(block, load.offset - variable(loop.variable))
        sides = ", ".join([scalars.index(block, each.extent) for each in (inner, loop)])
        ends = f"{self.names.operand(load.operand)} + {source}, {buffer_name(keep.number)}"
        block.lines.append(f"{function}_spread({ends}, {sides});")

    def memory(self, element: Load | Kept | Store | Keep) -> str:
        """Return the name of the memory that has an element."""
        if isinstance(element, (Load, Store)):
            return self.names.operand(element.operand)
        return buffer_name(element.number)

    def repeated(self, loop: LoopNode, low: str, high: str, lines: list[str]) -> list[str]:
        """Return a C loop over the lines of its body; compilers may vectorise straight code."""
        made = super().repeated(loop, low, high, lines)
        if loop.kind is Kind.DIGIT:
            return [UNROLLED, *made] if isinstance(loop.size, int) else made
        if not self.is_compiled(loop):
            return made
        self.scalars.names.plain = True
        if loop.kind is Kind.COPIES:
            assert self.tree.vectors is not None and isinstance(loop.size, int)
            width = INTERLEAVED_VECTORS * self.tree.vectors.vector_bytes // loop.size
            return ["{", *indent(interleaved(loop.variable, width, (low, high), lines)), "}"]
        return [SIMD + "".join(map(self.clause, self.reduced(loop))), *made]

    def is_compiled(self, loop: LoopNode) -> bool:
        """Return True if compilers may make vectors of a loop."""
        vectors = any(each.role is Role.VECTOR for each in loops_of(loop.body))
        return loop.role in (Role.SIMD, Role.TASK) and not vectors and is_unrolled(loop)

    def reduced(self, loop: LoopNode) -> list[Fold]:
        """Return the folds whose state gets one for each lane of a compiler's vectors."""
        if not self.is_compiled(loop) or loop.kind in (Kind.COPIES, Kind.DIGIT):
            return []
        return [
            each
            for each in loop.body
            if isinstance(each, Fold)
            and loop.variable not in variables(each.offset)
            and only_folds(loop, each)
        ]

    def clause(self, fold: Fold) -> str:
        """Return the clause that gives each lane of a compiler's vectors a state of its own."""
        (number,) = fold.into
        return reduction_clause(fold, buffer_name(number), flagged=number in self.flagged)

    def is_float_extreme(self, fold: Fold | Combine) -> bool:
        """Return True if a fold is of the largest or smallest float."""
        row, dtype = fold.reducer.folds, self.tree.buffers[fold.into[0]].dtype
        return row is not None and row.name in EXTREMES and kind(dtype) == "f"

    def nan_flag(self, number: int, name: str) -> str:
        """Return the statement that begins the flag that a NaN is among the elements of a state.

        Clauses of extremes take no NaN. A flag has as many bits as an element.
        """
        bits = 8 * self.tree.buffers[number].dtype.itemsize
        return f"int{bits}_t {name}_nan = {name} != {name};"

    def early_end(self, loop: LoopNode, block: StatementBlock) -> list[str]:
        """Return the statements that leave a loop if all truths that it folds are decided."""
        folds = [each for each, _ in walk(loop.body) if isinstance(each, Fold)]
        found, tests, read = list[str](), dict[str, None](), set[object]()
        for fold in folds:
            if not only_folds(loop, fold):
                continue
            sign = "!" if fold.reducer.folds in (logical_and, bitwise_and) else ""
            at = variables(fold.offset)
            (number, *_), lanes = fold.into, [x for x in loops_of(loop.body) if x.variable in at]
            if not lanes:
                tests[f"{sign}{self.scalars.kept_place(block, number, fold.offset)}"] = None
                continue
            name, inner = f"open_{number}", block
            extents = [self.scalars.index(block, lane.extent) for lane in lanes]
            steps = {lane.variable: fold.offset.step(lane.variable) for lane in lanes}
            others = [(atom, step) for atom, step in fold.offset.terms.items() if atom not in steps]
            first = AffineIndex(others, fold.offset.constant)
            states = (number, first, *zip(steps.values(), extents, strict=True))
            if states in read:  # of other terms, which this loop folds too
                continue
            read.add(states)
            for lane in lanes:
                inner = StatementBlock(inner)
                self.depths.variables[lane.variable] = inner.depth
            place = self.scalars.kept_place(inner, number, fold.offset)
            turns = [f"{name} |= {place} {'!=' if sign else '=='} 0;"]
            for lane, extent in zip(reversed(lanes), reversed(extents), strict=True):
                simd = [] if lane is not lanes[-1] else [f"{SIMD} reduction(|:{name})"]
                turns = simd + for_loop(lane.variable, "0", extent, turns)
            if f"!{name}" not in tests:
                ctype = f"uint{8 * self.tree.buffers[number].dtype.itemsize}_t"  # as wide as states
                found.append(f"{ctype} {name} = 0;")
                tests[f"!{name}"] = None
            found += turns
        return [*found, f"if ({' && '.join(tests)}) break;"]

    def text(self, block: StatementBlock) -> list[str]:
        """Return the statements of a block."""
        return lane_loops(block.lines)

    def fold(
        self, fold: Fold, copies: Sequence[dict[str, AffineIndex]], block: StatementBlock
    ) -> None:
        """Emit a fold; an extreme of floats in two steps, of which gcc makes an instruction.

        The state then waits for one instruction only: the test for NaN is of the element.
        """
        number = fold.into[0]
        alone = copies == [{}] and not fold.merges and number in self.buffers.registers
        if not alone or not self.is_float_extreme(fold):
            super().fold(fold, copies, block)
            return
        element = self.tree.code.cast(fold.elements[0], self.tree.buffers[number].dtype)
        text = self.scalars.value(block, element)
        place = self.scalars.kept_place(block, number, fold.offset)
        if self.scalars.is_wide(text) or self.scalars.is_wide(place):
            super().fold(fold, copies, block)
            return
        block.lines += extreme(fold, place, text, flagged=number in self.flagged)

    def combine(self, combine: Combine, block: StatementBlock) -> None:
        """Emit the reduction of the lanes of a vector to its state."""
        self.scalars.vectors = self.vectors.of(combine.count)
        row, scalars = combine.reducer.folds, self.scalars
        dtypes = [self.tree.buffers[number].dtype for number in combine.of]
        compiled = scalars.width.compiled and row is not None and row.name in REDUCTIONS
        if row is None or not (compiled or scalars.has_fold(row.name, dtypes[0])):
            self.combine_by_halves(combine, block)
            return
        for into, of in zip(combine.into, combine.of, strict=True):
            source, target = (name_of(self.tree.buffers[number].dtype) for number in (of, into))
            fold = self.compiled_combination if compiled else self.combined_vector
            part = scalars.cast(source, target, fold(combine, of, block))
            total = scalars.kept_place(block, into, combine.offset)
            value = scalars.expression(block, row.name, [target] * 2, target, [total, part])
            block.lines.append(f"{total} = {value};")

    def combined_vector(self, combine: Combine, number: int, block: StatementBlock) -> str:
        """Return the combined lanes of a buffer, which are a vector."""
        scalars, ctype = self.scalars, self.buffers.ctype(number)
        vector, name = vector_type(ctype, combine.count), buffer_name(number)
        if number not in self.buffers.registers:
            name = scalars.vectors.place(ctype, f"{name}[0]")
        folded = f"{vector}_fold_{combine.reducer.folds.name}({name})"
        return scalars.let(block, (combine, number), ctype, folded)

    def compiled_combination(self, combine: Combine, number: int, block: StatementBlock) -> str:
        """Return the combined states of a buffer, of which the compiler makes vectors."""
        code, dtype = self.tree.code, self.tree.buffers[number].dtype
        (first,), name = combine.reducer.identity((dtype,)), self.scalars.fresh()
        begin = self.scalars.value(block, code.number(first, dtype))
        element = (
            f"{buffer_name(number)}[{self.scalars.index(block, combine.start + variable(LANE))}]"
        )
        ctype, flagged = self.buffers.ctype(number), self.is_float_extreme(combine)
        if flagged:
            lines = extreme(combine, name, element, flagged=True)
        else:
            row, dtypes = combine.reducer.folds.name, [name_of(dtype)] * 2
            total = self.scalars.expression(block, row, dtypes, dtypes[0], [element, name])
            lines = [f"{name} = {total};"]
        block.lines += [
            f"{ctype} {name} = {begin};",
            *([self.nan_flag(number, name)] if flagged else []),
            SIMD + reduction_clause(combine, name, flagged=flagged),
            *for_loop(LANE, "0", str(combine.count), lines),
            *([nan_result(name)] if flagged else []),
        ]
        return name

    def combine_by_halves(self, combine: Combine, block: StatementBlock) -> None:
        """Emit loops that combine the states in two halves of the lanes, until one is left."""
        code, inner = self.tree.code, StatementBlock(block)
        half, lane = variable("half"), variable(LANE)

        def state(numbers: Sequence[int], offset: AffineIndex) -> tuple[Scalar, ...]:
            pairs = zip(numbers, (self.tree.buffers[n].dtype for n in numbers), strict=True)
            return tuple([code(Kept, number, offset, dtype) for number, dtype in pairs])

        one, other = (state(combine.of, combine.start + at) for at in (lane, lane + half))
        joined = combine.reducer.combine(code, one, other)
        self.keep_states(combine.of, {combine.start + lane: joined}, inner)
        loop = for_loop(LANE, "0", "half", self.text(inner))
        head = f"for (int64_t half = {combine.count // 2}; half > 0; half /= 2) {{"
        block.lines += [head, *indent(loop), "}"]
        held, found = state(combine.into, combine.offset), state(combine.of, combine.start)
        pairs = zip(found, held, strict=True)
        found = tuple([code.cast(part, total.dtype) for part, total in pairs])
        total = combine.reducer.combine(code, held, found)
        self.keep_states(combine.into, {combine.offset: total}, block)

    def prefetch(
        self, each: CachePrefetch, copies: Sequence[dict[str, AffineIndex]], block: StatementBlock
    ) -> None:
        """Emit the prefetches of the cache lines of a vector; single elements have none."""
        if each.nbytes != 0:
            self.fetch_row(each, block)
            return
        if not self.scalars.lanes_in(each.offset):
            return
        operand, room = self.names.operand(each.operand), each.room
        conditions = [] if isinstance(room, int) else [f"{self.names.length(room)} >= 0"]
        if each.stores and each.operand in self.streamed:
            conditions.append("!passes")
        head = f"if ({' && '.join(conditions)}) " if conditions else ""
        step = CACHE_LINE_BYTES // self.tree.operands[each.operand].dtype.itemsize
        for env in copies:
            fetch = Substitution(self.tree.code, env).statement(each)
            index = self.scalars.index(block, fetch.offset)
            for k in range(0, self.scalars.vectors.count, step):
                place = f"&{operand}[{index}{f' + {k}' if k else ''}]"
                block.lines.append(f"{head}__builtin_prefetch({place}, {int(each.stores)});")

    def fetch_row(self, each: CachePrefetch, block: StatementBlock) -> None:
        """Emit the prefetches of the first cache lines of a row."""
        start = f"{self.names.operand(each.operand)} + {self.scalars.index(block, each.offset)}"
        lines = [f"const char *const far = (const char *)({start});"]
        most = CACHE_LINE_BYTES * MAX_PREFETCHED_LINES
        if isinstance(each.nbytes, int):
            places = range(0, min(each.nbytes, most), CACHE_LINE_BYTES)
            lines += [f"__builtin_prefetch(far + {at});" for at in places]
        else:
            size = self.names.length(each.nbytes)
            lines.append(f"const int64_t bytes = {size} < {most} ? {size} : {most};")
            fetch = ["__builtin_prefetch(far + at);"]
            lines += stepped_loop("at", CACHE_LINE_BYTES, fetch, "0", "bytes")
        block.lines += ["{", *indent(lines), "}"]

    def draw(self, draw: Draw, block: StatementBlock) -> None:
        """Emit the call that draws the random bits of a buffer, which holds them for later ones."""
        name, bits = buffer_name(draw.into), draw.bits
        ctype, words = self.buffers.ctype(draw.into), bits.dtype.itemsize // 4
        times = f"{words} * " if words != 1 else ""
        ends = (bits.position, bits.position + draw.count, draw.end)
        places = [f"{times}({self.scalars.index(block, each)})" for each in ends]
        stream = [self.scalars.value(block, each) for each in (bits.seed, bits.draw, bits.call)]
        call = f"geon_words_at({', '.join([f'&{name}_words', *places, *stream])})"
        block.lines.append(f"const {ctype} *const {name} = {call};")
        self.scalars.names.needs(words_function())
        self.begins += [f"struct geon_words {name}_words;"]
        self.begins += [f"{name}_words.first = {name}_words.end = 0;"]

    def store(self, store: Store | Keep, write: Write, block: StatementBlock) -> str:
        """Return the statement that stores a value, past the caches if it may."""
        if isinstance(store, Keep):
            return self.keep(store, block)
        scalars, dtype = self.scalars, name_of(store.dtype)
        value = scalars.value(block, store.value)
        operand = self.names.operand(store.operand)
        if not scalars.lanes_in(store.offset):
            return f"{operand}[{scalars.index(block, store.offset)}] = {value};"
        if not scalars.stores_vector(store):
            place = f"{operand}[{scalars.lane_index(block, store.offset)}]"
            text = f"{place} = {scalars.lane(block, dtype, value)};"
            return scalars.of_lanes(text, operand)
        place, ctype = f"{operand}[{scalars.index(block, store.offset)}]", C_TYPES[dtype]
        value = scalars.whole(block, dtype, value)
        if store.operand in write.streamed:
            value, vector = scalars.put(ctype, value)
            return f"GEON_PUT({vector}, passes, {place}, {value});"
        return scalars.stored(ctype, place, value)

    def keep(self, keep: Keep, block: StatementBlock) -> str:
        """Return the statement that stores to a private buffer; the first one declares it."""
        scalars, ctype = self.scalars, self.buffers.ctype(keep.number)
        dtype = name_of(self.tree.buffers[keep.number].dtype)
        value = scalars.value(block, keep.value)
        place = scalars.kept_place(block, keep.number, keep.offset)
        if scalars.is_lane(place):
            text = f"{place} = {scalars.lane(block, dtype, value)};"
            return scalars.of_lanes(text, buffer_name(keep.number), ctype)
        if scalars.is_vector(place):
            value, ctype = scalars.put(ctype, scalars.whole(block, dtype, value))
            block.names.pop((place, LANE), None)  # its elements are other ones now
        declared = self.buffers.declare(keep.number)
        return f"{ctype} {place} = {value};" if declared else f"{place} = {value};"


def transposed(loop: LoopNode) -> Write | None:
    """Return the statement of two loops that copy elements, which are adjacent along the outer
    loop, to where they are adjacent along the inner one; None for other loops.
    """
    (inner, *others) = loop.body
    if others or not isinstance(inner, LoopNode) or loop.variable in variables(inner.extent):
        return None
    known = inner.size if inner.kind is Kind.DIGIT and isinstance(inner.size, int) else 0
    if 0 < known <= MAX_INTERLEAVED_ELEMENTS:
        return None
    (write, *others) = inner.body
    if others or not isinstance(write, Write):
        return None
    for store in write.stores:
        value = store.value
        if not isinstance(value, (Load, Kept)):
            return None
        places = (store.offset, inner), (value.offset, loop)
        converts = isinstance(store, Store) and value.dtype != store.dtype
        if converts or value.dtype.itemsize not in TRANSPOSED_ITEMSIZES:
            return None
        loops = {loop.variable, inner.variable}
        atoms = [x for offset, _ in places for x in offset.terms if not isinstance(x, str)]
        fixed = not any(variables(variable(atom)) & loops for atom in atoms)
        if not fixed or any(offset.step(near.variable) != 1 for offset, near in places):
            return None
        if value.offset.step(inner.variable) == 0:
            return None
    return write


def streaming_copy(statement: Statement) -> tuple[Store, Kept, LoopNode] | None:
    """Return the store of a loop that copies a buffer past the caches, its value and the loop."""
    if not isinstance(statement, LoopNode) or len(statement.body) != 1:
        return None
    (write,) = statement.body
    if not isinstance(write, Write) or not write.streamed or statement.role is Role.VECTOR:
        return None
    (store,) = write.stores
    assert isinstance(store, Store) and isinstance(store.value, Kept)
    return store, store.value, statement


def copied_run(loop: LoopNode) -> tuple[Keep, Load, LoopNode] | None:
    """Return the store and the load of a loop over a short axis that copies adjacent elements."""
    known = isinstance(loop.size, int) and loop.kind is Kind.DIGIT
    if not known or len(loop.body) != 1 or not isinstance(loop.body[0], Write):
        return None
    (keep,) = loop.body[0].stores
    load = keep.value
    if not isinstance(keep, Keep) or not isinstance(load, Load):
        return None
    direct = all(isinstance(atom, str) for atom in load.offset.terms)
    adjoins = keep.offset.step(loop.variable) == 1 == load.offset.step(loop.variable)
    return (keep, load, loop) if direct and adjoins else None


def counts_elements(loop: LoopNode, by: int) -> bool:
    """Return True if a loop is over vectors, and all indices in it are multiples of ``by``."""
    inner = loops_of(loop.body)
    if not any(each.role is Role.VECTOR for each in inner) or loop.extent.terms:
        return False
    if not all(each.role in (Role.VECTOR, Role.UNROLLED) for each in inner):
        return False
    steps = [index.step(loop.variable) for index in indices_in(loop.body)]
    nested = [atom for index in indices_in(loop.body) for atom in index.terms]
    return all(isinstance(step, int) and step % by == 0 for step in steps) and all(
        isinstance(atom, str) or loop.variable not in variables(variable(atom)) for atom in nested
    )


def indices_in(body: Body) -> Iterator[AffineIndex]:
    """Yield the indices of the stores and values in statements."""
    for each, _ in walk(body):
        for store in each.stores if isinstance(each, Write) else ():
            yield store.offset
        if isinstance(each, Fold):
            yield each.offset
        if isinstance(each, CachePrefetch):
            yield each.offset
        for node in walk_scalars(*values_of(each)):
            yield from indices(node)


Copies = list[dict[str, AffineIndex]]  # indices of unrolled loops in each copy of a statement


def straight_copies(
    loop: LoopNode, copies: Copies, lanes: int = 1
) -> Iterator[tuple[Statement, Copies, int]]:
    """Yield the statements inside of unrolled loops and vectors, in order, with their copies.

    The last entry is the number of elements of a vector.
    """
    assert isinstance(loop.size, int)
    if loop.role is Role.VECTOR:
        lanes = loop.size
    else:
        turns = [{loop.variable: constant(turn)} for turn in range(loop.size)]
        copies = [{**copy, **turn} for copy in copies for turn in turns]
    for each in loop.body:
        if isinstance(each, LoopNode):
            yield from straight_copies(each, copies, lanes)
        else:
            yield each, copies, lanes
