"""Training: models, batches of data, and callbacks."""

from . import augment
from .augment import Augmented
from .callbacks import Checkpoints, EarlyStopping, Progress, StopOnNaN
from .data import Batches, Stream
from .loggers import Curves, HDF5History, History, TensorBoard, Timing
from .model import Model
from .prefetch import Prefetch
from .run import Callback, Run
from .sequences import Buckets

__all__ = [
    "Augmented", "Batches", "Buckets", "Callback", "Checkpoints", "Curves", "EarlyStopping",
    "HDF5History", "History", "Model", "Prefetch", "Progress", "Run", "StopOnNaN", "Stream",
    "TensorBoard", "Timing", "augment",
]  # fmt: skip
