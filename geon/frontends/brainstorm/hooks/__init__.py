"""Hooks of a ``Trainer``: they watch, save and stop a training, and show its progress."""

from .base import Hook
from .monitors import (
    MonitorLayerDeltas,
    MonitorLayerGradients,
    MonitorLayerInOuts,
    MonitorLayerParameters,
    MonitorLoss,
    MonitorScores,
)
from .progress import BokehVisualizer, InfoUpdater, ModifyStepperAttribute, ProgressBar
from .saving import SaveBestNetwork, SaveLogs, SaveNetwork
from .stopping import (
    EarlyStopper,
    StopAfterEpoch,
    StopAfterThresholdReached,
    StopOnNan,
    StopOnSigQuit,
)

__all__ = [
    "BokehVisualizer", "EarlyStopper", "Hook", "InfoUpdater", "ModifyStepperAttribute",
    "MonitorLayerDeltas", "MonitorLayerGradients", "MonitorLayerInOuts", "MonitorLayerParameters",
    "MonitorLoss", "MonitorScores", "ProgressBar", "SaveBestNetwork", "SaveLogs", "SaveNetwork",
    "StopAfterEpoch", "StopAfterThresholdReached", "StopOnNan", "StopOnSigQuit",
]  # fmt: skip
