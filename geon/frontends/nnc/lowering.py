"""Nodes as geon ops: reads and writes of tensors and their parts, loops and branches of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import geon

from ...errors import ArgumentError
from ..positional import movement
from ..positional.programs import cast
from ..positional.regions import fitted, ordered
from ..positional.reshaping import reshape
from ..positional.values import PositionalArray, Value, array, as_array, renamed
from .commands.command import Command, CommandRow
from .tensors import Part, TensorParam


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


# A slot is a tensor or a symbol: ``base`` is what it is a ``part`` of, None for a whole. A node is a
# ``graph_base.GraphNode``.
Env = dict[Any, Any]


def root(slot: Any) -> Any:
    """Return the whole that a slot is a part of."""
    while slot.base is not None:
        slot = slot.base
    return slot


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
        values = [None if x is None else read(env, x) for x in node.inputs]
        layout = next((x.param.format for x in node.inputs if x is not None), "NHWC")
        results = node.command.apply(values, node.params, format=layout, random=random)
        for slot, value in zip(node.outputs, results, strict=False):
            if slot is None:
                continue
            if value is None or tuple(value.shape) != slot.param.shape:
                raise ArgumentError(
                    f"{node.name} gives {value} for {slot}; give an output of this shape, or None"
                )
            write(env, slot, cast(value, slot.param.dtype))


def outer_reads(nodes: Sequence[Any]) -> list[Any]:
    """Return the wholes that nodes read before they write them, in order."""
    found: dict[Any, None] = {}
    done: set[Any] = set()
    for node in nodes:
        for slot in node.inputs:
            if slot is not None and root(slot) not in done:
                found[root(slot)] = None
        done |= {root(slot) for slot in node.outputs if slot is not None}
    return list(found)


# Loops and branches -------------------------------------------------------------------------------

Condition = Callable[..., Any]


def tensors_of(env: Env, slots: Iterable[Any]) -> list[geon.Tensor]:
    """Return the tensors of slots for a condition of the user."""
    return [as_array(read(env, slot)).tensor for slot in slots]


def loop_command(
    before: Sequence[Any], after: Sequence[Any], condition: Condition | int, reads: Sequence[Any],
    carries: dict[Any, Any], outputs: Sequence[Any], max_steps: int | None = None,
) -> tuple[Command, list[Any]]:  # fmt: skip
    """Return the command of a loop over nodes, and the slots that are its inputs.

    In each step ``before`` run, the condition is tested, and ``after`` run; then each key of
    ``carries`` gets the value of its slot. An integer is the number of steps. ``condition`` takes
    the number of steps so far and the tensors of ``reads``. ``outputs`` are slots of the loop; one
    that no step computed is 0.
    """
    body = [*before, *after]
    made = {root(slot) for node in body for slot in node.outputs if slot is not None}
    inputs = list(dict.fromkeys(
        [*carries, *[s for s in outer_reads(body) if s not in made],
         *[root(s) for s in [*reads, *outputs, *carries.values()] if root(s) not in made]]
    ))  # fmt: skip
    kept = [s for s in dict.fromkeys([*carries.values(), *outputs]) if root(s) in made]

    def build(*values: Value) -> list[Value]:
        outer = dict(zip(inputs, values, strict=True))
        random = geon.Random(0)
        first: list[Value] = [outer[slot] for slot in carries]
        first += [
            outer[next(x for x, y in carries.items() if y is s)]
            if any(y is s for y in carries.values())
            else zeros(s.param)
            for s in kept
        ]
        like = [ordered(value) for value in first]

        def entered(tensors: Sequence[geon.Tensor], nodes: Sequence[Any]) -> Env:
            held = [array(t, p.dims) for t, p in zip(tensors, like, strict=True)]
            env = {**outer, **dict(zip(carries, held, strict=False))}
            for slot, value in zip(kept, held[len(carries) :], strict=True):
                if root(slot) not in env and slot.base is None:
                    env[slot] = value
            lower(nodes, env, random)
            return env

        def step(tensors: Sequence[geon.Tensor]) -> list[geon.Tensor]:
            env = entered(tensors, body)
            slots = [*carries.values(), *kept]
            return [
                fitted(as_array(read(env, slot), p.dims), p, f"the carry {slot}")
                for slot, p in zip(slots, like, strict=True)
            ]

        start = [value.tensor for value in like]
        if isinstance(condition, int):
            axis = geon.Axis("loop_step", condition)
            last, _ = geon.scan(lambda old, _: (step(old), None), start, over=axis)
        else:
            test = condition

            def more(state: tuple[Any, list[geon.Tensor]]) -> geon.Tensor:
                env = entered(state[1], before)
                return geon.cast(test(state[0], *tensors_of(env, reads)), "bool")

            count = geon.constant(0, dtype="int64")
            _, last = geon.while_loop(
                more, lambda state: (state[0] + 1, step(state[1])), (count, start), max_steps
            )
        env = entered(last, before)
        return [read(env, slot) for slot in outputs]

    return Command(CommandRow("graph", lambda *v: build(*v), lambda *_: len(outputs))), inputs


def case_command(
    index: Condition, reads: Sequence[Any], cases: Sequence[tuple[Sequence[Any], Sequence[Any]]],
    default: Sequence[Any] | None,
) -> tuple[Command, list[Any]]:  # fmt: skip
    """Return the command that runs one of several lists of nodes, and its inputs.

    ``index`` takes the tensors of ``reads`` and returns an integer. Each case has its nodes and the
    slots of its results. ``default`` are the slots whose values replace the results if the index
    is out of range; without them that raises in the call.
    """
    slots: dict[Any, None] = {root(slot): None for slot in [*reads, *(default or [])]}
    for nodes, results in cases:
        made = {root(slot) for node in nodes for slot in node.outputs if slot is not None}
        slots.update(dict.fromkeys(outer_reads(nodes)))
        slots.update({root(slot): None for slot in results if root(slot) not in made})
    inputs = list(slots)
    shapes = [slot.param for slot in cases[0][1]]

    def build(*values: Value) -> list[Value]:
        outer = dict(zip(inputs, values, strict=True))
        like = [ordered(zeros(param)) for param in shapes]

        def branch(nodes: Sequence[Any], results: Sequence[Any]) -> Callable[[], Any]:
            def run() -> list[geon.Tensor]:
                env = dict(outer)
                lower(nodes, env, geon.Random(0))
                return [
                    fitted(as_array(read(env, slot), p.dims), p, f"the result {slot} of a case")
                    for slot, p in zip(results, like, strict=True)
                ]

            return run

        number = geon.cast(index(*tensors_of(outer, reads)), "int64")
        branches = [branch(nodes, results) for nodes, results in cases]
        found = geon.case_of(number, branches, None if default is None else branch([], default))
        return [array(t, p.dims) for t, p in zip(found, like, strict=True)]

    return Command(CommandRow("graph", lambda *v: build(*v), lambda *_: len(shapes))), inputs
