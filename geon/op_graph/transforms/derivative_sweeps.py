"""Reverse-mode and forward-mode sweeps over a graph.

Only this file handles broadcasting, accumulation and source lines of derivatives; rules give
partials, transposes or linear maps of their own primitive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from ...errors import DerivativeError
from ..building.constants import as_tensor, is_constant, scalar_value
from ..building.rebuild import with_args
from ..building.weak import strengthen
from ..core.source_info import building, with_remark
from ..op_graph import NO_AXES, Op, RegionOp, Tensor, post_order
from ..rows.accumulation import accumulate, round_total
from ..rows.elementwise import CAST, cast, multiply, negative
from ..rows.leaves import placeholder
from ..rows.movement import broadcast, sum_to
from ..syntax.operators import LATE_BOUND, is_function
from ..values.dtypes import (
    FLOAT32,
    HALVES,
    DType,
    complex_dtype,
    is_continuous,
    is_float8,
    kind,
    name_of,
    number_dtype,
)

# Reverse mode -----------------------------------------------------------------------------------


def reverse_mode(
    y: Tensor, seed: Tensor, targets: Sequence[Op], known: Set[Op] = frozenset()
) -> dict[Op, Tensor]:
    """Return the cotangent of every target that ``y`` depends on, from the cotangent ``seed``.

    Each has the dtype of its target. Ops in ``known`` are treated as independent of the targets, so
    nothing below them is visited.
    """
    adjoints = cotangents({y: seed}, targets, known)
    return {op: round_total(g, op.dtype) for op, g in adjoints.items()}


def cotangents(
    seeds: Mapping[Op, Tensor], targets: Sequence[Op], known: Set[Op] = frozenset()
) -> dict[Op, Tensor]:
    """Return the cotangents of targets for several ops at once, from the cotangents in ``seeds``.

    Seeds and results may be totals, in the accumulator dtype of their op. A total is rounded when a
    rule uses it, except by regions, which go on adding to it, by casts, and where a partial is a
    number. So a total is rounded once through the sums of a chain of ``x + f(x)``.
    """
    order = post_order(seeds, known)
    wanted = set(targets)
    on_path: set[Op] = set()
    for op in order:
        if op in wanted or any(arg in on_path for arg in op.args):
            on_path.add(op)
    parts: dict[Op, Tensor] = dict(seeds)
    given: dict[Op, dict[int, Tensor]] = {}  # cotangents of the results of regions, by number
    kept: dict[Op, Tensor] = {}
    with building() as current:
        for op in reversed(order):
            g = parts.pop(op, None)
            if (g is None and op not in given) or op not in on_path:
                continue
            current.site = with_remark(op._site, f"derivative of {op.primitive.name}")
            if g is None:
                contributions = _cotangents_of_region(op, given.pop(op), on_path)
            elif op.args and isinstance(op.args[0], RegionOp):
                given.setdefault(op.args[0], {})[op.attrs.number] = g
                contributions = iter(())
            else:
                contributions = _cotangents(op, g, on_path)
            if op in wanted and g is not None:
                kept[op] = g
            for arg, part in contributions:
                parts[arg] = accumulate(parts.get(arg), part)
    return kept


def _cotangents_of_region(
    op: Op, given: Mapping[int, Tensor], on_path: Set[Op]
) -> Iterator[tuple[Op, Tensor]]:
    """Yield the cotangents of a region's arguments on the path, from those of its results."""
    if op.primitive.vjp is None:
        raise _missing(op)
    assert op.primitive.outcomes is not None
    outcomes = op.primitive.outcomes(op.attrs)
    count = len(outcomes)
    _refuse_float8(op, [arg.dtype for arg in op.args if arg in on_path], outcomes)
    wanted = [arg in on_path and is_continuous(arg.dtype) for arg in op.args]
    every = op.primitive.vjp([given.get(k) for k in range(count)], op, wanted)
    for arg, part in zip(op.args, every, strict=True):
        if part is not None and arg in on_path:
            yield arg, part


def _cotangents(op: Op, g: Tensor, on_path: set[Op]) -> Iterator[tuple[Op, Tensor]]:
    """Yield the cotangents of the arguments on the path, from the cotangent ``g`` of the result."""
    row = op.primitive
    if row is CAST and op.args[0] in on_path:
        _refuse_float8(op.args[0], [op.args[0].dtype])
    narrow = round_total(g, op.dtype)
    every = row.vjp(narrow, op) if row.vjp is not None else None
    for i, arg in enumerate(op.args):
        if arg in on_path and is_continuous(arg.dtype):
            takes_total = row is CAST or (
                row.partials is not None and not callable(row.partials[i])
            )
            given = g if takes_total else narrow
            part = every[i] if every is not None else _cotangent(op, i, arg, given)
            if part is not None:
                yield arg, part


