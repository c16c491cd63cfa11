"""Stage 4: kernels in an order that keeps memory low and never writes what is yet to be read."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import lru_cache

from ..op_graph.elementwise import copy
from ..op_graph.lengths import Length, evaluate, names_of
from ..op_graph.op_graph import Leaf, Op, Tensor, post_order
from ..op_graph.sites import set_override
from .layout import ACTING_VIEWS, LaidOut, is_bound
from .program import Program
from .target import Layout, Target

MOVED_FIRST = 4
NOMINAL_LENGTH = 64  # what an open length counts as where only the order of kernels depends on it


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One step: computes ``op`` into memory of its own, or in place.

    ``reads`` are the values whose memory it reads; ``in_place`` those among them whose memory may
    hold the result; ``writes`` the variable whose storage the result is put into, or None.
    """

    op: Op
    reads: tuple[Op, ...]
    in_place: tuple[Op, ...]
    writes: Leaf | None
    raises: bool

    @property
    def acts(self) -> bool:
        """Whether it has no result of its own: it prints or checks its argument."""
        return self.op.primitive.name in ACTING_VIEWS


@dataclass(frozen=True, eq=False, slots=True)
class Schedule:
    """Kernels in order, and how every value lies in memory."""

    kernels: tuple[Kernel, ...]
    program: Program
    layouts: dict[Op, Layout]
    base: dict[Op, Op]
    target: Target
    check: bool


def bytes_of(op: Op) -> int | Length:
    """The bytes of a value."""
    return _bytes(op.axes.size, op.dtype.itemsize)


@lru_cache(maxsize=4096)
def _bytes(size: int | Length, itemsize: int) -> int | Length:
    return size * itemsize


def schedule(laid_out: LaidOut, target: Target, check: bool = False) -> Schedule:
    """The kernels of a laid-out program in the order they run.

    What can raise comes before the first write to a variable, so that a call that raises leaves all
    variables as they were. A new value is computed in its variable's storage where everything that
    reads the old one can come before; otherwise beside it, and copied at the end. With ``check``
    every float kernel may raise.
    """
    work = _Work(laid_out, target, check)
    work.connect()
    work.assign_storage()
    ordered = work.run()
    kernels = tuple(work.kernel(op) for op in ordered)
    return Schedule(kernels, work.program, laid_out.layouts, laid_out.base, target, check)


