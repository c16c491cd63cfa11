"""``Model``: a layer with inputs, cost, optimiser and metrics; training, evaluation, prediction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ArgumentError, CheckpointError, NonFiniteError
from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.core.argument_hints import public
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import mean
from ....op_graph.names import DEFAULT_NAME
from ....op_graph.op_graph import Leaf, Op, Tensor
from ....op_graph.rows.accumulation import widen
from ....op_graph.rows.concatenation import stack
from ....op_graph.rows.effects import assign
from ....op_graph.rows.elementwise import cast, maximum, where
from ....op_graph.rows.leaves import persistent_tensor
from ....op_graph.rows.movement import reorder
from ....op_graph.rows.reductions import sum, tensor_size
from ....op_graph.syntax.operators import is_function
from ....op_graph.transforms.functionalize import substitute
from ....transformers.base import Transformer, make_transformer
from ..axis import N
from ..checks import at_least_one, at_least_zero
from ..layers import Layer, Training
from ..metrics import Mean, Metric
from ..optimisers import Optimiser
from .data import ClosingBatches, Data, along_examples, as_data, checked_batch, count_of
from .figures import checked_figures, over_all
from .run import Callback, HeldInterrupts, Run, in_order
from .summary import Summary, summary

if TYPE_CHECKING:
    from ....transformers.base import Computation

PLACE = Axis("place", 4)  # epochs done, batches done of the next one, sum of costs, number of costs
FIT = "fit"  # prefix of names of a model's own variables


class Model:
    """A layer that is trained on inputs and a target, and used.

    ``inputs`` is a placeholder or a list of them, ``cost`` a function of the result and the target.
    Its mean is minimised, in float32 for costs in half precision. Computations are made when they
    are first needed. All training state is in variables of ``transformer``: weights, optimiser
    state, counters of random streams, and the position in the data, whose names begin with
    ``name``. If two models are trained in one transformer, give each a name; optimisers without one
    are named after it.

    ``mask``, truth values over axes of the cost, selects the elements that count in costs and
    metrics, for example all but padding. It is computed from inputs, or it is a placeholder; if
    that is no input, it is passed between the inputs and the target. If nothing of a batch counts,
    its cost is 0. Raises ``ArgumentError`` for figures with equal names, and for invalid layers,
    placeholders, costs or optimisers; ``DTypeError`` and ``AxisError`` for a mask that does not
    fit, when it is first used.
    """

    def __init__(
        self,
        layer: Layer,
        inputs: Leaf | Sequence[Leaf],
        target: Leaf,
        cost: Callable[[Tensor, Tensor], Tensor],
        optimiser: Optimiser | None = None,
        metrics: Sequence[Metric] = (),
        *,
        mask: Tensor | None = None,
        transformer: Transformer | None = None,
        name: str = FIT,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentError(
                f"{user_call('Model')}: name={name!r} is no text; give one such as 'fit'"
            )
        self.name = name
        self.inputs = checked_parts(layer, inputs, target, cost, optimiser)
        self.layer, self.target, self.cost, self.mask = layer, target, cost, mask
        self.given = [*self.inputs, target]  # the arrays of a batch
        if isinstance(mask, Leaf) and not any(mask is x for x in self.inputs):
            self.given.insert(-1, mask)
        self.optimiser, self.metrics = optimiser, list(metrics)
        if optimiser is not None and optimiser.name is None and name != FIT:
            optimiser.name = f"{name}.optimiser"
        checked_figures(cost, self.metrics)
        self.transformer = make_transformer() if transformer is None else transformer
        self.place = self._kept("place", 0, Axes(PLACE))
        self.result = layer(*self.inputs)
        self._numbers: dict[str, Leaf] = {}
        self._made: dict[str, Computation] = {}

    # Training -----------------------------------------------------------------------------------

    @public
    def fit(
        self,
        data: Data | Iterable[Any],
        epochs: int,
        *,
        validation: Data | Iterable[Any] | None = None,
        callbacks: Sequence[Callback] = (),
        resume: str | os.PathLike[str] | None = None,
        averaged: bool = False,
        steps: int | None = None,
    ) -> Run:
        """Train until ``epochs`` epochs are done, including those of earlier calls.

        With ``steps``, it ends after at most that many batches of this call, possibly in the middle
        of an epoch, where the next call continues.

        Data are ``Batches``, other objects with an ``epoch`` method, or any iterable of batches
        that can be iterated repeatedly. After each epoch, ``validation`` is evaluated, with
        ``averaged`` by the averages of weights. With ``resume``, it continues from a checkpoint,
        whose run must have had the same callbacks with numbers; what follows is bit for bit what
        would have followed. Ctrl-C ends training after a step, and is no error: the run is marked
        ``interrupted``. Raises ``ArgumentError`` without an optimiser, for invalid counts and
        callbacks, and for an epoch without a batch.
        """
        at_least_zero("fit", "epochs", epochs)
        if steps is not None:
            at_least_one("fit", "steps", steps)
        data = as_data(data)
        run = Run(self, epochs, count_of(data))
        callbacks = in_order(callbacks)
        step = self.step(checked=any(callback.checked for callback in callbacks))
        for callback in callbacks:
            for name, first in callback.numbers.items():
                self.add_number(name, first)
        if resume is not None:
            self.resume(resume)
        with ending(run, callbacks):
            run.epoch, run.batch = map(int, self.reached().tolist()[:2])
            for callback in callbacks:
                callback.begin(run)
            while run.epoch < epochs and run.stop is None:
                with ClosingBatches(data.epoch(run.epoch, run.batch)) as batches:
                    for batch in batches:
                        if type(batch) is not tuple:
                            batch = checked_batch(batch, self.given)
                        run.cost = float(step(*batch)[0])
                        run.batch, run.steps = run.batch + 1, run.steps + 1
                        for callback in callbacks:
                            callback.after_batch(run)
                        if run.steps == steps:
                            run.stop = f"{steps} steps were made"
                            return run
                if run.batch == 0:
                    raise ArgumentError(
                        f"{user_call('fit')}: the data have no batch in epoch {run.epoch}; give "
                        "some, or smaller "
                        "batches where those that are not full are left out"
                    )
                found = self._validated(validation, averaged)
                with HeldInterrupts():  # callbacks' counts must match the position in the data
                    run.figures = {"cost": self._next_epoch(run.epoch + 1), **found}
                    run.epoch, run.batch = run.epoch + 1, 0
                    for callback in callbacks:
                        callback.after_epoch(run)
        return run

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Read the complete state of a run from its checkpoint."""
        try:
            self.transformer.restore(path)
        except CheckpointError as error:
            error.add_note(
                "fit goes on with the layers, the optimiser and the callbacks that the run had; "
                "model.restore takes the weights alone"
            )
            raise

    def _validated(
        self, validation: Data | Iterable[Any] | None, averaged: bool
    ) -> dict[str, float]:
        """Return the figures of the validation data at the end of an epoch."""
        if validation is None:
            return {}
        found = self.evaluate(validation, averaged=averaged)
        return {f"validation {name}": value for name, value in found.items()}

    def _next_epoch(self, number: int) -> float:
        """Return the mean cost of the epoch that ends, and begin epoch ``number``."""
        progress = np.array([number, 0.0, 0.0, 0.0])
        _, _, total, count = self.transformer.exchange(self.place, progress).tolist()
        return total / count if count else float("nan")

    def reached(self) -> np.ndarray[Any, Any]:
        """Return epochs done, batches done of the next, and the sum and the number of its costs."""
        return self.transformer.get(self.place)

    def step(self, checked: bool = False) -> Computation:
        """The computation of a training step: inputs, mask and target to cost, with all updates.

        This includes the position in the data of ``fit``: a call counts as a batch of the current
        epoch.
        """
        key = "checked step" if checked else "step"
        if key not in self._made:
            if self.optimiser is None:
                raise ArgumentError("this model has no optimiser to train with; give optimiser=")
            training = Training()
            each = widen(self.cost(self.layer(*self.inputs, training=training), self.target))
            total, count = self.counted(each)
            cost = mean(each) if self.mask is None else total / cast(maximum(count, 1), each.dtype)
            moved = [0.0 * count, 0.0 * count + 1, cast(total, "float64"), count]
            trained = cost
            for more in training.costs:
                trained = trained + more
            effects = [
                self.optimiser(trained),
                *training.updates,
                assign(self.place, self.place + stack(moved, PLACE)),
            ]
            self._made[key] = self.transformer.computation(
                [cost, *effects], *self.given, check="nan" if checked else None
            )
        return self._made[key]

    def counted(self, each: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of the costs that count, and their number as float64."""
        if self.mask is None:
            return sum(each), cast(tensor_size(each), "float64")
        mask = over_all(self.mask, each)
        return sum(where(mask, each, 0)), cast(sum(mask), "float64")

    # Use ----------------------------------------------------------------------------------------

    @public
    def evaluate(self, data: Data | Iterable[Any], *, averaged: bool = False) -> dict[str, float]:
        """The mean cost and the metrics over data, by name; NaN without batches.

        With ``averaged``, they are those of the averages of weights. Raises ``ArgumentError`` if
        the optimiser keeps none.
        """
        metrics = [Mean(self.cost), *self.metrics]
        key = "averaged figures" if averaged else "figures"
        if key not in self._made:
            known = self.averaged() if averaged else {}
            values = [metric.each(self.result, self.target) for metric in metrics]
            # A cost and metrics may have weights of their own.
            values = [[with_averages(x, known) for x in tensors] for tensors in values]
            if self.mask is not None:
                for tensors in values:
                    tensors.append(over_all(self.mask, tensors[0]))
            self._made[key] = self.transformer.computation(values, *self.given)
        with ClosingBatches(as_data(data).epoch(0)) as given:
            batches = [self._made[key](*checked_batch(batch, self.given)) for batch in given]
        figures = {}
        for number, metric in enumerate(metrics):
            columns = zip(*[batch[number] for batch in batches], strict=True)
            arrays = [np.concatenate([part.reshape(-1) for part in column]) for column in columns]
            if self.mask is not None and arrays:
                *arrays, counts = arrays
                arrays = [array[counts] for array in arrays]
            figures[metric.name] = metric.value(*arrays) if arrays else float("nan")
        return figures

    @public
    def predict(
        self, *arrays: Any, size: int | None = None, averaged: bool = False
    ) -> np.ndarray[Any, Any]:
        """The results for these inputs, with N first if they have it.

        With ``size``, they are computed in batches of that many examples along N, with ``averaged``
        by the averages of weights. Raises ``ArgumentError`` for a ``size`` if N is not an axis of
        the result.
        """
        key = "averaged predict" if averaged else "predict"
        if key not in self._made:
            result = with_averages(self.result, self.averaged()) if averaged else self.result
            if N in result.axes:
                result = reorder(result, Axes(N, result.axes.without([N])))
            self._made[key] = self.transformer.computation(result, *self.inputs)
        predict = self._made[key]
        if size is None or len(arrays) != len(self.inputs):
            return np.asarray(predict(*arrays))
        if N not in self.result.axes:
            raise ArgumentError(
                f"predict: size={size} examples at a time, and the result {self.result} (made at "
                f"{self.result.line_info}) has no axis {N}; leave out size="
            )
        parts = [predict(*batch) for batch in along_examples(self.inputs, arrays, size)]
        return np.concatenate(parts) if parts else np.asarray(predict(*arrays))

    def averaged(self) -> dict[Op, Op]:
        """Return a map from weights to their averages."""
        if self.optimiser is not None:
            self.step()  # creates the averages
        averages = {} if self.optimiser is None else self.optimiser.averages()
        if not averages:
            raise ArgumentError(
                "this model keeps no averages of weights; give optimiser=neon.Averaged(...)"
            )
        return {w: cast(kept, w.dtype) for w, kept in averages.items()}

    def summary(self) -> Summary:
        """A table of layers, as text and HTML: axes of results, variables, bytes, and operations.

        Operations are those of one example without training.
        """
        return summary(self.layer, self.result)

    # Checkpoints --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the complete training state to a checkpoint; before a step, the initial values."""
        if self.optimiser is not None:
            self.step()  # registers weights and optimiser state with the transformer
        else:
            self.transformer.computation(self.result, *self.inputs)
        self.transformer.save(path)

    @public
    def restore(self, path: str | os.PathLike[str], *, averaged: bool = False) -> None:
        """Read the layer's variables from a checkpoint, without the optimiser's state.

        ``fit`` with ``resume`` reads all of it. With ``averaged``, weights are set to the averages
        that ``Averaged`` has kept of them. Raises ``ArgumentError`` if the file has none, and for a
        layer without a name.
        """
        self.transformer.computation(self.result, *self.inputs)
        names = [leaf.name for leaf in self.layer.all_variables() if leaf.name is not None]
        if len(names) < len(self.layer.all_variables()):
            raise ArgumentError(
                "restore takes the layer's variables by their names; give the layer a name="
            )
        rename = averages_in(path, names) if averaged else None
        self.transformer.restore(path, only=names, rename=rename)

    # Numbers of callbacks -----------------------------------------------------------------------

    def add_number(self, name: str, first: float) -> None:
        """Create a number that is stored in checkpoints, unless it exists."""
        if name not in self._numbers:
            leaf = self._kept(name, first, Axes())
            self._numbers[name] = leaf
            self.transformer.get(leaf)

    def _kept(self, what: str, first: float, axes: Axes) -> Leaf:
        """Return a new variable of the model's own."""
        name = f"{self.name}.{what}"
        tags = DEFAULT_NAME if self.name == FIT else ()
        return persistent_tensor(axes, "float64", initial_value=first, name=name, tags=tags)

    def number(self, name: str) -> float:
        """The value of a number that a callback keeps."""
        return float(self.transformer.get(self._numbers[name]))

    def set_number(self, name: str, value: float) -> None:
        """Set a number that a callback keeps."""
        self.transformer.set(self._numbers[name], value)


def checked_parts(layer: Any, inputs: Any, target: Any, cost: Any, optimiser: Any) -> list[Leaf]:
    """Return the inputs of a model as a list; raise ``ArgumentError`` for an invalid part."""
    listed = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = {
        "layer": (isinstance(layer, Layer), layer, "neon.Activation(function), or another layer"),
        "cost": (
            is_function(cost) and not isinstance(cost, type),
            cost,
            "neon.costs.cross_entropy",
        ),
        "optimiser": (
            optimiser is None or isinstance(optimiser, Optimiser), optimiser, "neon.Adam(0.001)"
        ),
        "target": (isinstance(target, Leaf), target, 'geon.placeholder([N], name="t")'),
        "inputs": (
            bool(listed) and all(isinstance(x, Leaf) for x in listed),
            inputs,
            'geon.placeholder([N, C], name="x"), or a list of placeholders',
        ),
    }  # fmt: skip
    for name, (fits, given, cure) in wanted.items():
        if not fits:
            raise ArgumentError(f"{user_call('Model')}: {name}={given!r} cannot serve; give {cure}")
    return listed


def with_averages(x: Tensor, known: dict[Op, Op]) -> Tensor:
    """Return a tensor with weights replaced by their averages."""
    result = substitute(x, known) if known else x
    assert isinstance(result, Tensor)
    return result


def averages_in(path: str | os.PathLike[str], names: Sequence[str]) -> Callable[[str], str | None]:
    """Return a function from a file's entry to the variable it sets, averages before weights."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), "numpy") as file:
            entries = list(file.keys())
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"the checkpoint {os.fspath(path)!r} cannot be read ({error}); give a file that save "
            "has written"
        ) from None
    found: dict[str, str] = {}
    for entry in entries:
        fitting = [name for name in names if entry.endswith(f".{name}.average")]
        if fitting:
            found[entry] = max(fitting, key=len)
    if not found:
        raise ArgumentError(
            f"the checkpoint {os.fspath(path)!r} has no averages of this model's weights; train it "
            "with optimiser=neon.Averaged(...), or restore without averaged=True"
        )
    averaged = set(found.values())
    return lambda entry: found.get(entry, None if entry in averaged else entry)


@contextmanager
def ending(run: Run, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Context of a run: interrupts and non-finite values end it normally, other errors raise."""
    try:
        yield
    except KeyboardInterrupt:
        run.interrupted = True
        run.stop = "interrupted"
    except NonFiniteError as error:
        run.error, run.stop = error, str(error)
    except BaseException as error:
        run.error = error
        for other in ended_callbacks(run, callbacks):
            error.add_note(f"at the end of training: {type(other).__name__}: {other}")
        raise
    for other in ended_callbacks(run, callbacks):
        raise other


def ended_callbacks(run: Run, callbacks: Sequence[Callback]) -> list[Exception]:
    """End all callbacks, and return the errors that they raised.

    Those that save come first, and interrupts are deferred meanwhile: neither another callback nor
    a second Ctrl-C may prevent the checkpoint of an interrupted run.
    """
    errors: list[Exception] = []

    def end(saves: bool) -> None:
        for callback in callbacks:
            if callback.saves == saves:
                try:
                    callback.end(run)
                except Exception as error:
                    errors.append(error)

    try:
        with HeldInterrupts():
            end(saves=True)
    finally:
        end(saves=False)
    return errors
