"""``RegionLoop``: scans, while loops and fixed points in the parts that all of them have.

Their batching is written here, and their forward-mode derivative in ``loop_deriv``, once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence, Set
from typing import Any, NoReturn, TypeVar

from ...errors import DerivativeError
from ...lazy_dataclasses import dataclass
from ..axes.axes import Axes, Axis
from ..building.elementwise_build import broadcast_over
from ..core.primitive import Inferred, Primitive, require
from ..core.region_body import Body
from ..op_graph import NO_AXES, VOID_DTYPE, Op, Tensor, make_region
from ..rows.leaves import placeholder
from ..values.dtypes import INT64, DType
from .closure import Opened, close_body
from .parameters import (
    NOTHING,
    guards_of,
    require_same,
    result_of,
    results_of,
    substitute_ops,
)

Images = Callable[[Sequence[Op], Mapping[Op, Tensor]], Mapping[Op, Op]]
ReachedT = TypeVar("ReachedT", bound=Container[Op])


@dataclass(frozen=True, eq=False, slots=True)
class RegionLoop:
    """A loop: its primitive ``row``, its attributes ``attrs``, and what these mean.

    The arguments of the region are the initial values of ``carries`` carries, ``xs`` inputs that
    are sliced along ``axis``, the captures, and ``options`` others: the number of steps of a
    counted scan, the tolerance of a fixed point. ``body``, which has the index ``number`` among the
    bodies, computes a step: the next carries, then values to stack along ``axis``. Its parameters
    are the carries, a slice of each input, the captures, and the step number if ``numbered``.
    ``conditions`` depend on the same parameters; the loop ends when one is false. The results of
    the region are the last carries, ``extra`` others (the number of steps of a while loop, whether
    a fixed point still moved), and the stacks.
    """

    row: Primitive
    attrs: Any
    number: int
    body: Body
    conditions: tuple[Tensor, ...]
    carries: int
    xs: int
    axis: Axis | None
    options: int
    extra: int
    numbered: bool = True

    @property
    def inputs(self) -> range:
        """The range of the arguments that are sliced along the axis."""
        return range(self.carries, self.carries + self.xs)

    @property
    def captures(self) -> slice:
        """The slice of the arguments, and of the parameters, that all steps read."""
        return slice(self.carries + self.xs, len(self.body.parameters) - self.numbered)

    def result(self, number: int) -> int:
        """Return the number of the region's result that result ``number`` of the body gives."""
        return number if number < self.carries else number + self.extra

    def step_value(self, number: int) -> Op:
        """Return the op of the body that computes result ``number`` of the region in one step."""
        return self.body.results[number if number < self.carries else number - self.extra]

    def is_step(self, number: int) -> bool:
        """Return True if parameter ``number`` is the step number."""
        return self.numbered and number == len(self.body.parameters) - 1

    def opened(self) -> Opened:
        """Return the results of the body, then the conditions, over new placeholders."""
        return Opened(Body(self.body.parameters, (*self.body.results, *self.conditions)))

    def with_bodies(self, bodies: Sequence[Body]) -> RegionLoop:
        """Return the loop with other bodies, in the order of the region's."""
        if self.conditions:
            condition, body = bodies
            attrs = self.attrs._replace(condition=condition, body=body)
        else:
            attrs = self.attrs._replace(body=bodies[0])
        return loop_from(self.row, attrs)

    def with_parts(
        self, carries: int, xs: int, body: Body, conditions: Sequence[Tensor], axis: Axis | None
    ) -> RegionLoop:
        """Return the same kind of loop with other parts; a while loop has no axis if None."""
        changes: dict[str, Any] = {"carries": carries, "body": body}
        if self.row.name == "scan":
            changes["xs"] = xs
        if self.row.name == "while":
            changes["condition"] = Body(body.parameters, tuple(conditions))
            changes["axis"] = axis
        return loop_from(self.row, self.attrs._replace(**changes))

    def rebuilt(
        self,
        init: Sequence[Tensor],
        xs: Sequence[Tensor],
        leaves: Sequence[Tensor],
        results: Sequence[Tensor],
        conditions: Sequence[Tensor] = (),
        named: Mapping[Op, Any] = NOTHING,
        options: Iterable[Op] = (),
    ) -> list[Tensor]:
        """Return the results of the same kind of loop with a step that computes ``results``.

        ``leaves`` are placeholders for the carries, the slices of ``xs`` and the step number. The
        keys of ``named`` are placeholders for values that all steps read. The steps read values
        outside directly, too; those that depend on none of ``leaves`` are computed once.
        """
        replaced = dict(named)
        roots = substitute_ops([*results, *conditions], replaced)
        count = len(init) + len(xs)
        both, captures = close_body(leaves[:count], roots, leaves[count:], set(named.values()))
        body = Body(both.parameters, both.results[: len(results)])
        loop = self.with_parts(len(init), len(xs), body, both.results[len(results) :], self.axis)
        region = make_region(self.row, (*init, *xs, *captures, *options), loop.attrs)
        return results_of(region)

    def named_captures(self, leaves: Sequence[Op], args: Sequence[Op]) -> dict[Op, Any]:
        """Map the placeholders of captures, among ``leaves`` for all parameters, to arguments."""
        return dict(zip(leaves[self.captures], args[self.captures], strict=True))


NO_BODY = Body((), ())  # of the attributes of a loop that is to be built


