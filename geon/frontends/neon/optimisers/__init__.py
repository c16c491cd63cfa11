"""Optimisers, their schedules of rates, clipping, and groups of parameters."""

from .around import Accumulated, Averaged, Scaled
from .clipping import ByGlobalNorm, ByNorm, ByValue
from .groups import Groups, Matrices, Tag
from .muon import Muon
from .optimiser import Optimiser
from .rules import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, RMSProp

__all__ = [
    "Accumulated", "Adadelta", "Adagrad", "Adam", "AdamW", "Averaged", "ByGlobalNorm", "ByNorm",
    "ByValue", "Groups", "Lion", "Matrices", "Muon", "Optimiser", "RMSProp", "SGD", "Scaled", "Tag",
]  # fmt: skip
