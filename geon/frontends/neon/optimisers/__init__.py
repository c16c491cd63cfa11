"""Optimisers, learning-rate schedules, gradient clipping, and groups of parameters."""

from .clipping import ByGlobalNorm, ByNorm, ByValue
from .groups import Groups, Matrices, Tag
from .lbfgs import LBFGS
from .muon import Muon
from .optimiser import Optimiser
from .rules import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, RMSProp
from .wrappers import Accumulated, Averaged, Scaled

__all__ = [
    "Accumulated", "Adadelta", "Adagrad", "Adam", "AdamW", "Averaged", "ByGlobalNorm", "ByNorm",
    "ByValue", "Groups", "LBFGS", "Lion", "Matrices", "Muon", "Optimiser", "RMSProp", "SGD",
    "Scaled", "Tag",
]  # fmt: skip
