"""Trainer, steppers and schedules."""

from .steppers import (
    AdamStepper,
    ForwardStepper,
    MomentumStepper,
    NesterovStepper,
    RMSpropStepper,
    SgdStepper,
    TrainingStepper,
)

__all__ = [
    "AdamStepper", "ForwardStepper", "MomentumStepper", "NesterovStepper", "RMSpropStepper",
    "SgdStepper", "TrainingStepper",
]  # fmt: skip