class _Work:
    def __init__(self, laid_out: LaidOut, target: Target, check: bool) -> None:
        self.laid_out, self.target, self.check = laid_out, target, check
        self.program = laid_out.program
        self.base = laid_out.base
        self.kernels = [op for op in post_order(self.program.roots) if laid_out.is_kernel(op)]
        self.reads: dict[Op, tuple[Op, ...]] = {}
        self.after: dict[Op, list[Op]] = {op: [] for op in self.kernels}
        self.waits: dict[Op, int] = dict.fromkeys(self.kernels, 0)
        self.readers: dict[Op, list[Op]] = {}
        self.storage: dict[Op, Leaf] = {}
        self.joined: dict[Op, tuple[Op, ...]] = {}

    def connect(self) -> None:
        """Edges from each kernel to those that read its result, and the readers of each value."""
        acted: dict[Op, tuple[Op, ...]] = {}
        for op in self.kernels:
            needed: dict[Op, None] = {}
            for arg in op.args:
                needed.update(dict.fromkeys(self.below(arg, acted)))
            self.reads[op] = tuple({self.base[arg]: None for arg in op.args})
            for before in needed:
                self.edge(before, op)
            for value in self.reads[op]:
                self.readers.setdefault(value, []).append(op)
        prints = [op for op in self.program.prints if op.primitive.name == "print"]
        for before, after in zip(prints, prints[1:], strict=False):
            self.edge(before, after)

    def below(self, op: Op, known: dict[Op, tuple[Op, ...]]) -> tuple[Op, ...]:
        """The kernels that must have run before the memory behind ``op`` may be read."""
        if op in known:
            return known[op]
        chain, found = op, []
        while not self.laid_out.is_kernel(chain) and self.base[chain] is not chain:
            chain = chain.args[0]
        if self.laid_out.is_kernel(chain):
            found.append(chain)
        known[op] = tuple(found)
        return known[op]

    def edge(self, before: Op, after: Op) -> None:
        self.after[before].append(after)
        self.waits[after] += 1

    def raises(self, op: Op) -> bool:
        """Whether the kernel of ``op`` can fail at run time."""
        if op.primitive.name in self.target.raising:
            return True
        if op.primitive.name == "copy" and not is_bound(self.base[op.args[0]]):
            return False  # the kernel of what is copied was checked
        return self.check and op.dtype.kind in "fV" and op.primitive.name not in ACTING_VIEWS

    def assign_storage(self) -> None:
        """Say which kernels compute in a variable's storage, and add copies for the others."""
        early = self.early()
        updates = []
        for number, (leaf, op) in enumerate(self.program.updates):
            readers = [r for r in self.readers.get(leaf, ()) if r is not op]
            over = leaf in self.reads[op] and leaf not in self.in_place(op)
            if over or op in early or self.reaches(op, readers):
                op = self.deferred(op, number)
                readers = self.readers.get(leaf, [])
            for reader in readers:
                self.edge(reader, op)
            self.storage[op] = leaf
            updates.append((leaf, op))
        self.early_kernels = early
        program = self.program
        self.program = Program(program.outputs, tuple(updates), program.prints)

    def early(self) -> set[Op]:
        """The kernels that can raise and all they depend on: these run first."""
        found = {op for op in self.kernels if self.raises(op)}
        for op in reversed(self.kernels):
            if op not in found and any(user in found for user in self.after[op]):
                found.add(op)
        return found

    def reaches(self, op: Op, targets: list[Op]) -> bool:
        """Whether one of ``targets`` must run after ``op``."""
        if not targets or not self.after[op]:
            return False
        wanted, seen, stack = set(targets), {op}, [op]
        while stack:
            for after in self.after[stack.pop()]:
                if after in wanted:
                    return True
                if after not in seen:
                    seen.add(after)
                    stack.append(after)
        return False

    def deferred(self, op: Tensor, number: int) -> Tensor:
        """A copy of a new value, made when nothing reads the old one any more."""
        outer = set_override(op._site)
        try:
            late = copy(op, None, -1 - number)
        finally:
            set_override(outer)
        self.kernels.append(late)
        self.after[late], self.waits[late] = [], 0
        self.base[late] = late
        self.laid_out.layouts[late] = Layout(late.axes.names)
        self.reads[late] = (op,)
        self.readers.setdefault(op, []).append(late)
        self.edge(op, late)
        return late

    def size(self, op: Op) -> int:
        """Bytes that computing ``op`` adds to the arena, with open lengths at a nominal value."""
        if op in self.storage or op in self.outputs or op.primitive.name in ACTING_VIEWS:
            return 0
        length = bytes_of(op)
        return evaluate(length, dict.fromkeys(names_of(length), NOMINAL_LENGTH))

    def run(self) -> list[Op]:
        """A topological order: what can raise first, then what frees memory, then depth first."""
        self.outputs = set(self.program.outputs)
        rank = self.ranks()
        sizes = {op: self.size(op) for op in self.kernels}
        left = {value: len(readers) for value, readers in self.readers.items()}
        heap: list[tuple[int, int, tuple[int, int, int], Op]] = []
        ready: set[Op] = set()

        def push(op: Op) -> None:
            freed = sum(sizes.get(v, 0) for v in self.reads[op] if left[v] == 1)
            grows = int(not 0 < freed >= sizes[op])
            heapq.heappush(heap, (int(op not in self.early_kernels), grows, rank[op], op))

        for op in self.kernels:
            if not self.waits[op]:
                ready.add(op)
                push(op)
        order: list[Op] = []
        done: set[Op] = set()

        def run(op: Op) -> None:
            done.add(op)
            order.append(op)
            for value in self.reads[op]:
                left[value] -= 1
                if left[value] == 1:
                    last = next(r for r in self.readers[value] if r not in done)
                    if last in ready:
                        push(last)
            for after in self.after[op]:
                self.waits[after] -= 1
                if not self.waits[after]:
                    ready.add(after)
                    push(after)

        while heap:
            op = heapq.heappop(heap)[-1]
            if op not in done:
                for other in self.better_first(op, ready, done, sizes):
                    run(other)
                run(op)
        assert len(order) == len(self.kernels), "the schedule has a cycle"
        return order

    def ranks(self) -> dict[Op, tuple[int, int, int]]:
        """Depth-first positions; what waits for nothing comes just before what needs it first."""
        position = {op: k for k, op in enumerate(self.kernels)}
        ranks = {op: (k, 1, k) for op, k in position.items()}
        for op, k in position.items():
            if not self.waits[op] and self.after[op]:
                ranks[op] = (max(k, min(position[after] for after in self.after[op])), 0, k)
        return ranks

    def better_first(self, op: Op, ready: set[Op], done: set[Op], sizes: dict[Op, int]) -> list[Op]:
        """Smaller kernels that are ready and read a value that ``op`` could then be computed in."""
        for value in self.in_place(op):
            if isinstance(value, Leaf) or len(self.readers[value]) > MOVED_FIRST:
                continue
            others = [r for r in self.readers[value] if r is not op and r not in done]
            if others:
                if all(r in ready and sizes[r] < sizes[op] and self.free(r) for r in others):
                    return others
        return []

    def free(self, op: Op) -> bool:
        """Whether a kernel neither writes a variable nor belongs to those that run first."""
        return op not in self.storage and op not in self.early_kernels

    def kernel(self, op: Op) -> Kernel:
        """The kernel of ``op``."""
        return Kernel(op, self.reads[op], self.in_place(op), self.storage.get(op), self.raises(op))

    def in_place(self, op: Op) -> tuple[Op, ...]:
        """The arguments whose memory may hold the result: same elements at the same places."""
        found = self.joined.get(op)
        if found is None:
            found = self.joined[op] = self.find_in_place(op)
        return found

    def find_in_place(self, op: Op) -> tuple[Op, ...]:
        positions = self.target.in_place.get(op.primitive.name, ())
        found = []
        for k in positions:
            value = op.args[k]
            if self.base[value] is not value or is_bound(value) and not isinstance(value, Leaf):
                continue
            others = [
                a
                for at, a in enumerate(op.args)
                if self.base[a] is value and (a is not value or at not in positions)
            ]
            if others or value.dtype.itemsize != op.dtype.itemsize:
                continue
            layout, wanted = self.laid_out.layouts[value], self.laid_out.layouts[op]
            if (layout is wanted or layout == wanted) and value.axes.lengths == op.axes.lengths:
                found.append(value)
        return tuple(found)