def check_loop(args: Sequence[Op], loop: RegionLoop) -> Inferred:
    """Return the axes, dtype and guards of a region, which has no value itself.

    Raises ``ArgumentError`` if the arguments, or the carries after a step, do not match the body.
    """
    given, own = loop.body.parameters, len(args) - loop.options
    require(own + loop.numbered == len(given), "{} arguments, {} parameters", own, len(given))
    require(len(loop.body.results) >= loop.carries, "{} results of a body", len(loop.body.results))
    begins, message = loop.inputs, "{} carries and {} stacks among {} arguments"
    require(begins.stop <= own, message, loop.carries, loop.xs, len(args))
    for k, (arg, parameter) in enumerate(zip(args[:own], given, strict=False)):
        axes = parameter.axes
        if loop.axis is not None and k in begins:
            axes = Axes(loop.axis, axes)
        require(arg.axes is axes, "argument {} over {} for {}", k, arg.axes, axes)
        require(arg.dtype is parameter.dtype, "argument {} of {}", k, arg.dtype)
    if loop.numbered:
        require_scalar(given[-1], INT64, "a step")
    for parameter, result in zip(given[: loop.carries], loop.body.results, strict=False):
        require_same("a carry", result, parameter)
    return NO_AXES, VOID_DTYPE, guards_of(loop.body)


def require_scalar(op: Op, dtype: DType, what: str) -> None:
    """Raise ``ArgumentError`` unless ``op`` is a scalar of ``dtype``."""
    require(op.axes is NO_AXES and op.dtype is dtype, "{} that is no {} scalar", what, dtype)


def loop_of(region: Op) -> RegionLoop | None:
    """Return a region as a loop; None if it is a ``case``."""
    return None if region.primitive.name == "case" else loop_from(region.primitive, region.attrs)


def loop_from(row: Primitive, a: Any) -> RegionLoop:
    """Return the loop of a primitive with these attributes."""
    if row.name == "scan":
        return RegionLoop(row, a, 0, a.body, (), a.carries, a.xs, a.axis, int(a.counted), 0)
    if row.name == "while":
        return RegionLoop(row, a, 1, a.body, a.condition.results, a.carries, 0, a.axis, 0, 1)
    assert row.name == "fixed_point"
    return RegionLoop(row, a, 0, a.body, (), a.carries, 0, None, 1, 1, numbered=False)


def close(
    seeds: Collection[int], carries: Sequence[Op], reach: Callable[[Set[int]], ReachedT]
) -> tuple[set[int], ReachedT]:
    """Return the smallest set of numbers with ``seeds`` and all carries that it reaches.

    ``carries`` has an op for each carry; a carry is reached if ``reach(numbers)`` contains its op.
    The second result is ``reach`` of the set.
    """
    closed = set(seeds)
    while True:
        reached = reach(closed)
        more = {k for k, op in enumerate(carries) if op in reached} - closed
        if not more:
            return closed, reached
        closed |= more


def step_results(region: Op) -> list[Tensor]:
    """Return the results of a loop without its extra ones: last carries, then stacks."""
    loop = loop_of(region)
    assert loop is not None
    return [result_of(region, loop.result(k)) for k in range(len(loop.body.results))]


# Batching -----------------------------------------------------------------------------------------


def loop_batch(op: Op, args: Sequence[Op], axes: Axes, images: Images) -> list[Tensor]:
    """Return the results of a loop on arguments some of which have the further ``axes``.

    A carry that depends on such an argument gets the axes too, from the first step on. Raises
    ``DerivativeError`` where the number of steps depends on one.
    """
    loop = loop_of(op)
    assert loop is not None
    opened, own = loop.opened(), len(op.args) - loop.options
    leaves, results = opened.leaves, opened.results[: len(loop.body.results)]
    conditions = opened.results[len(results) :]
    wide = [placeholder(both_axes(leaf.axes, axes), leaf.dtype) for leaf in leaves]
    options: list[Any] = list(args[own:])
    if any(arg.axes is not old.axes for arg, old in zip(options, op.args[own:], strict=True)):
        refuse_counts(op, axes)

    def reach(moving: Set[int]) -> Mapping[Op, Op]:
        batched = images(opened.results, {leaves[k]: wide[k] for k in sorted(moving)})
        if any(condition in batched for condition in conditions):
            refuse_counts(op, axes)
        return batched

    seeds = {k for k in range(own) if args[k] is not op.args[k]}
    moving, batched = close(seeds, results[: loop.carries], reach)
    given: list[Any] = list(args[:own])
    for k in moving:
        given[k] = broadcast_over(given[k], both_axes(op.args[k].axes, axes))
    inner = [wide[k] if k in moving else leaf for k, leaf in enumerate(leaves)]
    made: list[Any] = [batched.get(result, result) for result in results]
    for k, old in enumerate(results):
        if (k in moving and k < loop.carries) or made[k].axes is not old.axes:
            made[k] = broadcast_over(made[k], both_axes(old.axes, axes))
    before = loop.inputs.stop
    return loop.rebuilt(
        given[: loop.carries],
        given[loop.carries : before],
        [*inner[:before], *(inner[-1:] if loop.numbered else ())],
        made,
        conditions,
        loop.named_captures(inner, given),
        options,
    )


def both_axes(own: Axes, axes: Axes) -> Axes:
    """Return ``own`` followed by the axes of ``axes`` that it lacks."""
    return Axes(own, [axis for axis in axes if axis not in own])


def refuse_counts(op: Op, axes: Axes) -> NoReturn:
    """Raise ``DerivativeError`` for a loop whose number of steps would differ along ``axes``."""
    raise DerivativeError(
        f"{op} (made at {op.line_info}) would end after another number of steps for each place "
        f"along {', '.join(axes.names)}; take derivatives one after another, with seeds"
    )
