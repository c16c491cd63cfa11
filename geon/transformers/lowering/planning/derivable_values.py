"""Recomputation of elementwise values from values that stay in memory anyway.

A product reads a gelu, a normalisation or a gate soon after it is computed, and the product of a
weight's gradient reads it much later. Its input stays in memory until then as well, for its own
derivative. So only the input is kept, and the elementwise function is computed again for the later
product, which takes far longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import product
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import is_bound, reachable
from ....op_graph.op_graph import Leaf, Op, RegionOp, post_order
from ...kernels.analysis.op_counts import ELEMENTARY_COST_OPS
from ...sizes.blocks import L1_BYTES
from ...sizes.limits import MIN_SIZE_RATIO
from ..facts.target import Target
from ..facts.value_sizes import bytes_of, nominal
from ..rules.program import Program
from ..rules.rematerialisation import Recomputation, Regions
from .schedule import least_peak

MIN_DERIVED_BYTES = 2 * L1_BYTES  # bytes of a value that is computed again
# Multiply-adds of the later product per element that is computed again.
MIN_MULADDS_PER_ELEMENT = MIN_SIZE_RATIO * ELEMENTARY_COST_OPS
# Ops computed again for one value, and ops searched for later readers.
MAX_DERIVING_OPS = MIN_MULADDS_PER_ELEMENT // 4
MAX_PEAK_SHARE = 0.95  # peak bytes with recomputation, relative to those without


def kept_once(program: Program, target: Target, own: OwnTable) -> Program:
    """Return the program with elementwise values computed again for later products.

    A program with explicit recomputation is not changed, nor one whose peak memory hardly falls,
    nor one of a target with a kernel per op, which would be slower. Values of open length are kept:
    their size is known only at a call. New ops are in ``own``.
    """
    if program.again or target.group is None:
        return program
    order = post_order(program.roots)
    regions = _DerivableSearch(order).regions()
    if not regions.number:
        return program
    with building(own):
        work = Recomputation(order, program.roots, regions)
        once = program.mapped(work.run(), work.again)
    peaks = [least_peak(each, target, own) for each in (program, once)]
    return once if peaks[1] <= MAX_PEAK_SHARE * peaks[0] else program


@dataclass(frozen=True, eq=False, slots=True)
class _Candidate:
    """A value, the views ``shown`` of it, its last early reader ``end``, and ``later`` readers."""

    value: Op
    shown: tuple[Op, ...]
    end: Op
    later: tuple[Op, ...]


@dataclass(eq=False, slots=True)
class _DerivingRegion:
    """The ops ``inside``, which recompute a value from the values in ``stays``."""

    inside: dict[Op, None]
    stays: dict[Op, None] = field(default_factory=dict)


class _DerivableSearch:
    """Finds values to compute again among ops in order."""

    def __init__(self, order: Sequence[Op]) -> None:
        self.order = order
        self.position = {op: k for k, op in enumerate(order)}
        self.users: dict[Op, list[Op]] = {}
        for op in order:
            for arg in dict.fromkeys(op.args):
                self.users.setdefault(arg, []).append(op)
        self.past: dict[Op, int] = {}

    def regions(self) -> Regions:
        """Return the ops to compute again, and after which ops, as disjoint parts."""
        candidates = [found for op in self.order for found in self.candidates(op)]
        exits: dict[Op, int] = {}
        for k, each in enumerate(candidates):
            exits[each.end] = exits.get(each.end, 0) | 1 << k
        self.find_past(exits)
        parts, number = 0, dict[Op, int]()
        ends: dict[Op, int] = {}
        stays: dict[Op, None] = {}
        for k, each in enumerate(candidates):
            region = self.region(each, 1 << k)
            if region is None or not number.keys().isdisjoint((*region.inside, *region.stays)):
                continue
            if stays.keys().isdisjoint(region.inside):
                number.update(dict.fromkeys(region.inside, parts))
                stays.update(region.stays)
                ends[each.end] = ends.get(each.end, 0) | 1 << parts
                parts += 1
        return Regions(number, ends, stays.keys())

    def candidates(self, op: Op) -> Iterator[_Candidate]:
        """Yield a candidate if ``op`` is elementwise and products read it at two distant times."""
        size = bytes_of(op)
        large = isinstance(size, int) and size >= MIN_DERIVED_BYTES
        if op.primitive.kind != "elementwise" or is_bound(op) or not large:
            return
        shown: dict[Op, None] = {}
        readers = sorted(self.readers(op, shown), key=self.position.__getitem__)
        if len(readers) < 2:
            return
        at = max(range(1, len(readers)), key=lambda k: self.gap(readers, k))
        soon, later = readers[:at], readers[at:]
        seen = (op, *shown)
        if any(is_dot(r) for r in soon) and any(self.is_worth(r, seen) for r in later):
            yield _Candidate(op, tuple(shown), soon[-1], tuple(later))

    def gap(self, readers: Sequence[Op], k: int) -> int:
        """Return the number of ops between a reader and the previous one."""
        return self.position[readers[k]] - self.position[readers[k - 1]]

    def readers(self, op: Op, shown: dict[Op, None]) -> list[Op]:
        """Return the readers of an op or of views of it; add the views to ``shown``."""
        views = reachable([op], lambda x: [u for u in self.users.get(x, ()) if u.primitive.view])
        users = [user for view in views for user in self.users.get(view, ())]
        shown.update(dict.fromkeys(user for user in users if user.primitive.view))
        return list(dict.fromkeys(user for user in users if not user.primitive.view))

    def is_worth(self, reader: Op, seen: Sequence[Op]) -> bool:
        """Return True if a reader is a product that takes far longer than an elementwise op."""
        if not is_dot(reader):
            return False
        first, second = reader.args
        mine, other = (first, second) if first in set(seen) else (second, first)
        own = [axis.expression for axis in other.axes if axis.name not in mine.axes]
        return nominal(product(own)) >= MIN_MULADDS_PER_ELEMENT

    def find_past(self, exits: Mapping[Op, int]) -> None:
        """Record which candidates' ends each op depends on, as bits."""
        for op in self.order if exits else ():
            bits = exits.get(op, 0)
            for arg in op.args:
                bits |= self.past.get(arg, 0)
            if bits:
                self.past[op] = bits

    def region(self, candidate: _Candidate, bit: int) -> _DerivingRegion | None:
        """Return the ops that recompute a candidate from kept values; None if impossible."""
        found = _DerivingRegion(dict.fromkeys((candidate.value, *candidate.shown)))
        for reader in candidate.later:
            past = bool(self.past.get(reader, 0) & bit)
            if not past and not (
                is_cheap(reader) and self.find_late_read(reader, found, bit, [MAX_DERIVING_OPS])
            ):
                return None
        least = nominal(bytes_of(candidate.value)) // MIN_SIZE_RATIO
        stack = [candidate.value]
        while stack:
            for arg in computed_arguments(stack.pop()):
                if arg in found.inside:
                    continue
                if is_small(arg, least) or self.find_late_read(arg, found, bit, [MAX_DERIVING_OPS]):
                    found.stays[arg] = None
                    continue
                if not is_cheap(arg) or len(found.inside) >= MAX_DERIVING_OPS:
                    return None
                found.inside[arg] = None
                stack.append(arg)
        deepen(found, least)
        return found

    def find_late_read(self, op: Op, region: _DerivingRegion, bit: int, left: list[int]) -> bool:
        """Return True if ops after a candidate's end read an op, other than inside a region.

        The search counts the ops it visits down in ``left``.
        """
        for user in self.users.get(op, ()):
            if user in region.inside or left[0] <= 0:
                continue
            left[0] -= 1
            if self.past.get(user, 0) & bit:
                return True
            if is_cheap(user) and self.find_late_read(user, region, bit, left):
                return True
        return False


