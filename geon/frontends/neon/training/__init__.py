"""Training: models, data in batches, and callbacks."""

from .callbacks import Checkpoints, EarlyStopping, Progress, StopOnNaN
from .data import Batches, Stream
from .histories import Curves, HDF5History, History, TensorBoard, Timing
from .model import Model
from .run import Callback, Run

__all__ = [
    "Batches", "Callback", "Checkpoints", "Curves", "EarlyStopping", "HDF5History", "History",
    "Model", "Progress", "Run", "StopOnNaN", "Stream", "TensorBoard", "Timing",
]  # fmt: skip
