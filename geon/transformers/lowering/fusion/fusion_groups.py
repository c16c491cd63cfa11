"""``Group``: the ops that one kernel computes together.

A target that fuses provides ``Target.group``; ``one_each`` is the default.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ....lazy_dataclasses import dataclass
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op, RegionOp
from ...kernels.ir.nest import Fused
from ...kernels.nests.inlining import inspected_values
from ..facts.target import Target
from .layout import LaidOut


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Ops that one kernel computes together.

    ``op`` identifies the group. ``results`` are stored in memory; empty if it only prints or
    checks. ``reads`` are the values in memory that it reads. ``needs`` are ops whose kernels must
    run before, beyond those of ``reads``. ``in_place`` maps each result to the values in ``reads``
    whose memory it may overwrite: each element is read before it is overwritten. ``fused`` is the
    form that a fusing target computes it in. ``apart`` has the reasons why it is not fused with
    readers of its results.
    """

    op: Op
    results: tuple[Op, ...]
    reads: tuple[Op, ...]
    needs: tuple[Op, ...] = ()
    in_place: dict[Op, tuple[Op, ...]] = field(default_factory=dict)
    fused: Fused | None = None
    apart: tuple[Apart, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Apart:
    """Reason why a kernel is not fused with a reader of its results, which stores ``other``.

    ``seconds`` is the time by which the fused kernel would be slower, if that is the reason.
    """

    other: Op
    reason: str
    seconds: float | None = None

    def __str__(self) -> str:
        return self.reason + ("" if self.seconds is None else f" by {1e6 * self.seconds:.2f} us")


def one_each(laid_out: LaidOut, target: Target, ops: list[Op]) -> list[Group]:
    """Return a group for each op that is a kernel."""
    acted: dict[Op, tuple[Op, ...]] = {}
    results = region_results(ops)
    found = []
    for op in ops:
        if laid_out.is_kernel(op) and not is_region_result(op):
            found.append(single(laid_out, target, op, acted))
        elif isinstance(op, RegionOp):
            found.append(region_group(laid_out, op, results[op], acted))
    return found


def is_region_result(op: Op) -> bool:
    """Return True if ``op`` is one of the results of a region."""
    return bool(op.args) and isinstance(op.args[0], RegionOp)


def region_results(ops: Iterable[Op]) -> dict[Op, tuple[Op, ...]]:
    """Return the results of each region among ``ops``, in order."""
    found: dict[Op, list[Op]] = {}
    for op in ops:
        if is_region_result(op):
            found.setdefault(op.args[0], []).append(op)
    return {
        region: tuple(sorted(results, key=lambda op: op.attrs.number))
        for region, results in found.items()
    }


def region_group(
    laid_out: LaidOut,
    region: Op,
    results: tuple[Op, ...],
    acted: dict[Op, tuple[Op, ...]],
    fused: Fused | None = None,
) -> Group:
    """Return the group of a region, which computes all its results together."""
    needs: dict[Op, None] = {}
    for arg in region.args:
        needs.update(dict.fromkeys(_below(laid_out, arg, acted)))
    reads = tuple({laid_out.base[arg]: None for arg in region.args})
    return Group(results[0], results, reads, tuple(needs), dict.fromkeys(results, ()), fused)


def single(
    laid_out: LaidOut,
    target: Target,
    op: Op,
    acted: dict[Op, tuple[Op, ...]],
    fused: Fused | None = None,
) -> Group:
    """Return the group of one op; ``acted`` is a cache shared between calls."""
    needs: dict[Op, None] = {}
    args = inspected_values(op) if op.primitive.has_side_effect else op.args
    for arg in args:
        needs.update(dict.fromkeys(_below(laid_out, arg, acted)))
    reads = tuple({laid_out.base[arg]: None for arg in args})
    if op.primitive.has_side_effect:
        return Group(op, (), reads, tuple(needs), {}, fused)
    return Group(
        op, (op,), reads, tuple(needs), {op: overwritable_arguments(laid_out, target, op)}, fused
    )


def _below(laid_out: LaidOut, op: Op, known: dict[Op, tuple[Op, ...]]) -> tuple[Op, ...]:
    """Return the kernel that must run before the memory of ``op`` is read, if any."""
    if op not in known:
        chain = op
        while not laid_out.is_kernel(chain) and laid_out.base[chain] is not chain:
            chain = chain.args[0]
        known[op] = (chain,) if laid_out.is_kernel(chain) else ()
    return known[op]


def overwritable_arguments(laid_out: LaidOut, target: Target, op: Op) -> tuple[Op, ...]:
    """Return the arguments of ``op`` whose memory it may overwrite, element by element."""
    positions = target.in_place.get(op.primitive.name, ())
    found = []
    for k in positions:
        value = op.args[k]
        if laid_out.base[value] is not value or is_bound(value) and not isinstance(value, Leaf):
            continue
        others = [
            a
            for at, a in enumerate(op.args)
            if laid_out.base[a] is value and (a is not value or at not in positions)
        ]
        if not others and same_places(laid_out, value, op):
            found.append(value)
    return tuple(found)


def same_places(laid_out: LaidOut, value: Op, op: Op) -> bool:
    """Return True if each element of ``op`` would have the same address as that of ``value``."""
    layout, wanted = laid_out.layouts[value], laid_out.layouts[op]
    return (
        value.dtype.itemsize == op.dtype.itemsize
        and (layout is wanted or layout == wanted)
        and value.axes.lengths == op.axes.lengths
    )
