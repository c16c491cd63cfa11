"""Chains: kernels that run one after another on blocks of rows, so that no square is in memory.

A product whose result is reduced row by row, and perhaps multiplied again, hands on more than it
reads. Where that is more than the second cache holds, the kernels become one, which has
memory for what it hands on in one block of rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from ....op_graph.axes.axes import Axes
from ....op_graph.axes.lengths import Length, evaluate, names_of, product
from ....op_graph.op_graph import Op, among
from ...kernels.ir.nest import Chain, Fused
from ...kernels.nests.inlining import Operands
from ...kernels.products.row_blocking import Blocked, finds_extremes, make_blocked
from .fusion_groups import Group
from .layout import LaidOut

LARGE = 1 << 20  # bytes of a value that is not worth handing on by blocks below that
MORE = 2  # times the bytes that come in, which each block may read again
FEWEST = 64  # rows that are worth cutting
NOMINAL = 1024  # what an open length counts as
MEMBERS = 16  # kernels of a chain


@dataclass(frozen=True, slots=True)
class Worth:
    """Which chains a target wants: those of values that are ``large``, of at least ``fewest`` rows,
    which hand on ``more`` times the bytes that come in, and which it ``accepts``.
    """

    large: int = LARGE
    fewest: int = FEWEST
    more: int = MORE
    accepts: Callable[[Blocked], bool] = lambda made: True


CACHED = Worth()


def by_blocks(
    laid_out: LaidOut, groups: list[Group], ops: Sequence[Op], worth: Worth = CACHED
) -> list[Group]:
    """The groups, those of chains as one."""
    return _Chains(laid_out, groups, ops, worth).run()


@dataclass(eq=False, slots=True)
class _Growing:
    """Groups that could run by blocks over what their values have in common, ``kept``."""

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
        """Each chain in the place of its first group."""
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
        """The groups of a chain that begins with a product, and the one that they become."""
        grown = self.grown(seed)
        if not grown.inner or not self.pays(grown) or self.leaves(grown.members):
            return None
        rows = self.row_axis(seed, grown.kept)
        assert rows is not None
        if any(op in self.updated for group in grown.members for op in group.results):
            return None  # which is computed in its variable's memory, all of it read before
        members = self.ordered(grown.members)
        batch = [n for n in seed.results[0].axes.names if n in grown.kept and n in batch_of(seed)]
        inner, slots = self.slots(members, grown.inner, {rows, *batch})
        steps = tuple([(form(group), group.results) for group in members])
        chain = Chain(steps, tuple(batch), rows, inner, slots)
        made = self.merged(members, chain)
        layouts, base = self.laid_out.layouts, self.laid_out.base
        operands = Operands(layouts, base, made.results, self.computed.__contains__)
        work = make_blocked(chain, operands)
        return (members, made) if work is not None and self.worth.accepts(work) else None

    # Growing ------------------------------------------------------------------------------------

    def grown(self, seed: Group) -> _Growing:
        """The chain with all that reads what it hands on: values over the axes of the product."""
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
                or len(growing.members) + len(new) > MEMBERS
            ):
                continue
            growing.kept = kept
            growing.inner.append(value)
            growing.members += new
            waiting += [result for group in new for result in group.results]
        return growing

    def is_handed_on(self, value: Op, readers: Sequence[Group]) -> bool:
        """Whether a value is large, and only kernels that may be steps read it."""
        if value in self.needed or not readers:
            return False
        if not all(among(value, group.reads) for group in readers):
            return False
        return bytes_of([value]) >= self.worth.large

    def row_axis(self, seed: Group, kept: Set[str]) -> str | None:
        """The longest axis that may be cut, of those that are of one operand of the product."""
        batch = batch_of(seed)
        axes = [axis for axis in seed.results[0].axes if axis.name in kept - batch]
        lengths = {axis.name: nominal(axis.expression) for axis in axes}
        found = max(lengths, key=lambda name: lengths[name], default=None)
        return None if found is None or lengths[found] < self.worth.fewest else found

    def pays(self, grown: _Growing) -> bool:
        """Whether a chain reduces what it hands on, and that is more than what it reads."""
        if not any(reduces(group, grown.kept) for group in grown.members):
            return False
        own = {op for group in grown.members for op in group.results}
        read = dict.fromkeys(op for group in grown.members for op in group.reads)
        without = bytes_of(op for op in read if op not in own)
        return bytes_of(grown.inner) >= self.worth.more * without

    def leaves(self, members: Sequence[Group]) -> bool:
        """Whether what a step computes comes back to another one through other kernels."""
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
                done = reader.results or (reader.op,)  # of one that acts, what waits for it
                read = {g for op in done for g in self.readers.get(op, ())}
                if not read.isdisjoint(members):
                    return True
                stack += done
        return False

    # Making -------------------------------------------------------------------------------------

    def ordered(self, members: list[Group]) -> list[Group]:
        """The groups, those that compute a value before those that read it."""
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
        """The values of a block in the order they are made, and the number of each's memory."""
        last = {op: max(k for k, g in enumerate(members) if among(op, g.reads)) for op in inner}
        found: dict[Op, int] = {}
        held: list[Op] = []  # the last value of each memory
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
        """The one group that a chain becomes."""
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
    """How a group computes: groups of a target that fuses say so."""
    assert group.fused is not None
    return group.fused


def product_of(group: Group) -> Op:
    """The product that a contraction computes."""
    dot = form(group).dot
    assert dot is not None
    return dot


def batch_of(group: Group) -> frozenset[str]:
    """The axes that both operands of a product keep."""
    x, y = product_of(group).args
    return frozenset(x.axes.names) & frozenset(y.axes.names)


def kept_by(group: Group) -> frozenset[str]:
    """The axes over which a group could run block by block."""
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
    return common - renamed - frozenset(product_of(group).attrs[0])


def kept_along(value: Op, group: Group) -> frozenset[str]:
    """The axes over which a group could run block by block of ``value``: those as long in both."""
    lengths = {axis.name: axis.expression for axis in value.axes}
    found = kept_by(group)
    for op in group.results:
        found -= {a.name for a in op.axes if lengths.get(a.name, a.expression) != a.expression}
    return found


def reduces(group: Group, kept: Set[str]) -> bool:
    """Whether a group makes one value, or several, of each row."""
    return bool(form(group).reductions) or all(kept >= set(op.axes.names) for op in group.results)


def same_rows(x: Op, y: Op, cut: set[str]) -> bool:
    """Whether both have as many bytes for one row."""
    sizes = [other(op.axes, cut) * op.dtype.itemsize for op in (x, y)]
    return sizes[0] == sizes[1]


def other(axes: Axes, cut: set[str]) -> int | Length:
    """The number of elements over the axes that are not cut."""
    return product(axis.expression for axis in axes if axis.name not in cut)


def bytes_of(ops: Iterable[Op]) -> int:
    """The bytes of values, with open lengths at a nominal value."""
    total = 0
    for op in ops:
        total += nominal(op.axes.size) * op.dtype.itemsize
    return total


def nominal(length: int | Length) -> int:
    """A length with open ones at a nominal value."""
    return evaluate(length, dict.fromkeys(names_of(length), NOMINAL))
