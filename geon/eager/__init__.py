"""geon.eager: arrays that are computed when they are looked at, and remember their graph.

``array(data, axes)`` makes one; every function and operator of geon on arrays gives arrays.
"""

from .arrays import EagerArray, array
from .derivatives import function, grad, graph
from .evaluation import kept_bytes, sync, use
from .nodes import no_grad
from .recording import install, run
from .variables import EagerVariable, variable

__all__ = [
    "EagerArray", "EagerVariable", "array", "function", "grad", "graph", "kept_bytes", "no_grad",
    "run", "sync", "use", "variable",
]  # fmt: skip

install()
