"""``DynamicGraph``: commands that are executed as they are called, and remembered for derivatives.

It works on ``geon.eager``: values are computed when they are read, and equal work is not repeated.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

import geon
from geon import eager

from ...eager.derivatives import expand
from ...errors import ArgumentError, DerivativeError
from ...op_graph.core.source_info import user_call
from ..positional.movement import Part, slices, with_axis
from ..positional.reshaping import reshape
from ..positional.values import PositionalArray, Value, array, as_array
from .commands.command import Command
from .minimizers import states_of
from .recorded import Recorded, eager_value, numpy_of, seeded_sum
from .tensors import box

if TYPE_CHECKING:
    from .cnnp import Model


class TensorVariable:
    """A tensor of a dynamic graph: a value that commands replace, with its history.

    ``constant`` is true for constants and for detached variables. An alias has a ``base``, of which
    it is a part: it reads that part of the base's value, and a command that writes it replaces it.
    """

    def __init__(self, graph: DynamicGraph, value: Any = None, constant: bool = False) -> None:
        self.graph, self.constant = graph, constant
        self.base: TensorVariable | None = None
        self.part: Any = None
        self._value: Any = value
        self.states: dict[str, Any] = {}  # of the minimiser
        graph._live.add(self)

    @property
    def value(self) -> PositionalArray:
        """The value; raise ``ArgumentError`` if nothing was written yet, or it was freed."""
        if self.base is not None:
            found = as_array(_read([self.base.value], self.part)[0])  # type: ignore[arg-type]  # not None
            return found
        if self._value is None:
            raise ArgumentError(
                f"{user_call('a tensor variable')} has no value: nothing was written to it, or it "
                "was freed; set(data) it, or give it to exec as an output first"
            )
        held: PositionalArray = self._value
        return held

    def put(self, value: Value) -> None:
        """Replace the value, or the part of the base's value of an alias."""
        if self.base is None:
            self._value, self.constant = as_array(value), False
            return
        self.base.put(as_array(_write([self.base.value, value], self.part)[0]))  # type: ignore[arg-type]  # not None

    def set(self, data: Any) -> None:
        """Give the variable data; it has no history then."""
        constant = self.constant
        self.put(eager_value(data))
        self.constant = constant

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return tuple([int(n) for n in self.value.shape])

    def numpy(self) -> np.ndarray[Any, Any]:
        """Compute and return the value."""
        return numpy_of(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype)

    def __repr__(self) -> str:
        kind = "alias" if self.base is not None else "constant" if self.constant else "variable"
        empty = self.base is None and self._value is None
        return f"<{kind} {'without a value' if empty else self.value}>"


