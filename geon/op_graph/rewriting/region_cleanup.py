"""Simplification of regions: merges equal ones, and removes unread results and carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from ..building.constants import as_tensor
from ..building.rebuild import rebuild
from ..building.weak import strengthen
from ..core.interning import OwnTable
from ..core.region_body import Body
from ..core.source_info import building
from ..op_graph import NO_AXES, Op, RegionOp, Tensor, make_region, post_order
from ..regions.closure import rebuilt
from ..regions.loop import RegionLoop, close, loop_from, loop_of
from ..regions.parameters import REGION_RESULT, parameter, result_of, tensors
from ..regions.segments import MARKED, Divided, Division
from ..rows.elementwise import add
from ..rows.leaves import iota
from ..values.dtypes import INT64
from .loop_merging import merge_loops
from .scan_hoisting import (
    Scan,
    add_products,
    hoist_product,
    products_after,
    products_before,
    sums_after,
)

Inner = Callable[[Sequence[Op]], Sequence[Op]]  # simplifies the results of a body


def clean_regions(
    roots: Sequence[Op], own: OwnTable, hoist: bool = True, division: Division | None = MARKED
) -> list[Op]:
    """Return the roots with fewer and smaller regions; new ops are in the intern table ``own``.

    Loops that share carries are merged into one. Carries, stacks, captures and results that nothing
    reads are removed. The step number of a scan becomes a stacked input, and that of a while loop a
    carry, if something reads it. With ``hoist``, products are hoisted out of scans, except out of
    those that ``division`` divides into segments: hoisting would store their stacks as a whole.
    """

    def cleaned(roots: Sequence[Op]) -> list[Op]:
        while True:
            merged = merge_loops(roots)
            if not any(isinstance(op, RegionOp) for op in post_order(merged)):
                return merged
            result = rebuild(merged, _CleanupPass(merged, cleaned, hoist, division).replaced)
            if all(new is old for new, old in zip(result, roots, strict=True)):
                return result
            roots = result

    with building(own):
        return cleaned(roots)


def drop_unused_regions(roots: Sequence[Op]) -> dict[Op, Op]:
    """Map each op below the roots to its replacement, with unread results of regions removed.

    This holds inside of bodies too. Equal regions are not merged.
    """

    def inner(results: Sequence[Op]) -> list[Op]:
        replacements = drop_unused_regions(results)
        return [replacements[result] for result in results]

    replacements: dict[Op, Op] = {op: op for op in post_order(roots)}
    while True:
        now = [replacements[root] for root in roots]
        made: dict[Op, Op] = {}
        if all(new is old for new, old in zip(
            rebuild(now, _CleanupPass(now, inner).replaced, made), now, strict=True
        )):  # fmt: skip
            return replacements
        # An op without an entry in `made` was read only by removed ops; nothing looks it up.
        replacements = {op: made.get(new, new) for op, new in replacements.items()}


class _CleanupPass:
    """The replacements of regions in one pass over the graph below ``roots``."""

    def __init__(
        self,
        roots: Sequence[Op],
        inner: Inner,
        hoist: bool = False,
        division: Division | None = None,
    ) -> None:
        order = post_order(roots)
        self.inner, self.hoist = inner, hoist
        self.divided = {} if division is None else Divided(order, roots, division).numbers
        self.results: dict[Op, dict[int, Op]] = {}  # new results of each old region, by number
        self.used: dict[Op, set[int]] = {op: set() for op in order if isinstance(op, RegionOp)}
        for op in order:
            if op.primitive is REGION_RESULT:
                self.used[op.args[0]].add(op.attrs.number)

    def replaced(self, op: Op, args: tuple[Op, ...]) -> Op | None:
        """Return the replacement of a region or of a result of one; None for another op."""
        if op.primitive is REGION_RESULT:
            return self.results[op.args[0]][op.attrs.number]
        if not isinstance(op, RegionOp):
            return None
        results = self.results[op] = self.region(op, args)
        regions = (each.args[0] for each in results.values() if each.primitive is REGION_RESULT)
        return next(regions, op)

    def region(self, op: RegionOp, args: tuple[Op, ...]) -> dict[int, Op]:
        """Return the used results, by number, of a region with these arguments."""
        used = self.used[op]
        bodies = [
            Body(body.parameters, tuple(tensors(self.inner(body.results)))) for body in op.bodies
        ]
        loop = loop_of(op)
        if loop is None:
            return _smaller_case(op, args, bodies, sorted(used))
        loop, numbers = _unique_stacks(loop.with_bodies(bodies))
        needed = {numbers[k] for k in used}
        hoists = self.hoist and loop.row.name == "scan" and op not in self.divided
        # A product over all steps of a counted scan may do far more work than the steps that run.
        hoists = hoists and not loop.attrs.counted
        results = (_without_products if hoists else smaller_loop)(op, loop, args, needed)
        return {k: results[numbers[k]] for k in used}


def _unique_stacks(loop: RegionLoop) -> tuple[RegionLoop, dict[int, int]]:
    """Return a loop that stacks each value once, and its numbers of the region's results."""
    count, results = loop.carries, loop.body.results
    values: dict[Tensor, int] = {}
    numbers = {k: k for k in range(count + loop.extra)}
    for k, value in enumerate(results[count:], count):
        numbers[loop.result(k)] = loop.result(count + values.setdefault(value, len(values)))
    body = Body(loop.body.parameters, (*results[:count], *values))
    return loop.with_parts(count, loop.xs, body, loop.conditions, loop.axis), numbers


