"""``DynamicGraph``: commands that are executed as they are called, and remembered for derivatives.

It works on ``geon.eager``: values are computed when they are read, and equal work is not repeated.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import geon
from geon import eager

from ...eager.tape import Tape, tape_of
from ...errors import ArgumentError, DerivativeError
from ..neon.checks import at_least_one
from ..positional.values import PositionalArray, Value, as_array
from .checks import checked
from .cnnp import Model
from .commands.command import Command
from .lowering import part_value, with_part
from .minimizers import optimiser_row, states_of
from .recorded import Recorded, eager_value, numpy_of, replaced, seeded_sum
from .tensors import Part, TensorParam, lengths_of, part_of


@checked
class TensorVariable:
    """A tensor of a dynamic graph: a value that commands replace, with its history.

    ``constant`` is true for constants and for detached variables. An alias has a ``base``, of which
    it is a part: it reads that part of the base's value, and a command that writes it replaces it.
    """

    def __init__(
        self, graph: DynamicGraph, value: Any = None, constant: bool = False,
        base: TensorVariable | None = None, part: Part | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.constant, self.base = graph, constant, base
        self._value: Any = value
        if part is not None:
            self._read = Recorded(lambda values: ([part_value(part, values[0])], []), "alias")
            self._write = Recorded(lambda values: ([with_part(part, *values)], []), "write")
        self.states: dict[str, Any] = {}  # of the minimiser
        graph._live.add(self)

    @property
    def value(self) -> PositionalArray:
        """The value; raise ``ArgumentError`` if nothing was written yet, or it was freed."""
        if self.base is not None:
            return as_array(self._read([self.base.value])[0])
        if self._value is None:
            raise ArgumentError(
                "the variable has no value: nothing was written to it, or it was freed; set(data) "
                "it, or give it to exec as an output first"
            )
        held: PositionalArray = self._value
        return held

    def put(self, value: Value, constant: bool = False) -> None:
        """Replace the value, or the part of the base's value of an alias."""
        if self.base is None:
            self._value, self.constant = as_array(value), constant
        else:
            self.base.put(self._write([self.base.value, value])[0])

    def set(self, data: Any) -> None:
        """Give the variable data; it has no history then."""
        self.put(eager_value(data), self.constant)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return tuple([int(n) for n in self.value.shape])

    @property
    def param(self) -> TensorParam:
        """The shape and dtype."""
        return TensorParam(self.shape, self.value.dtype.name)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Compute and return the value."""
        return numpy_of(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype)

    def __repr__(self) -> str:
        kind = "alias" if self.base is not None else "constant" if self.constant else "variable"
        empty = self.base is None and self._value is None
        return f"<{kind} {'without a value' if empty else self.value}>"


@checked
class DynamicGraph:
    """Tensor variables, and commands on them; ``seed`` fixes random commands."""

    def __init__(self, seed: int = 0) -> None:
        self.random = geon.Random(seed)
        self._live: weakref.WeakSet[TensorVariable] = weakref.WeakSet()
        self._commands: dict[Command, Recorded] = {}
        self._models: dict[Model, None] = {}

    # Variables ----------------------------------------------------------------------------------

    def variable(
        self, data: Any = None, *, shape: Sequence[int] | None = None, dtype: Any = "float32"
    ) -> TensorVariable:
        """Return a variable: of data, of zeros in a shape, or without a value for an output."""
        if data is None and shape is not None:
            data = np.zeros(lengths_of(shape), dtype)
        return TensorVariable(self, None if data is None else eager_value(data))

    def constant(self, data: Any) -> TensorVariable:
        """Return a constant, which derivatives are not taken with respect to."""
        return TensorVariable(self, eager_value(data), True)

    def alias(
        self, of: TensorVariable, shape: Sequence[int], offset: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> TensorVariable:  # fmt: skip
        """Return a part of a variable: a reshape, or the box at ``offset`` in steps of ``stride``.

        Raises ``ArgumentError`` for a part that is not inside.
        """
        return TensorVariable(self, base=of, part=part_of(of.shape, shape, offset, stride))

    def detach(self, x: TensorVariable) -> None:
        """Cut a variable off its history, and take it as a constant in derivatives."""
        x._value, x.base, x.constant = _detached(x.value), None, True

    def attach(self, x: TensorVariable) -> None:
        """Take a detached variable or a constant as a variable again, without a history."""
        self.detach(x)
        x.constant = False

    def free(self, x: TensorVariable) -> None:
        """Drop the value and the history of a variable; other variables keep what they need."""
        x._value = x.base = None

    # Execution ----------------------------------------------------------------------------------

    def exec(
        self, command: Command, inputs: Sequence[TensorVariable | None],
        outputs: Sequence[TensorVariable | None] | None = None, *, parallel: int = 1,
    ) -> list[Any]:  # fmt: skip
        """Execute a command, and return its outputs: the given variables, or new ones.

        With ``parallel`` it is executed on so many groups of inputs, which follow one another, as
        do their outputs; the calls are computed by one program. Raises ``GeonError`` that names the
        command and its inputs where they do not fit.
        """
        if parallel != 1:
            groups = _groups(inputs, parallel, "inputs")
            targets = _groups(outputs, parallel, "outputs") if outputs else [None] * parallel
            pairs = zip(groups, targets, strict=True)
            return [y for pair in pairs for y in self.exec(command, *pair)]
        found = self._exec(command, [None if x is None else x.value for x in inputs])
        if outputs is None:
            return [None if y is None else TensorVariable(self, y) for y in found]
        if len(outputs) > len(found):
            raise ArgumentError(
                f"{command.name} has {len(found)} outputs, and {len(outputs)} variables were "
                "given; give one for each"
            )
        for variable, y in zip(outputs, found, strict=False):
            if variable is not None and y is not None:
                variable.put(y)
        return list(outputs)

    def _exec(self, command: Command, values: Sequence[Value | None]) -> list[Value | None]:
        if command not in self._commands:
            self._commands[command] = Recorded(
                lambda given: (command.apply(given, random=self.random), []), command.name
            )
        return self._commands[command](values)

    def evaluate(
        self, model: Model, inputs: Sequence[TensorVariable], is_test: bool = False
    ) -> list[TensorVariable]:
        """Return the outputs of a model as variables; ``backward`` reaches its parameters."""
        self._models[model] = None
        found = model.outputs_for([x.value for x in inputs], not is_test)
        return [TensorVariable(self, y) for y in found]

    def dry_run(
        self, model: Model, inputs: Sequence[TensorVariable], is_test: bool = False
    ) -> list[TensorParam]:
        """Compile what ``evaluate`` of a model runs, and return the params of its outputs."""
        return model.dry_run(*[x.param for x in inputs], is_test=is_test)

    def no_grad(self) -> AbstractContextManager[None]:
        """Context in which commands are executed and not remembered."""
        return eager.no_grad()

    # Derivatives --------------------------------------------------------------------------------

    def backward(
        self, losses: Sequence[TensorVariable], wrt: Sequence[TensorVariable] = (),
        gradients: Sequence[TensorVariable | None] = (),
    ) -> list[TensorVariable]:  # fmt: skip
        """Return the gradients of variables, for ``gradients`` of the losses, 1 by default.

        They can be derived again. Gradients of the parameters of models that were evaluated are
        added to those that the models have. Raises ``DerivativeError`` for a constant, a detached
        variable, and one that has no effect to a loss.
        """
        for x in wrt:
            if x.value.dtype.kind not in "fc":
                raise DerivativeError(f"{x} has no derivative; give variables of floats")
            if x.constant:
                raise DerivativeError(
                    f"{x} is a constant or was detached; attach(x) makes it a variable"
                )
            if not any(self.has_effect_to(x, y) for y in losses):
                raise DerivativeError(
                    f"{x} has no effect to the losses: they were computed without it, before it "
                    "was attached or set, or in no_grad(); compute them again"
                )
        seeds = [None if g is None else g.value for g in gradients]
        total = seeded_sum([y.value for y in losses], seeds)
        own = [parameter for model in self._models for parameter in model.trained()]
        leaves = [x.value.tensor for x in wrt] + [parameter.leaf for parameter in own]
        found: Any = geon.deriv(total, leaves, unreached="zero")
        for parameter, gradient in zip(own, found[len(wrt) :], strict=True):
            parameter.add_gradient(gradient)
        pairs = zip(wrt, found, strict=False)
        return [TensorVariable(self, replaced(x.value, gradient)) for x, gradient in pairs]

    def apply_gradients(
        self, minimizer: Command, gradients: Sequence[TensorVariable],
        parameters: Sequence[TensorVariable],
    ) -> None:  # fmt: skip
        """Move variables against gradients by a command such as ``sgd``, and evaluated models.

        The states of the command begin at 0, and are kept for each variable. Models move by their
        own minimisers.
        """
        row = optimiser_row(minimizer)
        if len(gradients) != len(parameters):
            raise ArgumentError(
                f"{len(gradients)} gradients for {len(parameters)} parameters; give one for each"
            )
        for x, gradient in zip(parameters, gradients, strict=True):
            value = x.value
            for name in states_of(minimizer):
                x.states.setdefault(name, eager_value(np.zeros(x.shape, value.dtype)))
            if "step" in row.inputs:
                x.states.setdefault("step", eager_value(np.array(1)))
            given = {"g": gradient.value, "a": value, **x.states}
            made = self._exec(minimizer, [given.get(name) for name in row.inputs])
            new = dict(zip(row.results, made, strict=False))  # type: ignore[arg-type]  # names
            x.put(_detached(new.pop("a")))
            x.states = {name: _detached(each) for name, each in new.items() if each is not None}
        eager.sync()  # one program for each step, not one that grows
        for model in self._models:
            model.apply_gradients()

    def minimize(
        self, minimizer: Command, losses: Sequence[TensorVariable],
        parameters: Sequence[TensorVariable] = (),
    ) -> None:  # fmt: skip
        """Derive the losses, and move the parameters and the evaluated models."""
        self.apply_gradients(minimizer, self.backward(losses, parameters), parameters)

    # The remembered graph -----------------------------------------------------------------------

    def has_effect_to(self, x: TensorVariable, y: TensorVariable) -> bool:
        """Return True if ``y`` was computed from the value that ``x`` has."""
        return _node(x.value) in tape_of([_node(y.value)]).numbers

    def _remembered(self) -> Tape:
        return tape_of([_node(x._value) for x in self._live if x._value is not None])

    @property
    def bookkeeping_count(self) -> int:
        """The number of calls and data that are remembered for the variables that are alive."""
        return len(self._remembered().numbers)

    def dot(self) -> str:
        """Return what is remembered in the language of Graphviz: data as boxes, then calls."""
        tape = self._remembered()
        names = {node: f"n{k}" for node, k in tape.numbers.items()}
        lines = [f'  {names[n]} [shape=box, label="{n.type.axes}"];' for n in tape.inputs]
        for node in tape.order:
            called = getattr(node.result.call, "name", "alias")
            lines.append(f'  {names[node]} [label="{called}"];')
            lines += [f"  {names[below]} -> {names[node]};" for below in node.args]
        return "\n".join(["digraph {", *lines, "}"])


def _groups(variables: Sequence[Any], parallel: int, what: str) -> list[Sequence[Any]]:
    """Return variables in groups of equal size; raise ``ArgumentError`` if they do not divide."""
    at_least_one("exec", "parallel", parallel)
    if len(variables) % parallel:
        raise ArgumentError(
            f"{len(variables)} {what} for parallel={parallel}; give as many to each of the "
            "executions"
        )
    size = len(variables) // parallel
    return [variables[k * size : (k + 1) * size] for k in range(parallel)]


def _detached(value: Any) -> PositionalArray:
    """Return an eager value without its history."""
    tensor: Any = as_array(value).tensor
    return PositionalArray(tensor.detach(), as_array(value).dims)


def _node(value: PositionalArray) -> Any:
    tensor: Any = value.tensor
    return tensor._node
