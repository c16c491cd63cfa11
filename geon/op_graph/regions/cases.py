"""``case_of`` and ``cond``: run one of several branches, by an index or a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, IndexRangeError
from ...lazy_dataclasses import dataclass
from ..axes.axes import Axes
from ..building.constants import as_tensor
from ..building.elementwise_build import broadcast_over
from ..core.argument_hints import public
from ..core.interning import OwnTable
from ..core.primitive import Inferred, Primitive, require
from ..core.region_body import Body
from ..core.source_info import building, user_call
from ..op_graph import NO_AXES, VOID_DTYPE, Op, Tensor, make_region, post_order
from ..rows.elementwise import cast, where
from ..rows.leaves import placeholder
from ..rows.logic import logical_or
from ..syntax.operators import late
from ..transforms.clone import adopt, notes_of
from ..values.attribute_types import Flag
from ..values.dtypes import DType, kind
from ..values.tree import Structure, flat
from .carries import as_scalar, match_axes_and_dtype, needs_function, strong
from .closure import Opened, captured_values, rebuilt
from .loop import both_axes
from .parameters import (
    NOTHING,
    guards_of,
    outcome,
    parameter,
    require_same,
    results_of,
    tensors,
)
from .state_carries import Updates, land_effects, tie_updates

if TYPE_CHECKING:
    from ..building.typing import TensorLike

Array = np.ndarray[Any, Any]


# The primitive ------------------------------------------------------------------------------------


def is_bodies(value: Any) -> bool:
    """Return True if ``value`` is a tuple of bodies."""
    return isinstance(value, tuple) and all(isinstance(part, Body) for part in value)


class CaseAttributes(NamedTuple):
    """The bodies of the branches; ``certain`` if the index is always that of a branch."""

    bodies: Annotated[tuple[Body, ...], is_bodies]
    certain: Flag


def _infer(args: tuple[Any, ...], attrs: CaseAttributes) -> Inferred:
    bodies = attrs.bodies
    require(len(bodies) > 0, "a case of no branches")
    index = args[0]
    require(
        index.axes is NO_AXES and kind(index.dtype) == "i", "an index that is no integer scalar"
    )
    for body in bodies:
        require(len(args) == len(body.parameters), "{} arguments", len(args))
        for arg, given in zip(args, body.parameters, strict=True):
            require_same("an argument", arg, given)
        require(len(body.results) == len(bodies[0].results), "{} results", len(body.results))
        for one, other in zip(body.results, bodies[0].results, strict=True):
            require_same("a result", one, other)
    return NO_AXES, VOID_DTYPE, tuple([guard for body in bodies for guard in guards_of(body)])


def _outcomes(attrs: CaseAttributes) -> list[tuple[Axes, DType]]:
    return [outcome(op) for op in attrs.bodies[0].results]


def _reference(op: Any, run: Callable[..., list[Array]], *args: Array) -> list[Array]:
    bodies, index = op.attrs.bodies, int(args[0])
    if not 0 <= index < len(bodies):
        raise IndexRangeError(f"branch {index} of a case that has {len(bodies)}")
    return run(bodies[index], list(args))


def case_batch(
    op: Op,
    args: Sequence[Op],
    axes: Axes,
    images: Callable[[Sequence[Op], Mapping[Op, Tensor]], Mapping[Op, Op]],
) -> list[Tensor]:
    """Return the results of a case on arguments some of which have the further ``axes``."""
    bodies: tuple[Body, ...] = op.attrs.bodies
    shared = Opened(bodies[0]).leaves
    moving = [k for k, arg in enumerate(args) if arg is not op.args[k]]
    wide: dict[Op, Tensor] = {
        shared[k]: placeholder(both_axes(shared[k].axes, axes), shared[k].dtype) for k in moving
    }
    opened = [Opened(body, shared).results for body in bodies]
    batched = [images(results, wide) for results in opened]
    roots: list[list[Any]] = [
        [each.get(result, result) for result in results]
        for results, each in zip(opened, batched, strict=True)
    ]
    for n, old in enumerate(opened[0]):
        if any(each[n].axes is not old.axes for each in roots):
            for each in roots:
                each[n] = broadcast_over(each[n], both_axes(old.axes, axes))
    given: list[Any] = list(args)
    for k in moving:
        given[k] = broadcast_over(given[k], both_axes(op.args[k].axes, axes))
    named: dict[Op, Any] = {wide.get(leaf, leaf): given[k] for k, leaf in enumerate(shared)}
    return make_case(given[0], roots, op.attrs.certain, named)


CASE = Primitive(
    "case",
    "region",
    "One of several branches, by the position of a scalar.",
    reference=_reference,
    attributes=CaseAttributes,
    infer=_infer,
    outcomes=_outcomes,
    dtype_operands=(),
    vjp=late("case_vjp"),
    jvp=late("case_jvp"),
    batch=case_batch,
    cost="kernel",
)


def make_case(
    index: Op,
    roots: Sequence[Sequence[Tensor]],
    certain: bool,
    named: Mapping[Op, Any] = NOTHING,
    inside: set[Op] | None = None,
) -> list[Tensor]:
    """Build a case whose branches compute ``roots``, one list each, and return its results.

    ``certain`` marks an index that is in range in every call. The keys of ``named`` are
    placeholders for values outside. ``inside`` are the ops that belong to a branch; by default
    these are all ops that depend on a key of ``named``.
    """
    every = [root for each in roots for root in each]
    captures = captured_values(named, every, inside)
    if inside is None:
        reached = set(post_order(every))
        read: list[Any] = [key for key in named if key in reached]
        captures = [*read, *captures]
    given = [index, *captures]
    parameters = tuple([parameter(k, op.axes, op.dtype) for k, op in enumerate(given)])
    known: dict[Op, Op] = dict(zip(captures, parameters[1:], strict=True))
    bodies = []
    for each in roots:
        result = rebuilt(each, known)
        kept = adopt(result, notes_of(result), None)
        bodies.append(Body(parameters, tuple(tensors(kept[op] for op in result))))
    args = (index, *[named.get(op, op) for op in captures])
    region = make_region(CASE, args, (tuple(bodies), certain))
    return results_of(region)


# Public functions ---------------------------------------------------------------------------------


@public
def case_of(
    index: TensorLike,
    branches: Sequence[Callable[[], Any]],
    default: Callable[[], Any] | None = None,
    *,
    name: str | None = None,
) -> Any:
    """Return the result of branch number ``index``; only that branch runs.

    ``index`` is an integer scalar. ``branches`` are functions without arguments. They return
    tensors, or dictionaries, lists, tuples and dataclasses of tensors, all with the same structure,
    axes and dtypes. Ops that a branch builds when it is called belong to the branch; ops built
    before are computed whichever branch runs. An index out of range selects ``default``; without
    one, a call raises ``IndexRangeError``. Use ``where`` to choose element by element.

    A variable that the selected branch assigns has its new value once any of the results is
    computed. A variable that only other branches assign keeps its value. A branch may return an
    assignment where another one returns None or another assignment; the result there is that
    effect.

    Raises ``AxisError`` and ``DTypeError`` if branches return different axes or dtypes, and
    ``ArgumentError`` for different structures, for prints inside of a branch, and if there are no
    branches.
    """
    what = user_call("case_of")
    return _chosen(what, index, _listed(what, branches, default), default is not None, name)


Named = dict[str, Callable[[], Any]]  # branches in order, by their names in messages


def _chosen(
    what: str, index: Any, branches: Named, default: bool, name: str | None, certain: bool = False
) -> Any:
    """Build a case from branch functions; with ``default`` the last is for all other indices."""
    cure = "; geon.where chooses element by element, geon.cond by a truth value"
    which = cast(strong(as_scalar(what, "the index ", index, "i", cure)), "int64")
    for called, function in branches.items():
        example = function.name if isinstance(function, Op) and function.name else "x"
        needs_function(what, called, function, f"lambda: {example}")
    if default:
        last = len(branches) - 1
        which = where(logical_or(which < 0, which >= last), last, which)
    own = OwnTable()  # not shared: an equal op outside would be computed for every branch
    with building(own):
        built = [_branch(what, called, function) for called, function in branches.items()]
        roots = [_aligned_results(what, built[0], each) for each in built]
        targets = list(dict.fromkeys(leaf for each in built for leaf in each.updates))
        for each, root in zip(built, roots, strict=True):
            root += [each.updates.get(leaf, leaf) for leaf in targets]
        inside = {op for entry in list(own.entries.values()) if (op := entry()) is not None}
    result = make_case(which, roots, default or certain, NOTHING, inside)
    if name is not None and result:
        result[0].args[0].name = name
    values = len(result) - len(targets)
    result, effect = tie_updates(result[:values], dict(zip(targets, result[values:], strict=True)))
    structure = reduce(Structure.joined, [each.structure for each in built])
    return structure.filled(iter(result), effect)


def _listed(what: str, branches: Any, default: Any) -> Named:
    """Return the branches of a list by name, followed by the default.

    Raises ``ArgumentError`` if ``branches`` is no list or is empty.
    """
    if not isinstance(branches, Iterable) or isinstance(branches, (Op, Mapping)):
        raise ArgumentError(
            f"{what}: branches={branches!r} is no list; give one or more functions without "
            "arguments, such as [lambda: x, lambda: y]"
        )
    named = {f"branch {k}": each for k, each in enumerate(branches)}
    if not named:
        raise ArgumentError(f"{what}: there are no branches; give one or more functions")
    if default is not None:
        named["default"] = default
    return named


@public
def cond(
    condition: TensorLike,
    then: Callable[[], Any],
    otherwise: Callable[[], Any],
    *,
    name: str | None = None,
) -> Any:
    """Return the result of ``then`` if the bool scalar ``condition`` is true, else ``otherwise``'s.

    Only one of them runs. All else is as for ``case_of``. Raises ``DTypeError`` if the condition is
    no bool scalar.
    """
    what = user_call("cond")
    cure = "; geon.where chooses element by element"
    truth = as_scalar(what, "the condition ", condition, "b", cure)
    branches = {"otherwise": otherwise, "then": then}  # False is index 0
    return _chosen(what, cast(truth, "int64"), branches, False, name, certain=True)


@dataclass(frozen=True, eq=False)
class _Branch:
    """The outcome of calling a branch function.

    ``name`` is the name of the branch in messages. ``values`` are its tensors, with dtypes that no
    longer adapt (not weak). ``structure`` is the structure of its return value. ``updates`` are its
    assignments.
    """

    name: str
    values: list[Tensor]
    structure: Structure
    updates: Updates


def _branch(what: str, name: str, function: Callable[[], Any]) -> _Branch:
    returned, updates = land_effects(what, function(), name)
    values, structure = flat(returned, name)
    tensors = [strong(as_tensor(value)) for _, value in values]
    return _Branch(name, tensors, structure, updates)


def _aligned_results(what: str, first: _Branch, other: _Branch) -> list[Tensor]:
    """Return the results of ``other`` with the axis order of those of ``first``.

    Raises ``ArgumentError``, ``AxisError`` or ``DTypeError`` if structure, axes or dtypes differ.
    """
    if other is first:
        return list(first.values)
    if other.structure != first.structure:
        gives = _in_order(what, first, other, str(first.structure), str(other.structure), ",")
        raise ArgumentError(f"{gives}; return one structure")
    result = []
    for one, op in zip(first.values, other.values, strict=True):
        shown = [f"{each} {each.dtype.name} (made at {each.line_info})" for each in (one, op)]
        both = _in_order(what, first, other, *shown)
        result.append(
            match_axes_and_dtype(
                op,
                one,
                f"{both}, over other axes; geon.broadcast both over all of them",
                f"{both}, of another dtype; geon.cast one of them",
            )
        )
    return result


def _in_order(
    what: str, first: _Branch, other: _Branch, one: str, two: str, comma: str = ""
) -> str:
    """Return the start of a message: what two branches give, in the order of the call."""
    if other.name == "then":
        first, other, one, two = other, first, two, one
    return f"{what}: {first.name} gives {one}{comma} and {other.name} gives {two}"
