"""Functions of PyTorch that geon computes, ``function``, and programs of it as graphs, ``load``."""

from ...errors import UnavailableError

try:
    import torch as _torch  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.torch needs the package torch; install it with: pip install torch"
    ) from error

from ..positional.imported_model import UnsupportedError
from .functions import FunctionModule, function
from .loading import ExportedModel, load

__all__ = ["ExportedModel", "FunctionModule", "UnsupportedError", "function", "load"]
