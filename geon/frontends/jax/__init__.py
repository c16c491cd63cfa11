"""Jaxprs and functions of JAX as geon graphs: ``load``. The package needs ``jax``."""

from __future__ import annotations

from ...errors import UnavailableError

try:
    import jax as _jax  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.jax needs the package jax; install it with: pip install jax"
    ) from error

from ..positional.programs import UnsupportedError
from .loading import load

__all__ = ["UnsupportedError", "load"]
