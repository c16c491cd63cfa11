"""Batching of graphs over additional axes, as ``vmap`` does: one rule per kind of primitive.

``with_further`` rebuilds ops on arguments with further axes, which come last. So one derivative
that is linear in a seed serves many seeds at once, and a derivative with respect to a separate
weight for each example gives per-example gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError, AxisError, DerivativeError
from ..axes.affine import variable
from ..axes.axes import Axes, Axis, axes_of
from ..axes.index_map import EVERY, atoms, identity, reads
from ..building.elementwise_build import broadcast_over
from ..core.source_info import building, with_remark
from ..op_graph import Op, RegionOp, Tensor, intern, make, post_order
from ..rows.elementwise import cast, equal
from ..rows.leaves import iota
from ..rows.logic import logical_and
from ..rows.movement import broadcast, cast_axes
from ..values.dtypes import DType


def with_further(
    roots: Sequence[Tensor], known: Mapping[Op, Tensor], axes: Axes, what: str
) -> list[Tensor]:
    """Return ``roots`` with the keys of ``known`` replaced by its values, which have further axes.

    A value has the axes of its key, then those of ``axes`` that the key lacks; so have the results
    that depend on one. An op that already has one of ``axes`` is matched along it. Raises
    ``DerivativeError`` for an op that mixes elements of different indices along such an axis.
    """
    result = images(roots, known, axes, what)
    return [result.get(op, op) for op in roots]  # type: ignore[misc]  # tensors become tensors


def many_at_once(
    results: Sequence[Tensor], given: Mapping[Tensor, Tensor], many: Axes
) -> list[Tensor]:
    """Return ``results``, linear in the keys of ``given``, batched over the axes ``many``.

    The values of ``given`` have ``many`` besides the axes of their keys. Each result has its own
    axes, then ``many``. During the rebuild these have fresh names, because ops of derivative rules
    may have axes of any name.
    """
    rows = fresh_axes(many, {*names_below(results), *many.names})
    known: dict[Op, Tensor] = {}
    for one, value in given.items():
        whole = broadcast_over(value, Axes(one.axes, many))
        known[one] = cast_axes(whole, Axes(one.axes, rows))
    batched = []
    for result, made in zip(
        results, with_further(results, known, rows, "the derivative"), strict=True
    ):
        whole = broadcast_over(made, Axes(result.axes, rows))
        batched.append(cast_axes(whole, Axes(result.axes, many)))
    return batched


def images(roots: Sequence[Op], known: Mapping[Op, Tensor], axes: Axes, what: str) -> dict[Op, Op]:
    """Map each op below ``roots`` that depends on a key of ``known`` to its batched form."""
    result: dict[Op, Op] = dict(known)
    regions: dict[Op, Sequence[Tensor]] = {}  # results of the batched regions
    with building() as current:
        for op in post_order(roots, known):
            if op.args and op.args[0] in regions:
                result[op] = regions[op.args[0]][op.attrs.number]
                continue
            args = tuple([result.get(arg, arg) for arg in op.args])
            changed = [k for k, arg in enumerate(args) if arg is not op.args[k]]
            if changed and isinstance(op, RegionOp):
                current.site = with_remark(op._site, what)
                regions[op] = _results_again(op, args, axes, what)
            elif changed:
                _refuse_mixing(op, changed, axes, what)
                current.site = with_remark(op._site, what)
                result[op] = _again(op, args, axes, what)
    return result


def _results_again(op: RegionOp, args: tuple[Op, ...], axes: Axes, what: str) -> Sequence[Tensor]:
    """Return the results of a region on arguments that have further axes."""
    batch = op.primitive.batch
    own = [value.name for value in op.attrs if isinstance(value, Axis)]
    if batch is None or any(name in axes for name in own):
        raise _cannot(op, axes, what)
    return batch(op, args, axes, lambda roots, known: images(roots, known, axes, what))


def _again(op: Op, args: tuple[Op, ...], axes: Axes, what: str) -> Tensor:
    """Return ``op`` on arguments that have further axes, over its own axes and these."""
    row = op.primitive
    wanted = Axes(op.axes, [axis for axis in axes if axis not in op.axes])
    if row.kind == "elementwise" or row.infer is None:
        if row.infer is None:  # a call, whose value is its first argument
            args = _with_batch_axes(args, range(len(args)), axes)
        arranged = tuple(dict.fromkeys(n for a in args for n in a.axes.names)) != wanted.names
        result: Any = intern(
            type(op), row, args, op.attrs, wanted, op.dtype,
            weak=op.weak, guards=op.guards, arranged=arranged,
        )  # fmt: skip
        return result  # type: ignore[no-any-return]  # a tensor, as op is
    together = row.batched_together
    args = _with_batch_axes(args, range(len(args)) if together is None else together, axes)
    attrs = op.attrs
    if row.batch_attributes is not None:
        own = op.args[0].axes
        attrs = row.batch_attributes(
            attrs, axes_of(tuple([a for a in args[0].axes if a not in own]))
        )
    try:
        result = make(row, args, attrs, weak=op.weak, guards=op.guards)
    except (ArgumentError, AxisError, DerivativeError) as error:
        raise _cannot(op, axes, what) from error
    if not result.axes.same_set(wanted):
        raise _cannot(op, axes, what)
    return broadcast_over(result, axes_of(tuple([result.axes[name] for name in wanted.names])))


def _with_batch_axes(args: tuple[Any, ...], positions: Iterable[int], axes: Axes) -> tuple[Op, ...]:
    """Return the arguments, with those at these positions broadcast over ``axes``."""
    operands = list(args)
    for k in positions:
        have = operands[k].axes
        operands[k] = broadcast_over(
            operands[k], Axes(have, [axis for axis in axes if axis not in have])
        )
    return tuple(operands)


def _cannot(op: Op, axes: Axes, what: str) -> DerivativeError:
    return DerivativeError(
        f"{what} along {', '.join(axes.names)}: {op} (made at {op.line_info}) has no form for "
        "arguments with such an axis; take derivatives one after another, with seeds"
    )


def _refuse_mixing(op: Op, changed: Sequence[int], axes: Axes, what: str) -> None:
    for axis in axes:
        _refuse_other_length(op, axis, what)
        owned = axis in op.axes or any(axis in arg.axes for arg in op.args)
        if owned and _mixes(op, changed, axis.name):
            raise DerivativeError(
                f"{what} along {axis.name}: {op} (made at {op.line_info}) puts elements of "
                f"different places along {axis.name} together, so that one depends on the others; "
                f"leave out what does, for example a mean over {axis.name}, or take "
                "geon.jacobian(y, x), which holds for all"
            )


def _refuse_other_length(op: Op, axis: Axis, what: str) -> None:
    for one in (op, *op.args):
        if axis in one.axes and one.axes[axis.name].expression != axis.expression:
            raise DerivativeError(
                f"{what} along {axis.name}: there are {axis.expression} places along it in the "
                f"result and {one.axes[axis.name].expression} in {one} (made at {one.line_info}), "
                f"of which a slice, a border or the like was taken; take it of the derivative: "
                f"geon.deriv(y, x, per={axis.name})[{{{axis.name}: ...}}] with y before it"
            )


def _mixes(op: Op, changed: Sequence[int], name: str) -> bool:
    """Return True if an element of ``op`` depends on elements of other indices along an axis."""
    elements = reads(op, identity(op.axes.names))
    return not elements or any(
        piece.index.get(name) is EVERY
        or piece.arg in changed
        and (
            piece.index.get(name, variable(name)) != variable(name)
            or any(name in atoms(guard.index, False) for guard in piece.guards)
            or any(name in atoms(at, False) for own, at in piece.index.items() if own != name)
        )
        for piece in elements
    )


def fresh_axes(axes: Axes, taken: Iterable[str]) -> Axes:
    """Return ``axes`` with primes added to names until none is in ``taken`` or used twice."""
    used = set(taken)
    renamed_axes: list[Axis] = []
    for axis in axes:
        while axis.name in used:
            axis = axis.prime
        used.add(axis.name)
        renamed_axes.append(axis)
    return axes_of(tuple(renamed_axes))


def names_below(roots: Iterable[Op]) -> set[str]:
    """Return the names of all axes of the ops below ``roots``."""
    return {name for op in post_order(roots) for name in op.axes.names}


def same_place(rows: Axes, columns: Axes, dtype: DType) -> Tensor:
    """Return the identity matrix over ``rows`` and ``columns``: 1 where the indices agree."""
    total: Tensor | None = None
    for row, column in zip(rows, columns, strict=True):
        same = equal.apply(iota(row), iota(column))
        total = same if total is None else logical_and.apply(total, same)
    return broadcast(cast(True if total is None else total, dtype), Axes(rows, columns))
