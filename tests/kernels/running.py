"""Kernels computed on NumPy arrays as their data say: no C, no text, all elements at once."""

import math

import numpy as np

from geon.op_graph.axes.affine import Quotient, Remainder
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.evaluation.eval_reducer import CODE
from geon.op_graph.random.philox import _rounds
from geon.transformers.kernels.analysis.load_guards import limits
from geon.transformers.kernels.costs.kernel_costs import is_apart
from geon.transformers.kernels.ir.nest import Pass, Store
from geon.transformers.kernels.ir.scalar_code import (
    Apply,
    Clamped,
    Contracted,
    IndexNumber,
    Kept,
    LengthNumber,
    Load,
    Number,
    RandomBits,
    Reduced,
    Running,
    Select,
    Wrapped,
)
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.products.row_blocking import Blocked, Extremes
from geon.transformers.kernels.scans.sequential_scan import ROW, TURN, OrderedLoop


def philox_words(position, seed, draw, call):
    """Words of Philox at any positions, as uint64."""
    counter = [position // 4, *np.array([0, draw, call], np.uint64) & np.uint64(0xFFFFFFFF)]
    lanes = _rounds([np.asarray(each, np.uint64) for each in counter], (seed % 2**32, seed >> 32))
    return np.choose(position % 4, lanes)


def run(work, memory, lengths):
    """Compute a nest, contraction or chain on ``memory``: a flat array for each of its operands."""
    with np.errstate(all="ignore"):
        if isinstance(work, Blocked):
            run_blocks(work, memory, lengths)
            return
        if isinstance(work, Contraction):
            _Contraction(work, memory, lengths).run()
            if work.pieces:
                compare_terms(work, memory, lengths)
            return
        if isinstance(work, OrderedLoop):
            run_ordered(work, memory, lengths)
            return
        _Nest(work, memory, lengths).run()
        if is_apart(work, lengths):
            compare_pieces(work, memory, lengths)


def extents(work):
    """How far the loops of each pass of a nest go."""
    return [[loop.extent for loop in step.loops] for step in work.passes]


def compare_pieces(work, memory, lengths):
    """Compute a nest once more by its pieces, which must give the same bits, each of them once.

    A row that is summed in parts has other roundings.
    """
    steps = [step for piece in work.pieces for step in (*piece.steps, *piece.ending)]
    puts = [put for step in steps for put in ([step] if isinstance(step, Store) else step.stores)]
    written = {put.operand for put in puts}
    parts = any(extents(piece) != extents(work) for piece in work.pieces)
    sums = parts and any(each.folds == "add" for step in work.passes for each in step.reductions)
    again = [np.full_like(m, 77) if k in written else m for k, m in enumerate(memory)]
    times = {k: np.zeros(len(memory[k]), np.int64) for k in written}
    for piece in work.pieces:
        _Nest(piece, again, lengths, times).run()
    for k in written:
        if sums and memory[k].dtype.kind == "f":
            np.testing.assert_allclose(again[k], memory[k], rtol=1e-5, atol=1e-5)
        else:
            assert again[k].tobytes() == memory[k].tobytes()
        assert times[k].max(initial=0) <= 1


def compare_terms(work, memory, lengths):
    """Compute a contraction once more by its pieces, which leave terms out that are of nothing."""
    written = {store.operand for piece in work.pieces for store in piece.stores}
    again = [np.full_like(m, 77) if k in written else m for k, m in enumerate(memory)]
    for piece in work.pieces:
        _Contraction(piece, again, lengths).run()
    for k in written:
        np.testing.assert_allclose(again[k], memory[k], rtol=1e-6, atol=1e-6)


def run_blocks(work, memory, lengths):
    """The steps of a chain on each block, which finds nothing of the one before it."""
    most = work.cut.bytes(lengths)
    for block in range(work.cut.blocks(lengths)):
        known = work.bindings(block, lengths)
        inner = [np.full(most, 0xA5, np.uint8) for _ in work.cut.memory]
        for step, places in zip(work.steps, work.places, strict=True):
            held = [
                inner[place.number].view(op.dtype) if place.inner else memory[place.number]
                for op, place in zip(step.operands, places, strict=True)
            ]
            if isinstance(step, Extremes):
                run_extremes(step, held, known)
            else:
                run(step, held, known)


def run_extremes(step, held, lengths):
    """Positions of extremes, where NaN is one, line by line."""
    shape = [evaluate(size, lengths) for size in (step.lines, step.length)]
    start = evaluate(step.offset, lengths)
    find = np.argmax if step.op.primitive.name == "argmax" else np.argmin
    held[1][start : start + shape[0]] = find(held[0][: math.prod(shape)].reshape(shape), axis=1)


def run_ordered(work, memory, lengths):
    """Turn after turn of all rows at once."""
    rows = np.arange(evaluate(work.rows, lengths))
    turns = range(evaluate(work.turns, lengths))
    axes = max([op.axes for op in work.op.bodies[0].results], key=len)
    names = (ROW, *axes.names) if len(axes) == 1 else (ROW,)
    known = dict.fromkeys(names, rows)
    before = _Grid(memory, lengths, {**known, TURN: np.zeros((), np.int64)})
    running = [np.broadcast_to(before.value(c.first), rows.shape) for c in work.carries]
    for turn in reversed(turns) if work.reverse else turns:
        grid = _Grid(memory, lengths, {**known, TURN: np.asarray(turn)})
        grid.running = running
        for store in work.stores:
            grid.put(store)
        running = [np.broadcast_to(grid.value(c.value), rows.shape) for c in work.carries]
    after = _Grid(memory, lengths, {**known, TURN: np.zeros((), np.int64)})
    after.running = running
    for store in (c.store for c in work.carries if c.store is not None):
        after.put(store)


class _Grid:
    """Scalar code at all turns of some loops at once; values are arrays of one number per turn."""

    def __init__(self, memory, lengths, variables):
        self.memory, self.lengths, self.variables = memory, lengths, variables
        self.known = {}
        self.reduced, self.kept, self.contracted = {}, {}, None
        self.running = ()
        self.times = ()

    def size(self, length):
        return evaluate(length, self.lengths)

    def index(self, index):
        total = np.asarray(self.size(index.constant))
        for atom, step in index.terms.items():
            total = total + self.atom(atom) * self.size(step)
        return total

    def atom(self, atom):
        if isinstance(atom, str):
            return self.variables[atom]
        if isinstance(atom, Quotient):
            return self.index(atom.of) // max(self.size(atom.by), 1)
        if isinstance(atom, Remainder):
            return self.index(atom.of) % max(self.size(atom.by), 1)
        if isinstance(atom, Clamped):
            return np.where(self.holds(atom.guards), self.index(atom.of), 0)
        return self.value(atom)

    def holds(self, guards):
        found = np.asarray(True)
        for guard in guards:
            at = self.index(guard.index)
            found = found & (self.size(guard.low) <= at) & (at < self.size(guard.high))
        return found

    def value(self, node):
        if id(node) not in self.known:
            self.known[id(node)] = self.computed(node)
        return self.known[id(node)]

    def computed(self, node):
        if isinstance(node, Load):
            return self.loaded(node)
        if isinstance(node, Number):
            return np.asarray(node.value).astype(node.dtype)
        if isinstance(node, LengthNumber):
            return np.asarray(self.size(node.length), node.dtype)
        if isinstance(node, IndexNumber):
            return self.index(node.index).astype(node.dtype)
        if isinstance(node, Select):
            return np.where(self.holds(node.guards), self.value(node.value), self.value(node.other))
        if isinstance(node, Wrapped):
            at = self.value(node.position).astype(np.int64)
            return np.where(at < 0, at + self.size(node.length), at)
        if isinstance(node, RandomBits):
            return self.drawn(node)
        if isinstance(node, Reduced):
            return self.reduced[node.number, node.part]
        if isinstance(node, Running):
            return self.running[node.part]
        if isinstance(node, Kept):
            return self.kept[node.number][..., self.index(node.offset)]
        if isinstance(node, Contracted):
            return self.contracted
        assert isinstance(node, Apply)
        args = [self.value(arg) for arg in node.args]
        if node.row.name == "cast":
            return CODE.cast(args[0], node.dtype)
        return np.asarray(node.row.reference(*args)).astype(node.dtype)

    def loaded(self, node):
        """Elements of an operand; zeros of one that has none, where no choice takes them."""
        memory, at = self.memory[node.operand], self.place(node.offset)
        if memory.size:
            return memory[at]
        taken = np.full(at.shape, True)
        for guards in limits(node.offset):
            taken = taken & self.holds(guards)
        assert not np.any(taken), f"{node} is taken, and there are no elements"
        return np.zeros(at.shape, node.dtype)

    def drawn(self, node):
        """Bits by their positions, each from a counter of its own."""
        seed, draw, call = (int(self.value(each)) for each in (node.seed, node.draw, node.call))
        position = np.asarray(self.index(node.position))
        words = [position] if node.dtype.itemsize == 4 else [2 * position, 2 * position + 1]
        low, *high = (philox_words(word, seed, draw, call) for word in words)
        return (low | high[0] << np.uint64(32) if high else low).astype(node.dtype)

    def place(self, offset):
        """Where elements lie: NumPy takes what is before the first one from the end."""
        found = self.index(offset)
        assert np.min(found, initial=0) >= 0
        return found

    def put(self, store):
        offset, value = self.place(store.offset), self.value(store.value)
        shape = np.broadcast_shapes(offset.shape, value.shape)
        self.memory[store.operand][np.broadcast_to(offset, shape)] = np.broadcast_to(value, shape)
        if store.operand in self.times:
            np.add.at(self.times[store.operand], np.broadcast_to(offset, shape), 1)


class _Nest:
    """Rows in the first dimension of every value, elements of a pass in the second.

    ``times`` are counts for the elements of operands: how often each is stored.
    """

    def __init__(self, nest, memory, lengths, times=()):
        self.nest, self.memory, self.lengths, self.times = nest, memory, lengths, times
        self.reduced, self.kept = {}, {}
        loops = [*nest.rows, *([nest.across] if nest.across is not None else [])]
        self.rows, self.count = self.turns(loops)
        self.rows = {name: values[:, None] for name, values in self.rows.items()}
        self.rows["first_lane"] = np.zeros((1, 1), np.int64)

    def turns(self, loops):
        """The value of each loop's variable at all turns together, and how many there are."""
        sizes = [evaluate(loop.extent, self.lengths) for loop in loops]
        grids = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
        return {loop.name: grid for loop, grid in zip(loops, grids, strict=True)}, math.prod(sizes)

    def grid(self, loops):
        turns, count = self.turns(loops)
        grid = _Grid(self.memory, self.lengths, {**self.rows, **turns})
        grid.reduced, grid.kept, grid.times = self.reduced, self.kept, self.times
        return grid, count

    def run(self):
        fill = self.nest.fill
        if fill is not None and len(self.memory[fill.operand]):  # a view of nothing lies anywhere
            self.memory[fill.operand][:] = self.memory[fill.source]
        for step in (*self.nest.steps, *self.nest.ending):
            if isinstance(step, Store):
                self.grid([])[0].put(step)
            else:
                self.run_pass(step)

    def run_pass(self, step: Pass):
        grid, count = self.grid(step.loops)
        shape = (self.count, count)
        found = {}
        for reduction in step.reductions:
            elements = [grid.value(element) for element in reduction.elements]
            element = elements[0] if len(elements) == 1 else elements[0] * elements[1]
            position = None if reduction.position is None else grid.value(reduction.position)
            states = self.reduce(reduction, element, position, shape)
            found.update({(reduction.number, k): each for k, each in enumerate(states)})
        for store in step.stores:
            grid.put(store)
        for keep in step.keeps:
            array = self.nest.arrays[keep.number]
            held = np.zeros((self.count, evaluate(array.size, self.lengths)), array.dtype)
            held[:, np.broadcast_to(grid.index(keep.offset), (count,))] = grid.value(keep.value)
            self.kept[keep.number] = held
        self.reduced.update(found)

    def reduce(self, reduction, element, position, shape):
        """The states of all rows, element after element, in float64 where they are floats."""
        element = np.broadcast_to(element, shape)
        wide = [np.dtype("float64") if d.kind == "f" else d for d in reduction.states]
        state = tuple(
            np.full((self.count,), value).astype(dtype)
            for value, dtype in zip(reduction.reducer.identity(reduction.states), wide, strict=True)
        )
        places = None if position is None else np.broadcast_to(position, shape)
        for k in range(shape[1]):
            place = None if places is None else places[:, k]
            x = element[:, k].astype(wide[0]) if element.dtype.kind == "f" else element[:, k]
            state = reduction.reducer.step(CODE, state, x, place)
        pairs = zip(state, reduction.states, strict=True)
        return [np.asarray(each).astype(dtype)[:, None] for each, dtype in pairs]


class _Contraction:
    def __init__(self, work, memory, lengths):
        self.work, self.memory, self.lengths = work, memory, lengths

    def run(self):
        work = self.work
        outer = (*work.batch, *work.rows, *work.columns)
        sizes = [evaluate(loop.extent, self.lengths) for loop in (*outer, *work.summed)]
        grids = np.indices(sizes)
        variables = {
            loop.name: grid for loop, grid in zip((*outer, *work.summed), grids, strict=True)
        }
        grid = _Grid(self.memory, self.lengths, variables)
        terms = grid.value(work.left).astype(np.float64) * grid.value(work.right)
        terms = np.broadcast_to(terms, sizes)
        sums = terms.sum(axis=tuple(range(len(outer), len(sizes)))).astype(work.dtype)
        within = np.indices(sizes[: len(outer)])
        kept = {loop.name: each for loop, each in zip(outer, within, strict=True)}
        after = _Grid(self.memory, self.lengths, kept)
        after.contracted = sums
        for store in work.stores:
            after.put(store)
