"""Optimisers, their schedules of rates, clipping, and groups of parameters."""

from .clipping import ByGlobalNorm, ByNorm, ByValue
from .groups import Groups, Tag
from .optimiser import Optimiser
from .rules import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, RMSProp

__all__ = [
    "Adadelta", "Adagrad", "Adam", "AdamW", "ByGlobalNorm", "ByNorm", "ByValue", "Groups", "Lion",
    "Optimiser", "RMSProp", "SGD", "Tag",
]  # fmt: skip
