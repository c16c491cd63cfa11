"""Registry of transformers by name: geon's own, and those that other packages provide."""

from __future__ import annotations

import importlib
from typing import Any

from ...errors import ArgumentError, UnavailableError

GROUP = "geon.transformers"
BUILT_IN = {
    "native": "geon.transformers.native.transformer:NativeTransformer",
    "numpy": "geon.transformers.numpy.transformer:NumPyTransformer",
    "pycuda": "geon.transformers.pycuda.transformer:PyCudaTransformer",
}
# Not listed, but found by name.
FOR_TESTS = {"cuda-on-host": "geon.transformers.pycuda.transformer:CudaOnHost"}


GPUS = ("cuda", "gpu", "nvidia", "cupy", "torch", "jax")  # names that users try for a GPU


def transformer_names() -> dict[str, str]:
    """Return the names of transformers with their locations: geon's own, and entry points."""
    import importlib.metadata  # imported here because it is slow to load

    found = dict(BUILT_IN)
    for point in importlib.metadata.entry_points(group=GROUP):
        found.setdefault(point.name, point.value)
    return found


def transformer_class(name: str) -> type[Any]:
    """Return the transformer class called ``name``; raise ``UnavailableError`` if unknown."""
    own = BUILT_IN | FOR_TESTS
    if isinstance(name, str) and name in own:
        # without the packages' metadata, which take longer to load than the module
        where = own[name]
    else:
        where = _entry_point(name)
    module, _, attribute = where.partition(":")
    loaded: type[Any] = getattr(importlib.import_module(module), attribute)
    return loaded


def _entry_point(name: str) -> str:
    """Return the location of a third party's transformer; raise ``UnavailableError`` if unknown."""
    names = transformer_names()
    if not isinstance(name, str):
        raise ArgumentError(
            f"make_transformer takes a name, not {name!r}; there are {', '.join(sorted(names))}"
        )
    if name not in names:
        raise UnavailableError(
            f"there is no transformer {name!r}; there are {', '.join(sorted(names))}, and "
            "`python -m geon doctor` says which can be used here"
            + ("; 'pycuda' is for GPUs" if name.lower() in GPUS else "")
        )
    return names[name]
