"""Simplification of regions: merges equal ones, and removes unread results and carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..building.rebuild import with_args
from ..core.interning import OwnTable
from ..core.region_body import Body
from ..core.source_info import building, current
from ..nodes import carry_lines, carry_notes
from ..op_graph import Op, RegionOp, Tensor, make, post_order
from ..regions.closure import rebuilt
from ..regions.parameters import parameter, result_of, tensors
from ..regions.scan_op import ScanAttributes
from ..regions.segments import MARKED, Divided, Division
from ..regions.while_op import WhileAttributes
from ..rows.leaves import iota
from .scan_hoisting import (
    Scan,
    add_products,
    hoist_product,
    products_after,
    products_before,
    sums_after,
)
from .scan_merging import merge_scans
from .while_cleanup import smaller_while, while_key


def clean_regions(
    roots: Sequence[Op], own: OwnTable, hoist: bool = True, division: Division | None = MARKED
) -> list[Op]:
    """Return the roots with fewer and smaller regions; new ops are in the intern table ``own``.

    Scans that share carries are merged into one. Carries, stacks, captures and results that nothing
    reads are removed. The step number becomes a stacked input if the body reads it. With ``hoist``,
    products are hoisted out of scans, except out of those that ``division`` divides into segments:
    hoisting would store their stacks as a whole.
    """
    with building(own):
        return _tidied(roots, hoist, division)


def _tidied(roots: Sequence[Op], hoist: bool, division: Division | None) -> list[Op]:
    while True:
        roots = merge_scans(roots)
        order = post_order(roots)
        if not any(isinstance(op, RegionOp) for op in order):
            return list(roots)
        made = _CleanupPass(order, roots, hoist, division).run()
        if all(new is old for new, old in zip(made, roots, strict=True)):
            return made
        roots = made


def drop_unused_regions(roots: Sequence[Op]) -> dict[Op, Op]:
    """Map each op below the roots to its replacement, with unread results of regions removed.

    This holds inside of bodies too. Equal regions are not merged.
    """
    order = post_order(roots)
    stands: dict[Op, Op] = {op: op for op in order}
    while True:
        made = _read([stands[root] for root in roots])
        if all(made[stands[root]] is stands[root] for root in roots):
            return stands
        # An op without an entry in `made` was read only by removed ops; nothing looks it up.
        stands = {op: made.get(new, new) for op, new in stands.items()}


def _read(roots: Sequence[Op]) -> dict[Op, Op]:
    """Map each op to its replacement, with only those results of regions that some op reads."""
    order = post_order(roots)
    used: dict[Op, set[int]] = {op: set() for op in order if isinstance(op, RegionOp)}
    for op in order:
        if op.args and op.args[0] in used:
            used[op.args[0]].add(op.attrs.number)
    new: dict[Op, Op] = {}
    made: dict[Op, Mapping[int, Op]] = {}
    for op in order:
        current.site = op._site
        if isinstance(op, RegionOp):
            args = tuple([new[arg] for arg in op.args])
            bodies = [_read_body(body) for body in op.bodies]
            current.site = op._site  # rewriting the bodies has changed it
            made[op] = _needed(op, args, bodies, used[op])
            new[op] = next(iter(made[op].values())).args[0] if made[op] else op
            continue
        inside = op.args[0] if op.args and op.args[0] in made else None
        if inside is not None:
            new[op] = made[inside][op.attrs.number]
        else:
            new[op] = with_args(op, tuple([new[arg] for arg in op.args]))
        carry_notes(op, new[op])
    return new


def _needed(
    op: RegionOp, args: tuple[Op, ...], bodies: Sequence[Body], needed: set[int]
) -> Mapping[int, Op]:
    """Return the needed results, by number, of a region with these arguments and bodies."""
    if op.primitive.name == "case":
        return _smaller_case(op, args, bodies, sorted(needed))
    if op.primitive.name == "while":
        condition, body = bodies
        attrs = op.attrs._replace(condition=condition, body=body)
        return smaller_while(op, attrs, args, needed)
    return _smaller(op, op.attrs, args, bodies[0], needed)


def _read_body(body: Body) -> Body:
    """Return a body without unread results of its regions; the same object if there are none."""
    stands = drop_unused_regions(body.results)
    made = tuple(tensors([stands[result] for result in body.results]))
    if all(new is old for new, old in zip(made, body.results, strict=True)):
        return body
    return Body(body.parameters, made)


class _CleanupPass:
    """One pass over the graph, arguments before users."""

    def __init__(
        self, order: Sequence[Op], roots: Sequence[Op], hoist: bool, division: Division | None
    ) -> None:
        self.order, self.roots, self.hoist, self.division = order, roots, hoist, division
        self.divided = {} if division is None else Divided(order, roots, division).numbers
        self.new: dict[Op, Op] = {}
        self.results: dict[Op, dict[int, Op]] = {}  # new results of each old region, by number
        self.used: dict[Op, set[int]] = {}
        self.whiles: dict[object, list[RegionOp]] = {}  # groups of while loops to merge
        self.along: dict[object, object] = {}  # first axis along which a loop of a group stacks
        for op in order:
            if (
                isinstance(op, RegionOp)
                and op.primitive.name == "while"
                and op.attrs.axis is not None
            ):
                self.along.setdefault(while_key(op), op.attrs.axis)
        for op in order:
            if isinstance(op, RegionOp):
                self.used.setdefault(op, set())
                if op.primitive.name == "while":
                    self.whiles.setdefault(self.same(op), []).append(op)
            elif op.args and isinstance(op.args[0], RegionOp):
                self.used[op.args[0]].add(op.attrs.number)

    def same(self, op: RegionOp) -> object:
        """Return the key of the group of while loops that are merged.

        A loop that stacks nothing joins a loop that does the same and stacks.
        """
        key = while_key(op)
        return key, op.attrs.axis or self.along.get(key)

    def run(self) -> list[Op]:
        """Return the roots, with simplified regions."""
        for op in self.order:
            current.site = op._site
            if isinstance(op, RegionOp):
                self.region(op)
            elif op.args and isinstance(op.args[0], RegionOp):
                made = self.results[op.args[0]][op.attrs.number]
                carry_lines(op, made)
                carry_notes(op, made)
                self.new[op] = made
            else:
                args = tuple([self.new[arg] for arg in op.args])
                made = with_args(op, args)
                carry_lines(op, made)
                carry_notes(op, made)
                self.new[op] = made
        return [self.new[root] for root in self.roots]

    def region(self, op: RegionOp) -> None:
        """Build the replacement of a region."""
        args = tuple([self.new[arg] for arg in op.args])
        bodies = [self.body(body) for body in op.bodies]
        if op.primitive.name == "case":
            self.results[op] = _smaller_case(op, args, bodies, sorted(self.used[op]))
            return
        if op.primitive.name == "while":
            group = self.whiles[self.same(op)]
            if op is group[0]:
                self.loops(op, group, args, bodies)
            return
        count, made = op.attrs.carries, bodies[0].results
        values: dict[Tensor, int] = {}
        numbers = {k: k for k in range(count)}
        for k, value in enumerate(made[count:], count):
            numbers[k] = count + values.setdefault(value, len(values))
        body = Body(bodies[0].parameters, (*made[:count], *values))
        needed = {numbers[k] for k in self.used[op]}
        if self.hoist and op not in self.divided:
            results = _without_products(op, args, body, needed)
        else:
            results = _smaller(op, op.attrs, args, body, needed)
        self.results[op] = {k: results[numbers[k]] for k in self.used[op]}

    def loops(
        self, op: RegionOp, group: Sequence[RegionOp], args: tuple[Op, ...], bodies: Sequence[Body]
    ) -> None:
        """Build the one while loop that replaces a group."""
        a: WhileAttributes = op.attrs
        values: dict[Tensor, int] = {}
        numbers: dict[Op, dict[int, int]] = {}
        for each in group:
            inner = bodies[1] if each is op else self.body(each.bodies[1])
            found = {k: k for k in range(a.carries + 1)}
            for k, value in enumerate(inner.results[a.carries :], a.carries + 1):
                found[k] = a.carries + 1 + values.setdefault(value, len(values))
            numbers[each] = found
        carries = bodies[1].results[: a.carries]
        body = Body(bodies[1].parameters, (*carries, *values))
        along = [each.attrs.axis for each in group if each.attrs.axis is not None]
        needed = {numbers[each][k] for each in group for k in self.used[each]}
        attrs = a._replace(axis=along[0] if along else None, condition=bodies[0], body=body)
        results = smaller_while(op, attrs, args, needed)
        for each in group:
            self.results[each] = {k: results[numbers[each][k]] for k in self.used[each]}

    def body(self, body: Body) -> Body:
        """Return a body with simplified regions."""
        return Body(
            body.parameters, tuple(tensors(_tidied(body.results, self.hoist, self.division)))
        )


def _without_products(
    op: RegionOp, args: tuple[Op, ...], body: Body, needed: set[int]
) -> dict[int, Op]:
    """Return the needed results, by number, of a scan with its products hoisted.

    Products that need not be computed step by step move before or after the scan.
    """
    whole = Scan(op.attrs._replace(body=body), args, body)
    if whole.a.counted:  # a product over all steps may do far more work than the steps that run
        return _smaller(op, whole.a, args, body, needed)
    scan = products_before(whole)
    scan, later = products_after(scan, needed)
    scan, sums = sums_after(scan, needed - later.keys())
    places = {place for total in sums.values() for _, _, both in total.products for place in both}
    places |= {each.place for each in later.values()}
    taken = needed - sums.keys() - later.keys() | {k for k, total in sums.items() if total.kept}
    taken |= {place for place in places if isinstance(place, int)}
    found = _smaller(op, scan.a, scan.args, scan.body, taken)
    for k, total in sums.items():
        found[k] = add_products(total, found[k] if total.kept else scan.args[k], scan, found)
    for k, each in later.items():
        found[k] = hoist_product(each, scan, found)
    return found


def _smaller(
    op: RegionOp, a: ScanAttributes, args: tuple[Op, ...], body: Body, needed: set[int]
) -> dict[int, Op]:
    """Return the ``needed`` results of a scan, by their old numbers, without unused parts.

    The scan has the arguments ``args`` and the body ``body``. Carries, stacks and captures that the
    results do not depend on are removed.
    """
    if not needed:
        return {}
    count, given = a.carries, body.parameters
    kept = {k for k in needed if k < count}
    while True:
        results = [k for k in range(len(body.results)) if k in kept or k >= count and k in needed]
        reached = set(post_order([body.results[k] for k in results]))
        more = {k for k in range(count) if given[k] in reached} - kept
        if not more:
            break
        kept |= more
    carried = [k for k in range(count) if k in kept]
    stacks = [k for k in range(count, a.before_captures) if given[k] in reached]
    captures = [k for k in range(len(args))[a.captures] if given[k] in reached]
    xs: list[Op] = [args[k] for k in stacks]
    read: list[Op] = [given[k] for k in (*carried, *stacks)]
    if given[-1] in reached:
        xs.append(iota(a.axis))
        read.append(given[-1])
        last: list[Op] = [parameter(len(given), given[-1].axes, given[-1].dtype)]
    else:
        last = [given[-1]]
    read += [given[k] for k in captures] + last
    parameters = [parameter(k, each.axes, each.dtype) for k, each in enumerate(read)]
    known: dict[Op, Op] = dict(zip(read, parameters, strict=True))
    made = rebuilt([body.results[k] for k in results], known)
    smaller = Body(tuple(parameters), made)
    attrs = (a.axis, len(carried), len(xs), a.reverse, a.counted, smaller)
    steps = args[-1:] if a.counted else ()
    arguments = (*(args[k] for k in carried), *xs, *(args[k] for k in captures), *steps)
    one: RegionOp = make(op.primitive, arguments, attrs, guards=op.guards, site=op._site)
    carry_lines(op, one)
    carry_notes(op, one)
    return {old: result_of(one, new, op._site) for new, old in enumerate(results)}


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
    one: RegionOp = make(
        op.primitive,
        arguments,
        op.attrs._replace(bodies=tuple(smaller)),
        guards=op.guards,
        site=op._site,
    )
    carry_lines(op, one)
    carry_notes(op, one)
    return {old: result_of(one, new, op._site) for new, old in enumerate(needed)}