class DynamicGraph:
    """Tensor variables, and commands on them; ``seed`` fixes random commands."""

    def __init__(self, seed: int = 0) -> None:
        self.random = geon.Random(seed)
        self._live: weakref.WeakSet[TensorVariable] = weakref.WeakSet()
        self._commands: dict[Command, Recorded] = {}
        self._models: dict[Any, None] = {}

    # Variables ----------------------------------------------------------------------------------

    def variable(
        self, data: Any = None, *, shape: Sequence[int] | None = None, dtype: str = "float32"
    ) -> TensorVariable:
        """Return a variable: of data, of zeros in a shape, or without a value for an output."""
        if data is None and shape is not None:
            data = np.zeros(tuple(shape), dtype)
        return TensorVariable(self, None if data is None else eager_value(data))

    def constant(self, data: Any) -> TensorVariable:
        """Return a constant, which derivatives are not taken with respect to."""
        return TensorVariable(self, eager_value(data), True)

    def alias(
        self,
        of: TensorVariable,
        shape: Sequence[int],
        offset: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> TensorVariable:
        """Return a part of a variable: a reshape, or the box at ``offset`` in steps of ``stride``.

        Raises ``ArgumentError`` for a part that is not inside.
        """
        made = TensorVariable(self)
        plain = offset is None and stride is None
        begin, step = tuple(offset or [0] * len(shape)), tuple(stride or [1] * len(shape))
        if not plain:
            box(of.shape, shape, begin, step)
        elif int(np.prod(shape)) != int(np.prod(of.shape)):
            raise ArgumentError(
                f"{user_call('alias')}: shape {tuple(shape)} of a variable of shape {of.shape}: a "
                "reshape keeps the number of elements; give offset= for a part"
            )
        made.base, made.part = of, (tuple(shape), None if plain else begin, step)
        return made

    def detach(self, x: TensorVariable) -> None:
        """Cut a variable off its history, and take it as a constant in derivatives."""
        value = x.value
        x._value, x.constant = PositionalArray(value.tensor.detach(), value.dims), True  # type: ignore[attr-defined]  # an eager array
        x.base = None

    def attach(self, x: TensorVariable) -> None:
        """Take a detached variable or a constant as a variable again, without a history."""
        self.detach(x)
        x.constant = False

    def free(self, x: TensorVariable) -> None:
        """Drop the value and the history of a variable; other variables keep what they need."""
        x._value = x.base = None

    # Execution ----------------------------------------------------------------------------------

    def exec(
        self,
        command: Command,
        inputs: Sequence[TensorVariable | None],
        outputs: Sequence[TensorVariable | None] | None = None,
    ) -> list[TensorVariable | None]:
        """Execute a command, and return its outputs: the given variables, or new ones.

        Raises ``GeonError`` that names the command and its inputs where they do not fit.
        """
        found = self._exec(command, [None if x is None else x.value for x in inputs])
        if outputs is None:
            return [None if y is None else TensorVariable(self, y) for y in found]
        if len(outputs) > len(found):
            raise ArgumentError(
                f"{user_call('exec')}: {command.name} has {len(found)} outputs, and "
                f"{len(outputs)} variables were given; give one for each"
            )
        for variable, y in zip(outputs, found, strict=False):
            if variable is not None and y is not None:
                variable.put(y)
        return list(outputs)

    def _exec(self, command: Command, values: Sequence[Value | None]) -> list[Value | None]:
        if command not in self._commands:

            def build(given: list[Value | None]) -> Any:
                return command.apply(given, random=self.random), []

            self._commands[command] = Recorded(build, command.name)
        return self._commands[command](values)

    def evaluate(
        self, model: Model, inputs: Sequence[TensorVariable], is_test: bool = False
    ) -> list[TensorVariable]:
        """Return the outputs of a model as variables; ``backward`` reaches its parameters."""
        self._models[model] = None
        found = model.outputs_for([x.value for x in inputs], not is_test)
        return [TensorVariable(self, y) for y in found]

    def no_grad(self) -> AbstractContextManager[None]:
        """Context in which commands are executed and not remembered."""
        return eager.no_grad()

    # Derivatives --------------------------------------------------------------------------------

    def backward(
        self,
        losses: Sequence[TensorVariable],
        wrt: Sequence[TensorVariable] = (),
        gradients: Sequence[TensorVariable | None] = (),
    ) -> list[TensorVariable]:
        """Return the gradients of variables, for ``gradients`` of the losses, 1 by default.

        They can be derived again. Gradients of the parameters of models that were evaluated are
        added to those that the models have. Raises ``DerivativeError`` for a constant, a detached
        variable, and one that has no effect to a loss.
        """
        for x in wrt:
            if x.constant:
                raise DerivativeError(
                    f"{user_call('backward')}: {x} is a constant or was detached; attach(x) makes "
                    "it a variable"
                )
            if not any(self.has_effect_to(x, y) for y in losses):
                raise DerivativeError(
                    f"{user_call('backward')}: {x} has no effect to the losses: they were computed "
                    "without it, before it was attached or set, or in no_grad(); compute them again"
                )
        seeds = [None if g is None else g.value for g in gradients]
        total = seeded_sum([y.value for y in losses], seeds)
        places = [p for model in self._models for p in model.trained()]
        tensors = [x.value.tensor for x in wrt]
        found: Any = geon.deriv(total, [*tensors, *[p.leaf for p in places]], unreached="zero")
        for parameter, gradient in zip(places, found[len(tensors) :], strict=True):
            parameter.add_gradient(gradient)
        return [
            TensorVariable(self, array(g, [d and d.name for d in x.value.dims]))
            for x, g in zip(wrt, found, strict=False)
        ]

    def apply_gradients(
        self,
        minimizer: Command,
        gradients: Sequence[TensorVariable],
        parameters: Sequence[TensorVariable],
    ) -> None:
        """Move variables against gradients by a command such as ``sgd``, and evaluated models.

        The states of the command begin at 0, and are kept for each variable. Models move by their
        own minimisers.
        """
        row = minimizer.row
        for x, gradient in zip(parameters, gradients, strict=True):
            value = x.value
            zeros = np.zeros(x.shape, value.dtype)
            for name in states_of(minimizer):
                x.states.setdefault(name, eager_value(zeros))
            if "step" in row.inputs:
                x.states.setdefault("step", eager_value(np.array(1)))
            given = {"g": gradient.value, "a": value, **x.states}
            made = self._exec(minimizer, [given.get(name) for name in row.inputs])
            for name, new in zip(row.results, made, strict=False):  # type: ignore[arg-type]  # names
                if new is not None and name != "a":
                    x.states[name] = _constant(new)
            assert made[0] is not None
            x._value = _constant(made[0])
        eager.sync()  # one program for each step, not one that grows
        for model in self._models:
            model.apply_gradients()

    def minimize(
        self,
        minimizer: Command,
        losses: Sequence[TensorVariable],
        parameters: Sequence[TensorVariable] = (),
    ) -> None:
        """Derive the losses, and move the parameters and the evaluated models."""
        self.apply_gradients(minimizer, self.backward(losses, parameters), parameters)

    # The remembered graph -----------------------------------------------------------------------

    def has_effect_to(self, x: TensorVariable, y: TensorVariable) -> bool:
        """Return True if ``y`` was computed from the value that ``x`` has."""
        calls, starts = expand([y.value.tensor._node])  # type: ignore[attr-defined]  # an eager array
        return x.value.tensor._node in (*calls, *starts)  # type: ignore[attr-defined]  # likewise

    def _remembered(self) -> tuple[list[Any], list[Any]]:
        held = [x._value.tensor._node for x in self._live if x._value is not None]
        return expand(held)

    @property
    def bookkeeping_count(self) -> int:
        """The number of calls and data that are remembered for the variables that are alive."""
        return sum(map(len, self._remembered()))

    def dot(self) -> str:
        """Return what is remembered in the language of Graphviz: data as boxes, then calls."""
        calls, starts = self._remembered()
        names = {node: f"n{k}" for k, node in enumerate([*starts, *calls])}
        lines = [f'  {names[n]} [shape=box, label="{n.type.axes}"];' for n in starts]
        for node in calls:
            lines.append(f'  {names[node]} [label="{getattr(node.call, "name", "alias")}"];')
            lines += [f"  {names[below]} -> {names[node]};" for below in node.args]
        return "\n".join(["digraph {", *lines, "}"])


def _constant(value: Value) -> PositionalArray:
    """Return an eager value without its history."""
    given: Any = as_array(value)
    return PositionalArray(given.tensor.detach(), given.dims)


def _slices(part: Any, rank: int) -> dict[int, Part]:
    shape, begin, step = part
    return {
        k: Part(begin[k], begin[k] + (shape[k] - 1) * step[k] + 1, step[k]) for k in range(rank)
    }


def _read_part(values: list[Value], part: Any) -> Any:
    """Return the part of a value that an alias is."""
    (x,) = values
    return [reshape(x, part[0]) if part[1] is None else slices(x, _slices(part, len(x.shape)))], []


def _write_part(values: list[Value], part: Any) -> Any:
    """Return a value with the part that an alias is replaced."""
    x, new = as_array(values[0]), as_array(values[1])
    if part[1] is None:
        return [reshape(new, x.shape)], []
    for k in range(len(x.dims)):
        x, new = with_axis(x, k), with_axis(new, k)
    at = {
        d: slice(p.start, p.stop, p.step)
        for d, p in zip(x.dims, _slices(part, len(x.dims)).values(), strict=True)
    }
    names: Any = {n.name: d.name for n, d in zip(new.dims, x.dims, strict=True) if n and d}
    made = geon.update(x.tensor, new.tensor.rename({a: b for a, b in names.items() if a != b}), at)
    return [array(made, [d and d.name for d in x.dims])], []


_read, _write = Recorded(_read_part), Recorded(_write_part)
