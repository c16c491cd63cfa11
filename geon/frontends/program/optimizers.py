"""Optimisers as operators of a program, with regularisers, clipping and learning-rate schedules.

Every schedule is a function of this module, such as ``exponential_decay(learning_rate=0.1,
decay_steps=100, decay_rate=0.5)``; its result is the learning rate of an optimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from .backward import append_backward
from .creators import op
from .layers import create_global_var
from .operators.updates import SCHEDULES, UPDATES, slots_of
from .program import Operator, Parameter, Program, Var, program_guard

Pairs = list[tuple[Parameter, Var]]
STEP = "@STEP@"  # the variable that counts the steps of schedules


@dataclass(frozen=True)
class L1Decay:
    """A regulariser: ``coeff`` times the absolute values of a parameter, added to the loss."""

    coeff: float = 0.0


@dataclass(frozen=True)
class L2Decay:
    """A regulariser: ``coeff / 2`` times the squares of a parameter, added to the loss."""

    coeff: float = 0.0


@dataclass(frozen=True)
class GradientClipByValue:
    """Limits each element of a gradient to ``min`` and ``max``; ``min`` is ``-max`` by default."""

    max: float
    min: float | None = None


@dataclass(frozen=True)
class GradientClipByNorm:
    """Scales a gradient so that its norm is at most ``clip_norm``."""

    clip_norm: float


@dataclass(frozen=True)
class GradientClipByGlobalNorm:
    """Scales all gradients by one factor, so that their common norm is at most ``clip_norm``."""

    clip_norm: float


class Optimizer:
    """An optimiser of the operator ``type``, whose attributes are keywords.

    ``learning_rate`` is a number, or a variable such as that of a schedule. ``regularization`` and
    ``grad_clip`` hold for parameters without their own.
    """

    def __init__(
        self,
        type: str,
        learning_rate: float | Var,
        regularization: L1Decay | L2Decay | None = None,
        grad_clip: Any = None,
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
        """Add the updates of parameters by gradients, decayed and clipped; return them."""
        rate = self.learning_rate
        if not isinstance(rate, Var):
            rate = create_global_var([1], float(rate))
        ops = loss_block(pairs).ops
        begin = len(ops)
        for parameter, gradient in self._regularized(self._clipped(pairs)):
            by = rate
            if parameter.learning_rate != 1.0:
                by = op.scale(rate, scale=parameter.learning_rate)
            states = {
                slot: create_global_var(
                    [1] if slot == "Step" else parameter.shape,
                    0.0,
                    "float32" if slot == "Step" else parameter.dtype,
                    f"{parameter.name}.{self.type}.{slot}",
                )
                for slot in slots_of(self.type)
            }
            outputs = {f"{slot}Out": state for slot, state in states.items()}
            getattr(op, self.type)(
                parameter, gradient, by, ParamOut=parameter, **states, **outputs, **self.attributes
            )
        return ops[begin:]

    def _clipped(self, pairs: Pairs) -> Pairs:
        found, together = [], {}
        for k, (parameter, gradient) in enumerate(pairs):
            clip = parameter.gradient_clip or self.grad_clip
            if isinstance(clip, GradientClipByValue):
                low = -clip.max if clip.min is None else clip.min
                gradient = op.clip(gradient, min=low, max=clip.max)
            elif isinstance(clip, GradientClipByNorm):
                gradient = op.clip_by_norm(gradient, max_norm=clip.clip_norm)
            elif clip is not None:
                together.setdefault(clip, []).append(k)
            found.append((parameter, gradient))
        for clip, numbers in together.items():
            scaled = op.clip_by_global_norm([found[k][1] for k in numbers], max_norm=clip.clip_norm)
            for k, gradient in zip(numbers, scaled, strict=True):
                found[k] = found[k][0], gradient
        return found

    def _regularized(self, pairs: Pairs) -> Pairs:
        found = []
        for parameter, gradient in pairs:
            decay = parameter.regularizer or self.regularization
            if decay is not None:
                name = "l1" if isinstance(decay, L1Decay) else "l2"
                gradient = op.weight_decay(parameter, gradient, **{name: decay.coeff})
            found.append((parameter, gradient))
        return found


def loss_block(pairs: Pairs) -> Any:
    """Return the block of the gradients."""
    return pairs[0][1].block


def _optimizer(type: str) -> Callable[..., Optimizer]:
    def create(learning_rate: float | Var = 0.001, **options: Any) -> Optimizer:
        return Optimizer(type, learning_rate, **options)

    create.__doc__ = f"Return an ``Optimizer`` of the operator {type}; its attributes are keywords."
    return create


NAMES = {"sgd": "SGD", "rmsprop": "RMSProp", "adamw": "AdamW"}
OPTIMIZERS = {NAMES.get(t, t.capitalize()): _optimizer(t) for t in ("sgd", *UPDATES)}


def _schedule(type: str) -> Callable[..., Var]:
    def create(**attributes: Any) -> Var:
        step = create_global_var([1], 0.0, "float32", STEP)
        rate: Var = getattr(op, type)(step, StepOut=step, **attributes)[0]
        return rate

    create.__doc__ = f"Return the learning rate {SCHEDULES[type][1]} at step t."
    return create


def __getattr__(name: str) -> Any:
    if name in OPTIMIZERS:
        return OPTIMIZERS[name]
    if name in SCHEDULES:
        return _schedule(name)
    raise AttributeError(
        f"module {__name__} has no {name!r}; it has {', '.join([*OPTIMIZERS, *SCHEDULES])}"
    )
