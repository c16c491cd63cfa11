"""Transformers by name: geon's own, and those that other packages provide."""

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
# Found by name, and listed nowhere.
FOR_TESTS = {"cuda-on-host": "geon.transformers.pycuda.transformer:CudaOnHost"}


GPUS = ("cuda", "gpu", "nvidia", "cupy", "torch", "jax")  # names that people try


def transformer_names() -> dict[str, str]:
    """Names of transformers and where each is: geon's own, and third parties' entry points."""
    import importlib.metadata  # here because it is slow to load

    found = dict(BUILT_IN)
    for point in importlib.metadata.entry_points(group=GROUP):
        found.setdefault(point.name, point.value)
    return found


def transformer_class(name: str) -> type[Any]:
    """The class of the transformer called ``name``; ``UnavailableError`` when there is none."""
    own = BUILT_IN | FOR_TESTS
    if isinstance(name, str) and name in own:
        where = own[name]  # without the packages' metadata, which take longer than the module
    else:
        where = _entry_point(name)
    module, _, attribute = where.partition(":")
    loaded: type[Any] = getattr(importlib.import_module(module), attribute)
    return loaded


def _entry_point(name: str) -> str:
    """Where a third party's transformer is; ``UnavailableError`` when there is none."""
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
