"""Value-preserving simplification rules applied before scheduling, and their collection.

Each rule replaces a form of an op; ``rewriting/driver.py`` applies them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..axes.lengths import product
from ..building.constants import (
    array_constant,
    as_tensor,
    constant_value,
    number,
    scalar_value,
)
from ..building.rebuild import with_args
from ..building.weak import strengthen
from ..core.primitive import PRIMITIVES
from ..evaluation.interpreter import BoundOp, evaluate
from ..op_graph import NO_AXES, Op, make, same_ops
from ..rows.elementwise import (
    add,
    cast,
    multiply,
    negative,
    subtract,
)
from ..rows.leaves import iota, length_value
from ..rows.movement import broadcast, cast_axes, sum_over
from ..rows.slicing import _update, part_axes, take
from ..rows.sort_and_cumulative import RUNNING, RunningAttributes
from ..values.dtypes import kind
from .contraction_rules import DOT_RULES, of_terms
from .driver import Rules, RuleSet
from .matching import P, Replacement, Wildcard, floats, is_of, over_axes, strip_repeats, tensor
from .repeated_operand_rules import TWICE_RULES
from .softmax_rules import SOFTMAX_RULES

simpler = Rules("simplify")

BEGINS = {"sum": 0, "prod": 1, "any": False, "all": True}  # results of empty reductions


x, y, z = Wildcard("x"), Wildcard("y"), Wildcard("z")


def _zero(negative: bool) -> Callable[[Op], bool]:
    """Return the test for a zero of an integer dtype, or for a float zero of this sign."""

    def test(op: Op) -> bool:
        value = scalar_value(op)
        if value != 0 or value is None:
            return False
        return kind(op.dtype) != "f" or (math.copysign(1.0, value) < 0) is negative

    return test


ZERO = Wildcard("zero", "constant", _zero(False))
MINUS_ZERO = Wildcard("zero", "constant", _zero(True))


@simpler.on("custom")
def custom_call(op: Op) -> Op | None:
    """A call with a user's derivative rule is its value, once derivatives are taken."""
    return op.args[0]


simpler.replace("simplify_stop_gradient", Replacement(P.stop_gradient(x), x))
# Adding 0.0 and subtracting -0.0 would change the sign of a zero.
simpler.replace("add_zero", Replacement(x + MINUS_ZERO, x))
simpler.replace(
    "subtract_zero",
    Replacement(x - ZERO, x),
    Replacement(MINUS_ZERO - y, -y),
)
simpler.replace("multiply_one", Replacement(x * 1, x), Replacement(x * -1, -x, floats))
simpler.replace("divide_one", Replacement(x / 1, x), Replacement(1 / y, P.reciprocal(y), floats))
simpler.replace(
    "power_by_constant",
    Replacement(P.power(x, 1), x),
    Replacement(P.power(x, 2), P.square(x)),
    Replacement(P.power(x, 3), P.square(x) * x),
    Replacement(P.power(x, -1), P.reciprocal(x), floats),
    Replacement(P.power(x, 0), 1.0, floats),
)
simpler.replace("negative_twice", Replacement(P.negative(-x), x))
simpler.replace("add_negative", Replacement(P.add(x, -y), x - y))
simpler.replace("subtract_negative", Replacement(x - -y, x + y))
# The sign comes first where it has all axes, so that a sum above can absorb it.
simpler.replace(
    "negative_factor",
    Replacement(
        -x * y,
        -(x * y),
        lambda op, bound: bound["x"].axes is op.axes,
    ),
)
simpler.replace(
    "add_negative_factor",
    Replacement(x + -y * z, x - y * z),
)


@simpler.on("sum")
def sum_of_negative(op: Op) -> Op | None:
    """sum(-x) is -sum(x), if the sum has the dtype of x."""
    inner = op.args[0]
    if not is_of(inner, "negative") or inner.dtype is not op.dtype:
        return None
    return over_axes(negative.apply(sum_over(tensor(inner.args[0]), op.attrs.reduced)), op)


