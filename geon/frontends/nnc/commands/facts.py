"""Facts of a command for inputs of given params: outputs, needed inputs, what may be in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ....op_graph.op_graph import post_order
from ...positional.values import PositionalArray
from ..checks import checked
from ..tensors import TensorParam
from .command import Command, leaf_of

Params = tuple[TensorParam | None, ...]
MAX_KNOWN = 4096  # commands with params whose facts are kept


@dataclass(frozen=True)
class CommandFacts:
    """The facts that follow from the graph of a command for inputs of given params."""

    outputs: Params
    needs: frozenset[int]
    inplace: frozenset[tuple[int, int]]


@lru_cache(MAX_KNOWN)
def facts_of(command: Command, params: Params) -> CommandFacts:
    """Return the facts of a command, found on placeholders of the params."""
    leaves = [None if p is None else leaf_of(p, f"x{k}") for k, p in enumerate(params)]
    made = command.apply(leaves, params)
    values = [v if isinstance(v, PositionalArray) else None for v in made]
    device = next((p.device for p in params if p is not None), "cpu")
    to = command.attributes.get("to") if command.row.name == "format_transform" else None
    layout = to if to and command.order == 0 else command.layout(params)
    below = {id(op) for op in post_order([v.tensor for v in values if v is not None])}
    return CommandFacts(
        tuple([
            None if v is None else TensorParam(v.shape, v.dtype.name, layout, device)  # type: ignore[arg-type]  # integers
            for v in made
        ]),
        frozenset([k for k, x in enumerate(leaves) if x is not None and id(x.tensor) in below]),
        frozenset([
            (i, j)
            for j, y in enumerate(values)
            for i, x in enumerate(leaves)
            if x is not None and y is not None and (x.shape, x.dtype) == (y.shape, y.dtype)
            and _is_elementwise(y, x)
        ]),
    )  # fmt: skip


def _is_elementwise(value: PositionalArray, leaf: PositionalArray) -> bool:
    """Return True if all paths from a value to a leaf are elementwise, with positions in order."""
    names: dict[int, Any] = {}  # of the leaf's axes in each op; None if an op is of another kind
    for op in post_order([value.tensor]):
        below = {names[id(arg)] for arg in op.args if id(arg) in names}
        if op is leaf.tensor:
            names[id(op)] = tuple([d.name for d in leaf.dims if d is not None])
        elif len(below) == 1 and op.primitive.name == "rename" and None not in below:
            (old,) = below
            given = op.args[0].axes.names
            names[id(op)] = tuple([op.axes.names[given.index(name)] for name in old])
        elif below:
            same = len(below) == 1 and op.primitive.kind == "elementwise"
            names[id(op)] = below.pop() if same else None
    return names.get(id(value.tensor), ()) == tuple([d.name for d in value.dims if d is not None])


@checked
def infer_params(
    command: Command, params: Sequence[TensorParam | None]
) -> list[TensorParam | None]:
    """Return the params of a command's outputs for those of its inputs."""
    return list(facts_of(command, tuple(params)).outputs)


@checked
def needed_inputs(command: Command, params: Sequence[TensorParam | None]) -> frozenset[int]:
    """Return the positions of the inputs that a command reads, all being given.

    ``params`` are those of all its inputs. The shapes of the others are enough.
    """
    return facts_of(command, tuple(params)).needs


@checked
def allows_inplace(
    command: Command, params: Sequence[TensorParam | None]
) -> frozenset[tuple[int, int]]:
    """Return the pairs (input, output) that may share memory without a copy.

    The output has the input's shape and dtype, and its graph is elementwise down to the input.
    """
    return facts_of(command, tuple(params)).inplace


def enforces_inplace(command: Command) -> set[tuple[int, int]]:
    """Return the pairs (input, output) of one name: the output is the input's new value."""
    row = command.row
    if command.order or callable(row.results):
        return set()
    return {(row.inputs.index(name), j) for j, name in enumerate(row.results) if name in row.inputs}
