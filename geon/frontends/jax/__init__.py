"""Functions of JAX that geon computes: ``geon.frontends.jax.function``."""

from ...errors import UnavailableError

try:
    import jax as _jax  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.jax needs the package jax; install it with: pip install jax"
    ) from error

from .functions import function

__all__ = ["function"]
