"""Loop trees computed on NumPy arrays, one statement at a time: tasks in random order.

Private memory holds garbage before each task, so that a value that another task left is seen.
"""

import dataclasses

import numpy as np

from geon.op_graph.axes.affine import variable
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.evaluation.eval_reducer import CODE
from geon.transformers.kernels.ir.nest import Store
from geon.transformers.kernels.ir.scalar_code import Kept, Least
from geon.transformers.loops.access import used_buffers
from geon.transformers.loops.tree import (
    CachePrefetch,
    Choose,
    Combine,
    Draw,
    Fold,
    LoopNode,
    Role,
    Space,
    Write,
)
from tests.kernels.running import _Grid

POISON = 0xA5  # every byte of private memory before it is written


def run_tree(tree, memory, lengths, random):
    """Compute a tree on ``memory``: a flat array for each of its operands."""
    run_trees([tree], memory, lengths, random)


def run_trees(trees, memory, lengths, random):
    """Compute trees one after another; they share their scratch memory."""
    shared = {}
    for tree in trees:
        made = _Interpreter(tree, memory, lengths, random)
        made.private |= shared
        with np.errstate(all="ignore"):
            made.body(tree.body, {})
        scratch = [n for n, buffer in enumerate(tree.buffers) if buffer.space is Space.SCRATCH]
        shared = {number: made.private[number] for number in scratch}


class _TreeGrid(_Grid):
    def atom(self, atom):
        if isinstance(atom, Least):
            return min(self.index(each) for each in atom.of)
        return super().atom(atom)

    def computed(self, node):
        if isinstance(node, Kept):
            self.place_kept(node.offset)
        return super().computed(node)

    def place_kept(self, offset):
        """Places in a private buffer: the elements of a vector are adjacent, or one element."""
        places = self.index(offset)
        steps = {*np.diff(places).flat} if places.ndim else set()
        assert len(steps) < 2 and steps <= {0, 1}, f"elements of a vector are {steps} apart"
        return places


class _Interpreter:
    def __init__(self, tree, memory, lengths, random):
        self.tree, self.memory, self.lengths, self.random = tree, memory, lengths, random
        self.private = {}
        for number, buffer in enumerate(tree.buffers):
            size = evaluate(buffer.size, lengths)
            self.private[number] = np.zeros(size, buffer.dtype)
            self.poison(number)

    def poison(self, number):
        self.private[number].view(np.uint8)[:] = POISON

    def grid(self, variables):
        grid = _TreeGrid(self.memory, self.lengths, variables)
        grid.kept = self.private
        return grid

    def body(self, statements, variables):
        for each in statements:
            KINDS[type(each)](self, each, variables)

    def loop(self, loop, variables):
        extent = int(self.grid(variables).index(loop.extent))
        turns = list(range(extent))
        if loop.role is Role.VECTOR:
            self.body(loop.body, {**variables, loop.variable: np.arange(extent)})
            return
        if loop.role is Role.UNROLLED and extent:
            self.unrolled(loop.body, [{**variables, loop.variable: k} for k in turns])
            return
        if loop.role in (Role.TASK, Role.THREAD, Role.SIMD):
            self.random.shuffle(turns)
        own = [
            number
            for number in used_buffers(loop.body)
            if loop.role is Role.TASK and self.tree.buffers[number].space is not Space.SCRATCH
        ]
        for turn in turns:
            for number in own:
                self.poison(number)
            self.body(loop.body, {**variables, loop.variable: turn})

    def unrolled(self, statements, copies):
        """Each statement in all copies before the next one."""
        for each in statements:
            for variables in copies:
                self.body((each,), variables)

    def write(self, write, variables):
        grid = self.grid(variables)
        values = [grid.value(store.value) for store in write.stores]
        for store, value in zip(write.stores, values, strict=True):
            operand = isinstance(store, Store)
            memory = self.memory[store.operand] if operand else self.private[store.number]
            place = grid.place if operand else grid.place_kept
            offset, value = np.broadcast_arrays(place(store.offset), value)
            assert len({*offset.flat}) == offset.size, "lanes store the same element"
            memory[offset] = value

    def fold(self, fold, variables):
        grid = self.grid(variables)
        state = [self.private[number] for number in fold.into]
        elements = [grid.value(each) for each in fold.elements]
        position = None if fold.position is None else grid.value(fold.position)
        arrays = [
            grid.place_kept(fold.offset),
            *elements,
            *([] if position is None else [position]),
        ]
        offset, *arrays = (np.atleast_1d(each) for each in np.broadcast_arrays(*arrays))
        for k, at in enumerate(offset):
            given = [each[k] for each in arrays]
            place = given.pop() if position is not None else None
            held = tuple(each[at] for each in state)
            if fold.merges:
                made = fold.reducer.combine(CODE, held, tuple(given))
            else:
                made = fold.reducer.step(CODE, held, given[0], place)
            self.put(state, at, made)

    def combine(self, combine, variables):
        grid = self.grid(variables)
        start, at = int(grid.index(combine.start)), int(grid.index(combine.offset))
        parts = [self.private[number][start : start + combine.count] for number in combine.of]
        count = combine.count
        while count > 1:
            count //= 2
            for k in range(count):
                ours, theirs = (tuple(each[j] for each in parts) for j in (k, k + count))
                self.put(parts, k, combine.reducer.combine(CODE, ours, theirs))
        state = [self.private[number] for number in combine.into]
        held, found = tuple(each[at] for each in state), tuple(each[0] for each in parts)
        self.put(state, at, combine.reducer.combine(CODE, held, found))

    def put(self, state, at, values):
        for each, value in zip(state, values, strict=True):
            each[at] = value

    def draw(self, draw, variables):
        grid = self.grid(variables)
        at = np.arange(int(grid.index(draw.count)))
        bits = dataclasses.replace(draw.bits, position=draw.bits.position + variable("drawn"))
        self.private[draw.into][: len(at)] = self.grid({**variables, "drawn": at}).value(bits)

    def prefetch(self, prefetch, variables):
        """Compute the place, for which all variables must be there; it may be outside."""
        self.grid(variables).index(prefetch.offset)

    def choose(self, choose, variables):
        holds = bool(self.grid(variables).holds(choose.guards))
        self.body(choose.then if holds else choose.otherwise, variables)


KINDS = {
    LoopNode: _Interpreter.loop,
    Write: _Interpreter.write,
    Fold: _Interpreter.fold,
    Combine: _Interpreter.combine,
    Choose: _Interpreter.choose,
    CachePrefetch: _Interpreter.prefetch,
    Draw: _Interpreter.draw,
}
