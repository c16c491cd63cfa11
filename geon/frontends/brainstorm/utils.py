"""Helpers for paths, nested containers and shapes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...errors import GeonError, UnavailableError
from ...version import __version__
from .errors import (
    InitializationError,
    IteratorValidationError,
    LayerValidationError,
    NetworkValidationError,
    StructureValidationError,
    ValidationError,
)

__all__ = [
    "InitializationError", "IteratorValidationError", "LayerValidationError",
    "NetworkValidationError", "PathError", "StructureValidationError", "ValidationError",
    "convert_to_nested_indices", "flatten", "flatten_all_but_last", "flatten_features",
    "flatten_keys", "flatten_time", "flatten_time_and_features", "get_brainstorm_info",
    "get_by_path", "get_inheritors", "get_normalized_path", "is_valid_layer_name", "open_hdf5",
    "product", "sort_by_index_key",
]  # fmt: skip

Array: TypeAlias = "np.ndarray[Any, Any]"

PYTHON_IDENTIFIER = re.compile("^[_a-zA-Z][_a-zA-Z0-9]*$")
NAME_BLACKLIST = {"default", "fallback"}


class PathError(GeonError, KeyError):
    """A path to an entry of nested dictionaries or buffers that does not exist."""

    __str__ = Exception.__str__  # that of KeyError shows the message as a literal


def product(numbers: Iterable[int]) -> int:
    """Return the product of integers, 1 for none."""
    return math.prod(int(n) for n in numbers)


def is_valid_layer_name(identifier: str) -> bool:
    """Return True for an identifier that has no meaning of its own in references."""
    return identifier not in NAME_BLACKLIST and bool(PYTHON_IDENTIFIER.match(identifier))


def get_inheritors(cls: type) -> set[Any]:
    """Return all direct and indirect subclasses of a class."""
    found: set[Any] = set()
    work = [cls]
    while work:
        new: set[Any] = set(work.pop().__subclasses__()) - found
        found |= new
        work += new
    return found


def flatten(container: Iterable[Any]) -> Iterator[Any]:
    """Iterate over the elements of nested lists and tuples, depth first."""
    for element in container:
        if isinstance(element, (list, tuple)):
            yield from flatten(element)
        else:
            yield element


def convert_to_nested_indices(
    container: Iterable[Any], start_idx: list[int] | None = None
) -> Iterator[Any]:
    """Iterate over nested lists of the same structure that number the elements depth first."""
    count = [0] if start_idx is None else start_idx
    for element in container:
        if isinstance(element, (list, tuple)):
            yield list(convert_to_nested_indices(element, count))
        else:
            yield count[0]
            count[0] += 1


def sort_by_index_key(item: tuple[Any, Any]) -> int:
    """Return the ``@index`` of the value of a dictionary's item, or -1: a key for ``sorted``."""
    value = item[1]
    return int(value["@index"]) if isinstance(value, dict) and "@index" in value else -1


def get_by_path(d: Any, path: str) -> Any:
    """Return ``d["a"]["b"]`` for the path ``"a.b"``; raise ``PathError``, a ``KeyError``."""
    node = d
    for part in path.split("."):
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            keys = ", ".join(sorted(map(str, node))) if isinstance(node, Mapping) else ""
            has = f"the keys are: {keys}" if keys else "it is empty or has no keys"
            raise PathError(
                f"the path {path!r} could not be resolved: there is no {part!r}; {has}"
            ) from None
    return node


def get_normalized_path(*args: str) -> str:
    """Join dotted paths; each ``..`` before a part removes the part before it."""
    parts: list[str] = []
    for text in args:
        for part in text.replace("..", "@").split("."):
            ups = len(part) - len(part.lstrip("@"))
            if not part[ups:] or ups > len(parts):
                raise PathError(f"{'.'.join(args)!r} is no path: it has an empty part or leads out")
            parts[len(parts) - ups :] = [part[ups:]]
    return ".".join(parts)


def flatten_keys(dictionary: Any) -> list[str]:
    """Return the dotted paths of all leaves of nested dictionaries."""
    if not isinstance(dictionary, dict):
        return []
    return [
        f"{key}.{inner}" if inner else key
        for key, value in dictionary.items()
        for inner in (flatten_keys(value) if isinstance(value, dict) else [""])
    ]


def flatten_time(array: Array) -> Array:
    """Merge the axes of time and batch of an array over (T, B, ...)."""
    return array.reshape(_checked(array).shape[0] * array.shape[1], *array.shape[2:])


def flatten_time_and_features(array: Array) -> Array:
    """Return an array over (T, B, ...) as a matrix over (T B, features)."""
    return array.reshape(_checked(array).shape[0] * array.shape[1], product(array.shape[2:]))


def flatten_features(array: Array, start_idx: int = 2) -> Array:
    """Merge all axes of an array from ``start_idx`` on."""
    return array.reshape(*array.shape[:start_idx], product(array.shape[start_idx:]))


def flatten_all_but_last(array: Array) -> Array:
    """Return an array as a matrix whose columns go along its last axis."""
    return array.reshape(product(array.shape[:-1]), array.shape[-1])


def _checked(array: Array) -> Array:
    if array.ndim < 3:
        raise StructureValidationError(
            f"the array of shape {array.shape} has no features after time and batch; give one "
            "over (T, B, ...) with at least 3 axes"
        )
    return array


def get_brainstorm_info() -> bytes:
    """Return the note that saved files carry about the program that wrote them."""
    return f"Created with geon.frontends.brainstorm {__version__}".encode()


def open_hdf5(filename: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Return an HDF5 file to read; with a ``kind``, a new one to write, with a note of that."""
    try:
        import h5py
    except ImportError:
        raise UnavailableError(
            f"{os.fspath(filename)}: HDF5 files need the package h5py: pip install h5py, or "
            "geon[training]"
        ) from None
    file = h5py.File(filename, "r" if kind is None else "w")
    if kind is not None:
        file.attrs.create("info", get_brainstorm_info())
        file.attrs.create("format", kind)
    return file
