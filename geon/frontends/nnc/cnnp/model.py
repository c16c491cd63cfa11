"""``Model``: a callable of positional values with parameters, made of other models.

Models are applied to ``input()`` to describe a graph of models, or to tensors to compute.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import geon

from ....errors import ArgumentError, AxisError
from ....op_graph.autodiff.remat import checkpoint
from ...base.arguments import NamedErrors, check_inputs
from ...positional.values import Value, as_array
from ..checks import checked
from ..commands import cmd
from ..commands.command import matching
from ..recorded import replaced
from ..tensors import TensorParam
from .parameters import KINDS, Parameter, Parameters, selected
from .training import Build, Trainable


@dataclass(frozen=True, eq=False)
class ModelIO:
    """The outputs of a model in a description of a graph of models; of none for ``input()``."""

    model: Model | None = None
    inputs: tuple[ModelIO, ...] = ()


def input() -> ModelIO:
    """Return an input of a ``Model``."""
    return ModelIO()


@checked
class Model(Trainable):
    """A graph of models, from ``inputs`` to ``outputs``, which are results of models on inputs.

    Called with ``input()`` or results of models, it describes a larger graph; a model that is
    called twice shares its parameters. Parameters are created by ``compile``, or by the first call
    with tensors. The base of all models.
    """

    kind = "model"

    def __init__(
        self, inputs: Sequence[ModelIO], outputs: Sequence[ModelIO], *, name: str | None = None
    ) -> None:
        self._begin([], name)
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.order: list[ModelIO] = []
        seen, stack = {id(each) for each in inputs}, [(each, False) for each in outputs]
        while stack:
            each, done = stack.pop()
            if done:
                self.order.append(each)
            elif id(each) not in seen:
                seen.add(id(each))
                if each.model is None:
                    raise ArgumentError(
                        f"an output depends on an input() that is not among the {len(self.inputs)} "
                        "inputs; give all inputs"
                    )
                stack += [(each, True), *[(below, False) for below in reversed(each.inputs)]]
        models = [each.model for each in self.order if each.model is not None]
        self.parts = list(dict.fromkeys(models))

    def _begin(self, parts: list[Model], name: str | None) -> None:
        """Set the attributes that all models have."""
        self.name, self.parts = name, parts
        self.own: dict[str, Parameter] = {}
        self.hooks: list[Callable[..., Any]] = []
        self.checkpointing = False
        self.now: Model = self  # the model whose structure is used; another one after absorb
        self.reset()

    def forward(self, build: Build, values: list[Value]) -> list[Value]:
        """Return the outputs for inputs; subclasses define it."""
        if len(values) != len(self.inputs):
            raise ArgumentError(
                f"it has {len(self.inputs)} inputs, and was given {len(values)}; give one for each"
            )
        found = {id(each): [value] for each, value in zip(self.inputs, values, strict=True)}
        for each in self.order:
            given = [value for below in each.inputs for value in found[id(below)]]
            assert each.model is not None
            found[id(each)] = each.model.run(build, given)
        return [value for each in self.outputs for value in found[id(each)]]

    def run(self, build: Build, values: list[Value]) -> list[Value]:
        """Return the outputs for inputs, recomputed in derivatives if that is set."""

        def name() -> str:
            shown = ", ".join(map(str, values))
            return f"model {self.name or self.kind} of {shown}"

        with NamedErrors("model", name):
            if self.checkpointing and build.training:
                return self._checkpointed(build, values)
            return self.now.forward(build, values)

    def _checkpointed(self, build: Build, values: list[Value]) -> list[Value]:
        given = [as_array(value) for value in values]
        dims: list[Any] = []
        inner = replace(build, updates=dict(build.updates))

        def function(*tensors: geon.Tensor) -> Any:
            placed: list[Any] = [replaced(v, t) for v, t in zip(given, tensors, strict=True)]
            dims[:] = made = [as_array(value) for value in self.now.forward(inner, placed)]
            return [value.tensor for value in made], list(inner.updates.values())

        found, states = checkpoint(function)(*[value.tensor for value in given])
        build.updates.update(zip(inner.updates, states, strict=True))
        return [replaced(value, tensor) for value, tensor in zip(dims, found, strict=True)]

    def __call__(self, *inputs: Any) -> Any:
        """Return a description if inputs are ``input()`` or results of models; else arrays.

        Arrays are computed in test mode, as by ``evaluate``.
        """
        if all(isinstance(each, ModelIO) for each in inputs):
            return ModelIO(self, inputs)
        if any(isinstance(each, ModelIO) for each in inputs):
            raise ArgumentError(
                "tensors and results of models are mixed; use cnnp.input() for each tensor, and a "
                "Model of these"
            )
        return self.evaluate(*inputs)

    # Parameters ---------------------------------------------------------------------------------

    @property
    def structure(self) -> Model:
        """The model whose structure is used: itself, or the one that it absorbed or made."""
        return self if self.now is self else self.now.structure

    def places(self, path: str = "") -> list[tuple[str, Model, str]]:
        """Return the path, owner and name of each parameter, also of inner models, once each."""
        used = self.structure
        own = sorted(used.own, key=lambda name: KINDS.index(used.own[name].kind))
        found = [(path + name, used, name) for name in own]
        for number, part in enumerate(used.parts):
            found += part.places(f"{path}{part.name or number}.")
        return list(
            {(owner, name): (p, owner, name) for p, owner, name in reversed(found)}.values()
        )[::-1]

    def parameters(self, selector: str = "all", index: int | None = None) -> Parameters:
        """Return the parameters that a selector chooses, or the one of a number among them.

        ``selector`` is "all" (weights and biases), "weight", "bias", "state", or a pattern of names
        in which ``*`` matches any text. Raises ``ArgumentError`` for a pattern that matches none.
        """
        return Parameters(selected(self.places(), selector, index))

    def held(self) -> list[Parameter]:
        """Return all parameters and states, once each."""
        return list(dict.fromkeys(owner.own[name] for _, owner, name in self.places()))

    def models(self) -> list[Model]:
        """Return the model and all models inside of it."""
        return [self, *[each for part in self.structure.parts for each in part.models()]]

    def copy(self) -> Self:
        """Return a model of the same structure, whose parameters are not created yet."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = type(self).__new__(type(self))
        vars(made).update(vars(self), own={}, hooks=[*self.hooks])
        for key in vars(self).keys() & {"now", "parts", "inputs", "outputs", "order", "made"}:
            vars(made)[key] = copy.deepcopy(vars(self)[key], memo)
        made.reset()
        return made

    def absorb(self, other: Model, *inputs: Any) -> None:
        """Take the structure of another model, and keep the parameters.

        ``inputs`` are shapes or params of the other's inputs. Raises ``AxisError`` unless its
        parameters have the same shapes in the same order.
        """
        self._give_parameters(other, inputs)
        self.now = other

    def _give_parameters(self, other: Model, inputs: Sequence[Any]) -> None:
        """Create the parameters of a model for inputs, and replace them by those of this one."""
        other.compile(*inputs)
        Parameters(other.places()).share(Parameters(self.places()))

    # Switches -----------------------------------------------------------------------------------

    def set_gradient_checkpointing(self, on: bool = True) -> None:
        """Recompute the values inside of this model in derivatives, to hold fewer in memory."""
        self.checkpointing = on

    def notify_hook(self, hook: Callable[[Model, str, Any], Any]) -> None:
        """Call ``hook(model, tag, payload)`` at each ``notify`` of this model or one around it."""
        self.hooks.append(hook)

    def notify(self, tag: str, payload: Any = None) -> None:
        """Call the hooks of this model and of all models inside of it."""
        for model in self.models():
            for hook in model.hooks:
                hook(model, tag, payload)

    def __repr__(self) -> str:
        return f"<{self.kind}{'' if self.name is None else f' {self.name!r}'}>"

    def format(self) -> str:
        """Return a table of the parameters: path, kind, shape, and a mark for frozen ones."""
        rows = [
            f"{path:24} {p.kind:7} {p.leaf.dtype.name}{p.shape}{'' if p.trainable else ' frozen'}"
            for path, owner, name in self.places()
            for p in [owner.own[name]]
        ]
        return "\n".join([repr(self), *rows])


