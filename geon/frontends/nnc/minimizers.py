"""Minimisers: commands such as ``sgd`` as optimisers of parameters."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from ...op_graph.op_graph import Leaf, Tensor
from ..neon.optimisers.optimiser import Optimiser, UpdateStep
from ..positional.values import array, as_array
from .commands.command import Command, CommandRow


class CommandOptimiser(Optimiser):
    """An optimiser whose rule is a command: gradient, parameter and states in, new ones out.

    States begin at 0. ``step``, where the command has it, is the number of the step from 1.
    """

    def __init__(self, command: Command) -> None:
        super().__init__(command.attributes["rate"])
        self.command = command
        self.states = states_of(command)

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the new value of a weight."""
        row, made = self.command.row, {name: step.state(w, name) for name in self.states}
        given: dict[str, Any] = {"g": gradient, "a": value, **made, "step": step.count}
        values = [array(given[n], given[n].axes) if n in given else None for n in row.inputs]
        outputs: Any = dict(zip(row.results, self.command.apply(values), strict=False))  # type: ignore[arg-type]  # names
        for name, leaf in made.items():
            step.set(leaf, as_array(outputs[name]).tensor)
        return as_array(outputs["a"]).tensor


def optimiser_row(command: Command) -> CommandRow:
    """Return the row of an optimiser; raise ``ArgumentError`` for another command."""
    row = command.row
    if row.inputs[:2] != ("g", "a") or command.order:
        raise ArgumentError(f"{command.name} is no optimiser; give one, such as cmd.sgd()")
    return row


def states_of(command: Command) -> tuple[str, ...]:
    """Return the names of the states of a minimiser that begin at 0."""
    return tuple([name for name in command.row.inputs[2:] if name not in ("vm", "step")])


def as_optimiser(minimizer: Any) -> Optimiser:
    """Return a minimiser as an optimiser: a command, or an optimiser of ``geon.frontends.neon``.

    Raises ``ArgumentError`` for anything else.
    """
    if isinstance(minimizer, Optimiser):
        return minimizer
    if isinstance(minimizer, Command) and "rate" in minimizer.attributes and not minimizer.order:
        return CommandOptimiser(minimizer)
    raise ArgumentError(
        f"minimizer={minimizer!r} moves no parameters; give a command such as "
        "nnc.cmd.sgd(rate=0.01), or an optimiser such as neon.Adam(0.001)"
    )
