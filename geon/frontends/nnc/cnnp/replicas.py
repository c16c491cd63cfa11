"""``Replicas``: a model on several devices of one process, each with a part of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import geon
from geon import eager

from ....errors import ArgumentError
from ....op_graph.transforms.functionalize import substitute
from ...positional.values import PositionalArray, as_array
from ..commands.command import leaf_of
from ..commands.execution import Program, program_of, transformer_of
from ..recorded import numpy_of, replaced
from ..streams import Stream, wait_for_all
from ..tensors import Tensor

if TYPE_CHECKING:
    from .model import Model
    from .parameters import Parameter

Array = np.ndarray[Any, Any]
Step = tuple[Program, list[Any]]  # a replica's program, and the states that it gives new values


class Replicas:
    """The programs of a model on devices or transformers by name, which run side by side.

    Each has the parameters as inputs; losses and gradients come back to the host.
    """

    def __init__(self, model: Model, devices: Sequence[str]) -> None:
        self.model, self.devices = model, tuple(devices)
        self.transformers = [transformer_of(device) for device in devices]
        self.streams = [Stream() for _ in devices]
        self.programs: dict[Any, Step] = {}

    def evaluate(self, values: Sequence[Any], training: bool) -> list[Array]:
        """Return the outputs for values of ``geon.eager``, with the rows in order."""
        return self._joined(self._run(values, "evaluate", training))

    def fit(self, values: Sequence[Any], inputs: int) -> tuple[Array, list[Array]]:
        """Return the losses of all rows, and the sum of the gradients of each trained parameter."""
        found = self._run(values, "fit", inputs)
        (losses,) = self._joined([made[:1] for made in found])
        gradients = zip(*[made[1:] for made in found], strict=True)
        return losses, [np.sum(parts, axis=0) for parts in gradients]

    def _joined(self, found: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the results of all replicas along the rows; the sum of those that have none."""
        return [
            np.concatenate(parts, self._rows_of(parts[0])) if parts[0].ndim else np.sum(parts, 0)
            for parts in zip(*found, strict=True)
        ]

    def _rows_of(self, value: Array) -> int:
        """Return the dimension of the rows: the first one, or the last one of images CHWN."""
        return 3 if self.model.layout == "CHWN" and value.ndim == 4 else 0

    def _run(self, values: Sequence[Any], what: str, option: Any) -> list[list[Array]]:
        """Return the results of each replica; the new states are those of the first one."""
        given = [numpy_of(value) for value in values]
        count, parts = len(self.devices), []
        for each in given:
            rows = each.shape[self._rows_of(each)] if each.ndim else 0
            if rows < count:
                raise ArgumentError(
                    f"{rows} rows of data of shape {each.shape} for the {count} devices "
                    f"{', '.join(self.devices)}; give a row to each, or fewer devices to "
                    "set_data_parallel"
                )
            parts.append(np.array_split(each, count, self._rows_of(each)))
        own = [Tensor(np.asarray(eager.array(p.leaf)).reshape(p.shape)) for p in self.model.held()]
        results: list[list[Array]] = []
        states: list[Parameter] = []
        for k, stream in enumerate(self.streams):
            shares = [each[k] for each in parts]
            program, states = self._program(k, shares, what, option)
            inputs = [*[Tensor(share) for share in shares], *own]
            outputs = [Tensor(shape=y.shape, dtype=y.dtype) for y in program.results]  # type: ignore[arg-type]  # integers
            stream.submit(partial(program, inputs, outputs))
            results.append([tensor.array for tensor in outputs])
        wait_for_all(self.streams)
        end = len(results[0]) - len(states)
        for parameter, value in zip(states, results[0][end:], strict=True):
            parameter.set(value)
        return [each[:end] for each in results]

    def _program(self, k: int, shares: Sequence[Array], what: str, option: Any) -> Step:
        """Return the program of a replica for such data, and the states that it moves."""
        model = self.model
        held: list[Parameter] = model.held()
        kinds = tuple([(share.shape, share.dtype) for share in shares])
        switches = tuple([model.checkpointing for model in model.models()])
        key = (k, kinds, what, option, tuple([(p, p.trainable) for p in held]), switches)
        if key not in self.programs:
            leaves = [leaf_of(Tensor(share).param, f"x{n}") for n, share in enumerate(shares)]
            own = [replaced(p.value, geon.placeholder(p.leaf.axes, p.leaf.dtype)) for p in held]
            known: Any = {p.leaf: leaf.tensor for p, leaf in zip(held, own, strict=True)}
            results, build = model.step_values(list(leaves), what, option)
            states = [p for p in held if p.leaf in build.updates]
            results += [replaced(p.value, build.updates[p.leaf]) for p in states]
            made: list[Any] = [
                PositionalArray(substitute(y.tensor, known), y.dims)  # type: ignore[arg-type]  # a tensor
                for y in map(as_array, results)
            ]
            chosen = self.transformers[k]
            self.programs[key] = program_of([*leaves, *own], made, chosen, "a model"), states
        return self.programs[key]
