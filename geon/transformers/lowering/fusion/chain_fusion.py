"""Chain fusion: kernels that run one after another on each block of rows become one.

A product whose result is reduced row by row, and perhaps multiplied again, passes on more bytes
than it reads. If these exceed the second-level cache, the kernels become one, with memory for one
block of rows of each intermediate value, such as the square matrix of attention scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.axes import Axes
from ....op_graph.axes.lengths import Length, evaluate, product
from ....op_graph.op_graph import Op, among
from ...kernels.ir.nest import Chain, Fused
from ...kernels.nests.inlining import OperandInliner
from ...kernels.products.row_blocking import Blocked, finds_extremes, make_blocked
from ...sizes.blocks import L2_BYTES
from ...sizes.limits import LONG_LOOP_TURNS, MAX_SEARCHED
from ..facts.value_sizes import bytes_of
from .fusion_groups import Group
from .layout import LaidOut
from .legality import Nominal

MIN_BLOCKED_BYTES = L2_BYTES  # minimum bytes of an intermediate value
# Minimum bytes of intermediates, relative to inputs, which each block may read again.
MIN_INPUT_BYTES_RATIO = 2
MIN_BLOCKED_ROWS = LONG_LOOP_TURNS  # minimum rows
MAX_CHAIN_KERNELS = MAX_SEARCHED  # maximum kernels of a chain


@dataclass(frozen=True, slots=True)
class Worth:
    """Conditions on chains that a target wants.

    Each intermediate value has at least ``large`` bytes, the chain at least ``fewest`` rows, the
    intermediates together ``more`` times the bytes that are read, and ``accepts`` returns True.
    """

    large: int = MIN_BLOCKED_BYTES
    fewest: int = MIN_BLOCKED_ROWS
    more: int = MIN_INPUT_BYTES_RATIO
    accepts: Callable[[Blocked], bool] = lambda made: True


CACHED = Worth()


def by_blocks(
    laid_out: LaidOut, groups: list[Group], ops: Sequence[Op], worth: Worth = CACHED
) -> list[Group]:
    """Return the groups, with each chain merged into one."""
    return _Chains(laid_out, groups, ops, worth).run()


@dataclass(eq=False, slots=True)
class _Growing:
    """Groups that could run by blocks over the axes ``kept``, which their values share.

    ``inner`` are the intermediate values.
    """

    members: list[Group]
    kept: frozenset[str]
    inner: list[Op] = field(default_factory=list)


class _Chains:
    def __init__(
        self, laid_out: LaidOut, groups: list[Group], ops: Sequence[Op], worth: Worth
    ) -> None:
        self.laid_out, self.groups, self.worth = laid_out, groups, worth
        program = laid_out.program
        self.updated = {op for _, op in program.updates}
        self.needed = {*program.outputs, *self.updated}
        self.position = {op: number for number, op in enumerate(ops)}
        self.computed = {op for group in groups for op in group.results}
        self.readers: dict[Op, list[Group]] = {}
        for group in groups:
            for value in dict.fromkeys((*group.reads, *group.needs)):
                self.readers.setdefault(value, []).append(group)

    def run(self) -> list[Group]:
        """Return the groups with each chain at the position of its first group."""
        taken: dict[Group, Group | None] = {}
        for seed in self.groups:
            if form(seed).kind == "contraction" and seed not in taken:
                chain = self.chain_from(seed)
                if chain is not None:
                    members, made = chain
                    taken.update(dict.fromkeys(members))
                    taken[seed] = made
        found = [taken.get(group, group) for group in self.groups]
        return [group for group in found if group is not None]

    def chain_from(self, seed: Group) -> tuple[list[Group], Group] | None:
        """Return the groups of a chain that starts with a product, and their merged group.

        Return None if there is no chain that pays.
        """
        grown = self.grown(seed)
        if not grown.inner or not self.pays(grown) or self.leaves(grown.members):
            return None
        rows = self.row_axis(seed, grown.kept)
        assert rows is not None
        if any(op in self.updated for group in grown.members for op in group.results):
            return None  # an update is stored in its variable, which must be read in full before
        members = self.ordered(grown.members)
        batch = [n for n in seed.results[0].axes.names if n in grown.kept and n in batch_of(seed)]
        inner, slots = self.slots(members, grown.inner, {rows, *batch})
        steps = tuple([(form(group), group.results) for group in members])
        chain = Chain(steps, tuple(batch), rows, inner, slots)
        made = self.merged(members, chain)
        layouts, base = self.laid_out.layouts, self.laid_out.base
        operands = OperandInliner(layouts, base, made.results, self.computed.__contains__)
        work = make_blocked(chain, operands)
        return (members, made) if work is not None and self.worth.accepts(work) else None

    # Growth of a chain --------------------------------------------------------------------------

    def grown(self, seed: Group) -> _Growing:
        """Return the chain with all readers of its intermediates, which have the product's axes."""
        growing = _Growing([seed], kept_by(seed))
        batch = batch_of(seed)
        waiting = list(seed.results)
        while waiting:
            value = waiting.pop(0)
            readers = self.readers.get(value, [])
            new = [group for group in readers if group not in growing.members]
            kept = growing.kept.intersection(*[kept_along(value, group) for group in new])
            square = value.axes.same_set(seed.results[0].axes)
            fits = (
                square
                and self.is_handed_on(value, readers)
                and self.row_axis(seed, kept) is not None
            )
            if (
                not fits
                or batch & kept != batch & growing.kept
                or len(growing.members) + len(new) > MAX_CHAIN_KERNELS
            ):
                continue
            growing.kept = kept
            growing.inner.append(value)
            growing.members += new
            waiting += [result for group in new for result in group.results]
        return growing

    def is_handed_on(self, value: Op, readers: Sequence[Group]) -> bool:
        """Return True if a value is large and is read only by kernels that may be steps."""
        if value in self.needed or not readers:
            return False
        if not all(among(value, group.reads) for group in readers):
            return False
        return nominal_bytes([value]) >= self.worth.large

    def row_axis(self, seed: Group, kept: Set[str]) -> str | None:
        """Return the longest axis that may be split, which only one operand of the product has.

        All axes that this operand has alone must be kept, and none of the other one's: else a block
        would be a whole image of a convolution, whose windows go over its pixels.
        """
        batch = batch_of(seed)
        x, y = [
            {
                a.name: evaluate(a.expression, Nominal())
                for a in seed.results[0].axes.only(arg.axes.names)
            }
            for arg in product_of(seed).args
        ]
        for rows, columns in ((x, y), (y, x)):
            if rows.keys() - batch <= kept and kept.isdisjoint(columns.keys() - batch):
                found = max(rows.keys() - batch, key=lambda name: rows[name], default=None)
                if found is not None and rows[found] >= self.worth.fewest:
                    return found
        return None

    def pays(self, grown: _Growing) -> bool:
        """Return True if a chain reduces its intermediates and these are larger than its inputs."""
        if not any(reduces(group, grown.kept) for group in grown.members):
            return False
        own = {op for group in grown.members for op in group.results}
        read = dict.fromkeys(op for group in grown.members for op in group.reads)
        without = nominal_bytes(op for op in read if op not in own)
        return nominal_bytes(grown.inner) >= self.worth.more * without

    def leaves(self, members: Sequence[Group]) -> bool:
        """Return True if a result of a step reaches another step through kernels outside."""
        last = max(self.position[op] for group in members for op in group.results)
        stack = [op for group in members for op in group.results]
        seen = set(members)
        while stack:
            for reader in self.readers.get(stack.pop(), ()):
                if reader in seen:
                    continue
                seen.add(reader)
                if min((self.position[op] for op in reader.results), default=0) > last:
                    continue
                done = reader.results or (reader.op,)  # ops with side effects have readers too
                read = {g for op in done for g in self.readers.get(op, ())}
                if not read.isdisjoint(members):
                    return True
                stack += done
        return False

    # Merging of its groups ----------------------------------------------------------------------

    def ordered(self, members: list[Group]) -> list[Group]:
        """Return the groups, producers before consumers."""
        makers = {op: group for group in members for op in group.results}
        found: dict[Group, None] = {}
        stack = [(group, False) for group in reversed(members)]
        while stack:
            group, ready = stack.pop()
            if group in found:
                continue
            if ready:
                found[group] = None
                continue
            stack.append((group, True))
            before = [makers[v] for v in (*group.reads, *group.needs) if v in makers]
            stack += [(each, False) for each in before if each not in found and each is not group]
        return list(found)

    def slots(
        self, members: list[Group], inner: list[Op], cut: set[str]
    ) -> tuple[tuple[Op, ...], tuple[int, ...]]:
        """Return the intermediates in the order of computation, and the block buffer of each."""
        last = {op: max(k for k, g in enumerate(members) if among(op, g.reads)) for op in inner}
        found: dict[Op, int] = {}
        held: list[Op] = []  # the last value in each buffer
        for step, group in enumerate(members):
            for op in group.results:
                if op not in last:
                    continue
                for number, before in enumerate(held):
                    over = last[before] == step and among(before, group.in_place[op])
                    if (over or last[before] < step) and same_rows(before, op, cut):
                        found[op], held[number] = number, op
                        break
                else:
                    found[op] = len(held)
                    held.append(op)
        return tuple(found), tuple(found.values())

    def merged(self, members: list[Group], chain: Chain) -> Group:
        """Return the group that replaces a chain."""
        inside = set(chain.inner)
        own = {op for group in members for op in group.results}
        results = tuple([op for group in members for op in group.results if op not in inside])
        reads = dict.fromkeys(op for group in members for op in group.reads if op not in own)
        needs = dict.fromkeys(op for group in members for op in group.needs if op not in own)
        apart = tuple([each for group in members for each in group.apart if each.other not in own])
        fused = Fused("blocked", chain=chain)
        in_place: dict[Op, tuple[Op, ...]] = dict.fromkeys(results, ())
        return Group(results[0], results, tuple(reads), tuple(needs), in_place, fused, apart)


