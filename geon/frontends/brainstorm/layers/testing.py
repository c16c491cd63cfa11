"""Tests of layers: the passes of any layer beside finite differences in float64.

::

    for spec in get_test_configurations():
        run_layer_tests(MyLayerImpl("test", shapes, [], [], size=3), spec)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ....errors import GradientError
from ..handlers import NumpyHandler
from ..structure.buffers import BufferManager
from ..structure.layout import create_layout
from .base_layer import Layer

STEP = 1e-5
"""Change of a value in central differences, in float64."""
TOLERANCE = 1e-5
"""Allowed difference of a derivative from central differences, relative to the largest one."""


def get_test_configurations() -> Iterator[dict[str, Any]]:
    """Yield numbers of steps and sequences, and seeds, for ``run_layer_tests``."""
    for seed, (time_steps, batch_size) in enumerate([(1, 1), (2, 1), (1, 3), (3, 2)]):
        yield {"time_steps": time_steps, "batch_size": batch_size, "seed": seed}


def run_layer_tests(
    layer: Layer, spec: Mapping[str, Any] | None = None, handler: Any = None
) -> None:
    """Compare a layer's backward pass with central differences of its forward pass.

    ``spec`` has ``time_steps``, ``batch_size`` and ``seed``, and may have ``training`` (default
    True), and arrays by name in ``inputs`` and ``parameters`` in place of random ones. Inputs
    without a derivative are 0 and 1 by default. Contexts are random. Raises ``GradientError`` with
    the buffer, both values and the place, also if the backward pass overwrites deltas or gradients
    instead of adding to them. ``handler`` is of float64, by default that of NumPy.
    """
    checker = _Checker(layer, dict(spec or {}), handler or NumpyHandler("float64"))
    checker.check()


class _Checker:
    """The buffers of one layer with random values, and the comparison."""

    def __init__(self, layer: Layer, spec: dict[str, Any], handler: Any) -> None:
        self.layer, self.spec = layer, spec
        self.random = np.random.RandomState(spec.get("seed", 0))
        self.training = spec.get("training", True)
        layer.set_handler(handler)
        hubs, layout = create_layout({layer.name: layer})
        self.manager = BufferManager(handler, hubs, layout)
        self.manager.resize(spec.get("time_steps", 3), spec.get("batch_size", 2))
        self.view = self.manager.views[layer.name]
        self._fill()

    def _fill(self) -> None:
        view, layer = self.view, self.layer
        for hub, array in zip(self.manager.hubs, self.manager.buffers, strict=True):
            if hub.context_size and not hub.is_backward_only:
                array[-hub.context_size :] = self._draw(array[-hub.context_size :].shape)
        for name, array in view.inputs.items():
            constant = name in layer.computes_no_input_deltas_for
            array[...] = (
                self.random.randint(0, 2, array.shape) if constant else self._draw(array.shape)
            )
        for array in view.parameters:
            array[...] = self._draw(array.shape)
        for name, first in layer.state.items():
            view.internals[name][...] = first
        for kind in ("inputs", "parameters"):
            for name, value in self.spec.get(kind, {}).items():
                view[kind][name][...] = value
        self.state = {name: np.array(view.internals[name]) for name in layer.state}
        self.seeds = {
            name: self._draw(array.shape)
            for name, array in view.outputs.items()
            if name not in layer.takes_no_output_deltas_from
        }
        for name, structure in layer.out_shapes.items():
            if name in self.seeds and structure.context_size:
                self.seeds[name][-structure.context_size :] = 0

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.random.uniform(0.1, 1, shape) * self.random.choice([-1, 1], shape)

    def forward(self) -> float:
        """Run the forward pass; return the outputs times the seeds."""
        for name, value in self.state.items():
            self.view.internals[name][...] = value
        self.layer.forward_pass(self.view, self.training)
        outputs = self.view.outputs
        total = sum(float((outputs[name] * seed).sum()) for name, seed in self.seeds.items())
        total += sum(float(outputs[name].sum()) for name in self.layer.starts_backward_pass_from)
        return total

    def backward(self, first: float) -> None:
        """Run the backward pass for the seeds, with this value in deltas and gradients before."""
        self.manager.clear_backward_buffers()
        self.forward()
        for array in (*self.view.input_deltas, *self.view.gradients):
            array[...] = first
        for name, seed in self.seeds.items():
            self.view.output_deltas[name][...] = seed
        self.layer.backward_pass(self.view)

    def check(self) -> None:
        """Compare all derivatives."""
        pairs = [
            (kind, name, self.view[kind][name], values)
            for kind, values_of, skipped in (
                ("input_deltas", self.view.inputs, self.layer.computes_no_input_deltas_for),
                ("gradients", self.view.parameters, self.layer.computes_no_gradients_for),
            )
            for name, values in values_of.items()
            if name not in skipped
        ]
        self.backward(0.0)
        found = [np.array(array) for _, _, array, _ in pairs]
        self.backward(1.0)
        for (kind, name, array, values), value in zip(pairs, found, strict=True):
            self._compare(kind, name, np.array(array), value + 1, "after values of 1 before")
            self._compare(kind, name, value, self._differences(values), "by central differences")

    def _differences(self, values: Any) -> Any:
        result = np.zeros(values.shape)
        for place in np.ndindex(*values.shape):
            value = values[place]
            values[place] = value + STEP
            above = self.forward()
            values[place] = value - STEP
            result[place] = (above - self.forward()) / (2 * STEP)
            values[place] = value
        return result

    def _compare(self, kind: str, name: str, found: Any, wanted: Any, how: str) -> None:
        difference = np.abs(found - wanted)
        if difference.size and not difference.max() <= TOLERANCE * max(1.0, np.abs(wanted).max()):
            place = np.unravel_index(int(np.nanargmax(difference)), difference.shape)
            raise GradientError(
                f"{self.layer.described}: {kind}.{name} at {tuple(map(int, place))} is "
                f"{found[place]:.8g}, and {wanted[place]:.8g} {how}; mend the backward pass"
            )
