"""Training and use of models: ``compile``, ``fit``, ``evaluate``, ``backward``, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import geon
from geon import eager

from ....eager.evaluation import prepare
from ....eager.variables import state_of
from ....errors import ArgumentError
from ....transformers.base import Transformer, make_transformer
from ...neon.checks import at_least_one
from ...neon.optimisers.optimiser import Optimiser
from ...neon.training.data import as_data
from ...positional.values import PositionalArray, Value, as_array
from ..checks import checked
from ..commands.command import Command, leaf_of
from ..files import store_of
from ..minimizers import as_optimiser
from ..recorded import Recorded, eager_value, numpy_of, replaced, seeded_sum
from ..tensors import FORMATS, TensorParam
from .parameters import Parameter, Parameters
from .replicas import Replicas

Array = np.ndarray[Any, Any]


@dataclass(eq=False)
class Build:
    """One construction of the graph of a model: in training or not, with new values of states."""

    training: bool = False
    random: Any = field(default_factory=lambda: geon.Random(0))
    format: str = "NHWC"
    dtype: str = "float32"  # of parameters
    updates: dict[Any, Any] = field(default_factory=dict)

    def effects(self) -> list[Any]:
        """Return the assignments of the new values of states."""
        return [geon.assign(leaf, value) for leaf, value in self.updates.items()]


@checked
class Trainable:
    """The methods of models that compute; ``Model`` is one."""

    devices: tuple[str, ...] = ()  # of ``set_data_parallel``

    if TYPE_CHECKING:
        run: Any
        places: Any
        held: Any
        models: Any
        notify: Any

    def reset(self) -> None:
        """Set what ``compile`` sets, to the defaults."""
        self.minimizer: Optimiser | None = None
        self.loss: Any = None
        self.transformer: Transformer | None = None
        self.layout, self.random = "NHWC", geon.Random(0)
        self.step = Recorded(self._build, "a model")
        self.last: Any = None  # the values to be derived
        self.created = self.cancelled = False
        self.replicas: Replicas | None = None

    def compile(
        self, *inputs: Any, minimizer: Any = None, loss: Any = None,
        transformer: Transformer | str | None = None, seed: int = 0, format: str = "NHWC",
    ) -> None:  # fmt: skip
        """Create the parameters for inputs of these shapes or params, and set what ``fit`` uses.

        ``loss`` is a command, or a function of values, of the outputs and the wanted outputs; its
        elements are summed. ``minimizer`` is a command or an optimiser of ``geon.frontends.neon``.
        ``transformer`` computes, by default that of ``geon.eager``. ``seed`` fixes initial values
        and dropout. Raises ``GeonError`` for shapes that do not fit, with the model's name.
        """
        self.reset()
        self.set_minimizer(minimizer)
        named = isinstance(transformer, str)
        self.transformer = make_transformer(transformer) if named else transformer  # type: ignore[arg-type,assignment]  # by `named`
        if not (loss is None or isinstance(loss, Command) or callable(loss)):
            raise ArgumentError(f"loss={loss!r:.80}; give a function of values, or a command")
        if format not in FORMATS:
            raise ArgumentError(f"format={format!r}; give one of {', '.join(FORMATS)}")
        self.loss, self.layout, self.random = loss, format, geon.Random(seed)
        if inputs:
            self._create(inputs)

    def _create(self, inputs: Sequence[Any]) -> None:
        """Create the parameters for inputs of these shapes."""
        self.trace(inputs, False)
        self.created = True

    def trace(self, inputs: Sequence[Any], training: bool) -> tuple[Any, Any, Build]:
        """Return placeholders for inputs of these shapes, the outputs for them, and the build."""
        leaves = [leaf_of(as_param(each), f"x{k}") for k, each in enumerate(inputs)]
        build = self._begin_build(leaves, training)
        return leaves, self.run(build, list(leaves)), build

    def _begin_build(self, values: Sequence[Value], training: bool) -> Build:
        """Return a build for inputs; parameters have the dtype of the first input of floats."""
        floats = [value.dtype.name for value in values if value.dtype.kind == "f"]
        return Build(training, self.random, self.layout, (floats or ["float32"])[0])

    def _device(self) -> AbstractContextManager[Any]:
        """Return a context in which the transformer computes."""
        return nullcontext() if self.transformer is None else eager.use(self.transformer)

    def _stepped(self, values: list[Any], what: str, option: Any) -> list[Any]:
        """Return the results of a recorded step, which depends on the state of parameters, too."""
        if not self.created:
            self._create(values[: option if what == "fit" else None])
        own = tuple([(p, p.trainable, p.minimizer) for p in self.held()])
        recomputed = tuple([model.checkpointing for model in self.models()])
        return self.step(values, what, option, (own, recomputed, self.minimizer))

    def fit(self, inputs: Any, fits: Any) -> Array:
        """Take one training step, and return the losses before it, one for each row.

        ``inputs`` and ``fits`` are an array, or several.
        """
        given, wanted = values_of(inputs), values_of(fits)
        if self.loss is None:
            raise ArgumentError(
                "the model has no loss; give compile(..., loss=), such as "
                "nnc.cmd.softmax_crossentropy(), and a minimizer="
            )
        with self._device():
            if not self.devices:
                return numpy_of(self._stepped([*given, *wanted], "fit", len(given))[0])
            losses, sums = self._parallel(given).fit([*given, *wanted], len(given))
            pairs = zip(self.trained(), sums, strict=True)
            self._move({p: eager.array(g.reshape(p.leaf.shape), p.leaf.axes) for p, g in pairs})
            return losses

    def fit_data(self, data: Any, epochs: int = 1, inputs: int = 1) -> list[float]:
        """Fit each batch of data, and return the mean loss of each epoch.

        ``data`` is an iterator of a ``DataFrame``, or data as ``geon.frontends.neon`` has them. The
        first ``inputs`` arrays of a batch are inputs, the others wanted outputs. After each step,
        hooks get the tag "step" with the mean loss. ``cancel`` ends it after the step.
        """
        at_least_one("fit_data", "epochs", epochs)
        source, means = as_data(data), list[float]()
        self.cancelled = False
        for number in range(epochs):
            losses = []
            for batch in source.epoch(number, 0):
                losses.append(float(self.fit(batch[:inputs], batch[inputs:]).mean()))
                self.notify("step", losses[-1])
                if self.cancelled:
                    return [*means, float(np.mean(losses))]
            if not losses:
                raise ArgumentError("an epoch of the data has no batch")
            means.append(float(np.mean(losses)))
        return means

    def cancel(self) -> None:
        """End ``fit_data`` after its current step; hooks and other threads may call it."""
        self.cancelled = True

    def evaluate(
        self, *inputs: Any, is_test: bool | None = None, requires_grad: bool = False
    ) -> Any:
        """Return the output for arrays, or a tuple of several outputs, as NumPy arrays.

        With ``requires_grad``, ``backward`` may follow, and ``is_test`` is False by default.
        """
        values = [value_of(each) for each in inputs]
        training = requires_grad if is_test is None else not is_test
        with self._device():
            if self.devices and not requires_grad:
                results = self._parallel(values).evaluate(values, training)
                return results[0] if len(results) == 1 else tuple(results)
            outputs = self.outputs_for(values, training)
            self.last = (values, outputs) if requires_grad else None
            found = [numpy_of(value) for value in outputs]
        return found[0] if len(found) == 1 else tuple(found)

    def outputs_for(self, values: list[Value], training: bool) -> list[Value]:
        """Return the outputs for values of ``geon.eager``, which can be derived."""
        return [y for y in self._stepped(values, "evaluate", training) if y is not None]

    def trained(self) -> list[Parameter]:
        """Return the parameters that are not frozen."""
        return [parameter for parameter in self.held() if parameter.trainable]

    def backward(self, *gradients: Any) -> list[Array | None]:
        """Add to the gradients of the parameters, for gradients of the last outputs; ones if none.

        Returns the gradients of the inputs, None for one of integers. Raises ``ArgumentError``
        without ``evaluate(..., requires_grad=True)`` before.
        """
        if self.last is None:
            raise ArgumentError(
                "there are no outputs to derive; call evaluate(..., requires_grad=True) before "
                "each backward"
            )
        (values, outputs), self.last = self.last, None
        total = seeded_sum(outputs, [None if g is None else eager_value(g) for g in gradients])
        weights = self.trained()
        inputs = [v for v in values if v.dtype.kind == "f"]
        leaves = [p.leaf for p in weights] + [as_array(v).tensor for v in inputs]
        found: Any = geon.deriv(total, leaves, unreached="zero")
        for parameter, gradient in zip(weights, found, strict=False):
            parameter.add_gradient(gradient)
        with self._device():
            own = iter(found[len(weights) :])
            return [
                numpy_of(PositionalArray(next(own), as_array(v).dims)) if v in inputs else None
                for v in values
            ]

    def apply_gradients(self) -> None:
        """Move the parameters by the accumulated gradients, and forget these."""
        moved = [p for p in self.trained() if p.gradient is not None]
        with self._device():
            self._move({p: p.gradient for p in moved})
        for parameter in moved:
            parameter.gradient = None

    def _move(self, gradients: dict[Parameter, Any]) -> None:
        """Move parameters by these gradients."""
        for optimiser, group in self._groups(gradients):
            eager.function(optimiser.update)([p.leaf for p in group], [gradients[p] for p in group])
        eager.sync()

    def set_data_parallel(self, devices: Sequence[str]) -> None:
        """Split the rows of ``fit`` and ``evaluate`` over devices, which run side by side.

        ``devices`` are devices or transformers by name, such as ``["gpu:0", "gpu:1"]``; one may be
        there several times, and none ends it. Each input and wanted output is split along its first
        dimension, and gradients are summed. Means over a batch are those of each part; running
        statistics are those of the first one. ``evaluate`` with ``requires_grad`` is on one device.
        """
        if isinstance(devices, str):
            raise ArgumentError(f"devices={devices!r}; give a list, such as ['cpu', 'cpu']")
        self.devices, self.replicas = tuple(devices), None

    def _parallel(self, inputs: list[Value]) -> Replicas:
        """Return the programs of the devices, after the parameters are created."""
        if not self.created:
            self._create(inputs)
        if self.replicas is None:
            self.replicas = Replicas(self, self.devices)  # type: ignore[arg-type]  # a model
        return self.replicas

    def dry_run(self, *inputs: Any, is_test: bool = True) -> list[TensorParam]:
        """Do all of ``evaluate`` but run it, and return the params of the outputs.

        The parameters are created, and the program is compiled that ``evaluate`` runs for inputs of
        these shapes, params or arrays. Parameters and states stay as they are; random numbers go on
        as after a call.
        """
        params = [as_param(each) for each in inputs]
        eager.sync()
        with self._device():
            values = [eager_value(np.zeros(p.shape, p.dtype)) for p in params]
            if not self.created:
                self._create(values)
            versions = {state: state.array for state in [state_of(p.leaf) for p in self.held()]}
            try:
                outputs = self.outputs_for(list(values), not is_test)
                prepare()
            finally:
                for state, version in versions.items():
                    state.array = version
        return [TensorParam(tuple(map(int, y.shape)), y.dtype.name) for y in outputs]

    def set_minimizer(self, minimizer: Any, parameters: Parameters | None = None) -> None:
        """Set the minimiser of all parameters, or of some."""
        if parameters is None:
            made = None if minimizer is None else as_optimiser(minimizer)
            self.minimizer = made
        else:
            parameters.set_minimizer(minimizer)

    def memory_size(self, *inputs: Any, training: bool = True) -> int:
        """Return the bytes of the parameters, and of a step for inputs of these shapes.

        A training step is the sum of the outputs with its derivatives.
        """
        leaves, outputs, build = self.trace(inputs, training)
        results = [as_array(value).tensor for value in outputs]
        if training:
            total = seeded_sum(outputs, [])
            results += geon.deriv(total, [p.leaf for p in self.trained()], unreached="zero")
        transformer = self.transformer or make_transformer()
        given = [leaf.tensor for leaf in leaves]
        f = transformer.computation([*results, *build.effects()], *given)
        own = sum(p.leaf.dtype.itemsize * int(np.prod(p.shape)) for p in self.held())
        return own + int(f.peak_bytes())

    def _groups(self, parameters: Iterable[Parameter]) -> list[tuple[Optimiser, list[Parameter]]]:
        """Return each optimiser with its parameters; raise ``ArgumentError`` if there is none."""
        found: dict[Optimiser, list[Parameter]] = {}
        for parameter in parameters:
            optimiser = parameter.minimizer or self.minimizer
            if optimiser is None:
                raise ArgumentError(
                    f"the parameter {parameter.leaf} has no minimizer; give compile(..., "
                    "minimizer=), or set_minimizer, or freeze it"
                )
            found.setdefault(optimiser, []).append(parameter)
        return list(found.items())

    def _build(self, values: list[Value], what: str, option: Any, state: Any) -> Any:
        """Return the results and effects of a step, of ``values``."""
        results, build = self.step_values(values, what, option)
        if what == "evaluate":
            return results, build.effects()
        weights, effects = self.trained(), build.effects()
        gradients = {p: as_array(g).tensor for p, g in zip(weights, results[1:], strict=True)}
        for optimiser, group in self._groups(weights):
            effects.append(optimiser.update([p.leaf for p in group], [gradients[p] for p in group]))
        return results[:1], effects

    def step_values(self, values: list[Value], what: str, option: Any) -> tuple[Any, Build]:
        """Return the outputs for inputs ``values``, and the build, for ``what`` "evaluate".

        ``option`` is then true in training. For "fit" it is the number of inputs, before the wanted
        outputs, and the results are the losses, and the gradient of each trained parameter.
        """
        build = self._begin_build(values, what == "fit" or option is True)
        if what == "evaluate":
            return self.run(build, values), build
        outputs, wanted = self.run(build, values[:option]), values[option:]
        if isinstance(self.loss, Command):
            losses = self.loss.apply([*outputs, *wanted], format=self.layout)[0]
        else:
            losses = self.loss(*outputs, *wanted)
        weights = self.trained()
        found = geon.deriv(seeded_sum([losses], []), [p.leaf for p in weights], unreached="zero")
        gradients = [replaced(p.value, g) for p, g in zip(weights, found, strict=True)]
        return [losses, *gradients], build

    # Files --------------------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all parameters and states to a safetensors file, by path in the model."""
        self._stored()[0].save(path)

    def read(self, path: str | os.PathLike[str], *, strict: bool = True) -> Any:
        """Set all parameters and states from a file, and return geon's report of what was read.

        Raises ``CheckpointError`` for a damaged file, and with ``strict`` for names or shapes that
        differ; then nothing changes.
        """
        store, leaves = self._stored()
        report = store.restore(path, strict=strict)
        for leaf, parameter in leaves:
            parameter.set(store.get(leaf))
        return report

    def _stored(self) -> tuple[Any, list[tuple[Any, Parameter]]]:
        """Return a transformer with a variable for each parameter, named by its path."""
        own = [(path, owner.own[name]) for path, owner, name in self.places()]
        if not own:
            raise ArgumentError("the model has no parameters yet; compile it first")
        store, leaves = store_of({path: p.numpy() for path, p in own})
        return store, list(zip(leaves.values(), [p for _, p in own], strict=True))


def values_of(given: Any) -> list[Any]:
    """Return an array, or a list or tuple of arrays, as values of ``geon.eager``."""
    several = isinstance(given, (tuple, list)) and all(hasattr(x, "shape") for x in given)
    return [value_of(x) for x in (given if several else [given])]


def value_of(given: Any) -> Any:
    """Return an array as a value of ``geon.eager``."""
    return given if isinstance(given, PositionalArray) else eager_value(given)


def as_param(given: Any) -> TensorParam:
    """Return a shape, an array or a value as a param."""
    if isinstance(given, TensorParam):
        return given
    if hasattr(given, "dtype"):
        return TensorParam(tuple(given.shape), given.dtype.name)
    return TensorParam(given)
