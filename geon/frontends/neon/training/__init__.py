"""Training: models, data in batches, and callbacks."""

from .callbacks import Checkpoints, EarlyStopping, History, Progress, StopOnNaN
from .data import Batches, Stream
from .model import Model
from .run import Callback, Run

__all__ = [
    "Batches", "Callback", "Checkpoints", "EarlyStopping", "History", "Model", "Progress", "Run",
    "StopOnNaN", "Stream",
]  # fmt: skip
