"""Optimisers, learning-rate schedules, gradient clipping, and groups of parameters."""

from .around import Accumulated, Averaged, Scaled
from .clipping import ByGlobalNorm, ByNorm, ByValue
from .groups import Groups, Matrices, Tag
from .lbfgs import LBFGS
from .muon import Muon
from .optimiser import Optimiser
from .rules import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, RMSProp

__all__ = [
    "Accumulated", "Adadelta", "Adagrad", "Adam", "AdamW", "Averaged", "ByGlobalNorm", "ByNorm",
    "ByValue", "Groups", "LBFGS", "Lion", "Matrices", "Muon", "Optimiser", "RMSProp", "SGD",
    "Scaled", "Tag",
]  # fmt: skip