def _cotangent(op: Op, i: int, arg: Op, g: Tensor) -> Tensor | None:
    """Return the cotangent of argument i of ``op`` from the cotangent ``g`` of its result."""
    row = op.primitive
    if row.partials is not None:
        part = _times_partial(op, i, row.partials[i], g)
        return None if part is None else sum_to(_of_kind(part, arg), arg.axes)
    if row.transpose is not None:
        part = row.transpose(g, op, i)
        if part is not None and part.axes is not arg.axes and row.kind == "elementwise":
            part = sum_to(part, arg.axes)
        return part
    if row.linearise is not None:
        return _transposed(op, row.linearise, i, g)
    if not is_continuous(op.dtype):
        return None
    raise _missing(op)


def _times_partial(op: Op, i: int, partial: Any, g: Tensor) -> Tensor | None:
    if is_function(partial):
        if _is_function_of_halves(op):
            return _times_wide_partial(op, i, partial, g)
        partial = partial(op, *_full(op))
    if partial is None:
        return None
    if isinstance(partial, Tensor):
        if is_constant(g, 1.0):
            return strengthen(partial, _common(g, partial.dtype))
        value = scalar_value(partial)
        if value is None or partial.weak:
            return multiply.apply(g, partial)
        partial = value
    if partial == 1.0:
        return g
    factor = partial if isinstance(partial, complex) else float(partial)
    if is_constant(g, 1.0):
        return strengthen(as_tensor(factor), _common(g, number_dtype(factor)))
    return negative.apply(g) if partial == -1.0 else multiply.apply(g, factor)


def _common(g: Tensor, dtype: DType) -> DType:
    """Return the dtype of ``g`` times a partial of ``dtype``."""
    return complex_dtype(g.dtype) if kind(dtype) == "c" else g.dtype


def _of_kind(part: Tensor, of: Op) -> Tensor:
    """Return a derivative of a real value as real, and one of a complex value as complex."""
    if kind(part.dtype) == "c" and kind(of.dtype) == "f":
        result: Tensor = LATE_BOUND["real"](part)
        return result
    return cast(part, of.dtype) if kind(part.dtype) == "f" and kind(of.dtype) == "c" else part


def _is_function_of_halves(op: Op) -> bool:
    """Return True if targets compute ``op`` on halves in float32.

    False for arithmetic, whose partials are its operands.
    """
    rule = getattr(op.primitive, "rule", "float")
    return rule == "float" and name_of(op.dtype) in HALVES and not getattr(op, "weak", False)


def _times_wide_partial(op: Op, i: int, partial: Any, g: Tensor) -> Tensor | None:
    """Return ``_times_partial`` computed in float32, like the function, and rounded once."""
    args: Any = op.args
    wide = with_args(op, tuple(cast(arg, FLOAT32) for arg in args), FLOAT32)
    value = partial(wide, *_full(wide))
    result = _times_partial(wide, i, value, g if is_constant(g, 1.0) else cast(g, FLOAT32))
    return None if result is None else cast(result, op.dtype)


def _full(op: Op) -> list[Any]:
    """Return the arguments broadcast to the op's axes, so that rules may combine them freely."""
    args: Any = op.args
    return [
        arg if arg.axes is op.axes or arg.axes is NO_AXES else broadcast(arg, op.axes)
        for arg in args
    ]


def _transposed(op: Op, linearise: Any, i: int, g: Tensor) -> Tensor | None:
    """Return the transpose of the linear map ``linearise``, by a reverse sweep through that map."""
    tangent = placeholder(op.args[i].axes, op.args[i].dtype)
    pushed: Tensor | None = linearise(op, i, tangent)
    if pushed is None:
        return None
    known = {op, *op.args}
    return reverse_mode(pushed, broadcast(g, pushed.axes), [tangent], known).get(tangent)


def _missing(op: Op) -> DerivativeError:
    return DerivativeError(
        f"{op.primitive.name} has no derivative: {op} was made at {op.line_info}; "
        "geon.stop_gradient(x) treats it as a constant, geon.custom_deriv gives it a rule"
    )


def _refuse_float8(op: Op, dtypes: Iterable[DType], outcomes: Any = ()) -> None:
    """Raise ``DerivativeError`` if a derivative goes through float8 values of ``op``.

    ``outcomes`` are the axes and dtypes of the results of a region.
    """
    for dtype in (*dtypes, *(dtype for _, dtype in outcomes)):
        if is_float8(dtype):
            raise DerivativeError(
                f"a derivative goes through {op} (made at {op.line_info}), where values are "
                f"{dtype.name}, which has no derivative; to take the rounding as the identity, "
                "write x + geon.stop_gradient(rounded - x), with rounded cast back to x.dtype"
            )


