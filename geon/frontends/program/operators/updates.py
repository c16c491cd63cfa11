"""Operators of optimisers: the rules of geon, learning-rate schedules, decay and clipping.

An update takes Param, Grad, LearningRate and its states, and returns their new values, such as
ParamOut and MomentOut, which a program writes under the same names. By a gradient of selected rows
``sgd`` and ``adagrad`` change these rows alone, which is the same as by the whole gradient, and so
do the others with ``lazy_mode``; without it they add the rows up to a whole gradient. Halves are
updated in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import geon

from ....op_graph.values.dtypes import accumulator
from ...positional.elementwise import aligned, dims_of, elementwise
from ...positional.indexing import gather
from ...positional.picking import scatter_at
from ...positional.programs import cast
from ...positional.reshaping import reshape
from ...positional.values import Value, array, as_array
from ..values import SelectedRows, as_table
from .rows import FLOAT, FLOATS, INT, Function, Row, matched, with_attributes

Tensor = geon.Tensor


@dataclass(eq=False)
class RuleStep:
    """The inputs and outputs of a rule of ``geon.frontends.neon``: states by name."""

    rate: Tensor
    count: Any
    states: dict[str, Tensor]
    new: dict[int, Tensor] = field(default_factory=dict)

    def state(self, w: Any, what: str) -> Tensor:
        """Return a state."""
        return self.states[what]

    def set(self, state: Tensor, value: Tensor) -> None:
        """Set the new value of a state."""
        self.new[id(state)] = value


def updater(
    rule: str, states: Mapping[str, str], fields: Mapping[str, tuple[str, Any]]
) -> Function:
    """Return the function of an update by a rule, whose count of steps is the state Step.

    ``states`` are the rule's by slot, ``fields`` its fields by attribute, with defaults.
    """

    def build(
        param: Value, grad: Any, rate: Value, *old: Value, lazy_mode: bool = False, **given: Any
    ) -> Any:
        from ...neon import optimisers  # with derivative code, which inference does not need

        is_lazy = lazy_mode and isinstance(grad, SelectedRows)
        tables = [param, *old[: len(states)]]
        taken = [gather(table, grad.rows, 0) for table in tables] if is_lazy else tables
        arrays = aligned([taken[0], grad.totals() if is_lazy else as_table(grad), *taken[1:]])
        wide = accumulator(param.dtype)
        p, g, *rest = [geon.cast(each.tensor, wide) for each in arrays]
        by, *count = [
            geon.cast(as_array(reshape(v, [])).tensor, wide) for v in (rate, *old[len(states) :])
        ]
        settings = {fields[name][0]: value for name, value in given.items()}
        decay = settings.pop("decay", 0.0)
        counted = [count[0] + 1] if count else []
        step = RuleStep(by, counted and counted[0], dict(zip(states.values(), rest, strict=True)))
        new = getattr(optimisers, rule)(0.0, **settings).moved(p, p, g, step)
        moved = [new - by * decay * p if decay else new, *[step.new.get(id(s), s) for s in rest]]
        dims = dims_of(arrays)
        found = [array(geon.cast(t, v.dtype), dims) for t, v in zip(moved, tables, strict=True)]
        if is_lazy:
            pairs = zip(tables, found, strict=True)
            found = [scatter_at(table, {0: grad.rows}, new, "set") for table, new in pairs]
        found += [
            array(geon.cast(t, v.dtype), (None,)) for t, v in zip(counted, old[-1:], strict=False)
        ]
        return tuple(found) if old else found[0]

    defaults = {name: value for name, (_, value) in fields.items()}
    return with_attributes(build, defaults, {"lazy_mode": rule == "Adagrad"})


def sgd(param: Value, grad: Any, rate: Value) -> Any:
    """Return Param - LearningRate * Grad; of selected rows only these are touched."""
    by = cast(reshape(rate, []), param.dtype)
    if isinstance(grad, SelectedRows):
        moved = elementwise(lambda g, r: -r * g, grad.values, by)
        return SelectedRows(grad.rows, moved, grad.height).added_to(param)
    return elementwise(lambda p, g, r: p - r * g, param, grad, by)


def weight_decay(param: Value, grad: Any, *, l1: float = 0.0, l2: float = 0.0) -> Any:
    """Return the gradient of a cost with l1 |Param| + l2 Param² / 2 added.

    To a gradient of selected rows that of the cost of these rows is added.
    """

    def total(g: Tensor, p: Tensor) -> Tensor:
        return g + l2 * p + l1 * geon.sign(p)

    is_sparse = isinstance(grad, SelectedRows)
    return grad.mapped(total, param) if is_sparse else elementwise(total, grad, param)


def clip(x: Any, *, min: float = FLOAT, max: float = FLOAT) -> Any:
    """Return x clipped to min and max."""

    def clipped(t: Tensor) -> Tensor:
        return geon.clip(t, min, max)

    return x.mapped(clipped) if isinstance(x, SelectedRows) else elementwise(clipped, x)


def clip_by_global_norm(x: list[Any], *, max_norm: float = FLOAT) -> list[Any]:
    """Return gradients times one factor, so that their common norm is at most max_norm."""
    given = [as_array(v.summed()[1] if isinstance(v, SelectedRows) else v) for v in x]
    total = sum([geon.squared_L2(each.tensor, out_axes=[]) for each in given])
    factor = array(max_norm / geon.maximum(geon.sqrt(total), max_norm), [])

    def scaled(value: Any) -> Any:
        if isinstance(value, SelectedRows):
            return replace(value, values=scaled(value.values))
        return elementwise(geon.multiply, value, cast(factor, value.dtype))

    return list(map(scaled, x))


def clip_by_norm(x: Any, *, max_norm: float = FLOAT) -> Any:
    """Return x scaled so that its norm is at most max_norm."""
    return clip_by_global_norm([x], max_norm=max_norm)[0]


# Update: rule, its states by slot, its fields by attribute with defaults; Step counts updates.
BETAS = {"beta1": ("first", 0.9), "beta2": ("second", 0.999)}
EPSILON = ("epsilon", 1e-8)
UPDATES: dict[str, tuple[str, dict[str, str], dict[str, tuple[str, Any]]]] = {
    "momentum": ("SGD", {"Velocity": "momentum"},
        {"mu": ("momentum", 0.9), "use_nesterov": ("nesterov", False)}),
    "adagrad": ("Adagrad", {"Moment": "square"}, {"epsilon": ("epsilon", 1e-6)}),
    "adam": ("Adam", {"Moment1": "m", "Moment2": "v"}, {**BETAS, "epsilon": EPSILON}),
    "adamw": ("AdamW", {"Moment1": "m", "Moment2": "v"},
        {**BETAS, "epsilon": EPSILON, "coeff": ("decay", 0.01)}),
    "adadelta": ("Adadelta", {"AvgSquaredGrad": "square", "AvgSquaredUpdate": "change"},
        {"rho": ("smoothing", 0.95), "epsilon": ("epsilon", 1e-6)}),
    "rmsprop": ("RMSProp", {"MeanSquare": "square", "Moment": "momentum"},
        {"rho": ("smoothing", 0.95), "momentum": ("momentum", 0.0), "epsilon": ("epsilon", 1e-6)}),
    "lion": ("Lion", {"Moment": "m"},
        {"beta1": ("first", 0.9), "beta2": ("second", 0.99), "coeff": ("decay", 0.0)}),
}  # fmt: skip
COUNTED = ("adam", "adamw")


def slots_of(type: str) -> list[str]:
    """Return the slots of the states of an update."""
    return [*UPDATES[type][1], *(["Step"] if type in COUNTED else [])] if type in UPDATES else []


def _slots(type: str) -> tuple[str, str]:
    states = slots_of(type)
    outputs = [f"{name}Out" for name in ("Param", *states)]
    return " ".join(["Param Grad LearningRate", *states]), " ".join(outputs)


def scheduled(f: Function) -> Function:
    """Return the function of a schedule: from the number of the step the rate and the next one."""

    def build(step: Value, **attributes: Any) -> tuple[Value, Value]:
        rate = elementwise(lambda t: f(t, **attributes), cast(step, "float32"))
        return reshape(rate, [1]), elementwise(lambda t: t + 1, step)

    return with_attributes(build, f)


def piecewise(t: Tensor, *, boundaries: Any = FLOATS, values: Any = FLOATS) -> Tensor:
    """Return values[i] between boundaries i - 1 and i."""
    rate, *rest = [value for (value,) in matched(len(boundaries) + 1, values=values)]
    for bound, value in zip(boundaries, rest, strict=True):
        rate = geon.where(t >= bound, value, rate)
    return rate + 0 * t


def _parts(t: Tensor, steps: int, staircase: bool) -> Tensor:
    return geon.floor(t / steps) if staircase else t / steps


power, exp = geon.power, geon.exp
# Schedule: the rate r for the step t, and its formula.
SCHEDULES: dict[str, tuple[Function, str]] = {
    "exponential_decay": (lambda t, *, learning_rate=FLOAT, decay_steps=INT, decay_rate=FLOAT,
        staircase=False: learning_rate * power(decay_rate, _parts(t, decay_steps, staircase)),
        "learning_rate * decay_rate ** (t / decay_steps)"),
    "natural_exp_decay": (lambda t, *, learning_rate=FLOAT, decay_steps=INT, decay_rate=FLOAT,
        staircase=False: learning_rate * exp(-decay_rate * _parts(t, decay_steps, staircase)),
        "learning_rate * exp(-decay_rate * t / decay_steps)"),
    "inverse_time_decay": (lambda t, *, learning_rate=FLOAT, decay_steps=INT, decay_rate=FLOAT,
        staircase=False: learning_rate / (1 + decay_rate * _parts(t, decay_steps, staircase)),
        "learning_rate / (1 + decay_rate * t / decay_steps)"),
    "polynomial_decay": (lambda t, *, learning_rate=FLOAT, decay_steps=INT, end_learning_rate=1e-4,
        power=1.0: end_learning_rate + (learning_rate - end_learning_rate)
        * geon.power(1 - geon.minimum(t / decay_steps, 1), power),
        "(learning_rate - end_learning_rate) * (1 - t / decay_steps) ** power + end_learning_rate"),
    "cosine_decay": (lambda t, *, learning_rate=FLOAT, decay_steps=INT: learning_rate
        * (1 + geon.cos(math.pi * geon.minimum(t / decay_steps, 1))) / 2,
        "learning_rate * (1 + cos(pi * t / decay_steps)) / 2"),
    "noam_decay": (lambda t, *, d_model=INT, warmup_steps=INT: d_model**-0.5
        * geon.minimum(power(t + 1, -0.5), (t + 1) * warmup_steps**-1.5),
        "d_model ** -0.5 * min((t + 1) ** -0.5, (t + 1) * warmup_steps ** -1.5)"),
    "piecewise_decay": (piecewise, "values[i] between boundaries i - 1 and i"),
}  # fmt: skip
ROWS = [
    Row("sgd", sgd, "", *_slots("sgd"), gradient=False, takes_rows=True),
    *[Row(name, updater(*row), f"Return Param and states after a step of {row[0]}.", *_slots(name),
          gradient=False, takes_rows=True) for name, row in UPDATES.items()],
    *[Row(name, scheduled(f), f"Return {text}, (1,), for the step t from 0, and t + 1.", "Step",
          "Out StepOut", gradient=False) for name, (f, text) in SCHEDULES.items()],
    Row("weight_decay", weight_decay, "", "Param Grad", gradient=False, takes_rows=True),
    Row("clip", clip, takes_rows=True),
    Row("clip_by_norm", clip_by_norm, takes_rows=True),
    Row("clip_by_global_norm", clip_by_global_norm, "", "X*", "Out*", gradient=False,
        takes_rows=True),
]  # fmt: skip