@simpler.on("sum", "prod", "max", "first_max", "min", "any", "all", "argmax", "argmin")
def reduction_of_one(op: Op) -> Op | None:
    """A reduction drops its axes of length 1; without any other axes it is its argument."""
    x, names = tensor(op.args[0]), op.attrs.reduced
    gone = {x.axes[name]: 0 for name in names if x.axes[name].expression == 1}
    if names and not gone:
        return None
    if len(gone) < len(names):
        rest = tuple([name for name in names if x.axes[name] not in gone])
        return over_axes(make(op.primitive, (take(x, gone),), (rest,)), op)
    if op.primitive.name in ("argmax", "argmin"):
        return over_axes(strengthen(as_tensor(0), op.dtype), op)
    return over_axes(cast(take(x, gone), op.dtype), op)


@simpler.on("sum", "prod", "any", "all")
def reduction_of_none(op: Op) -> Op | None:
    """A reduction over an axis of length 0 is its identity element."""
    axes = op.args[0].axes
    if all(axes[name].expression != 0 for name in op.attrs.reduced):
        return None
    return over_axes(strengthen(as_tensor(BEGINS[op.primitive.name]), op.dtype), op)


# NaN included: it is not at most 0.
simpler.replace("relu", Replacement(P.where(P.less_equal(x, 0), 0, x), P.maximum(x, 0)))


@simpler.on("where")
def where_constant(op: Op) -> Op | None:
    """where(c, x, y) with a constant c is x or y."""
    chosen = scalar_value(strip_repeats(op.args[0]))
    return None if chosen is None else over_axes(op.args[1 if chosen else 2], op)


@simpler.on("update")
def update_of_all(op: Op) -> Op | None:
    """update(x, v) is v if it replaces all elements of x."""
    pairs = zip(op.axes, op.attrs.items, strict=True)
    whole = all(
        item is None
        or item == ("range", 0, axis.expression, 1)
        or (item == ("at", 0) and axis.expression == 1)
        for axis, item in pairs
    )
    value = tensor(op.args[1])
    if not whole or any(axis not in op.axes for axis in value.axes):
        return None
    return over_axes(value, op)


@simpler.on(*RUNNING)
def running_of_one(op: Op) -> Op | None:
    """A running combination along an axis of length 1 is x; an exclusive one is the identity."""
    a: RunningAttributes = op.attrs
    if op.axes[a.axis].expression != 1:
        return None
    if a.exclusive:
        first = RUNNING[op.primitive.name].identity(op.dtype)
        return over_axes(number(first, op.dtype), op)
    return over_axes(cast(tensor(op.args[0]), op.dtype), op)


@simpler.on("sort", "argsort", "top_k")
def sort_of_one(op: Op) -> Op | None:
    """sort(x) along an axis of length 1 is x; argsort and top_k are 0."""
    name = op.attrs.axis
    if op.args[0].axes[name].expression != 1 or op.axes[name].expression != 1:
        return None
    if op.primitive.name == "sort":
        return over_axes(tensor(op.args[0]), op)
    return over_axes(strengthen(as_tensor(0), op.dtype), op)


@simpler.on("scatter")
def scatter_of_broadcast(op: Op) -> Op | None:
    """scatter(broadcast(x), i, broadcast(v)) is broadcast(scatter(x, i, v)) for unused axes."""
    x, index, value = op.args
    if not is_of(x, "broadcast") or not is_of(value, "broadcast"):
        return None
    old, new = tensor(x.args[0]), tensor(value.args[0])
    needed = {op.attrs.axis, *index.axes.names, *old.axes.names, *new.axes.names}
    if needed.issuperset(op.axes.names):
        return None
    old = broadcast(old, [axis for axis in x.axes if axis.name in needed])
    new = broadcast(new, [axis for axis in value.axes if axis.name in needed])
    return over_axes(make(op.primitive, (old, index, new), op.attrs), op)


