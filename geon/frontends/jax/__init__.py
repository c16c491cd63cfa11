"""Functions of JAX that geon computes, ``function``, and jaxprs as graphs, ``load``."""

from ...errors import UnavailableError

try:
    import jax as _jax  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.jax needs the package jax; install it with: pip install jax"
    ) from error

from ..positional.imported_model import UnsupportedError
from .functions import function
from .loading import load

__all__ = ["UnsupportedError", "function", "load"]