@checked
class Sequential(Model):
    """Models one after another."""

    kind = "sequential"

    def __init__(self, parts: Sequence[Model], *, name: str | None = None) -> None:
        self._begin(list(parts), name)

    def forward(self, build: Build, values: list[Value]) -> list[Value]:
        """Return the outputs of the last model."""
        for part in self.parts:
            values = part.run(build, values)
        return values


@checked
class DynamicModel(Model):
    """A model that ``function`` makes for the shapes of its inputs, when these are first known."""

    kind = "dynamic"

    def __init__(self, function: Callable[..., Model], *, name: str | None = None) -> None:
        self._begin([], name)
        self.function = function
        self.made: tuple[list[TensorParam], Model] | None = None

    @property
    def structure(self) -> Model:
        """The model that was made, or absorbed."""
        made = self if self.made is None else self.made[1].structure
        return made if self.now is self else self.now.structure

    def forward(self, build: Build, values: list[Value]) -> list[Value]:
        """Make the model, for new shapes with the parameters of the one before; run it."""
        shapes = [TensorParam(tuple(map(int, v.shape)), v.dtype.name) for v in values]
        if self.made is None or self.made[0] != shapes:
            model = self.function(*shapes)
            if not isinstance(model, Model):
                raise ArgumentError(f"its function returned {model!r}; let it return a model")
            if self.made is not None:
                self._give_parameters(model, shapes)
            self.made = shapes, model
        return self.made[1].run(build, values)