@simpler.on(*RUNNING)
def running_of_broadcast(op: Op) -> Op | None:
    """Running combinations commute with broadcasts; cumsum along a broadcast axis is x * index."""
    repeated = op.args[0]
    a: RunningAttributes = op.attrs
    if not is_of(repeated, "broadcast"):
        return None
    x = tensor(repeated.args[0])
    if a.axis in x.axes:
        return over_axes(make(op.primitive, (x,), op.attrs), op)
    if not is_of(op, "cumsum") or op.dtype.itemsize < 4:
        return None  # a half cannot represent large counts exactly
    value = scalar_value(x)
    if a.exclusive and (value is None or not 0 < value < math.inf):
        return None  # the first element is 0, but inf * 0 is NaN and -x * 0 is -0
    axis = op.axes[a.axis]
    before = iota(axis, op.dtype)
    size = strengthen(length_value(axis.expression), op.dtype)
    one = strengthen(as_tensor(1), op.dtype)
    last = subtract.apply(size, one) if a.exclusive else size
    first = before if a.exclusive else add.apply(before, one)
    count = subtract.apply(last, before) if a.reverse else first
    return over_axes(multiply.apply(cast(x, op.dtype), count), op)


@simpler.on("iota")
def iota_of_one(op: Op) -> Op | None:
    """iota along an axis of length 1 is 0."""
    if op.axes[0].expression != 1:
        return None
    return over_axes(strengthen(as_tensor(0), op.dtype), op)


@simpler.on("broadcast", "reorder")
def broadcast_twice(op: Op) -> Op | None:
    """A broadcast or reorder of a broadcast or reorder is one broadcast."""
    inner = op.args[0]
    if is_of(inner, "broadcast") or is_of(inner, "reorder"):
        return broadcast(tensor(inner.args[0]), op.axes)
    return None


@simpler.on("cast")
def cast_of_broadcast(op: Op) -> Op | None:
    """cast(broadcast(x)) is broadcast(cast(x))."""
    inner = op.args[0]
    if not is_of(inner, "broadcast"):
        return None
    return broadcast(cast(tensor(inner.args[0]), op.dtype), op.axes)


@simpler.on("rename")
def rename_twice(op: Op) -> Op | None:
    """rename(rename(x)) is one rename, or x if the axes are those of x."""
    inner = op.args[0]
    return cast_axes(tensor(inner.args[0]), op.axes) if is_of(inner, "rename") else None


@simpler.on("rename")
def rename_of_update(op: Op) -> Op | None:
    """rename(update(rename(x), v)) is update(rename(x), rename(v))."""
    inner = op.args[0]
    if not is_of(inner, "update") or not is_of(inner.args[0], "rename"):
        return None
    whole = cast_axes(tensor(inner.args[0]), op.axes)
    value = cast_axes(tensor(inner.args[1]), part_axes(op.axes, inner.attrs.items))
    return _update(whole, value, inner.attrs.items, inner.args[2:], inner.guards)


@simpler.on("unflatten")
def unflatten_of_flatten(op: Op) -> Op | None:
    """unflatten(flatten(x)) is x, renamed, if the lengths are the same."""
    inner = op.args[0]
    if not is_of(inner, "flatten") or inner.attrs.axis.name != op.attrs.split:
        return None
    x = tensor(inner.args[0])
    lengths = tuple([x.axes[name].expression for name in inner.attrs.merged])
    return cast_axes(x, op.axes) if lengths == op.attrs.axes.lengths else None


@simpler.on("flatten")
def flatten_of_unflatten(op: Op) -> Op | None:
    """flatten(unflatten(x)) is x, renamed, if the axes and the length are the same."""
    inner = op.args[0]
    if not is_of(inner, "unflatten") or inner.attrs.axes.names != op.attrs.merged:
        return None
    x = tensor(inner.args[0])
    same = x.axes[inner.attrs.split].expression == op.attrs.axis.expression
    return cast_axes(x, op.axes) if same else None


