"""ONNX models as geon graphs: ``load`` a file, run it on any transformer, differentiate it.

``load`` returns an ``ImportedModel``; ``register`` adds operators of other domains; ``backend``
implements the interface of ``onnx.backend.base``. The package needs ``onnx``: ``pip install onnx``.
"""

from __future__ import annotations

from ...errors import UnavailableError

try:
    import onnx as _onnx  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.onnx needs the package onnx; install it with: pip install onnx"
    ) from error

from ..positional.imported_model import ImportedModel
from ..positional.values import UnknownValueError
from .errors import ModelError, UnsupportedError
from .model import load
from .table import register

__all__ = [
    "ImportedModel",
    "ModelError",
    "UnknownValueError",
    "UnsupportedError",
    "load",
    "register",
]
