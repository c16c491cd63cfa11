"""Functions of PyTorch that geon computes: ``geon.frontends.torch.function``."""

from ...errors import UnavailableError

try:
    import torch as _torch  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.torch needs the package torch; install it with: pip install torch"
    ) from error

from .functions import FunctionModule, function

__all__ = ["FunctionModule", "function"]
