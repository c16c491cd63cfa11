"""Rematerialisation: ops below a mark are computed again for uses after the mark.

Forward and backward values are one graph here. An op is *late* for a region if it depends both on
the region and on values after the mark: in a derivative, where a cotangent meets a value of the
forward computation. Late ops read clones, which wait for the value that the first late op, in
order, takes from after the mark. So the first values need no memory meanwhile.

Every new op depends only on ops before it in the order of the graph, so there are no cycles: a late
op is no earlier than the first one, whose cotangent precedes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.building.rebuild import carry, rebuild, with_args, with_bodies
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.region_body import Body
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op, RegionOp, deep_order, post_order
from ....op_graph.regions.parameters import PARAMETER, REGION_RESULT
from ....op_graph.rewriting.region_cleanup import drop_unused_regions
from ....op_graph.rows.remat_annotations import REMAT, compute_after


def rematerialise(
    roots: Sequence[Op], own: OwnTable, again: bool = True
) -> tuple[list[Op], tuple[Op, ...]]:
    """Return the roots without marks, and the ops that are computed again.

    With ``again``, ops below marks are recomputed for late uses. The outermost marks are handled
    first: what they recompute contains the inner ones. Marks in bodies of regions apply to those
    bodies. New ops are in ``own``.
    """
    with building(own):
        found = _with_bodies(roots, own, again)
        clones: dict[Op, None] = {}
        while True:
            order = post_order(found)
            if not any(op.primitive is REMAT for op in order):
                return found, tuple([op for op in order if op in clones])
            regions = marked_regions(order)
            if not again:
                regions = Regions({}, {}, regions.stays, regions.gone)
            work = Recomputation(order, found, regions)
            new = work.run()
            clones = {**{new.get(op, op): None for op in clones}, **work.again}
            found = [new[root] for root in found]


def _with_bodies(roots: Sequence[Op], own: OwnTable, again: bool) -> list[Op]:
    """Return the roots, with marks in region bodies handled."""
    if not any(op.primitive is REMAT for op in deep_order(roots)):
        return list(roots)

    def replaced(op: Op, args: tuple[Op, ...]) -> Op | None:
        bodies = []
        for body in op.bodies:
            results: Any = tuple(rematerialise(body.results, own, again)[0])
            bodies.append(Body(body.parameters, results))
        return with_bodies(op, bodies, args) if bodies else None

    return rebuild(roots, replaced)


@dataclass(frozen=True, eq=False, slots=True)
class Regions:
    """Ops to compute again.

    ``number`` has the region of each op inside one. ``exits`` has, for ops that end regions, these
    regions as bits. ``stays`` are values that are read from memory however late. ``gone`` are
    marks, which are replaced by their values.
    """

    number: Mapping[Op, int]
    exits: Mapping[Op, int]
    stays: Set[Op]
    gone: Set[Op] = frozenset()


def marked_regions(order: Sequence[Op]) -> Regions:
    """Return the regions below the outermost marks, down to kept values or storage.

    Each connected part below a mark is a region of its own.
    """
    inside: dict[Op, int] = {}  # marks that an op is below, as bits
    before: dict[Op, int] = {}  # marks that it must precede: values they keep depend on it
    kept: dict[Op, int] = {}  # marks that keep it
    stays: set[Op] = set()
    marks: list[Op] = []
    for op in reversed(order):
        known = before.pop(op, 0)
        bits = inside.pop(op, 0) & ~known
        if op.primitive is REMAT and not bits:
            bit = 1 << len(marks)
            marks.append(op)
            _unite(inside, op.args[:1], bit)
            _unite(kept if op.attrs.open else before, op.args[1:], bit)
            stays.update(op.args[1:])
        elif isinstance(op, Leaf) or op.primitive is PARAMETER or is_bound(op):
            bits = 0
        if op.primitive is REMAT and op in stays:
            stays.add(op.args[0])
        _unite(inside, op.args[:1] if op.primitive.is_barrier else op.args, bits)
        _unite(before, op.args, known)
        if op.primitive.has_side_effect:  # it shares the memory of its argument
            if op in stays or not op.primitive.is_barrier:
                stays.add(op.args[0])
            stays.add(op)
        elif op not in stays and (bits := bits & ~kept.get(op, 0)):
            inside[op] = bits
    return _parts(_with_their_regions(inside), marks, stays)


def _with_their_regions(inside: Mapping[Op, int]) -> dict[Op, int]:
    """Return ``inside``, with results of a loop or branch below the same marks as the loop.

    All results are computed together. If a mark keeps one of them, the loop precedes the mark, and
    the other results stay as well.
    """
    found = {}
    for op, bits in inside.items():
        if op.primitive is REGION_RESULT:
            whole = inside.get(op.args[0], 0)
            bits = whole if bits & whole else 0
        if bits:
            found[op] = bits
    return found


def _unite(found: dict[Op, int], ops: Sequence[Op], bits: int) -> None:
    if bits:
        for op in ops:
            found[op] = found.get(op, 0) | bits


def _parts(inside: Mapping[Op, int], marks: Sequence[Op], stays: Set[Op]) -> Regions:
    """Return the regions: connected ops below marks that keep the same values."""
    groups: dict[tuple[int, ...], int] = {}
    group = [groups.setdefault(tuple(map(id, mark.args[1:])), len(groups)) for mark in marks]
    known: dict[int, frozenset[int]] = {}
    for bits in inside.values():
        if bits not in known:
            known[bits] = frozenset(group[k] for k in bits_of(bits))
    number = connected_components(inside, lambda op, arg: known[inside[op]] == known[inside[arg]])
    below = [0] * len(set(number.values()))  # marks above each region, as bits
    for op, bits in inside.items():
        below[number[op]] |= bits
    exits: dict[Op, int] = {}
    for region, bits in enumerate(below):
        for k in bits_of(bits):
            exits[marks[k]] = exits.get(marks[k], 0) | 1 << region
    return Regions(number, exits, stays, frozenset(marks))


def connected_components(inside: Iterable[Op], together: Callable[[Op, Op], bool]) -> dict[Op, int]:
    """Return the component number of each op; it connects ops ``together`` with an argument."""
    above = {op: op for op in inside}

    def top(op: Op) -> Op:
        while above[op] is not op:
            above[op] = op = above[above[op]]
        return op

    for op in above:
        for arg in op.args:
            if arg in above and together(op, arg):
                above[top(arg)] = top(op)
    numbers: dict[Op, int] = {}
    return {op: numbers.setdefault(top(op), len(numbers)) for op in above}


def bits_of(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Recomputation:
    """Rebuilds the ops of ``order``: late ops read clones of the ops inside ``regions``.

    ``again`` has the ops that are computed a second time.
    """

    def __init__(self, order: Sequence[Op], roots: Sequence[Op], regions: Regions) -> None:
        self.order, self.roots, self.regions = order, roots, regions
        self.late: dict[Op, int] = {}
        self.ties: dict[int, Op] = {}
        self.cloned: dict[Op, int] = {op: 1 << k for op, k in regions.number.items()}
        self.new: dict[Op, Op] = {}
        self.clones: dict[tuple[int, int], Op] = {}
        self.again: dict[Op, None] = {}

    def run(self) -> dict[Op, Op]:
        """Return the replacement of each op."""
        derived = self.find_late()
        self.find_derived(derived)
        for op in self.order:
            if op in self.regions.gone:
                self.new[op] = self.new[op.args[0]]
                continue
            late = self.late.get(op, 0)
            args = [self.argument(arg, late) for arg in op.args]
            self.new[op] = self.made(op, args)
        if any(isinstance(op, RegionOp) for op in self.order):
            self.drop_unused()
        return self.new

    def drop_unused(self) -> None:
        """Remove results of loops and branches that neither the roots nor the clones need.

        Values that only a mark keeps are among them.
        """
        made = drop_unused_regions([self.new[root] for root in self.roots])
        self.new = {op: made.get(new, new) for op, new in self.new.items()}
        self.again = {made.get(op, op): None for op in self.again}

    def find_late(self) -> dict[Op, int]:
        """Find late ops and the values that regions wait for; return what ops derive from."""
        past: dict[Op, int] = {}  # regions whose ends an op depends on
        derived: dict[Op, int] = {}  # regions that it depends on otherwise
        for op in self.order:
            ended = made_of = 0
            for arg in self.used(op):
                ended |= past.get(arg, 0)
                made_of |= derived.get(arg, 0)
            late = ended & made_of
            if late:
                self.late[op] = late
                for k in bits_of(late):
                    if k not in self.ties:
                        self.ties[k] = next(a for a in op.args if past.get(a, 0) >> k & 1)
            ended |= self.regions.exits.get(op, 0)
            if ended:
                past[op] = ended
            own = self.regions.number.get(op)
            made_of = made_of & ~ended if own is None else 1 << own
            if made_of and op not in self.regions.stays:
                derived[op] = made_of
        return derived

    def find_derived(self, derived: Mapping[Op, int]) -> None:
        """Also clone ops that only late ops use, such as the partials of a derivative.

        They would otherwise be computed early and kept. A loop or branch is cloned if only late ops
        use its results, together with these.
        """
        allowed: dict[Op, int] = dict.fromkeys(self.roots, 0)
        for op in reversed(self.order):
            if op in derived and op not in self.regions.number and op not in self.regions.gone:
                free = derived[op] & allowed.get(op, 0)
                if free:
                    self.cloned[op] = free
            taken = self.late.get(op, 0)
            if op not in self.regions.number:
                taken |= self.cloned.get(op, 0)
            for arg in self.used(op):
                if arg in derived:
                    allowed[arg] = allowed.get(arg, -1) & taken
        for op in [op for op in self.cloned if op.primitive is REGION_RESULT]:
            self.cloned[op] &= self.cloned.get(op.args[0], 0)

    def used(self, op: Op) -> tuple[Op, ...]:
        """Return the arguments that the value of an op depends on; of a mark, the first one."""
        return op.args[:1] if op in self.regions.gone else op.args

    def argument(self, arg: Op, regions: int) -> Op:
        """Return the operand to read, for an op that takes clones of these regions."""
        wanted = self.cloned.get(arg, 0) & regions
        return self.clone(arg, wanted) if wanted else self.new[arg]

    def clone(self, root: Op, regions: int) -> Op:
        """Return ``root`` recomputed, waiting for the values that these regions wait for."""
        stack = [(root, regions)]
        while stack:
            op, wanted = stack[-1]
            if (id(op), wanted) in self.clones:
                stack.pop()
                continue
            taken = wanted | self.late.get(op, 0)
            below = [(arg, self.cloned.get(arg, 0) & taken) for arg in op.args]
            missing = [(a, bits) for a, bits in below if bits and (id(a), bits) not in self.clones]
            if missing:
                stack += missing
                continue
            args = [self.clones[id(arg), bits] if bits else self.new[arg] for arg, bits in below]
            if not any(bits & wanted for _, bits in below):
                self.tie(args, wanted, isinstance(op, RegionOp))
            made = self.clones[id(op), wanted] = self.made(op, args)
            if op in self.regions.number:
                self.again[made] = None
            stack.pop()
        return self.clones[id(root), regions]

    def tie(self, args: list[Op], regions: int, every: bool) -> None:
        """Make the first argument that a call computes or is given wait for these regions.

        One suffices for the op to wait, and to differ from the original. For a loop it is ``every``
        argument, since some may not be needed for the results that are recomputed.
        """
        late = dict.fromkeys(self.new[self.ties[k]] for k in bits_of(regions))
        for k, arg in enumerate(args):
            if isinstance(arg, Leaf) or not is_bound(arg):
                args[k] = compute_after(arg, list(late))
                if not every:
                    return

    def made(self, op: Op, args: list[Op]) -> Op:
        """Return ``op`` on these arguments, with its names."""
        return carry(op, with_args(op, tuple(args)))
