"""Optimisers as operators of a program, with regularisers, clipping and learning-rate schedules.

``SGD(0.1).minimize(loss)`` adds the gradients of a loss and the updates of parameters. A schedule,
such as ``cosine_decay(learning_rate=0.1, decay_steps=100)``, returns the learning rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from .backward import append_backward
from .creators import op
from .layers import create_global_var
from .operators.updates import SCHEDULES, slots_of
from .program import Operator, Parameter, Program, Var, program_guard

Pairs = list[tuple[Parameter, Var]]
Decay = dict[str, float]  # attributes of weight_decay
Clip = tuple[str, dict[str, float]]  # an operator and its attributes
STEP = "@STEP@"  # the variable that counts the steps of schedules
TOGETHER = "clip_by_global_norm"


def L1Decay(coeff: float) -> Decay:
    """Return the regulariser that adds ``coeff`` times the absolute values to the loss."""
    return {"l1": coeff}


def L2Decay(coeff: float) -> Decay:
    """Return the regulariser that adds ``coeff / 2`` times the squares to the loss."""
    return {"l2": coeff}


def GradientClipByValue(max: float, min: float | None = None) -> Clip:
    """Return the clipping of elements to ``min``, by default ``-max``, and ``max``."""
    return "clip", {"min": -max if min is None else min, "max": max}


def GradientClipByNorm(clip_norm: float) -> Clip:
    """Return the clipping that scales a gradient so that its norm is at most ``clip_norm``."""
    return "clip_by_norm", {"max_norm": clip_norm}


def GradientClipByGlobalNorm(clip_norm: float) -> Clip:
    """Return the clipping that scales all gradients by one factor, by their common norm."""
    return TOGETHER, {"max_norm": clip_norm}


class Optimizer:
    """An optimiser of the operator ``type``, whose attributes are keywords.

    ``learning_rate`` is a number, or a variable such as that of a schedule. ``regularization`` and
    ``grad_clip`` hold for parameters without their own.
    """

    def __init__(
        self,
        type: str,
        learning_rate: float | Var,
        regularization: Decay | None = None,
        grad_clip: Clip | None = None,
        **attributes: Any,
    ) -> None:
        self.type, self.learning_rate, self.attributes = type, learning_rate, attributes
        self.regularization, self.grad_clip = regularization, grad_clip

    def minimize(
        self,
        loss: Var,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Var | str] = (),
    ) -> tuple[list[Operator], Pairs]:
        """Add the gradients of a loss and the updates; return these and pairs of gradients."""
        with program_guard(loss.block.program, startup_program):
            pairs = append_backward(loss, parameter_list, no_grad_set)
            if not pairs:
                raise ArgumentError(
                    f"{user_call('minimize')}: the loss {loss} depends on no trainable parameter; "
                    "give a loss that does, or parameter_list"
                )
            return self.apply_gradients(pairs), pairs

    def apply_gradients(self, pairs: Pairs) -> list[Operator]:
        """Add the updates of parameters by gradients, clipped and decayed; return them."""
        rate = self.learning_rate
        if not isinstance(rate, Var):
            rate = create_global_var([1], float(rate))
        ops = pairs[0][1].block.ops
        begin = len(ops)
        for parameter, gradient in self._clipped(pairs):
            decay = parameter.regularizer or self.regularization
            if decay is not None:
                gradient = op.weight_decay(parameter, gradient, **decay)
            by = op.scale(rate, scale=float(parameter.learning_rate))
            states = {slot: self._state(parameter, slot) for slot in slots_of(self.type)}
            outputs = {f"{slot}Out": state for slot, state in states.items()}
            getattr(op, self.type)(
                parameter, gradient, by, ParamOut=parameter, **states, **outputs, **self.attributes
            )
        return ops[begin:]

    def _state(self, parameter: Parameter, slot: str) -> Var:
        shape = [1] if slot == "Step" else parameter.shape
        dtype = "float32" if slot == "Step" else parameter.dtype
        return create_global_var(shape, 0.0, dtype, f"{parameter.name}.{self.type}.{slot}")

    def _clipped(self, pairs: Pairs) -> Pairs:
        found = list(pairs)
        together: dict[float, list[int]] = {}
        for k, (parameter, gradient) in enumerate(pairs):
            type, attributes = parameter.gradient_clip or self.grad_clip or ("", {})
            if type == TOGETHER:
                together.setdefault(attributes["max_norm"], []).append(k)
            elif type:
                found[k] = parameter, getattr(op, type)(gradient, **attributes)
        for limit, numbers in together.items():
            clipped = op.clip_by_global_norm([found[k][1] for k in numbers], max_norm=limit)
            for k, gradient in zip(numbers, clipped, strict=True):
                found[k] = found[k][0], gradient
        return found


def _optimizer(type: str) -> Callable[..., Optimizer]:
    def create(learning_rate: float | Var = 0.001, **options: Any) -> Optimizer:
        return Optimizer(type, learning_rate, **options)

    create.__doc__ = f"Return an ``Optimizer`` of the operator {type}; its attributes are keywords."
    return create


def _schedule(type: str) -> Callable[..., Var]:
    def create(**attributes: Any) -> Var:
        step = create_global_var([1], 0.0, "float32", STEP)
        rate: Var = getattr(op, type)(step, StepOut=step, **attributes)[0]
        return rate

    create.__doc__ = f"Return the learning rate {SCHEDULES[type][1]} at step t."
    return create


SGD, Momentum, Adagrad, Adadelta, RMSProp, Adam, AdamW, Lion = map(
    _optimizer, "sgd momentum adagrad adadelta rmsprop adam adamw lion".split()
)
exponential_decay, natural_exp_decay, inverse_time_decay = map(
    _schedule, "exponential_decay natural_exp_decay inverse_time_decay".split()
)
polynomial_decay, cosine_decay, noam_decay, piecewise_decay = map(
    _schedule, "polynomial_decay cosine_decay noam_decay piecewise_decay".split()
)
