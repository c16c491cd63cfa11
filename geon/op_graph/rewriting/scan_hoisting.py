"""Hoists products out of scans: one product before or after the loop.

- A product of a slice of a stack by a captured value becomes one product of the whole stack before
  the loop.
- A stacked result that is a product by a captured value becomes one product of the whole stack
  after the loop.
- A carry that only accumulates products of values of the steps becomes one product of stacks after
  the loop. The gradient of a weight that each step uses is such a carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ...lazy_dataclasses import dataclass
from ..axes.axes import Axes
from ..building.rebuild import with_args
from ..core.region_body import Body
from ..op_graph import Op, Tensor, make, post_order
from ..regions.closure import rebuilt
from ..regions.parameters import parameter, tensors
from ..regions.scan_op import ScanAttributes
from ..rows.contraction import contract_two
from ..rows.elementwise import add
from ..rows.movement import broadcast
from ..transforms.functionalize import substitute

MOVES = ("rename", "reorder")
FLOATS = ("float32", "float64")


@dataclass(frozen=True, eq=False, slots=True)
class Scan:
    """A scan during the rewrite: its attributes, arguments and body."""

    a: ScanAttributes
    args: tuple[Op, ...]
    body: Body

    @property
    def stacks(self) -> range:
        """The range of the arguments that are stacked inputs."""
        return range(self.a.carries, self.a.before_captures)


# Products before the loop -------------------------------------------------------------------------


def products_before(scan: Scan) -> Scan:
    """Return the scan with products of stacks by captured values computed before it."""
    given, axis = scan.body.parameters, scan.a.axis
    stacked = {given[k]: scan.args[k] for k in scan.stacks}
    read: dict[Op, Op] = {
        given[k]: scan.args[k] for k in range(scan.a.before_captures, len(scan.args))
    }
    order = post_order(scan.body.results)
    steady = _depends_on(order, read, [*stacked, *given[: scan.a.carries], given[-1]])
    stacks: dict[Op, Tensor] = {}
    for op in order:
        if op.primitive.name != "dot" or axis in op.axes:
            continue
        whole = [_whole(arg, stacked, axis) for arg in op.args]
        for k in (0, 1):
            one, other = whole[k], op.args[1 - k]
            if one is None or other not in steady or axis in other.axes:
                continue
            outside = substitute(other, dict(read))
            pair = (one, outside) if k == 0 else (outside, one)
            result = contract_two(pair[0], pair[1], op.attrs.over)
            stacks[op] = broadcast(result, Axes(axis, op.axes))
            break
    return _with_stacks(scan, stacks) if stacks else scan


def _depends_on(order: Sequence[Op], known: Mapping[Op, Op], others: Sequence[Op]) -> set[Op]:
    """Return the ops that depend on ``known`` ones but on none of ``others``."""
    moving, reached = set(others), set(known)
    for op in order:
        if any(arg in moving for arg in op.args):
            moving.add(op)
        elif any(arg in reached for arg in op.args):
            reached.add(op)
    return reached - moving


def _whole(op: Op, stacked: Mapping[Op, Op], axis: object) -> Tensor | None:
    """Return the stack of which ``op`` is the slice in a step, with its axes named as in ``op``.

    None if ``op`` is no slice of a stack below renames and reorders.
    """
    views = []
    while op.primitive.name in MOVES:
        views.append(op)
        op = op.args[0]
    if op not in stacked:
        return None
    whole: Tensor = stacked[op]  # type: ignore[assignment]  # arguments of scans are tensors
    for view in reversed(views):
        axes = Axes(whole.axes[0], view.axes)
        whole = with_view(view, whole, axes)
    return whole


def with_view(view: Op, whole: Tensor, axes: Axes) -> Tensor:
    """Return the rename or reorder ``view`` applied to a whole stack, with the result ``axes``."""
    return make(view.primitive, (whole,), (axes,))


def _with_stacks(scan: Scan, stacks: Mapping[Op, Tensor]) -> Scan:
    """Return the scan with ops of its body replaced by slices of ``stacks``."""
    given, first = scan.body.parameters, scan.a.before_captures
    wanted = [*given[:first], *stacks, *given[first:]]
    parameters = tuple([parameter(k, op.axes, op.dtype) for k, op in enumerate(wanted)])
    known: dict[Op, Op] = dict(zip(wanted, parameters, strict=True))
    results = rebuilt(scan.body.results, known)
    body = Body(parameters, results)
    a = scan.a
    a = a._replace(xs=a.xs + len(stacks), body=body)
    return Scan(a, (*scan.args[:first], *stacks.values(), *scan.args[first:]), body)


# Products after the loop --------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Sum:
    """The products to add to a carry after the loop.

    ``products`` are tuples of a product op, the views above it, and its two operands. An operand is
    a stack, or the number of a result of the scan that is one. ``kept`` is false if nothing else is
    added to the carry in the loop.
    """

    products: list[tuple[Op, list[Op], tuple[object, object]]] = field(default_factory=list)
    kept: bool = True


def sums_after(scan: Scan, needed: set[int]) -> tuple[Scan, dict[int, Sum]]:
    """Return the scan without accumulated products, and the sums to add to carries after it."""
    a, given, results = scan.a, scan.body.parameters, list(scan.body.results)
    moving = _moving(scan)
    sums: dict[int, Sum] = {}
    values: dict[Op, int] = {}
    for k in sorted(number for number in needed if number < a.carries):
        terms = _terms(results[k])
        others = [op for op in terms if op is not given[k]]
        if len(others) != len(terms) - 1 or given[k] in set(
            post_order([*others, *(r for n, r in enumerate(scan.body.results) if n != k)])
        ):
            continue
        total, rest = Sum(), []
        for term in others:
            product = _product(term, moving, a)
            if product is None:
                rest.append(term)
                continue
            op, views = product
            places = tuple(
                [_stack_of(arg, scan, values, len(scan.body.results)) for arg in op.args]
            )
            total.products.append((op, views, places))  # type: ignore[arg-type]  # of two
        if not total.products:
            continue
        new = given[k]
        for term in rest:
            new = add.apply(new, term)
        results[k] = new  # type: ignore[call-overload]  # a tensor
        total.kept = bool(rest)
        sums[k] = total
    if not sums:
        return scan, {}
    body = Body(given, (*results, *tensors(values)))
    return Scan(a._replace(body=body), scan.args, body), sums


@dataclass(frozen=True, eq=False, slots=True)
class Later:
    """A stacked result that is computed as one product after the loop.

    The operands of ``product`` are the stack at ``place``, which is an op or a result number, and
    ``steady``. ``views`` are the renames and reorders above the product.
    """

    product: Op
    views: list[Op]
    place: object
    steady: Op
    first: bool  # True if the stack is the first operand


def products_after(scan: Scan, needed: set[int]) -> tuple[Scan, dict[int, Later]]:
    """Return the scan without results that are products by captured values, and these products."""
    a, given, results = scan.a, scan.body.parameters, scan.body.results
    read = {given[k]: scan.args[k] for k in range(a.before_captures, len(scan.args))}
    moving = [*given[: a.before_captures], given[-1]]
    steady = _depends_on(post_order(results), read, moving)
    moves = _moving(scan)
    products: dict[int, Later] = {}
    values: dict[Op, int] = {}
    for k in sorted(number for number in needed if number >= a.carries):
        others = [r for n, r in enumerate(results) if n != k]
        op, views = _below_views(results[k])
        if op.primitive.name != "dot" or op.dtype.name not in FLOATS or a.axis in op.axes:
            continue
        which = [n for n in (0, 1) if op.args[n] in moves and op.args[1 - n] in steady]
        if not which or op in set(post_order(others)):
            continue
        stacked, by = op.args[which[0]], op.args[1 - which[0]]
        if a.axis in stacked.axes or a.axis in by.axes or len(stacked.axes) > len(op.axes):
            continue
        place = _stack_of(stacked, scan, values, len(results))
        outside = substitute(by, dict(read))
        products[k] = Later(op, views, place, outside, which[0] == 0)
    if not products:
        return scan, {}
    body = Body(given, (*results, *tensors(values)))
    return Scan(a._replace(body=body), scan.args, body), products


def hoist_product(later: Later, scan: Scan, results: Mapping[int, Op]) -> Tensor:
    """Return the stacked result that ``later`` describes, computed after the loop."""
    place = later.place
    stack = place if isinstance(place, Op) else results[place]  # type: ignore[index]  # else a number
    pair = (stack, later.steady) if later.first else (later.steady, stack)
    op, axis = later.product, scan.a.axis
    result = broadcast(contract_two(pair[0], pair[1], op.attrs.over), Axes(axis, op.axes))
    for view in reversed(later.views):
        result = with_view(view, result, Axes(axis, view.axes))
    return result


def _moving(scan: Scan) -> set[Op]:
    """Return the ops of the body whose values differ from step to step."""
    given = scan.body.parameters
    reached = {*given[: scan.a.before_captures], given[-1]}
    for op in post_order(scan.body.results):
        if any(arg in reached for arg in op.args):
            reached.add(op)
    return reached


def _terms(op: Op) -> list[Op]:
    """Return the terms of a chain of adds over the axes of ``op``."""
    if op.primitive.name == "add" and all(arg.axes is op.axes for arg in op.args):
        return [term for arg in op.args for term in _terms(arg)]
    return [op]


def _product(term: Op, moving: set[Op], a: ScanAttributes) -> tuple[Op, list[Op]] | None:
    """Return the float dot or outer product below ``term`` and the views above it.

    None if ``term`` is no such product, or if an operand does not vary by step, has another dtype,
    or has the axis of the loop.
    """
    op, views = _below_views(term)
    if op.primitive.name not in ("dot", "multiply") or op.dtype.name not in FLOATS:
        return None
    if any(arg.dtype is not op.dtype or arg not in moving or a.axis in arg.axes for arg in op.args):
        return None
    if op.primitive.name == "multiply" and any(len(arg.axes) == len(op.axes) for arg in op.args):
        return None
    return op, views


def _below_views(op: Op) -> tuple[Op, list[Op]]:
    """Return the op below renames and reorders, and these views, outermost first."""
    views = []
    while op.primitive.name in MOVES:
        views.append(op)
        op = op.args[0]
    return op, views


def _stack_of(arg: Op, scan: Scan, values: dict[Op, int], first: int) -> object:
    """Return the stack of an operand, or the number of the result that stacks it."""
    given = scan.body.parameters
    whole = _whole(arg, {given[k]: scan.args[k] for k in scan.stacks}, scan.a.axis)
    if whole is not None:
        return whole
    for k, result in enumerate(scan.body.results):
        if k >= scan.a.carries and result is arg:
            return k
    return values.setdefault(arg, first + len(values))


def add_products(total: Sum, before: Op, scan: Scan, results: Mapping[int, Op]) -> Tensor:
    """Return a last carry: its value ``before`` plus the hoisted products."""
    sum_of_products: Tensor = before  # type: ignore[assignment]  # carries are tensors
    for op, views, places in total.products:
        stacks = [place if isinstance(place, Op) else results[place] for place in places]  # type: ignore[index]  # else a number
        names = op.attrs.over if op.primitive.name == "dot" else ()
        result = contract_two(stacks[0], stacks[1], (scan.a.axis.name, *names))
        result = broadcast(result, op.axes)
        for view in reversed(views):
            result = with_args(view, (result,))  # type: ignore[assignment]  # a tensor
        sum_of_products = add.apply(sum_of_products, broadcast(result, sum_of_products.axes))
    return sum_of_products