def deepen(region: _DerivingRegion, least: int) -> None:
    """Replace the only large kept value of a region by its large elementwise operand, repeatedly.

    Other regions may need that operand too, and the values between then take no memory. The result
    of a product is stored as its elementwise epilogue leaves it.
    """
    while len(region.inside) < MAX_DERIVING_OPS:
        large = [op for op in region.stays if not is_small(op, least)]
        if len(large) != 1 or not is_cheap(large[0]):
            return
        below = [op for op in computed_arguments(large[0]) if op not in region.inside]
        made_of = [op for op in below if not is_small(op, least)]
        if len(made_of) != 1 or not is_cheap(made_of[0]):
            return
        del region.stays[large[0]]
        region.inside[large[0]] = None
        region.stays.update(dict.fromkeys(below))


def computed_arguments(op: Op) -> list[Op]:
    """Return the arguments of an op that are neither storage nor constants."""
    return [arg for arg in op.args if not (isinstance(arg, Leaf) or is_bound(arg))]


def is_small(op: Op, least: int) -> bool:
    """Return True if a value, or the base of a view, takes at most ``least`` bytes."""
    while op.primitive.view and op.args and not isinstance(op.args[0], RegionOp):
        op = op.args[0]
    return nominal(bytes_of(op)) <= least


def is_cheap(op: Op) -> bool:
    """Return True if an op is elementwise or a view."""
    row = op.primitive
    return (row.kind == "elementwise" or bool(row.view)) and not row.has_side_effect


def is_dot(op: Op) -> bool:
    """Return True if an op is a contraction."""
    return op.primitive.name == "dot"
