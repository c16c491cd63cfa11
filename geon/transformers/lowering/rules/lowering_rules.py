"""Lowerings: rewrites of primitives that a target may lack to primitives that every target has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.building.constants import number
from ....op_graph.building.rebuild import with_args
from ....op_graph.core.primitive import PRIMITIVES
from ....op_graph.evaluation.interpreter import COMPUTING
from ....op_graph.nodes import carry_lines
from ....op_graph.op_graph import ComputationOp, Op, Tensor, intern, make_region, same_ops
from ....op_graph.regions.cases import CaseAttributes
from ....op_graph.regions.fixed_point import as_while, converged_of
from ....op_graph.rewriting.driver import Rules, RuleSet
from ....op_graph.rows.elementwise import CAST, add, cast, equal, less, multiply, where
from ....op_graph.rows.indexing import (
    CHECKED,
    PURPOSES,
    Purpose,
    ScatterAttributes,
    _gather,
    _scatter,
    gather_plan,
    gathered_axes,
    held_by_int64,
    total_dtype,
)
from ....op_graph.rows.leaves import iota, length_value
from ....op_graph.rows.logic import BITCAST
from ....op_graph.rows.movement import _flatten, _unflatten, broadcast, flatten, reorder
from ....op_graph.rows.reductions import ARGMAX, ARGMIN
from ....op_graph.rows.slicing import SLICE, UPDATE
from ....op_graph.special import (
    airy_formulas,
    bessel_formulas,
    erf_formulas,
    gamma_formulas,
    incomplete_formulas,
)
from ....op_graph.special.formula_ops import FLOAT32_OPS, FLOAT64_OPS, GEON_OPS
from ....op_graph.values.dtypes import FLOAT32, HALVES, INT64, DType, name_of
from ..facts.position_ranges import is_from_start, is_inside, range_of
from . import matrix_rules

lower = Rules("lower")


@lower.on("erf")
def erf(op: Op) -> Op | None:
    """Rewrite erf as a rational approximation; see ``gamma_formulas``."""
    return gamma_formulas.erf(op.args[0], GEON_OPS)


def _through_formula(op: Op) -> Op | None:
    """Rewrite a primitive by its formula in ``erf_formulas``; float32 is computed in float64."""
    formula: Callable[..., Tensor] = getattr(erf_formulas, op.primitive.name)
    args: Any = op.args
    args = args if len(args) == 1 else [broadcast(arg, op.axes) for arg in args]
    if op.dtype != FLOAT32:
        return formula(*op.attrs, *args, FLOAT64_OPS)
    wide = [cast(arg, "float64") for arg in args]
    return cast(formula(*op.attrs, *wide, FLOAT32_OPS), FLOAT32)


# Primitives that NumPy lacks, each with a formula of its name.
for _name in erf_formulas.__all__:
    if _name != "erfcx_derivative":
        lower.on(_name)(_through_formula)


@lower.on("erfcx_derivative")
def erfcx_derivative(op: Op) -> Op | None:
    """Rewrite derivatives of erfcx, of which no target has functions."""
    return _through_formula(op)


@lower.on("weighted_product")
def weighted_product(op: Op) -> Op | None:
    """Rewrite as a product that is 0 where the first factor is 0."""
    weight, x = op.args
    product = where.apply(equal.apply(weight, 0), 0, multiply.apply(weight, x))
    return broadcast(product, op.axes)  # the operands may have lost broadcasts that gave the order


@lower.on("lgamma")
def lgamma(op: Op) -> Op | None:
    """Rewrite lgamma by series and reflection; see ``gamma_formulas``."""
    return gamma_formulas.lgamma(op.args[0], GEON_OPS)


@lower.on("polygamma")
def polygamma(op: Op) -> Op | None:
    """Rewrite polygamma by recurrence and an asymptotic series; see ``gamma_formulas``."""
    return gamma_formulas.polygamma(op.attrs.n, op.args[0], GEON_OPS)


def _through_ops(module: Any) -> None:
    """Rewrite each primitive that a module has a formula of its name for, on every target."""

    def rewrite(op: Op) -> Op | None:
        formula: Callable[..., Tensor] = getattr(module, op.primitive.name)
        given: Any = op.args
        return formula(*op.attrs, *(broadcast(arg, op.axes) for arg in given), GEON_OPS)

    for name in module.__all__:
        lower.on(name)(rewrite)


_through_ops(incomplete_formulas)
_through_ops(bessel_formulas)
_through_ops(airy_formulas)


def _is_checked(index: Op, axis: Axis) -> bool:
    """Return True if positions along an axis are checked, or need no check."""
    return index.primitive is CHECKED or is_inside(range_of(index), axis.expression)


def _checked(index: Op, axis: Axis, op: Op) -> Tensor:
    """Return positions along an axis with the check that they need.

    Errors refer to the lines of ``op``.
    """
    if _is_checked(index, axis):
        inside: Any = index
        return inside
    held = held_by_int64(index)
    return _check((held,), (axis.expression, True, None, ""), index.dtype, op)


def _check(args: tuple[Op, ...], attrs: tuple[Any, ...], dtype: DType, op: Op) -> Tensor:
    """Return a check with the axes of the first argument; errors refer to the lines of ``op``."""
    made: Tensor = intern(ComputationOp, CHECKED, args, attrs, args[0].axes, dtype)
    carry_lines(op, made)
    return made


@lower.on("checked")
def needless_check(op: Op) -> Op | None:
    """Remove the check of positions that are inside of the axis by what computes them."""
    a = op.attrs
    needless = len(op.args) == 1 and is_inside(range_of(op.args[0]), a.length, a.from_end)
    return op.args[0] if needless else None


@lower.on("slice", "update")
def positions(op: Op) -> Op | None:
    """Check run-time positions in separate kernels, before anything is written."""
    first = 1 if op.primitive is SLICE else 2
    axes = {item[1]: axis for axis, item in zip(op.args[0].axes, op.attrs.items, strict=True)
            if item is not None and item[0] == "dyn"}  # fmt: skip
    new = [_checked(p, axes[first + k], op) for k, p in enumerate(op.args[first:])]
    if same_ops(tuple(new), op.args[first:]):
        return None
    row = SLICE if op.primitive is SLICE else UPDATE
    return intern(ComputationOp, row, (*op.args[:first], *new), op.attrs, op.axes, op.dtype)


NUMBER_OF_BRANCH = "number of a branch"
PURPOSES[NUMBER_OF_BRANCH] = Purpose(
    "used as the number of a branch of a case without default=",
    "check the data, or give the case a default=",
)


@lower.on("case")
def index_of_case(op: Op) -> Op | None:
    """Check a branch number that may be out of range, before anything is written."""
    a: CaseAttributes = op.attrs
    if a.certain:
        return None
    index = _check(op.args[:1], (len(a.bodies), False, None, ""), INT64, op)
    index.add_tags(NUMBER_OF_BRANCH)
    return make_region(
        op.primitive, (index, *op.args[1:]), a._replace(certain=True), guards=op.guards
    )


@lower.on("fixed_point")
def fixed_point(op: Op) -> Op:
    """Rewrite a fixed point as a while loop."""
    return as_while(op)


@lower.on("converged")
def check_convergence(op: Op) -> Op:
    """Rewrite a convergence check as a position check: 0 if converged, else the step count.

    The checked value is a float, by which error messages distinguish it from positions.
    """
    value: Any = op.args[0]
    steps = max(op.attrs.limit, 1)
    index = where.apply(converged_of(op), number(0, INT64), number(steps, INT64))
    return _check((value, index), (steps, False, None, ""), op.dtype, op)


@lower.on("gather")
def gather(op: Op) -> Op | None:
    """Rewrite a gather whose index shares axes as one along the flattened axes; add a check."""
    found = _along_one_axis(op)
    if found is None:
        return None
    made = _gather(found.x, found.place, found.axis.name)
    return reorder(made, op.axes) if found.group else made


@lower.on("scatter")
def scatter_of_halves(op: Op) -> Op | None:
    """Accumulate halves in float32, and round each element once."""
    total = total_dtype(op)
    if total is op.dtype:
        return None
    x: Any = op.args[0]
    value: Any = op.args[2]
    a: ScatterAttributes = op.attrs
    made = _scatter(cast(x, total), op.args[1], cast(value, total), a.axis, a.mode)
    return cast(made, op.dtype)


@lower.on("scatter")
def scatter(op: Op) -> Op | None:
    """Rewrite a scatter like ``gather``: shared axes are flattened together with the axis."""
    found = _along_one_axis(op)
    if found is None:
        return None
    value: Any = op.args[2]
    if not found.group:
        return _scatter(found.x, found.place, value, found.axis.name, op.attrs.mode)
    value = reorder(value, gathered_axes(found.x.axes, found.place.axes, found.axis.name))
    placed = _scatter(found.x, found.place, value, found.axis.name, op.attrs.mode)
    return reorder(_unflatten(placed, found.axis, found.group), op.axes)


class _OneAxis(NamedTuple):
    """A gather or scatter along ``axis`` of ``x``, which is a flattened ``group``, at ``place``."""

    x: Any
    place: Tensor
    axis: Axis
    group: Axes | None


def _along_one_axis(op: Op) -> _OneAxis | None:
    """Return a gather or scatter along one axis with a checked index; None if it is one."""
    x, index = op.args[:2]
    batch, _, _ = gather_plan(op, x.axes, index.axes)
    axis = x.axes[op.attrs.axis]
    if not batch and _is_checked(index, axis):
        return None
    checked = _checked(index, axis, op)
    if not batch:
        return _OneAxis(x, checked, axis, None)
    group = x.axes.only([*batch, axis.name])
    flat, joined = _flattened(x, index.axes, group)
    return _OneAxis(flat, _place(checked, axis, group, joined, op), joined, group)


def _flattened(x: Any, index: Axes, group: Axes) -> tuple[Tensor, Axis]:
    """Return ``x`` with a group of its axes flattened into one of a new name, and that axis.

    Adjacent axes stay in position, so that nothing is moved; others are moved to the front.
    """
    whole = flattened_axis(group, Axes(*(a for a in (*x.axes, *index) if a.name not in group)))
    first = x.axes.index(group.names[0])
    if x.axes.names[first : first + len(group)] != group.names:
        x = reorder(x, Axes(*group, *x.axes.without(group.names)))
    return _flatten(x, group.names, whole), whole


def _place(index: Tensor, axis: Axis, group: Axes, joined: Axis, op: Op) -> Tensor:
    """Return the index along an axis as a checked index along the flattened axis
    ``flattened_axis``.
    """
    wrapped: Any = index
    if not is_from_start(index):
        wrapped = where(less(index, 0), index + length_value(axis.expression), index)
    place: Any = None
    for each in group:
        at = wrapped if each.name == axis.name else iota(each)
        place = at if place is None else add.apply(place * length_value(each.expression), at)
    order = Axes(*(group[a.name] if a.name in group and a.name != axis.name else a
                   for a in index.axes))  # fmt: skip
    return _checked(cast(broadcast(place, order), "int64"), joined, op)


@lower.on("argmax", "argmin")
def position_over_several(op: Op) -> Op | None:
    """Rewrite argmax as one over the last axis: its own, or several flattened."""
    x: Any = op.args[0]
    names = op.attrs.reduced
    if names == x.axes.names[-1:] and names:
        return None
    row = ARGMAX if op.primitive is ARGMAX else ARGMIN
    kept, last = x.axes.without(names), x.axes.only(names)
    ordered = reorder(x, Axes(*kept, *last))
    if len(names) != 1:
        whole = flattened_axis(last, kept)
        ordered, last = flatten(ordered, last, whole), Axes(whole)
    return intern(
        ComputationOp, row, (ordered,), (last.names,), op.axes, op.dtype, guards=op.guards
    )


def flattened_axis(group: Axes, others: Axes) -> Axis:
    """Return an axis for a group of axes flattened, under a name that ``others`` lack."""
    axis = Axis("*".join(group.names) or "*", group.size)
    while axis in others:
        axis = axis.prime
    return axis


def _through_float32(op: Op) -> Op | None:
    """Compute halves in float32 and round once."""
    if not any(name_of(arg.dtype) in HALVES for arg in op.args):
        return None
    given: Any = op.args
    args = tuple(cast(arg, FLOAT32) if name_of(arg.dtype) in HALVES else arg for arg in given)
    made: Any = with_args(op, args, FLOAT32 if name_of(op.dtype) in HALVES else op.dtype)
    return cast(made, op.dtype)


def _rules() -> RuleSet:
    for name, row in PRIMITIVES.items():
        if row.kind in COMPUTING and not row.is_selection and row not in (CAST, BITCAST):
            lower.table.setdefault(name, []).insert(0, _through_float32)
    return lower.done() | matrix_rules.RULES


RULES = _rules()
