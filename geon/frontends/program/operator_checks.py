"""``check_output`` and ``check_gradient``: tests of an operator against values and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import GradientError
from .executor import Executor
from .program import Program, Var, program_guard
from .registry import operator_info
from .scope import Scope
from .storage import CPUPlace, Place

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Any]


def check_output(
    type: str,
    inputs: Arrays,
    attributes: Mapping[str, Any] | None = None,
    expected: Arrays = {},  # noqa: B006  # not changed
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    place: Place | None = None,
) -> dict[str, Any]:
    """Run an operator and compare its outputs with ``expected``; return them by slot.

    Arrays are by slot, lists of them for duplicable slots. Raises ``AssertionError`` that names the
    operator, the slot and the first different element.
    """
    checked = _Checked(type, inputs, attributes, place)
    found = checked.outputs()
    for slot, wanted in expected.items():
        for k, (got, array) in enumerate(zip(_listed(found[slot]), _listed(wanted), strict=True)):
            np.testing.assert_allclose(
                got, array, rtol, atol, err_msg=f"{type}: output {slot} {k}", strict=False
            )
            assert got.shape == np.shape(array), (
                f"{type}: output {slot} has the shape {got.shape}, not {np.shape(array)}"
            )
    return found


def check_gradient(
    type: str,
    inputs: Arrays,
    attributes: Mapping[str, Any] | None = None,
    slots: Sequence[str] | None = None,
    *,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    seed: int = 0,
    place: Place | None = None,
) -> None:
    """Compare the gradient operator with central differences, in float64.

    ``slots`` are the inputs to differentiate by, all of floats by default. The float outputs are
    summed with random weights. Every element is compared: the difference may be ``tolerance`` times
    the larger of 1 and the largest difference of the input. Raises ``GradientError`` that names the
    slot, the index and both values.
    """
    wide = {slot: _mapped(value, _as_double) for slot, value in inputs.items()}
    checked = _Checked(type, wide, attributes, place)
    random = np.random.default_rng(seed)
    weights = {
        name: random.uniform(0.5, 1.5, np.shape(array))
        for name, array in checked.named_outputs().items()
        if np.asarray(array).dtype.kind == "f"
    }
    gradients = checked.gradients(weights, slots)

    def total(arrays: dict[str, Array]) -> float:
        found = checked.named_outputs(arrays)
        return sum(float(np.sum(found[name] * weight)) for name, weight in weights.items())

    for name, gradient in gradients.items():
        base = checked.arrays[name]
        expected = np.zeros(base.shape)
        for index in np.ndindex(base.shape):
            moved = []
            for sign in (1, -1):
                array = base.copy()
                array[index] += sign * step
                moved.append(total({**checked.arrays, name: array}))
            expected[index] = (moved[0] - moved[1]) / (2 * step)
        limit = tolerance * max(1.0, float(np.abs(expected).max(initial=0)))
        wrong = ~(np.abs(gradient - expected) <= limit)
        if wrong.any():
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            raise GradientError(
                f"{type}: the gradient of {name} at {index} is {gradient[index]}, and the "
                f"difference quotient {expected[index]}"
            )


class _Checked:
    """A program of one operator, whose inputs are data."""

    def __init__(
        self, type: str, inputs: Arrays, attributes: Mapping[str, Any] | None, place: Place | None
    ) -> None:
        self.type, self.scope, self.executor = type, Scope(), Executor(place or CPUPlace("numpy"))
        self.main = Program()
        block = self.main.global_block()
        self.arrays: dict[str, Array] = {}
        self.inputs: dict[str, list[Var]] = {}
        for slot, value in inputs.items():
            self.inputs[slot] = []
            for k, array in enumerate(_listed(value)):
                name = slot if not isinstance(value, list) else f"{slot}_{k}"
                self.arrays[name] = np.asarray(array)
                shape, dtype = self.arrays[name].shape, self.arrays[name].dtype
                var = block.create_var(name, shape, dtype, is_data=True)
                self.inputs[slot].append(var)
        proto = operator_info(type).proto
        many = {slot.name: slot.duplicable for slot in proto.outputs}
        from .program import NEW

        made = block.append_op(type, self.inputs, dict.fromkeys(many, NEW), attributes)
        names = self.main.values
        self.results = {
            slot: [names[k].name for k in ids] for slot, ids in made.outputs.items() if ids
        }
        self.many = many

    def named_outputs(self, arrays: dict[str, Array] | None = None) -> dict[str, Array]:
        """Return all outputs by name."""
        names = [name for listed in self.results.values() for name in listed]
        found = self.executor.run(self.main, arrays or self.arrays, names, self.scope)
        return dict(zip(names, found, strict=True))

    def outputs(self) -> dict[str, Any]:
        """Return the outputs by slot."""
        found = self.named_outputs()
        listed = {slot: [found[name] for name in names] for slot, names in self.results.items()}
        return {slot: each if self.many[slot] else each[0] for slot, each in listed.items()}

    def gradients(self, weights: dict[str, Array], slots: Sequence[str] | None) -> dict[str, Array]:
        """Return the gradients of the weighted sum of outputs by the float inputs in ``slots``."""
        from .backward import calc_gradient

        block = self.main.global_block()
        wanted = [
            var
            for slot, listed in self.inputs.items()
            for var in listed
            if (slots is None or slot in slots) and self.arrays[var.name].dtype.kind == "f"
        ]
        with program_guard(self.main):
            seeds = [
                block.create_var(f"{name}_weights", w.shape, w.dtype, is_data=True)
                for name, w in weights.items()
            ]
            found = calc_gradient([block.var(name) for name in weights], wanted, seeds)
        missing = [v.name for v, gradient in zip(wanted, found, strict=True) if gradient is None]
        if missing:
            raise GradientError(f"{self.type}: its outputs have no gradient by {missing[0]}")
        feed = {**self.arrays, **{f"{name}_weights": w for name, w in weights.items()}}
        arrays = self.executor.run(self.main, feed, found, self.scope)  # type: ignore[arg-type]
        return {var.name: array for var, array in zip(wanted, arrays, strict=True)}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _mapped(value: Any, f: Any) -> Any:
    return [f(each) for each in value] if isinstance(value, list) else f(value)


def _as_double(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
