"""Trainer, steppers and schedules."""

from .schedules import DecreaseAfterEpoch, Exponential, Linear, MultiStep
from .steppers import (
    AdamStepper,
    ForwardStepper,
    MomentumStepper,
    NesterovStepper,
    RMSpropStepper,
    SgdStepper,
    TrainingStepper,
)
from .trainer import Trainer

__all__ = [
    "AdamStepper", "DecreaseAfterEpoch", "Exponential", "ForwardStepper", "Linear",
    "MomentumStepper", "MultiStep", "NesterovStepper", "RMSpropStepper", "SgdStepper", "Trainer",
    "TrainingStepper",
]  # fmt: skip
