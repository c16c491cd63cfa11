"""ONNX models as geon graphs, and geon's computations as ONNX models.

``load`` returns an ``ImportedModel``, which runs on any transformer and has derivatives;
``register`` adds operators of other domains; ``backend`` implements the interface of
``onnx.backend.base``. ``save`` writes a computation, ``save_training`` a step with its state. The
package needs ``onnx``: ``pip install onnx``.
"""

from __future__ import annotations

from ...errors import UnavailableError

try:
    import onnx as _onnx  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.onnx needs the package onnx; install it with: pip install onnx"
    ) from error

from ..positional.errors import UnsupportedError
from ..positional.imported_model import ImportedModel
from ..positional.values import UnknownValueError
from .errors import ModelError
from .model import load
from .table import register
from .writing.save import save, save_training

__all__ = [
    "ImportedModel",
    "ModelError",
    "UnknownValueError",
    "UnsupportedError",
    "load",
    "register",
    "save",
    "save_training",
]
