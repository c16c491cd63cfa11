"""Operators that update parameters: the rules of geon's optimisers, and five more.

An operator takes Param, Grad, LearningRate and its states, and returns their new values, such as
ParamOut and MomentOut, which a program writes under the same names.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import geon

from ....op_graph.values.dtypes import accumulator
from ...neon.optimisers import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, Optimiser, RMSProp
from ...positional.elementwise import aligned, dims_of
from ...positional.reshaping import reshape
from ...positional.values import Value, array, as_array
from ..values import SelectedRows
from .rows import Function, Row

Tensor = geon.Tensor
Defaults = Mapping[str, float | bool]


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


def by_rule(rule: type[Optimiser], states: Sequence[str], fields: Mapping[str, str]) -> Function:
    """Return the update of tensors by a rule; ``fields`` are its fields by attribute."""

    def update(p: Tensor, g: Tensor, rate: Tensor, *old: Tensor, **given: Any) -> Sequence[Tensor]:
        settings: dict[str, Any] = {fields[name]: value for name, value in given.items()}
        decay = settings.pop("decay", 0.0)
        count = None
        if len(old) > len(states):
            *old, count = old  # type: ignore[assignment]  # a list now
            count = count + 1
        step = RuleStep(rate, count, dict(zip(states, old, strict=True)))
        new = rule(0.0, **settings).moved(p, p, g, step)  # type: ignore[arg-type]  # leaves are keys only
        new = new - rate * decay * p if decay else new
        return [new, *[step.new[id(s)] for s in old], *([] if count is None else [count])]

    return update


def updater(f: Function, states: Sequence[str], defaults: Defaults) -> Function:
    """Return the function of an operator for ``f(param, grad, rate, *states, **attributes)``.

    A gradient of selected rows is added up to a whole one. Halves are updated in float32.
    """

    def build(param: Value, grad: Any, rate: Value, *old: Value, **attributes: Any) -> Any:
        whole = grad.dense() if isinstance(grad, SelectedRows) else grad
        arrays = aligned([param, whole, *[reshape(s, []) if s.shape == (1,) else s for s in old]])
        by = as_array(reshape(rate, [])).tensor
        wide = accumulator(param.dtype)
        p, g, *rest = [geon.cast(each.tensor, wide) for each in arrays]
        found = f(p, g, geon.cast(by, wide), *rest, **attributes)
        dims = dims_of(arrays)
        results = []
        for like, new in zip([param, *old], found, strict=True):
            scalar = like.shape == (1,) and param.shape != (1,)
            results.append(array(geon.cast(new, like.dtype), (None,) if scalar else dims))
        return tuple(results) if old else results[0]

    kinds = inspect.Parameter
    first = [kinds("param", kinds.POSITIONAL_ONLY)]
    options = [kinds(name, kinds.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
    build.__signature__ = inspect.Signature([*first, *options])  # type: ignore[attr-defined]  # read by rows
    return build


def sgd(param: Value, grad: Any, rate: Value) -> Any:
    """Return Param - LearningRate * Grad; of selected rows only these are touched."""
    if isinstance(grad, SelectedRows):
        by = as_array(reshape(rate, [])).tensor
        values = as_array(grad.values)
        moved = array(-geon.cast(by, param.dtype) * values.tensor, values.dims)
        return SelectedRows(grad.rows, moved, grad.height).added_to(param)
    return updater(by_rule(SGD, (), {}), (), {})(param, grad, rate)


def decayed_adagrad(
    p: Tensor, g: Tensor, rate: Tensor, m: Tensor, *, decay: float, epsilon: float
) -> Sequence[Tensor]:
    """Return a step of Adagrad whose sum of squares decays."""
    new = decay * m + (1 - decay) * geon.square(g)
    return p - rate * g / (geon.sqrt(new) + epsilon), new


def adamax(
    p: Tensor, g: Tensor, rate: Tensor, m: Tensor, u: Tensor, power: Tensor, *,
    beta1: float, beta2: float, epsilon: float,
) -> Sequence[Tensor]:  # fmt: skip
    """Return a step of AdaMax; Beta1Pow is beta1 to the power of the steps before this one."""
    mean = beta1 * m + (1 - beta1) * g
    largest = geon.maximum(beta2 * u, geon.absolute(g))
    power = power * beta1
    return p - rate / (1 - power) * mean / (largest + epsilon), mean, largest, power


def ftrl(
    p: Tensor, g: Tensor, rate: Tensor, squares: Tensor, linear: Tensor, *,
    l1: float, l2: float, lr_power: float,
) -> Sequence[Tensor]:  # fmt: skip
    """Return a step of FTRL-proximal (McMahan and others, KDD 2013)."""
    new = squares + geon.square(g)
    change = (geon.power(new, -lr_power) - geon.power(squares, -lr_power)) / rate
    total = linear + g - change * p
    scale = geon.power(new, -lr_power) / rate + 2 * l2
    moved = geon.where(geon.absolute(total) > l1, (l1 * geon.sign(total) - total) / scale, 0)
    return moved, new, total


def shrunk(x: Tensor, rate: Tensor, l1: float, l2: float) -> Tensor:
    """Return the proximal operator of l1 |x| + l2 x² / 2 with step ``rate``."""
    return geon.sign(x) * geon.relu(geon.absolute(x) - rate * l1) / (1 + rate * l2)


def proximal_gd(p: Tensor, g: Tensor, rate: Tensor, *, l1: float, l2: float) -> Sequence[Tensor]:
    """Return a proximal step of gradient descent."""
    return (shrunk(p - rate * g, rate, l1, l2),)


def lars_momentum(
    p: Tensor, g: Tensor, rate: Tensor, velocity: Tensor, *,
    mu: float, lars_coeff: float, lars_weight_decay: float,
) -> Sequence[Tensor]:  # fmt: skip
    """Return a step of momentum with a rate by layer (You, Gitman and Ginsburg, 2017)."""
    size, steep = geon.sqrt(geon.sum(p * p)), geon.sqrt(geon.sum(g * g))
    ratio = lars_coeff * size / (steep + lars_weight_decay * size)
    local = rate * geon.where(geon.logical_and(size > 0, steep > 0), ratio, 1)
    new = mu * velocity + local * (g + lars_weight_decay * p)
    return p - new, new


ADAM = {"beta1": "first", "beta2": "second", "epsilon": "epsilon"}
# type, update, states by slot, attributes with defaults.
UPDATES: list[tuple[str, Function, Sequence[str], Defaults]] = [
    ("momentum", by_rule(SGD, ["momentum"], {"mu": "momentum", "use_nesterov": "nesterov"}),
     ["Velocity"], {"mu": 0.9, "use_nesterov": False}),
    ("adagrad", by_rule(Adagrad, ["square"], {"epsilon": "epsilon"}),
     ["Moment"], {"epsilon": 1e-6}),
    ("adam", by_rule(Adam, ["m", "v"], ADAM), ["Moment1", "Moment2", "Step"],
     {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    ("adamw", by_rule(AdamW, ["m", "v"], {**ADAM, "coeff": "decay"}),
     ["Moment1", "Moment2", "Step"],
     {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "coeff": 0.01}),
    ("adadelta", by_rule(Adadelta, ["square", "change"], {"rho": "smoothing", "epsilon": "epsilon"}),
     ["AvgSquaredGrad", "AvgSquaredUpdate"], {"rho": 0.95, "epsilon": 1e-6}),
    ("rmsprop", by_rule(RMSProp, ["square", "momentum"],
                        {"decay": "smoothing", "momentum": "momentum", "epsilon": "epsilon"}),
     ["MeanSquare", "Moment"], {"decay": 0.9, "momentum": 0.0, "epsilon": 1e-10}),
    ("lion", by_rule(Lion, ["m"], {"beta1": "first", "beta2": "second", "coeff": "decay"}),
     ["Moment"], {"beta1": 0.9, "beta2": 0.99, "coeff": 0.0}),
    ("decayed_adagrad", decayed_adagrad, ["Moment"], {"decay": 0.95, "epsilon": 1e-6}),
    ("adamax", adamax, ["Moment", "InfNorm", "Beta1Pow"],
     {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    ("ftrl", ftrl, ["SquaredAccumulator", "LinearAccumulator"],
     {"l1": 0.0, "l2": 0.0, "lr_power": -0.5}),
    ("proximal_gd", proximal_gd, [], {"l1": 0.0, "l2": 0.0}),
    ("lars_momentum", lars_momentum, ["Velocity"],
     {"mu": 0.9, "lars_coeff": 0.001, "lars_weight_decay": 0.0005}),
]  # fmt: skip


def slots(states: Sequence[str]) -> tuple[str, str]:
    """Return the input and output slots of an update with these states."""
    names = " ".join(states)
    return f"Param Grad LearningRate {names}", " ".join([f"{n}Out" for n in ("Param", *states)])


ROWS = [
    Row("sgd", sgd, "", *slots([]), gradient=False),
    *[
        Row(
            name,
            updater(f, states, defaults),
            f"Return Param and states after a step of {name}.",
            *slots(states),
            gradient=False,
        )
        for name, f, states, defaults in UPDATES
    ],
]
