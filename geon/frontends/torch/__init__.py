"""Programs of ``torch.export`` as geon graphs: ``load``. The package needs ``torch``."""

from __future__ import annotations

from ...errors import UnavailableError

try:
    import torch as _torch  # noqa: F401  # asked for here, once, for all modules of this package
except ImportError as error:
    raise UnavailableError(
        "geon.frontends.torch needs the package torch; install it with: pip install torch"
    ) from error

from ..positional.programs import UnsupportedError
from .loading import ExportedModel, load

__all__ = ["ExportedModel", "UnsupportedError", "load"]