@simpler.on("sum")
def sum_of_broadcast(op: Op) -> Op | None:
    """sum(broadcast(x)) over broadcast axes is x * n, where n is their number of elements."""
    repeated, names = op.args[0], op.attrs.reduced
    if not is_of(repeated, "broadcast"):
        return None
    x = tensor(repeated.args[0])
    added = [name for name in names if name not in x.axes]
    if not added or op.dtype.itemsize < 4:  # the size may exceed the range of a half
        return None
    own = tuple(name for name in names if name in x.axes)
    total = sum_over(x, own) if own else cast(x, op.dtype)
    axes = [repeated.axes[name] for name in added]
    size = length_value(product(axis.expression for axis in axes))
    return over_axes(of_terms(multiply.apply(total, strengthen(size, op.dtype)), x, axes), op)


def _strip_broadcasts(op: Op) -> Op | None:
    """Remove broadcasts and reorders of an elementwise op's operands; the op broadcasts itself."""
    args = tuple(
        [a.args[0] if is_of(a, "broadcast") or is_of(a, "reorder") else a for a in op.args]
    )
    if same_ops(args, op.args):
        return None
    covered = {name for arg in args for name in arg.axes.names}
    if len(covered) < len(op.axes):
        args = tuple(_cover(op, args))
        if same_ops(args, op.args):
            return None
    gone = [old for old, new in zip(op.args, args, strict=True) if new is not old]
    result: Op = with_args(op, args, guards=tuple([guard for arg in gone for guard in arg.guards]))
    return result


def _cover(op: Op, args: tuple[Op, ...]) -> list[Op]:
    """Return the arguments, with only as many broadcasts as needed for all axes of ``op``."""
    covered: set[str] = set()
    kept: list[Op] = []
    for old, new in zip(op.args, args, strict=True):
        missing = set(old.axes.names) - {n for arg in args for n in arg.axes.names} - covered
        kept.append(old if missing else new)
        covered |= set(kept[-1].axes.names)
    return kept


def moved_constant(op: Op) -> Op | None:
    """A view of a constant with one value is that value broadcast to the axes of the view."""
    if len(op.args) > 1:
        return None  # run-time indices must still be checked
    number = strip_repeats(op.args[0])
    return None if scalar_value(number) is None else over_axes(number, op)


def _fold(op: Op) -> Op | None:
    """An elementwise op of uniform constants is a uniform constant."""
    numbers = tuple([strip_repeats(arg) for arg in op.args])
    if any(scalar_value(arg) is None for arg in numbers):
        return None
    if op.axes is not NO_AXES:
        result = make(op.primitive, numbers, op.attrs, weak=op.weak)
        return over_axes(result, op) if result.dtype is op.dtype else None
    bound = BoundOp(op, {}, tuple(BoundOp(arg, {}, ()) for arg in op.args))
    value = evaluate(op, bound, [constant_value(arg) for arg in op.args])
    return array_constant(value, NO_AXES, op.weak)


def _with_elementwise(rules: Rules) -> RuleSet:
    """Return the rules, with folding and broadcast stripping for every elementwise primitive."""
    for name, row in PRIMITIVES.items():
        if row.kind == "elementwise" and name not in ("copy", "stop_gradient", "custom"):
            rules.table.setdefault(name, [])[:0] = [_strip_broadcasts, _fold]
        if row.view and name not in ("broadcast", "reorder"):
            rules.table.setdefault(name, []).insert(0, moved_constant)
    return rules.done()


_complete: list[RuleSet] = []


def simplify_rules() -> RuleSet:
    """Return all rules of ``simplify``; built at the first call, when all primitives exist."""
    if not _complete:
        rules = _with_elementwise(simpler) | DOT_RULES | TWICE_RULES | SOFTMAX_RULES
        _complete.append(rules)
    return _complete[0]
