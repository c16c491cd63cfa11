"""The structure of a network: wiring, architecture, layout of buffers, and ``Network``."""

from importlib import import_module
from typing import Any

# Layers need parts of this package before the network, which needs the layers, can be imported.
_LATER = {"Network": ".network", "generate_architecture": ".architecture"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)
