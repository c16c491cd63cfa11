"""Effects: assignments, groups of effects in any or a given order, and printing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from ...errors import ArgumentError, AssignError, AxisError, DTypeError
from ..axes.axes import axes_may_equal
from ..building.constants import as_tensor
from ..building.unused_effects import watch
from ..building.weak import put_into
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import (
    NO_AXES,
    VOID_DTYPE,
    Leaf,
    Op,
    Tensor,
    VoidOp,
    make,
    make_effect,
)
from ..values.attribute_types import Flag, Text
from ..values.dtypes import DType, complex_dtype, is_number
from .elementwise import infer_same
from .movement import FLIP, broadcast, flip
from .slicing import SLICE, forwards

if TYPE_CHECKING:
    from ..building.typing import Follows, OpKeywords, Tags, TensorLike


class SequentialAttributes(NamedTuple):
    """``follows`` if only the last op is the user's, and the others are what it runs after."""

    follows: Flag


class PrintAttributes(NamedTuple):
    """The text that is printed before the value.

    ``pairs`` if the last axis has the parts of complex numbers.
    """

    label: Text
    pairs: Flag


def _assign_infer(args: tuple[Any, ...], attrs: Any) -> Inferred:
    target, value = args
    require(storage_of(target) is not None, "an assignment to {}", target)
    require(
        target.axes.names == value.axes.names and axes_may_equal(target.axes, value.axes),
        "{} assigned to {}",
        value.axes,
        target.axes,
    )
    require(target.dtype is value.dtype, "{} assigned to {}", value.dtype, target.dtype)
    return NO_AXES, VOID_DTYPE, ()


def _with_effect_infer(args: tuple[Any, ...], attrs: Any) -> Inferred:
    require(isinstance(args[0], Tensor), "the effect {} in place of a value", args[0])
    return args[0].axes, args[0].dtype, ()


ASSIGN = Primitive(
    "assign",
    "effect",
    "Puts a value into a variable, placeholder or slice of one.",
    arity=2,
    infer=_assign_infer,
    dtype_operands=(),
)
DOALL = Primitive(
    "doall",
    "effect",
    "Runs effects; none reads values that another writes.",
    infer=lambda args, attrs: (NO_AXES, VOID_DTYPE, ()),
    takes_effects=True,
    dtype_operands=(),
)
SEQUENTIAL = Primitive(
    "sequential",
    "effect",
    "Runs ops in order, each seeing the effects of those before; has the value of the last.",
    attributes=SequentialAttributes,
    infer=lambda args, attrs: (args[-1].axes, args[-1].dtype, ()),
    takes_effects=True,
    dtype_operands=(-1,),
)
WITH_EFFECT = Primitive(
    "with_effect",
    "effect",
    "x itself, which runs further ops for their effects; none reads what another writes.",
    infer=_with_effect_infer,
    takes_effects=True,
    dtype_operands=(0,),
)
PRINT = Primitive(
    "print",
    "effect",
    "x itself, which is printed when it is computed.",
    reference=lambda op, x: x,
    partials=(1.0,),
    attributes=PrintAttributes,
    arity=1,
    infer=infer_same,
    has_side_effect=True,
    raises=True,
)


def without_follows(op: Op) -> Op:
    """Return the op below its ``follows`` wrappers, or ``op`` itself."""
    while op.primitive is SEQUENTIAL and op.attrs.follows:
        op = op.args[-1]
    return op


def storage_of(target: Op) -> Leaf | None:
    """Return the variable or placeholder below a (nested) slice; None for anything else."""
    target = without_follows(target)
    while target.primitive in (FLIP, SLICE):
        target = target.args[0]
    return target if isinstance(target, Leaf) else None


@public
def assign(
    target: Tensor,
    value: TensorLike,
    *,
    name: str | None = None,
    tags: Tags = (),
    follows: Follows = (),
) -> VoidOp:
    """Assign ``value`` to ``target``: a variable, a placeholder or a (nested) slice of one.

    Within one computation every read returns the value at entry, and all assignments take effect at
    its end, unless ``sequential`` or ``follows`` orders them. An assignment to a placeholder is
    visible to later ops of the computation; the caller's array does not change. ``value`` is
    broadcast over the target's axes; its dtype is the target's, or weak. Raises ``AssignError`` for
    another target. If the assignment is garbage-collected before a computation used it, it warns
    with its line.
    """
    result = assignment(target, value, follows)
    leaf = storage_of(target)
    assert leaf is not None
    watch(without_follows(result), leaf)
    return result._annotate(name, tags)


SetItem = assign


