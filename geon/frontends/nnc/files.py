"""Files: tensors by name as safetensors, and tensors over the bytes of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, CheckpointError
from ...transformers.base import Transformer, make_transformer
from ...transformers.runtime.checkpoint_file import with_file
from .checks import checked
from .tensors import Array, Tensor, TensorParam, array_of


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


@checked
def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Any]) -> None:
    """Write tensors or arrays by name to a safetensors file, which ``read_tensors`` reads.

    Raises ``CheckpointError`` for a path that cannot be written.
    """
    if not tensors:
        raise ArgumentError("there are no tensors; give one or more")
    store_of({name: array_of(tensor) for name, tensor in tensors.items()})[0].save(path)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the arrays of a safetensors file by name."""
    found: dict[str, Array] = with_file(
        path, lambda file: {name: file.read(name) for name in file.saved}
    )
    return found


@checked
def read_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Raises ``CheckpointError`` for a file that is missing or damaged.
    """
    return {name: Tensor(array) for name, array in read_arrays(path).items()}


@checked
def map_tensor(
    path: str | os.PathLike[str], param: TensorParam, offset: int = 0, mode: str = "r"
) -> Tensor:
    """Return a tensor over the raw bytes of a file, from byte ``offset`` on, mapped into memory.

    With ``mode`` "r+" writes go to the file. Raises ``CheckpointError`` if it is too short.
    """
    try:
        array = np.memmap(path, param.dtype, mode, offset, param.shape)  # type: ignore[call-overload]  # a mode
    except (OSError, ValueError, OverflowError) as error:
        raise CheckpointError(
            f"{path} cannot be mapped as {param} from byte {offset} on: {error}; check the path, "
            "the offset and the shape"
        ) from error
    return Tensor(array, format=param.format, device=param.device)