def _without_products(
    op: RegionOp, loop: RegionLoop, args: tuple[Op, ...], needed: set[int]
) -> dict[int, Op]:
    """Return the needed results, by number, of a scan with its products hoisted.

    Products that need not be computed step by step move before or after the scan.
    """
    scan = products_before(Scan(loop.attrs, args, loop.body))
    scan, later = products_after(scan, needed)
    scan, sums = sums_after(scan, needed - later.keys())
    places = {place for total in sums.values() for _, _, both in total.products for place in both}
    places |= {each.place for each in later.values()}
    kept_numbers = needed - sums.keys() - later.keys() | {
        k for k, total in sums.items() if total.kept
    }
    kept_numbers |= {place for place in places if isinstance(place, int)}
    smaller = smaller_loop(op, loop_from(loop.row, scan.a), scan.args, kept_numbers)
    for k, total in sums.items():
        smaller[k] = add_products(total, smaller[k] if total.kept else scan.args[k], scan, smaller)
    for k, each in later.items():
        smaller[k] = hoist_product(each, scan, smaller)
    return smaller


def smaller_loop(
    op: RegionOp, loop: RegionLoop, args: tuple[Op, ...], needed: Set[int]
) -> dict[int, Op]:
    """Return the ``needed`` results of a loop, by their old numbers, without unused parts.

    ``loop`` replaces ``op``, with the arguments ``args``. Carries, stacks and captures that the
    results do not depend on are removed.
    """
    if not needed:
        return {}
    count, given, results = loop.carries, loop.body.parameters, loop.body.results
    stacks = [k for k in range(count, len(results)) if loop.result(k) in needed]
    counts_steps = loop.extra > 0 and count in needed

    def reach(kept: Set[int]) -> set[Op]:
        values = [results[k] for k in (*sorted(kept), *stacks)]
        return set(post_order([*loop.conditions, *values]))

    kept, reached = close({k for k in needed if k < count}, given[:count], reach)
    carried = sorted(kept)
    inputs = [k for k in loop.inputs if given[k] in reached]
    captures = [k for k in range(len(args))[loop.captures] if given[k] in reached]
    read = [given[k] for k in (*carried, *inputs, *captures)]
    init, xs = [args[k] for k in carried], [args[k] for k in inputs]
    if counts_steps or given[-1] in reached:  # the step becomes a carry or an input
        if loop.conditions:
            read.insert(len(init), given[-1])
            init.append(strengthen(as_tensor(0), INT64))
        else:
            read.insert(len(init) + len(xs), given[-1])
            assert loop.axis is not None
            xs.append(iota(loop.axis))
    parameters = [parameter(k, each.axes, each.dtype) for k, each in enumerate(read)]
    known: dict[Op, Op] = dict(zip(read, parameters, strict=True))
    parameters.append(parameter(len(read), NO_AXES, INT64))
    roots = [*loop.conditions, *(results[k] for k in (*carried, *stacks))]
    result = list(rebuilt(roots, known))
    conditions, result = result[: len(loop.conditions)], result[len(loop.conditions) :]
    if len(init) > len(carried):
        result.insert(
            len(carried), add.apply(parameters[len(carried)], strengthen(as_tensor(1), INT64))
        )
    body = Body(tuple(parameters), tuple(result))
    axis = loop.axis if stacks else None
    smaller = loop.with_parts(len(init), len(xs), body, conditions, axis)
    arguments = (*init, *xs, *(args[k] for k in captures), *args[len(args) - loop.options :])
    one = make_region(op.primitive, arguments, smaller.attrs, guards=op.guards, site=op._site)
    numbers = {old: new for new, old in enumerate(carried)}
    numbers.update({loop.result(k): smaller.result(len(init) + n) for n, k in enumerate(stacks)})
    if counts_steps:
        numbers[count] = len(carried)
    return {old: result_of(one, numbers[old], op._site) for old in sorted(needed)}


def _smaller_case(
    op: RegionOp, args: tuple[Op, ...], bodies: Sequence[Body], needed: Sequence[int]
) -> dict[int, Op]:
    """Return the needed results, by number, of the case with these arguments and bodies."""
    reached = set(post_order([body.results[k] for body in bodies for k in needed]))
    given = bodies[0].parameters
    kept = [0, *(k for k in range(1, len(args)) if given[k] in reached)]
    parameters = tuple([parameter(n, given[k].axes, given[k].dtype) for n, k in enumerate(kept)])
    known: dict[Op, Op] = dict(zip([given[k] for k in kept], parameters, strict=True))
    smaller = [
        Body(parameters, rebuilt([body.results[k] for k in needed], dict(known))) for body in bodies
    ]
    arguments = tuple([args[k] for k in kept])
    one = make_region(
        op.primitive,
        arguments,
        op.attrs._replace(bodies=tuple(smaller)),
        guards=op.guards,
        site=op._site,
    )
    return {old: result_of(one, new, op._site) for new, old in enumerate(needed)}
