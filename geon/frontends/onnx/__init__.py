"""ONNX models as geon graphs, and geon's computations as ONNX models.

``load`` returns an ``ImportedModel``, which runs on any transformer and has derivatives;
``register`` adds operators of other domains; ``backend`` implements the interface of
``onnx.backend.base``. ``save`` writes a computation, ``save_training`` a step with its state. The
package needs ``onnx``: ``pip install onnx``.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ...errors import UnavailableError

try:
    import onnx as _onnx  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.onnx needs the package onnx; install it with: pip install onnx"
    ) from error

from ..positional.imported_model import ImportedModel, UnsupportedError
from ..positional.values import UnknownValueError
from .errors import ModelError
from .model import load
from .table import register

if _TYPE_CHECKING:
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


def __getattr__(name: str) -> _Any:
    """Return a function that writes; its modules are imported when it is first asked for."""
    if name in ("save", "save_training"):
        return getattr(_importlib.import_module(".writing.save", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
