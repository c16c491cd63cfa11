"""Nodes as geon ops: reads and writes of tensors and their parts, loops and branches of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import geon

from ...errors import ArgumentError
from ..positional import movement
from ..positional.programs import cast
from ..positional.reshaping import reshape
from ..positional.values import PositionalArray, Value, array, as_array, renamed
from .tensors import Part, TensorParam, root


def part_value(part: Part, whole: Value) -> Value:
    """Return the part of a value."""
    if part.slices is None:
        return reshape(whole, part.shape)
    cuts = {k: movement.Part(s.start, s.stop, s.step) for k, s in enumerate(part.slices)}
    return movement.slices(whole, {k: c for k, c in cuts.items() if whole.shape[k] != 1})


def with_part(part: Part, whole: Value, new: Value) -> Value:
    """Return the value with a part replaced."""
    if part.slices is None:
        return reshape(new, [int(n) for n in whole.shape])
    given, value = as_array(whole), as_array(cast(new, whole.dtype))
    at: dict[Any, Any] = {}
    names: list[str | None] = []
    for dim, cut, own in zip(given.dims, part.slices, value.dims, strict=True):
        if dim is not None:
            at[dim.name] = cut.start if own is None else cut
        names.append(None if own is None or dim is None else dim.name)
    tensor = geon.update(given.tensor, renamed(value, names).tensor, at) if at else value.tensor
    return array(tensor, [None if d is None else d.name for d in given.dims])


# A slot is a tensor or a symbol: ``base`` is what it is a ``part`` of, None for a whole.
# A node is a ``graph_base.GraphNode``.
Env = dict[Any, Any]


def read(env: Env, slot: Any) -> Value:
    """Return the value of a slot."""
    if slot.base is not None:
        found: Value = part_value(slot.part, read(env, slot.base))
        return found
    if slot not in env:
        raise ArgumentError(
            f"{slot} is read and has no value: bind a tensor to it, or compute it before"
        )
    value: Value = env[slot]
    return value


def write(env: Env, slot: Any, value: Value) -> None:
    """Set the value of a slot; the rest of a whole that has no value is 0."""
    if slot.base is None:
        env[slot] = value
        return
    if slot.part.slices is not None and root(slot) not in env:
        env[root(slot)] = zeros(root(slot).param)
    whole = read(env, slot.base) if root(slot) in env else zeros(slot.base.param)
    write(env, slot.base, with_part(slot.part, whole, value))


def zeros(param: TensorParam) -> PositionalArray:
    """Return zeros in the shape and dtype of a param."""
    axes = [None if n == 1 else geon.Axis(f"z_{k}", n) for k, n in enumerate(param.shape)]
    number = geon.constant(0, dtype=param.dtype)
    own = [axis for axis in axes if axis is not None]
    return PositionalArray(geon.broadcast(number, own) if own else number, tuple(axes))


def lower(nodes: Iterable[Any], env: Env, random: Any) -> None:
    """Compute nodes in order, reading and writing the values of ``env``."""
    for node in nodes:
        with node.naming():
            values = [None if x is None else read(env, x) for x in node.inputs]
            results = node.command.apply(values, node.params, random=random)
            if any(y is not None for y in node.outputs[len(results) :]):
                raise ArgumentError(
                    f"it has {len(node.outputs)} outputs, and {node.command.name} gives "
                    f"{len(results)}; give as many"
                )
            for slot, value in zip(node.outputs, results, strict=False):
                if slot is None:
                    continue
                if value is None or tuple(value.shape) != slot.param.shape:
                    raise ArgumentError(
                        f"{node.name} gives {value} for {slot}; give an output of this shape, or "
                        "None"
                    )
                write(env, slot, cast(value, slot.param.dtype))


def outer_reads(nodes: Sequence[Any]) -> list[Any]:
    """Return the wholes that nodes read before they write them, in order."""
    found: dict[Any, None] = {}
    done: set[Any] = set()
    for node in nodes:
        found.update({whole: None for whole in node.reads if whole not in done})
        done.update(node.writes)
    return list(found)


def all_slots(nodes: Iterable[Any]) -> list[Any]:
    """Return the wholes that nodes read or write, in order."""
    return list(dict.fromkeys([s for node in nodes for s in [*node.reads, *node.writes]]))


def reverse(ways: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    """Return the nodes before each node, for those after each."""
    before: dict[Any, list[Any]] = {node: [] for node in ways}
    for node, following in ways.items():
        for each in following:
            before[each].append(node)
    return before


def reached(starts: Iterable[Any], ways: dict[Any, list[Any]]) -> set[Any]:
    """Return the nodes that ways lead to from ``starts``, these included."""
    found: set[Any] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += ways[node]
    return found