def zeros(x: Op) -> Tensor:
    """Return 0 over the axes of ``x``, in its dtype."""
    return broadcast(strengthen(as_tensor(0), x.dtype), x.axes)


# Forward mode -----------------------------------------------------------------------------------


def forward_mode(ys: Sequence[Op], tangents: Mapping[Op, Tensor]) -> dict[Op, Tensor]:
    """Return the tangents of ``ys`` from those of some ops below them; no entry for a zero one.

    The result also has the tangents of the ops in between.
    """
    known: dict[Op, Tensor] = dict(tangents)
    order = post_order(ys)
    needed = _needed(order, ys)
    regions: dict[Op, Sequence[Tensor | None]] = {}  # tangents of the results of regions
    with building() as current:
        for op in order:
            if op in needed and isinstance(op, RegionOp) and any(a in known for a in op.args):
                current.site = with_remark(op._site, f"tangent of {op.primitive.name}")
                assert op.primitive.outcomes is not None
                _refuse_float8(op, (), op.primitive.outcomes(op.attrs))
                regions[op] = _tangents_of_region(op, known)
            if op in needed and op.primitive is CAST and op.args[0] in known:
                _refuse_float8(op, [op.dtype])
            if op in known or op not in needed or not is_continuous(op.dtype):
                continue
            if op.args and op.args[0] in regions:
                tangent = regions[op.args[0]][op.attrs.number]
                if tangent is not None:
                    known[op] = tangent
                continue
            moving = [i for i, arg in enumerate(op.args) if arg in known]
            if moving:
                current.site = with_remark(op._site, f"tangent of {op.primitive.name}")
                t = _tangent(op, moving, known)
                if t is not None:
                    known[op] = broadcast(t, op.axes)
    return known


def _needed(order: Sequence[Op], ys: Iterable[Op]) -> set[Op]:
    """Return the ops whose tangents are used: not those only below partials that are zero."""
    needed = set(ys)
    for op in reversed(order):
        if op in needed:
            row = op.primitive
            if row.infer is None:  # a call, whose value is its first argument
                needed.update(op.args[1:])
            elif row.partials is not None:
                pairs = zip(op.args, row.partials, strict=True)
                needed.update(arg for arg, partial in pairs if partial is not None)
            else:
                needed.update(op.args)
    return needed


def _tangents_of_region(op: Op, known: Mapping[Op, Tensor]) -> Sequence[Tensor | None]:
    """Return the tangents of a region's results, None for zero."""
    if op.primitive.jvp is None:
        raise _missing(op)
    result: Sequence[Tensor | None] = op.primitive.jvp(op, [known.get(arg) for arg in op.args])
    return result


def _tangent(op: Op, moving: list[int], tangents: dict[Op, Tensor]) -> Tensor | None:
    row = op.primitive
    if row.jvp is not None:
        pushed: Tensor | None = row.jvp(op, moving, tangents)
        return pushed
    if row.partials is not None:
        return _sum(
            op,
            (
                _times_partial(op, i, row.partials[i], broadcast(tangents[op.args[i]], op.axes))
                for i in moving
            ),
        )
    if row.transpose is not None and row.multilinear:
        return _sum(op, (_replaced(op, {i: tangents[op.args[i]]}) for i in moving))
    if row.transpose is not None:
        return _tangent_of_linear(op, moving, tangents)
    if row.linearise is not None:
        return _sum(op, (row.linearise(op, i, tangents[op.args[i]]) for i in moving))
    raise _missing(op)


def _tangent_of_linear(op: Op, moving: list[int], tangents: dict[Op, Tensor]) -> Tensor | None:
    """Return the tangent of an op that is jointly linear in several arguments.

    Arguments without a tangent are replaced by zeros.
    """
    linear = [i for i, arg in enumerate(op.args) if is_continuous(arg.dtype)]
    if not any(i in linear for i in moving):
        return None
    zero = {i: zeros(op.args[i]) for i in linear}
    return _replaced(op, {**zero, **{i: tangents[op.args[i]] for i in moving}})


def _replaced(op: Op, new: Mapping[int, Tensor]) -> Tensor:
    result = with_args(op, tuple(new.get(i, arg) for i, arg in enumerate(op.args)))
    assert isinstance(result, Tensor)
    return result


def _sum(op: Op, parts: Iterable[Tensor | None]) -> Tensor | None:
    """Return the sum of the tangents of ``op``, in its dtype; None if all are zero."""
    total: Tensor | None = None
    for part in parts:
        if part is not None:
            total = accumulate(total, _of_kind(part, op))
    return None if total is None else round_total(total, op.dtype)