def form(group: Group) -> Fused:
    """Return the form of a group; targets that fuse set it."""
    assert group.fused is not None
    return group.fused


def product_of(group: Group) -> Op:
    """Return the product that a contraction computes."""
    dot = form(group).dot
    assert dot is not None
    return dot


def batch_of(group: Group) -> frozenset[str]:
    """Return the axes that both operands of a product have and that are kept."""
    x, y = product_of(group).args
    return frozenset(x.axes.names) & frozenset(y.axes.names)


def kept_by(group: Group) -> frozenset[str]:
    """Return the axes over which a group could run block by block."""
    if not group.results:
        return frozenset()
    fused = form(group)
    common = frozenset.intersection(*[frozenset(op.axes.names) for op in group.results])
    if fused.kind == "call" and finds_extremes(group.op):
        return common
    if fused.kind == "nest":
        return common if fused.rows is None else common & fused.rows
    if fused.kind != "contraction":
        return frozenset()
    renamed = {name for pair in fused.names for name in pair}
    return common - renamed - frozenset(product_of(group).attrs.over)


def kept_along(value: Op, group: Group) -> frozenset[str]:
    """Return the axes over which a group could run by blocks of ``value``: equally long in both."""
    lengths = {axis.name: axis.expression for axis in value.axes}
    found = kept_by(group)
    for op in group.results:
        found -= {a.name for a in op.axes if lengths.get(a.name, a.expression) != a.expression}
    return found


def reduces(group: Group, kept: Set[str]) -> bool:
    """Return True if a group reduces, or all its results have only the axes ``kept``."""
    return bool(form(group).reductions) or all(kept >= set(op.axes.names) for op in group.results)


def same_rows(x: Op, y: Op, cut: set[str]) -> bool:
    """Return True if both have equally many bytes per row."""
    sizes = [count_unsplit(op.axes, cut) * op.dtype.itemsize for op in (x, y)]
    return sizes[0] == sizes[1]


def count_unsplit(axes: Axes, cut: set[str]) -> int | Length:
    """Return the number of elements over the axes that are not split."""
    return product(axis.expression for axis in axes if axis.name not in cut)


def nominal_bytes(ops: Iterable[Op]) -> int:
    """Return the bytes of values, with open lengths at a nominal value."""
    return sum(evaluate(bytes_of(op), Nominal()) for op in ops)
