"""Loops and branches of graphs as commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import geon

from ...errors import ArgumentError
from ..positional.regions import fitted, ordered
from ..positional.values import PositionalArray, Value, array, as_array
from .commands.command import Command, CommandRow
from .lowering import Env, lower, outer_reads, reached, read, reverse, zeros
from .tensors import root

Condition = Callable[..., Any]


def tensors_of(env: Env, slots: Iterable[Any]) -> list[geon.Tensor]:
    """Return the tensors of slots for a condition of the user."""
    return [as_array(read(env, slot)).tensor for slot in slots]


def written(nodes: Iterable[Any]) -> set[Any]:
    """Return the wholes that nodes write."""
    return {whole for node in nodes for whole in node.writes}


def results_of(
    env: Env, slots: Iterable[Any], like: Sequence[PositionalArray]
) -> list[geon.Tensor]:
    """Return the tensors of slots with the axes of other values."""
    return [
        fitted(as_array(read(env, slot), p.dims), p, f"the result {slot}")
        for slot, p in zip(slots, like, strict=True)
    ]


def loop_command(
    loop: Any, condition: Condition | int, reads: Sequence[Any], carries: dict[Any, Any],
    outputs: Sequence[Any], breakpoints: Sequence[Any] = (), max_steps: int | None = None,
) -> tuple[Command, list[Any]]:  # fmt: skip
    """Return the command of a loop over a graph, and the slots that are its inputs.

    In each step the nodes that compute ``breakpoints`` run, the condition is tested, and the other
    nodes run; then each key of ``carries`` gets the value of its slot. An integer is the number of
    steps. ``condition`` takes the number of steps so far and the tensors of ``reads``. ``outputs``
    are slots of the loop; one that no step computed is 0.
    """
    if not callable(condition) and not isinstance(condition, int):
        raise ArgumentError(
            f"the condition of {loop.name} is {condition!r}; give a number of steps, or a function "
            "of the number of steps so far and the tensors of reads="
        )
    for start, end in carries.items():
        if (start.param.shape, start.param.dtype) != (end.param.shape, end.param.dtype):
            raise ArgumentError(
                f"{loop.name} carries {end} over to {start}: shape and dtype must be equal; give a "
                "pair of one shape and dtype"
            )
    ends = [n for n in loop.nodes if any(y is b for y in n.outputs for b in breakpoints)]
    if len({*breakpoints} - {y for n in ends for y in n.outputs}):
        raise ArgumentError(
            f"a breakpoint is no output of a node of {loop.name}; give outputs of its nodes"
        )
    first_nodes = reached(ends, reverse(loop.followers()))
    order = loop.topsort()
    before = [node for node in order if node in first_nodes]
    body = [*before, *[node for node in order if node not in first_nodes]]
    made = written(body)
    inputs = list(dict.fromkeys(
        [*carries, *[s for s in outer_reads(body) if s not in made],
         *[root(s) for s in [*reads, *outputs, *carries.values()] if root(s) not in made]]
    ))  # fmt: skip
    kept = [s for s in dict.fromkeys([*carries.values(), *outputs]) if root(s) in made]
    starts = {end: start for start, end in carries.items()}

    def build(*values: Value) -> list[Value]:
        outer = dict(zip(inputs, values, strict=True))
        random = geon.Random(0)
        first = [outer[slot] for slot in carries]
        first += [outer[starts[s]] if s in starts else zeros(s.param) for s in kept]
        like = [ordered(value) for value in first]

        def entered(tensors: Sequence[geon.Tensor], nodes: Sequence[Any]) -> Env:
            held = [array(t, p.dims) for t, p in zip(tensors, like, strict=True)]
            now = dict(zip(carries, held, strict=False))
            last = dict(zip(kept, held[len(carries) :], strict=True))
            whole = {s: value for s, value in last.items() if s.base is None}
            env = {**whole, **outer, **now}
            lower(nodes, env, random)
            return env

        def step(tensors: Sequence[geon.Tensor]) -> list[geon.Tensor]:
            return results_of(entered(tensors, body), [*carries.values(), *kept], like)

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
    index: Condition, reads: Sequence[Any], cases: Sequence[tuple[Any, Sequence[Any]]],
    default: Sequence[Any] | None,
) -> tuple[Command, list[Any]]:  # fmt: skip
    """Return the command that runs one of several graphs, and the slots that are its inputs.

    ``index`` takes the tensors of ``reads`` and returns an integer. Each case has the slots of its
    results. ``default`` are the slots whose values replace the results if the index is out of
    range; without them that raises in the call.
    """
    if not cases:
        raise ArgumentError("there are no cases; give pairs of a graph and its results")
    whole = [*[list(results) for _, results in cases], *([] if default is None else [default])]
    for k, results in enumerate(whole):
        if [(s.param.shape, s.param.dtype) for s in results] != [
            (s.param.shape, s.param.dtype) for s in whole[0]
        ]:
            what = "the default" if k == len(cases) else f"case {k}"
            shown = [", ".join([str(s.param) for s in listed]) for listed in (whole[0], results)]
            raise ArgumentError(
                f"case 0 has the results {shown[0]}, and {what} has {shown[1]}; give all the same "
                "shapes and dtypes"
            )
    slots: dict[Any, None] = {root(slot): None for slot in [*reads, *(default or [])]}
    listed = [(graph.topsort(), results) for graph, results in cases]
    for nodes, results in listed:
        made = written(nodes)
        slots.update(dict.fromkeys(outer_reads(nodes)))
        slots.update({root(slot): None for slot in results if root(slot) not in made})
    inputs = list(slots)
    shapes = [slot.param for slot in whole[0]]

    def build(*values: Value) -> list[Value]:
        outer = dict(zip(inputs, values, strict=True))
        like = [ordered(zeros(param)) for param in shapes]

        def branch(nodes: Sequence[Any], results: Sequence[Any]) -> Callable[[], Any]:
            def run() -> list[geon.Tensor]:
                env = dict(outer)
                lower(nodes, env, geon.Random(0))
                return results_of(env, results, like)

            return run

        number = geon.cast(index(*tensors_of(outer, reads)), "int64")
        branches = [branch(nodes, results) for nodes, results in listed]
        found = geon.case_of(number, branches, None if default is None else branch([], default))
        return [array(t, p.dims) for t, p in zip(found, like, strict=True)]

    return Command(CommandRow("graph", lambda *v: build(*v), lambda *_: len(shapes))), inputs
