"""Reshape by position: axes are merged and split only where lengths require it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import geon

from ...errors import AxisError
from ...op_graph.axes.lengths import exact_quotient, may_equal, product
from .values import (
    Dim,
    HostArray,
    PositionalArray,
    Positions,
    Size,
    Value,
    array,
    as_array,
    fresh,
    new_axis,
    positions,
)


def reshape(value: Value, shape: Sequence[Size]) -> Value:
    """Return a value with its elements, in row-major order, in another shape.

    One length may be -1: the size of the value divided by the product of the others. Axes whose
    lengths stay keep their names, also open ones.
    """
    kept = [length for length in value.shape if length != 1]
    if not isinstance(value, HostArray) and kept == [length for length in shape if length != 1]:
        given = as_array(value)  # only positions of length 1 come or go: no op is built
        rest = iter([dim for dim in given.dims if dim is not None])
        return PositionalArray(given.tensor, tuple([None if n == 1 else next(rest) for n in shape]))
    target = solved(value, shape)
    if isinstance(value, HostArray) and all(isinstance(length, int) for length in target):
        return HostArray(value.array.reshape([int(n) for n in target]), value.dtype)
    given = as_array(value)
    lengths = [length for length in target if length != 1]
    old = [dim for dim in given.dims if dim is not None]
    tensor = given.tensor
    made: list[str] = []
    for before, after in _groups([dim.expression for dim in old], lengths):
        parts = [old[k] for k in before]
        tensor, new = _regrouped(tensor, parts, [lengths[k] for k in after], made)
        made += new
    names = iter(made)
    return array(tensor, [None if length == 1 else next(names) for length in target])


def solved(value: Value, shape: Sequence[Size]) -> list[Size]:
    """Return a shape with -1 replaced; raise ``AxisError`` if the sizes differ."""
    size = product(value.shape)
    unknown = [k for k, length in enumerate(shape) if isinstance(length, int) and length == -1]
    others = product([length for k, length in enumerate(shape) if k not in unknown])
    text = f"{value} cannot be reshaped to ({', '.join(map(str, shape))})"
    if len(unknown) > 1:
        raise AxisError(f"{text}: one length may be -1, not {len(unknown)}")
    if any(isinstance(length, int) and length < -1 for length in shape):
        raise AxisError(f"{text}: a length is at least 0, or -1")
    if not unknown:
        if not may_equal(size, others):
            raise AxisError(f"{text}: these are {size} and {others} elements")
        return list(shape)
    if others == 0:
        raise AxisError(f"{text}: -1 has no one value where another length is 0")
    if isinstance(size, int) and isinstance(others, int) and size % others:
        raise AxisError(f"{text}: {size} elements are no multiple of {others}")
    exact = exact_quotient(size, others)
    found = size // others if exact is None else exact
    return [found if k in unknown else length for k, length in enumerate(shape)]


def _groups(old: list[Size], new: list[Size]) -> list[tuple[list[int], list[int]]]:
    """Return runs of old and new positions with equal products, as short as lengths tell."""
    if any(isinstance(n, int) and n == 0 for n in [*old, *new]):
        return [(list(range(len(old))), list(range(len(new))))]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        before, after = [i] if i < len(old) else [], [j] if j < len(new) else []
        left: Size = old[i] if before else 1
        right: Size = new[j] if after else 1
        i, j = i + len(before), j + len(after)
        while left != right and (i < len(old) or j < len(new)):
            take_old, take_new = _shorter(left, right)
            if (take_old or j == len(new)) and i < len(old):
                before.append(i)
                left, i = left * old[i], i + 1
            elif (take_new or i == len(old)) and j < len(new):
                after.append(j)
                right, j = right * new[j], j + 1
        groups.append((before, after))
    return groups


def _shorter(left: Size, right: Size) -> tuple[bool, bool]:
    """Return which of two products needs another factor: the first, the second."""
    if isinstance(left, int) and isinstance(right, int):
        return left < right, left > right
    if exact_quotient(right, left) is not None:
        return True, False
    if exact_quotient(left, right) is not None:
        return False, True
    return (True, False) if isinstance(left, int) else (False, True)


def _regrouped(
    tensor: geon.Tensor, old: list[geon.Axis], lengths: list[Size], made: list[str]
) -> tuple[geon.Tensor, list[str]]:
    """Merge ``old`` axes and split the result into ``lengths``; return the names, in order."""
    if len(old) == len(lengths) == 1 and old[0].expression == lengths[0]:
        return tensor, [old[0].name]
    taken = [*tensor.axes.without(old).names, *made]
    if not old:  # a length that is 1 for the data of a call, or an error then
        axes = _split_axes("d", lengths, taken)
        one = geon.expand(tensor, geon.Axis(fresh("d", taken), 1))
        merged = one.axes[0].name
        return geon.unflatten(one, merged, axes), [axis.name for axis in axes]
    whole = product([axis.expression for axis in old])
    if len(old) == 1:
        merged, base = old[0].name, old[0].name
    else:
        base = _merged_name([axis.name for axis in old])
        merged = fresh(base, taken)
        tensor = geon.flatten(tensor, old, geon.Axis(merged, whole))
    if not lengths:  # likewise
        return geon.unflatten(tensor, merged, [geon.Axis(merged, 1)])[{merged: 0}], []
    if len(lengths) == 1 and whole == lengths[0]:
        return tensor, [merged]
    axes = _split_axes(base, lengths, taken)
    return geon.unflatten(tensor, merged, axes), [axis.name for axis in axes]


def _merged_name(names: list[str]) -> str:
    """Return the name of merged axes: that of the axis that was split into them, or all joined."""
    stem = names[0].removesuffix("_1")
    if names == [f"{stem}_{number}" for number in range(1, len(names) + 1)]:
        return stem
    return "_".join(names)


def _split_axes(base: str, lengths: list[Size], taken: list[str]) -> list[geon.Axis]:
    axes: list[geon.Axis] = []
    for number, length in enumerate(lengths, 1):
        name = base if len(lengths) == 1 else f"{base}_{number}"
        axes.append(new_axis(length, name, [*taken, *[axis.name for axis in axes]]))
    return axes


def flatten_to(value: Value, first: int, last: int) -> Value:
    """Merge the positions from ``first`` up to, without, ``last`` into one."""
    shape = value.shape
    return reshape(value, [*shape[:first], product(shape[first:last]), *shape[last:]])


def transpose(value: Value, perm: Sequence[int] | None = None) -> Value:
    """Return a value with its positions in another order, by default reversed; no op is built."""
    rank = len(value.shape)
    at = list(range(rank))[::-1] if perm is None else positions(perm, rank)
    if len(at) < rank:
        raise AxisError(f"{at} is no order of the {rank} positions of {value}")
    if isinstance(value, HostArray):
        return HostArray(np.transpose(value.array, at), value.dtype)
    given = as_array(value)
    return PositionalArray(given.tensor, tuple([given.dims[k] for k in at]))


def squeeze(value: Value, axes: Positions = None) -> Value:
    """Remove these positions, whose lengths must be 1; by default all of length 1."""
    shape = value.shape
    gone = [k for k, n in enumerate(shape) if n == 1]
    gone = gone if axes is None else positions(axes, len(shape))
    wrong = [k for k in sorted(gone) if not may_equal(shape[k], 1)]
    if wrong:
        raise AxisError(f"dimension {wrong[0]} of {value} cannot be squeezed: its length is no 1")
    kept = [length for k, length in enumerate(shape) if k not in gone]
    if isinstance(value, HostArray):
        return HostArray(value.array.reshape([int(n) for n in kept]), value.dtype)
    given = as_array(value)
    if any(given.dims[k] is not None for k in gone):  # an open length, which must be 1 in a call
        return reshape(value, kept)
    return PositionalArray(
        given.tensor, tuple([d for k, d in enumerate(given.dims) if k not in gone])
    )


def unsqueeze(value: Value, axes: Sequence[int]) -> Value:
    """Insert positions of length 1, counted in the result; no op is built."""
    new = positions(axes, len(value.shape), len(axes))
    if isinstance(value, HostArray):
        return HostArray(np.expand_dims(value.array, tuple(new)), value.dtype)
    given = as_array(value)
    rest = iter(given.dims)
    rank = len(given.dims) + len(new)
    dims: list[Dim] = [None if k in new else next(rest) for k in range(rank)]
    return PositionalArray(given.tensor, tuple(dims))


def by_channel(value: Value, rank: int) -> Value:
    """Return a vector over channels so that it aligns with position 1 of ``rank`` positions."""
    return unsqueeze(value, range(1, rank - 1)) if rank > 2 else value
