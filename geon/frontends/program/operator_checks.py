"""``check_output`` and ``check_gradient``: tests of an operator against values and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import GradientError
from .executor import Executor
from .program import NEW, Program, Var
from .registry import operator_info
from .scope import Scope
from .storage import CPUPlace, Place

Array = np.ndarray[Any, Any]


class CheckedOperator:
    """A program of one operator whose inputs, arrays by slot, are data."""

    def __init__(
        self, type: str, inputs: Mapping[str, Any], attributes: Any, place: Place | None
    ) -> None:
        self.type, self.scope, self.executor = type, Scope(), Executor(place or CPUPlace("numpy"))
        self.program = Program()
        block = self.program.global_block()
        self.arrays: dict[str, Array] = {}  # by the name of the data: the slot, or with a number
        given: dict[str, list[Var]] = {}
        for slot, value in inputs.items():
            for k, each in enumerate(_listed(value)):
                name = f"{slot}_{k}" if isinstance(value, list) else slot
                array = self.arrays[name] = np.asarray(each)
                var = block.create_var(name, array.shape, array.dtype, is_data=True)
                given.setdefault(slot, []).append(var)
        self.slots = {var.name: slot for slot, listed in given.items() for var in listed}
        outputs = {slot.name: NEW for slot in operator_info(type).proto.outputs}
        made = block.append_op(type, given, outputs, attributes)
        values = self.program.values
        self.outputs = {s: [values[k].name for k in ids] for s, ids in made.outputs.items() if ids}

    def run(self, names: Sequence[Any], more: Mapping[str, Array] | None = None) -> list[Array]:
        """Return the values of variables; ``more`` are data in place of the arrays."""
        return self.executor.run(self.program, {**self.arrays, **(more or {})}, names, self.scope)


def check_output(
    type: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    expected: Mapping[str, Any] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    place: Place | None = None,
) -> dict[str, Any]:
    """Run an operator and compare its outputs with ``expected``; return them by slot.

    Arrays are by slot, lists of them for duplicable slots. Raises ``AssertionError`` that names the
    operator, the slot and the elements that differ.
    """
    checked = CheckedOperator(type, inputs, attributes, place)
    many = {slot.name: slot.duplicable for slot in operator_info(type).proto.outputs}
    found = {slot: checked.run(names) for slot, names in checked.outputs.items()}
    for slot, wanted in (expected or {}).items():
        for got, array in zip(found[slot], _listed(wanted), strict=True):
            what = f"{type}: output {slot}"
            assert got.shape == np.shape(array), f"{what}: {got.shape}, not {np.shape(array)}"
            np.testing.assert_allclose(got, array, rtol, atol, err_msg=what)
    return {slot: each if many[slot] else each[0] for slot, each in found.items()}


def check_gradient(
    type: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    slots: Sequence[str] | None = None,
    *,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    seed: int = 0,
    place: Place | None = None,
) -> None:
    """Compare each element of the gradient operator with central differences, in float64.

    ``slots`` are the inputs to differentiate by, all of floats by default. The float outputs are
    summed with random weights; of a complex sum it is the real part, whose gradient in a + i b is
    its slope in a minus i times that in b. A difference may be ``tolerance`` times the larger of 1
    and the largest quotient of the input. Raises ``GradientError`` that names the input, the index
    and both values.
    """
    from .backward import calc_gradient

    wide: Any = {
        s: list(map(_double, v)) if isinstance(v, list) else _double(v) for s, v in inputs.items()
    }
    checked = CheckedOperator(type, wide, attributes, place)
    names = [name for listed in checked.outputs.values() for name in listed]
    random = np.random.default_rng(seed)
    values = dict(zip(names, checked.run(names), strict=True))
    weights: dict[str, Array] = {
        n: np.asarray(random.uniform(0.5, 1.5, v.shape) * (1 + 0.5j if v.dtype.kind == "c" else 1))
        for n, v in values.items()
        if v.dtype.kind in "fc"
    }
    wanted = [
        name
        for name, array in checked.arrays.items()
        if array.dtype.kind in "fc" and (slots is None or checked.slots[name] in slots)
    ]

    def total(name: str, array: Array) -> float:
        found = dict(zip(names, checked.run(names, {name: array}), strict=True))
        return sum(float(np.sum(found[n] * weight).real) for n, weight in weights.items())

    quotients = {}
    for name in wanted:
        base, quotient = checked.arrays[name], np.zeros_like(checked.arrays[name])
        for index in np.ndindex(base.shape):
            for unit in (1, 1j) if base.dtype.kind == "c" else (1,):
                above, below = base.copy(), base.copy()
                above[index] += step * unit
                below[index] -= step * unit
                slope = (total(name, above) - total(name, below)) / (2 * step)
                quotient[index] += slope * np.conj(unit)
        quotients[name] = quotient
    block = checked.program.global_block()
    seeds = [block.create_var(f"{n}@W", w.shape, w.dtype, is_data=True) for n, w in weights.items()]
    found = calc_gradient(list(map(block.var, weights)), list(map(block.var, wanted)), seeds)
    missing = [name for name, gradient in zip(wanted, found, strict=True) if gradient is None]
    if missing:
        raise GradientError(f"{type}: its outputs have no gradient by {missing[0]}")
    arrays = checked.run(found, {f"{n}@W": w for n, w in weights.items()})
    for (name, quotient), gradient in zip(quotients.items(), arrays, strict=True):
        limit = tolerance * max(1.0, float(np.abs(quotient).max(initial=0)))
        for index in np.argwhere(~(np.abs(gradient - quotient) <= limit))[:1]:
            at = tuple(map(int, index))
            raise GradientError(
                f"{type}: the gradient of {name} at {at} is {gradient[at]}, and the difference "
                f"quotient {quotient[at]}"
            )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _double(value: Any) -> Array:
    array = np.asarray(value)
    wide: Any = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)
    return array.astype(wide)
