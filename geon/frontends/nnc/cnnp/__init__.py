"""CNNP: models as callables with parameters, trained by ``compile`` and ``fit``.

``MODELS`` is the table of models by name; ``cnnp.dense(10)`` makes one.
"""

from typing import Any

from .model import DynamicModel, LeafModel, Model, ModelIO, Sequential, dynamic, input
from .parameters import Parameter, Parameters
from .table import MODELS

__all__ = [
    "MODELS", "DynamicModel", "LeafModel", "Model", "ModelIO", "Parameter", "Parameters",
    "Sequential", "dynamic", "input",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in MODELS:
        raise AttributeError(f"cnnp has no model {name!r}; the models are {', '.join(MODELS)}")
    return MODELS[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *MODELS})