def assignment(target: Tensor, value: Any, follows: Any = ()) -> VoidOp:
    """Return the op of ``assign``, without the warning for unused assignments."""
    if not isinstance(target, Op) or storage_of(target) is None:
        at = f" (made at {target.line_info})" if isinstance(target, Op) else ""
        raise AssignError(
            f"cannot assign to {target}{at}: only variables, placeholders and slices of them hold "
            "values; make one with geon.Variable"
        )
    follows = (*target.follows, *_before(follows))
    target = without_follows(target)  # type: ignore[assignment]  # storage is a tensor
    given = value if is_number(value) else as_tensor(value, near=target)
    value = put_into("assign", target, given)[1]
    if value.dtype is not target.dtype:
        raise DTypeError(
            f"assign: {value} (made at {value.line_info}) is {value.dtype.name} and {target} (made "
            f"at {target.line_info}) is {target.dtype.name}; geon.cast the value, or give the "
            "variable its dtype where it is made"
        )
    lacking = [axis.name for axis in value.axes if axis not in target.axes]
    if lacking:
        raise AxisError(
            f"assign: {value} (made at {value.line_info}) has the axis {lacking[0]!r}, which "
            f"{target} (made at {target.line_info}) lacks; reduce it first, for example with "
            "geon.sum, or give the target that axis"
        )
    for axis in value.axes:
        length, target_length = axis.expression, target.axes[axis.name].expression
        if isinstance(length, int) and isinstance(target_length, int) and length != target_length:
            raise AxisError(
                f"{user_call('assign')}: {value} (made at {value.line_info}) has length {length} "
                f"along {axis.name!r}, and {target} (made at {target.line_info}), a part of "
                f"{storage_of(target)}, {target_length}; give both the same"
            )
    value = broadcast(value, target.axes)
    target, backwards = forwards(target)
    value = flip(value, backwards)
    result = make_effect(ASSIGN, (target, value))
    return result._annotate(None, follows=follows)


@public
def doall(ops: Iterable[Op], **notes: Unpack[OpKeywords]) -> VoidOp:
    """Return an op that runs all ``ops`` for their effects; none sees the effects of another."""
    return make_effect(DOALL, listed_ops(ops, "doall"))


@public
def sequential(ops: Iterable[Op], **notes: Unpack[OpKeywords]) -> Any:
    """Return an op that runs ``ops`` in order, each seeing the effects of those before it.

    Its value is that of the last op: it is a tensor if that is a tensor.
    """
    return _sequential(listed_ops(ops, "sequential"), False)


def run_after(op: Op, follows: Iterable[Op] | Op) -> Any:
    """Return ``op`` ordered after ``follows``."""
    return _sequential(listed_ops((*_before(follows), op), "follows"), True)


def with_effect(x: Tensor, effect: Op) -> Tensor:
    """Return ``x`` with ``effect`` attached; the value of ``x`` does not see the effect."""
    return make(WITH_EFFECT, (x, effect))


def _before(follows: Iterable[Op] | Op) -> tuple[Op, ...]:
    return (follows,) if isinstance(follows, Op) else tuple(follows)


def _sequential(ops: tuple[Op, ...], follows: bool) -> Any:
    if not ops:
        raise AssignError("sequential needs at least one op; give it the effects to run, in order")
    return make(SEQUENTIAL, ops, (follows,))


def listed_ops(ops: Iterable[Op], what: str) -> tuple[Op, ...]:
    """Return a list of ops as a tuple; raise ``AssignError`` for anything else in it."""
    if isinstance(ops, Op):
        raise AssignError(
            f"{what} takes a list of ops, not {ops} (made at {ops.line_info}) alone; write [op]"
        )
    listed = tuple(ops)
    for op in listed:
        if not isinstance(op, Op):
            raise AssignError(
                f"{what} takes ops, not {op!r} of type {type(op).__name__}; geon.assign makes an op"
            )
    return listed


@public
def print(x: TensorLike, label: str | None = None, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x``; its value is printed after ``label`` whenever a computation computes it.

    Without a label the op's name and axes are shown.
    """
    x = as_tensor(x)
    if label is not None and not isinstance(label, str):
        raise ArgumentError(f"{user_call('print')}: label={label!r} is no string; give one")
    shown = str(x) if label is None else label
    return make(PRINT, (x,), (shown, False))


def printed_form(op: Op) -> tuple[tuple[Any, ...], DType]:
    """Return the lengths and the dtype under which the value of a print is shown."""
    lengths = op.axes.lengths
    return (lengths[:-1], complex_dtype(op.dtype)) if op.attrs.pairs else (lengths, op.dtype)
