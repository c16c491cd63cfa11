"""Validation of ops: the argument types, attributes, axes and dtype that a primitive allows.

``check`` compares an op that geon's functions did not build, such as one read from a dump, with the
op that they would have built. Lengths that only data can compare are accepted if a guard covers
them.
"""

from __future__ import annotations

from typing import Any

from ...errors import DumpError
from ..axes.axes import Axes, Axis
from ..core.primitive import Primitive
from ..op_graph import Guard, Op, RegionOp, Tensor
from ..values.attribute_types import predicates
from ..values.dtypes import DType


def check(
    row: Primitive,
    args: tuple[Op, ...],
    attrs: Any,
    axes: Axes,
    dtype: DType,
    weak: bool,
    guards: tuple[Guard, ...],
) -> Axes:
    """Check an op against its primitive; return the axes that the primitive infers.

    Raises ``DumpError`` if the primitive gives no op over ``axes`` of ``dtype`` for these arguments
    and attributes, or the error that building the op would have raised.
    """
    what = row.name
    names = row.attributes._fields
    if len(attrs) != len(names):
        raise DumpError(f"{what} has {len(names)} attributes, not {len(attrs)}")
    if not row.takes_effects and not all(isinstance(arg, Tensor) for arg in args):
        raise DumpError(f"an argument of {what} has no value")
    if row.kind != "part" and any(isinstance(arg, RegionOp) for arg in args):
        raise DumpError(
            f"an argument of {what} is a loop or branch, of which only results are used"
        )
    assert row.infer is not None, what
    if row.arity is None and not args and what != "doall":
        raise DumpError(f"{what} needs arguments")
    if row.arity is not None and len(args) != row.arity:
        raise DumpError(f"{what} takes {row.arity} arguments, not {len(args)}")
    attrs = row.named(attrs)
    for name, attribute, is_valid in zip(names, attrs, predicates(row.attributes), strict=True):
        if not is_valid(attribute):
            raise DumpError(f"{attribute!r} is no {name} of {what}")
    if what == "custom":
        attrs.rule.check_operands(args)
    if "weak" in names or what == "length":
        if weak is not (what == "length" or attrs.weak):
            raise DumpError(f"{what} that is {'weak' if weak else 'not weak'}")
    given, gives, assumed = row.infer(args, attrs)
    if gives is not dtype:
        raise DumpError(f"{what} gives {gives.name}, not {dtype.name}")
    said = {_assumption(guard) for guard in guards}
    for guard in assumed:
        if _assumption(guard) not in said:
            raise DumpError(f"{what} without the guard {guard.left} {guard.relation} {guard.right}")
    if given is not axes and not (
        row.kind == "elementwise" and _may_keep_axes(axes, given, args, said)
    ):
        raise DumpError(f"{what} gives {given}, not {axes}")
    return given


def _assumption(guard: Guard) -> tuple[str, Any]:
    """Return the relation of a guard and its sides, unordered for an equality."""
    ends = (guard.left, guard.right)
    return guard.relation, frozenset(ends) if guard.relation == "==" else ends


def _may_keep_axes(
    axes: Axes, given: Axes, args: tuple[Op, ...], said: set[tuple[str, Any]]
) -> bool:
    """Return True if an elementwise op may have ``axes`` although its arguments give ``given``.

    Rewrites keep the axes of an op: their order, and lengths that a guard equates with those of the
    arguments.
    """

    def is_allowed(axis: Axis) -> bool:
        lengths = [arg.axes[axis.name].expression for arg in args if axis.name in arg.axes.names]
        pairs = [("==", frozenset((axis.expression, length))) for length in lengths]
        return axis.expression in lengths or not said.isdisjoint(pairs)

    return given.same_set(axes) and all(is_allowed(axis) for axis in axes)
