"""Files: tensors by name, arrays as safetensors, and tensors over the bytes of a file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

import geon

from ...errors import CheckpointError
from ...transformers.base import Transformer, make_transformer
from .tensors import Array, Tensor, TensorParam


def store_of(arrays: Mapping[str, Array]) -> tuple[Transformer, dict[str, Any]]:
    """Return a transformer whose ``save`` writes these arrays as safetensors, and its variables.

    Its ``restore`` sets the variables, which have the shapes of the arrays.
    """
    store, leaves = make_transformer("numpy"), {}
    for name, value in arrays.items():
        axes = [geon.Axis(f"d{k}", n) for k, n in enumerate(value.shape)]
        leaves[name] = geon.Variable(axes, value.dtype, name=name, initial_value=value)
    store.computation(list(leaves.values()))
    return store, leaves


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write tensors by name to a file, which ``read_tensors`` reads: NumPy's format ``.npz``."""
    with open(path, "wb") as file:
        np.savez(file, **{name: tensor.array for name, tensor in tensors.items()})  # type: ignore[arg-type]  # names


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return the tensors of a file by name; raise ``CheckpointError`` for a damaged file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: Tensor(file[name]) for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{os.fspath(path)} is no file of tensors: {error}; write one with write_tensors"
        ) from error


def map_tensor(
    path: str | os.PathLike[str], param: TensorParam, offset: int = 0, mode: str = "r"
) -> Tensor:
    """Return a tensor over the raw bytes of a file, from byte ``offset`` on, mapped into memory.

    With ``mode`` "r+" writes go to the file. Raises ``CheckpointError`` if it is too short.
    """
    try:
        array = np.memmap(path, param.dtype, mode, offset, param.shape)  # type: ignore[call-overload]  # a mode
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{os.fspath(path)} cannot be mapped as {param}: {error}") from error
    return Tensor(array, format=param.format, device=param.device)
