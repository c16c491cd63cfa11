"""Gradients of symbolic graphs as nodes, and steps of optimisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....errors import DerivativeError
from ..commands import cmd
from ..commands.command import Command
from ..commands.facts import enforces_inplace, needed_inputs
from ..minimizers import optimiser_row
from ..tensors import TensorParam, root

if TYPE_CHECKING:
    from .graph import ExecSymbol, SymbolicGraph, TensorSymbol


def add_gradients(
    graph: SymbolicGraph, losses: Sequence[TensorSymbol], wrt: Sequence[TensorSymbol]
) -> list[TensorSymbol]:
    """Add the nodes of the gradients of the sum of ``losses``, and return their symbols.

    There is a backward node for each node between ``wrt`` and ``losses``. The gradient of a whole
    is the sum of those that its readers give; a reader of a part gives one that is 0 elsewhere. A
    backward node reads those inputs and outputs that its gradients need.
    Raises ``DerivativeError`` for a symbol that no loss depends on.
    """
    order = graph.topsort()
    depends = {root(x) for x in wrt}
    between: list[ExecSymbol] = []
    for node in order:
        if depends.intersection(node.reads):
            between.append(node)
            depends.update(node.writes)
    found: dict[TensorSymbol, list[TensorSymbol]] = {}
    for loss in losses:
        ones = graph.tensor(loss.param, name=f"d_{loss.name}")
        _give(graph, found, loss, graph.exec(cmd.set(value=1.0), [], [ones])[0])
    totals: dict[TensorSymbol, TensorSymbol] = {}

    def total(whole: TensorSymbol) -> TensorSymbol | None:
        """Return the sum of the gradients so far: nodes may read a whole that they write too."""
        parts = found.pop(whole, [])
        if whole in totals:
            parts.append(totals[whole])
        if len(parts) > 1:
            totals[whole] = graph.exec(cmd.ewsum(), parts, None, f"d_{whole.name}")[0]
        elif parts:
            totals[whole] = parts[0]
        return totals.get(whole)

    for node in reversed(between):
        seeds: list[TensorSymbol | None] = []
        for y in node.outputs:
            whole = None if y is None else total(root(y))
            seeds.append(None if whole is None or y is None else _same_part(y, whole))
        if any(seed is not None for seed in seeds):
            _add_backward(graph, node, seeds, depends, found)
    results = []
    for x in wrt:
        whole = total(root(x))
        if whole is None:
            raise DerivativeError(
                f"no loss depends on {x} of {graph.name}; leave it out of the gradients, or use it"
            )
        results.append(_same_part(x, whole))
    graph.gradients.update(totals)
    graph.gradients.update(zip(wrt, results, strict=True))
    return results


def _add_backward(
    graph: SymbolicGraph, node: ExecSymbol, seeds: Sequence[TensorSymbol | None],
    depends: set[TensorSymbol], found: dict[TensorSymbol, list[TensorSymbol]],
) -> None:  # fmt: skip
    """Add the backward node of a node, and give its gradients to those of its inputs."""
    command = node.command.backward
    values = [*seeds, *node.inputs, *node.outputs]
    like = [None if s is None else s.param for s in seeds]
    outputs = [None if y is None else y.param for y in node.outputs]
    params: list[TensorParam | None] = [*like, *node.params, *outputs]
    needed = needed_inputs(command, params)
    read = [v if k in needed else None for k, v in enumerate(values)]
    stated = [p if k in needed or len(seeds) <= k < len(seeds) + len(node.inputs) else None
              for k, p in enumerate(params)]  # fmt: skip
    made = graph.add(command, read, stated, None, f"{node.name}_backward")
    for k, x in enumerate(node.inputs):
        gradient = made.outputs[k]
        if x is None or gradient is None or root(x) not in depends:
            made.outputs[k] = None
            continue
        _give(graph, found, x, gradient)


def _give(
    graph: SymbolicGraph, found: dict[TensorSymbol, list[TensorSymbol]], x: TensorSymbol,
    gradient: TensorSymbol,
) -> None:  # fmt: skip
    """Add a gradient of ``x`` to those of its whole, of which ``x`` may be a part."""
    whole = root(x)
    if x is not whole:
        wide = graph.tensor(whole.param, name=f"d_{whole.name}_part")
        graph.exec(cmd.data_transfer(), [gradient], [_same_part(x, wide)])
        gradient = wide
    found.setdefault(whole, []).append(gradient)


def _same_part(x: TensorSymbol, whole: TensorSymbol) -> TensorSymbol:
    """Return the part of ``whole`` that ``x`` is of its whole."""
    if x.base is None:
        return whole
    assert x.part is not None
    return _same_part(x.base, whole).part_symbol(x.part)


@dataclass(frozen=True, eq=False)
class Minimized:
    """The additions of ``minimize``: gradients, next parameters, and the optimiser's state.

    New parameters and states are in the memory of the old ones. ``states`` has for each parameter
    the symbols before and after the step.
    """

    gradients: tuple[TensorSymbol, ...]
    updated: tuple[TensorSymbol, ...]
    states: tuple[tuple[tuple[TensorSymbol, TensorSymbol], ...], ...]


def add_optimiser(
    graph: SymbolicGraph, optimiser: Command, losses: Sequence[TensorSymbol],
    params: Sequence[TensorSymbol],
) -> Minimized:  # fmt: skip
    """Add gradients and for each parameter a node of an optimiser, with states that begin at 0."""
    row = optimiser_row(optimiser)
    gradients = graph.backward(losses, params)
    updated, states = [], []
    for x, g in zip(params, gradients, strict=True):
        inputs: list[TensorSymbol | None] = [g, x]
        for name in row.inputs[2:]:
            if name == "step":
                inputs.append(graph.tensor((), "int64", name=f"{x.name}_step", fill=1,
                                           is_state=True))  # fmt: skip
            elif name == "vm":
                inputs.append(None)
            else:
                inputs.append(graph.tensor(x.param, name=f"{x.name}_{name}", fill=0, is_state=True))
        outputs = graph.exec(optimiser, inputs, None, f"{optimiser.name}_{x.name}")
        updated.append(outputs[0])
        pairs = [(inputs[i], outputs[j]) for i, j in sorted(enforces_inplace(optimiser))]
        states.append(tuple([(a, b) for a, b in pairs[1:] if a is not None and b is not None]))
    return Minimized(tuple(gradients), tuple(updated), tuple(states))