@checked
def dynamic(function: Callable[..., Model], *, name: str | None = None) -> DynamicModel:
    """Return a model that ``function(*params)`` makes for the params of its inputs."""
    return DynamicModel(function, name=name)


@dataclass(frozen=True, eq=False)
class Scope:
    """Passed to the functions of the table: parameters and commands of a model in a build."""

    model: LeafModel
    build: Build

    @property
    def format(self) -> str:
        """The layout of images."""
        return str(self.model.attributes.get("format") or self.build.format)

    def parameter(
        self, name: str, shape: Sequence[Any], first: Any, kind: str = "weight",
        fan: Any = ((), ()), dtype: str | None = None,
    ) -> Value:  # fmt: skip
        """Return a parameter, which the first build creates.

        ``first`` is its value or an initialiser of ``geon.frontends.neon``, for which ``fan`` has
        the dimensions that are summed over, and those that are made. Raises ``AxisError`` if it
        exists with another shape.
        """
        own, lengths = self.model.own, tuple([int(n) for n in shape])
        if name not in own:
            dims = [geon.Axis(f"{name}{k}", n) for k, n in enumerate(lengths)]
            axes = geon.Axes([axis for axis in dims if axis.length != 1])
            if callable(first):
                given = [geon.Axes([a for k in part if (a := dims[k]) in axes]) for part in fan]
                first = first(axes, *given)
            kept = dtype or self.build.dtype
            leaf = geon.Variable(axes, kept, initial_value=first, trainable=kind != "state")
            own[name] = Parameter(kind, lengths, leaf, kind != "state")
        if own[name].shape != lengths:
            raise AxisError(
                f"the inputs need {name} of shape {lengths}, and it has {own[name].shape} from an "
                "earlier call; a model that is called again shares its parameters: make another one"
            )
        return own[name].value

    def exec(self, command: str, *values: Value | None, **attributes: Any) -> list[Value | None]:
        """Return the outputs of a command; unknown attributes raise ``ArgumentError``."""
        made = cmd(command, **attributes)
        return made.apply(values, format=self.format, random=self.build.random)

    def state(self, name: str) -> Value:
        """Return a state with the value that models called before have given it in this build."""
        given = self.model.own[name].value
        new = self.build.updates.get(self.model.own[name].leaf)
        return given if new is None else replaced(given, new)

    def keep(self, name: str, value: Value) -> None:
        """Assign a value to a state after the step."""
        state = self.model.own[name]
        self.build.updates[state.leaf] = matching(value, state.value, f"the state {name}")


class LeafModel(Model):
    """A model of one row of the table: ``function(scope, *values, **attributes)``."""

    def __init__(
        self, kind: str, function: Any, attributes: dict[str, Any], name: str | None
    ) -> None:
        self._begin([], name)
        self.kind, self.function, self.attributes = kind, function, attributes
        _, *own = inspect.signature(function).parameters.values()
        self.taken = [p for p in own if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]

    def forward(self, build: Build, values: list[Value]) -> list[Value]:
        """Return the outputs of the row's function."""
        check_inputs(self.taken, values)
        made = self.function(Scope(self, build), *values, **self.attributes)
        return [v for v in made if v is not None] if isinstance(made, (list, tuple)) else [made]
