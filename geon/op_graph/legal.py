"""What a legal op is: for each row its arguments and attributes, and the axes and dtype they give.

``check`` holds an op that geon's functions did not build, such as one read from a dump, against
what they would have built. Lengths that only data can compare pass: they are left to guards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import DumpError
from .attributes import (
    is_axes,
    is_axis,
    is_content,
    is_count,
    is_dtype,
    is_flag,
    is_items,
    is_layout,
    is_length,
    is_mode,
    is_name,
    is_names,
    is_text,
    is_widths,
)
from .axes import Axes, Axis
from .build import Elementwise, join, resolve
from .constants import SMALL_BYTES, Frozen, stored_dtype
from .dtypes import BOOL, INT64, UINT64, DType, kind, named_dtype
from .effects import storage_of
from .indexing import gathered_axes
from .lengths import Length, floor_divide, product
from .op_graph import NO_AXES, VOID_DTYPE, Op, Tensor
from .reductions import WITHOUT_IDENTITY, _result_dtype
from .registry import PRIMITIVES, Primitive

Inferred = tuple[Axes, DType]
Args = tuple[Any, ...]


def need(condition: bool, what: str) -> None:
    """Raise ``DumpError`` saying ``what`` is wrong, unless ``condition`` holds."""
    if not condition:
        raise DumpError(what)


def check(
    primitive: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    dtype: DType,
    weak: bool,
) -> None:
    """Raise where this primitive, applied to these, is no op over ``axes`` of ``dtype``.

    Raises ``DumpError``, or the error that building the op would have raised. Rows that geon does
    not have itself are checked for the number of attributes only.
    """
    what = primitive.name
    if len(attrs) != len(primitive.attributes):
        raise DumpError(f"{what} has {len(primitive.attributes)} attributes, not {len(attrs)}")
    if what not in ORDERLY and not all(isinstance(arg, Tensor) for arg in args):
        raise DumpError(f"an argument of {what} has no value")
    if what == "custom":
        raise DumpError("a derivative rule of the user's, which no text holds")
    if isinstance(primitive, Elementwise):
        inferred = _elementwise(primitive, args)
    elif what in ROWS:
        inferred = _infer(primitive, ROWS[what], args, attrs, weak)
    else:
        return
    if inferred[1] is not dtype:
        raise DumpError(f"{what} gives {inferred[1].name}, not {dtype.name}")
    # Rewrites keep the axes of an elementwise op where its arguments give them in another order.
    same = _meets(inferred[0], axes) if primitive.kind == "elementwise" else inferred[0] is axes
    if not same:
        raise DumpError(f"{what} gives {inferred[0]}, not {axes}")


def _elementwise(row: Elementwise, args: Args) -> Inferred:
    if len(args) != row.arity:
        raise DumpError(f"{row.name} takes {row.arity} arguments, not {len(args)}")
    targets, dtype, _ = resolve(row.rule, tuple([(arg.dtype, arg.weak) for arg in args]))
    for arg, target in zip(args, targets, strict=True):
        if arg.dtype is not target and not arg.weak:
            raise DumpError(f"{row.name} takes {target.name}, not {arg.dtype.name}")
    return join(row.name, args)[0], dtype


def _infer(primitive: Primitive, row: Row, args: Args, attrs: Args, weak: bool) -> Inferred:
    what, count = primitive.name, row.arguments
    if count is not None:
        need(len(args) == count, f"{what} takes {count} arguments, not {len(args)}")
    else:
        need(args != () or what == "doall", f"{what} needs arguments")
    for name, attribute, fits in zip(primitive.attributes, attrs, row.attributes, strict=True):
        need(fits(attribute), f"{attribute!r} is no {name} of {what}")
    if "weak" in primitive.attributes or what == "length":
        said = what == "length" or attrs[primitive.attributes.index("weak")]
        need(weak is said, f"{what} that is {'weak' if weak else 'not weak'}")
    inferred = row.infer(args, attrs)
    if primitive in WITHOUT_IDENTITY:
        need(args[0].axes.only(attrs[0]).size != 0, f"{what} over no elements has no value")
    return inferred


def _may_equal(left: int | Length, right: int | Length) -> bool:
    return left == right or not isinstance(left - right, int)


def _meets(left: Axes, right: Axes) -> bool:
    """Whether both have the same names, in any order, and lengths that may be equal."""
    return left is right or (
        left.same_set(right)
        and all(_may_equal(axis.expression, right[axis.name].expression) for axis in left)
    )


# What rows give ---------------------------------------------------------------------------------


def _same(args: Args, attrs: Args) -> Inferred:
    return args[0].axes, args[0].dtype


def _cast(args: Args, attrs: Args) -> Inferred:
    return args[0].axes, named_dtype(attrs[0])


def _polygamma(args: Args, attrs: Args) -> Inferred:
    need(kind(args[0].dtype) == "f", f"a special function of {args[0].dtype.name}")
    return _same(args, attrs)


def _constant(args: Args, attrs: Args) -> Inferred:
    value, axes, dtype = attrs[0], attrs[1], named_dtype(attrs[2])
    need(all(type(n) is int for n in axes.lengths), f"a constant over {axes}, which are open")
    size = axes.size * stored_dtype(dtype, attrs[3]).itemsize
    if isinstance(value, Frozen):
        array = value.array
        need(array.shape == axes.lengths, f"an array of shape {array.shape} over {axes}")
        stored = stored_dtype(dtype, attrs[3])
        need(array.dtype == stored, f"an array of {array.dtype} as {stored.name}")
        need(size > SMALL_BYTES, f"{size} bytes, which are few, in an array")
    else:
        need(size <= SMALL_BYTES, f"{size} bytes, which are many, outside an array")
        need(len(value) == size, f"{len(value)} bytes for {dtype.name} over {axes}")
        need(dtype is not BOOL or not value.strip(b"\0\1"), "a bool that is neither 0 nor 1")
    return axes, dtype


def _iota(args: Args, attrs: Args) -> Inferred:
    return Axes(attrs[0]), named_dtype(attrs[1])


def _length(args: Args, attrs: Args) -> Inferred:
    need(isinstance(attrs[0], Length), f"the length {attrs[0]}, which is not open")
    return NO_AXES, INT64


def _bits(args: Args, attrs: Args) -> Inferred:
    need(args[0].axes is NO_AXES and args[0].dtype is UINT64, "a counter that is no uint64 scalar")
    need(attrs[0] < 1 << 64 and attrs[3] in ("uint32", "uint64"), "a seed or dtype out of range")
    return attrs[2], named_dtype(attrs[3])


def _has(x: Op, names: tuple[str, ...], what: str) -> None:
    for name in names:
        need(name in x.axes, f"{what} over {name!r}, which is no axis of {x}")


def _reduction(row: Primitive) -> Callable[[Args, Args], Inferred]:
    def infer(args: Args, attrs: Args) -> Inferred:
        _has(args[0], attrs[0], row.name)
        return args[0].axes.without(attrs[0]), _result_dtype(row, args[0])

    return infer


def _along(args: Args, attrs: Args) -> Inferred:
    _has(args[0], attrs[:1], "ordered work")
    return _same(args, attrs)


def _argsort(args: Args, attrs: Args) -> Inferred:
    return _along(args, attrs)[0], INT64


def _top_k(args: Args, attrs: Args) -> Inferred:
    _has(args[0], attrs[:1], "top_k")
    axes, (name, k) = args[0].axes, attrs
    length = axes[name].expression
    need(isinstance(length, Length) or k <= length, f"the top {k} of {axes[name]}")
    return Axes(*[axis.with_length(k) if axis.name == name else axis for axis in axes]), INT64


def _dot(args: Args, attrs: Args) -> Inferred:
    x, y = args
    _has(x, attrs[0], "dot")
    _has(y, attrs[0], "dot")
    need(x.dtype is y.dtype, f"dot of {x.dtype.name} and {y.dtype.name}")
    return join("dot", args)[0].without(attrs[0]), x.dtype


def _broadcast(args: Args, attrs: Args) -> Inferred:
    x, axes = args[0], attrs[0]
    _has_lengths(x.axes, axes.only(x.axes.names))
    return axes, x.dtype


def _reorder(args: Args, attrs: Args) -> Inferred:
    _has_lengths(args[0].axes, attrs[0])
    return attrs[0], args[0].dtype


def _has_lengths(have: Axes, want: Axes) -> None:
    need(_meets(have, want), f"{have} as {want}")


def _rename(args: Args, attrs: Args) -> Inferred:
    have, want = args[0].axes.lengths, attrs[0].lengths
    fits = len(have) == len(want) and all(map(_may_equal, have, want))
    need(fits, f"{args[0].axes} as {attrs[0]}")
    return attrs[0], args[0].dtype


def _flip(args: Args, attrs: Args) -> Inferred:
    _has(args[0], attrs[0], "flip")
    return _same(args, attrs)


def _flatten(args: Args, attrs: Args) -> Inferred:
    axes, (names, merged) = args[0].axes, attrs
    _has(args[0], names, "flatten")
    need(names != (), "flatten of no axes")
    first = axes.index(names[0])
    need(axes.names[first : first + len(names)] == names, f"flatten of {names}, not neighbours")
    size = product(axes[name].expression for name in names)
    need(_may_equal(size, merged.expression), f"{size} elements along {merged}")
    rest = [axis for axis in axes if axis.name not in names]
    return Axes(*rest[:first], merged, *rest[first:]), args[0].dtype


def _unflatten(args: Args, attrs: Args) -> Inferred:
    axes, (name, split) = args[0].axes, attrs
    _has(args[0], (name,), "unflatten")
    need(_may_equal(axes[name].expression, split.size), f"{axes[name]} split into {split}")
    new = [part for axis in axes for part in (split if axis.name == name else [axis])]
    return Axes(*new), args[0].dtype


def _concat(args: Args, attrs: Args) -> Inferred:
    first, name = args[0], attrs[0]
    _has(first, (name,), "concat")
    total: int | Length = 0
    for arg in args:
        need(arg.axes.names == first.axes.names, f"concat of {first.axes} and {arg.axes}")
        need(arg.dtype is first.dtype, f"concat of {first.dtype.name} and {arg.dtype.name}")
        _has_lengths(first.axes.without([name]), arg.axes.without([name]))
        total = total + arg.axes[name].expression
    return Axes(*[a.with_length(total) if a.name == name else a for a in first.axes]), first.dtype


def _pad(args: Args, attrs: Args) -> Inferred:
    (x, value), widths = args, attrs[0]
    need(len(widths) == len(x.axes), f"{len(widths)} widths for {x.axes}")
    need(value.axes is NO_AXES and value.dtype is x.dtype, f"pad of {x.dtype.name} with {value!r}")
    axes = [
        axis if width is None else axis.with_length(axis.expression + width[0] + width[1])
        for axis, width in zip(x.axes, widths, strict=True)
    ]
    return Axes(*axes), x.dtype


def _gather(args: Args, attrs: Args) -> Inferred:
    x, index = args[:2]
    _has(x, attrs[:1], "gather or scatter")
    need(index.dtype is INT64, f"an index of {index.dtype.name}")
    shared = [axis.name for axis in index.axes if axis in x.axes and axis.name != attrs[0]]
    _has_lengths(index.axes.only(shared), x.axes.only(shared))
    return gathered_axes(x.axes, index.axes, attrs[0]), x.dtype


def _scatter(args: Args, attrs: Args) -> Inferred:
    x, _, value = args
    places = _gather(args, attrs)[0]
    need(_meets(value.axes, places), f"scatter of {value.axes} to {places}")
    need(value.dtype is x.dtype, f"scatter of {value.dtype.name} into {x.dtype.name}")
    return x.axes, x.dtype


def _slice(args: Args, attrs: Args) -> Inferred:
    return Axes(*_taken(args[0], attrs[0], args[1:], 1)), args[0].dtype


def _update(args: Args, attrs: Args) -> Inferred:
    need(len(args) >= 2, "update without a value")
    x, value, *positions = args
    part = Axes(*_taken(x, attrs[0], tuple(positions), 2))
    _has_lengths(value.axes, part)
    need(value.axes.names == part.names, f"update of {part} with {value.axes}")
    need(value.dtype is x.dtype, f"update of {x.dtype.name} with {value.dtype.name}")
    return x.axes, x.dtype


def _taken(x: Op, items: Args, positions: Args, first: int) -> list[Axis]:
    """The axes of the part of ``x`` that ``items`` take."""
    need(len(items) == len(x.axes), f"{len(items)} positions for {x.axes}")
    kept: list[Axis] = []
    asked = first
    for axis, item in zip(x.axes, items, strict=True):
        if item is None:
            kept.append(axis)
        elif item[0] == "range":
            start, stop, step = item[1:]
            _inside(start, stop, axis)
            kept.append(axis.with_length(floor_divide(stop - start + (step - 1), step)))
        elif item[0] == "at":
            _inside(item[1], item[1] + 1, axis)
        else:
            need(item[1] == asked, f"position {item[1]} where {asked} is next")
            asked += 1
    need(asked - first == len(positions), f"{len(positions)} positions, {asked - first} used")
    for position in positions:
        need(position.axes is NO_AXES and kind(position.dtype) == "i", "a position is no integer")
    return kept


def _inside(start: int | Length, stop: int | Length, axis: Axis) -> None:
    for difference in (start, axis.expression - stop):
        inside = isinstance(difference, Length) or difference >= 0
        need(inside, f"{start} to {stop}, which is not inside axis {axis}")


def _assign(args: Args, attrs: Args) -> Inferred:
    target, value = args
    need(storage_of(target) is not None, f"an assignment to {target}")
    need(_meets(target.axes, value.axes), f"{value.axes} assigned to {target.axes}")
    need(target.axes.names == value.axes.names, f"{value.axes} assigned to {target.axes}")
    need(target.dtype is value.dtype, f"{value.dtype.name} assigned to {target.dtype.name}")
    return NO_AXES, VOID_DTYPE


def _void(args: Args, attrs: Args) -> Inferred:
    return NO_AXES, VOID_DTYPE


def _last(args: Args, attrs: Args) -> Inferred:
    return args[-1].axes, args[-1].dtype


class Row(NamedTuple):
    """How many arguments a row takes (None: any number), its attributes, what it gives."""

    arguments: int | None
    attributes: tuple[Callable[[Any], bool], ...]
    infer: Callable[[Args, Args], Inferred]


ORDERLY = ("doall", "sequential")  # their arguments need no value
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")

ROWS: dict[str, Row] = {
    "constant": Row(0, (is_content, is_axes, is_dtype, is_flag), _constant),
    "iota": Row(0, (is_axis, is_dtype), _iota),
    "length": Row(0, (is_length,), _length),
    "random_bits": Row(1, (is_count, is_count, is_axes, is_dtype), _bits),
    "cast": Row(1, (is_dtype, is_flag), _cast),
    "stop_gradient": Row(1, (is_flag,), _same),
    "copy": Row(1, (is_layout, is_count), _same),
    "polygamma": Row(1, (is_count,), _polygamma),
    "erfcx_derivative": Row(1, (is_count,), _polygamma),
    **{name: Row(1, (is_names,), _reduction(PRIMITIVES[name])) for name in REDUCTIONS},
    "cumsum": Row(1, (is_name, is_flag, is_flag), _along),
    "cumprod": Row(1, (is_name, is_flag, is_flag), _along),
    "sort": Row(1, (is_name,), _along),
    "argsort": Row(1, (is_name,), _argsort),
    "top_k": Row(1, (is_name, is_count), _top_k),
    "dot": Row(2, (is_names,), _dot),
    "broadcast": Row(1, (is_axes,), _broadcast),
    "reorder": Row(1, (is_axes,), _reorder),
    "rename": Row(1, (is_axes,), _rename),
    "flip": Row(1, (is_names,), _flip),
    "flatten": Row(1, (is_names, is_axis), _flatten),
    "unflatten": Row(1, (is_name, is_axes), _unflatten),
    "concat": Row(None, (is_name,), _concat),
    "pad": Row(2, (is_widths,), _pad),
    "gather": Row(2, (is_name,), _gather),
    "scatter": Row(3, (is_name, is_mode), _scatter),
    "slice": Row(None, (is_items,), _slice),
    "update": Row(None, (is_items,), _update),
    "assign": Row(2, (), _assign),
    "doall": Row(None, (), _void),
    "sequential": Row(None, (is_flag,), _last),
    "print": Row(1, (is_text,), _same),
}
