"""Checkpoint file format: metadata, digest, and reading of entries.

A file is in safetensors format and has one entry per variable under its key. Its metadata have
``format`` (``geon``), ``version``, ``entries`` and ``digest``. ``entries`` is JSON with the axes of
each key (names and lengths) and whether the key is automatic, that is, made by counting. A complex
array is stored as a real one with a further last dimension of 2, and its entry has ``complex``:
safetensors has no complex128. ``digest`` detects damage. Files without these are other programs':
their entries have a shape, and no names of axes.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...op_graph.values.arrays import EXTENSIONS
from .complex_arrays import as_numbers, as_parts
from .files import path_text

CHECKPOINT_FORMAT = "geon"
CHECKPOINT_VERSION = 2

RESERVED_KEY = "__metadata__"
_OURS = ("entries", "digest")

# safetensors' name of each dtype, and geon's.
_DTYPES = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
# The complex dtype of two parts of each dtype.
_COMPLEX = {"float32": "complex64", "float64": "complex128"}


@dataclass(frozen=True)
class Saved:
    """One entry of a file; ``named`` is True if its axes have names."""

    axes: tuple[tuple[str, int], ...]
    dtype: str
    automatic: bool
    named: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes."""
        return tuple(size for _, size in self.axes)


@dataclass(frozen=True)
class Contents:
    """The contents of an open file: its path, entries, and a function that reads one of them."""

    shown: str
    saved: Mapping[str, Saved]
    read: Callable[[str], np.ndarray[Any, Any]]


# Writing -----------------------------------------------------------------------------------------


def file_pieces(
    tensors: Mapping[str, np.ndarray[Any, Any]], notes: Mapping[str, Saved]
) -> list[Any]:
    """Return the bytes of a checkpoint file, in pieces; equal arrays and notes give equal bytes."""
    from safetensors.numpy import save as serialized

    entries = {
        key: {
            "axes": [list(axis) for axis in note.axes],
            "automatic": note.automatic,
            **({"complex": True} if note.dtype in _COMPLEX.values() else {}),
        }
        for key, note in sorted(notes.items(), key=lambda item: item[0])
    }
    metadata = {
        "format": CHECKPOINT_FORMAT,
        "version": str(CHECKPOINT_VERSION),
        "entries": json.dumps(entries),
        "digest": digest(notes, tensors.__getitem__),
    }
    content = serialized({key: as_parts(array) for key, array in tensors.items()})
    # safetensors has no fixed order of metadata, so they are written into the header here.
    end = 8 + int.from_bytes(content[:8], "little")
    header = content[8:end].rstrip(b" ")
    rest = b"}" if header == b"{}" else b"," + header[1:]
    text = b'{"' + RESERVED_KEY.encode() + b'":' + json.dumps(metadata).encode() + rest
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, memoryview(content)[end:]]


def digest(notes: Mapping[str, Saved], read: Callable[[str], np.ndarray[Any, Any]]) -> str:
    """Return a digest of keys, axes, dtypes and the bytes of the arrays."""
    import hashlib  # loads OpenSSL, which nothing else here needs

    made = hashlib.sha256()
    for key in sorted(notes):
        note = notes[key]
        said = [key, note.dtype, [list(axis) for axis in note.axes], note.automatic]
        made.update(json.dumps(said).encode())
        made.update(np.ascontiguousarray(read(key)).reshape(-1).view(np.uint8).data)
    return f"sha256:{made.hexdigest()}"


# Reading -----------------------------------------------------------------------------------------


def with_file(path: str | os.PathLike[str], use: Callable[[Contents], Any]) -> Any:
    """Call ``use`` with the contents of the file at ``path``, and return its result.

    The file is open during the call. Raises ``CheckpointError`` for a file that is missing,
    damaged, truncated, or of a newer version.
    """
    from safetensors import SafetensorError, safe_open

    shown = path_text(path)
    try:
        if not stat.S_ISREG(os.stat(shown).st_mode):
            raise CheckpointError(
                f"checkpoint {shown!r} cannot be read: that is a folder or a device, not a file; "
                "give the path that save was given"
            )
        # Opened here too: safe_open reports a file without permission as missing.
        with open(shown, "rb"), safe_open(shown, framework="numpy") as file:
            stored = _stored(shown, file)
            saved = _saved_entries(shown, file, stored)

            def read(key: str) -> np.ndarray[Any, Any]:
                array = stored(key)
                return as_numbers(array) if saved[key].dtype in _COMPLEX.values() else array

            return use(Contents(shown, saved, read))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"checkpoint {shown!r} does not exist; give the path that save was given"
        ) from error
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {shown!r} cannot be read: {error.strerror or error}; make it readable or "
            "give another path"
        ) from error
    except SafetensorError as error:
        raise CheckpointError(
            f"checkpoint {shown!r} is no safetensors file, or it is cut off or damaged ({error}); "
            "restore from another one"
        ) from error


def _stored(shown: str, file: Any) -> Callable[[str], np.ndarray[Any, Any]]:
    """Return a function that reads the array of a key, as it is stored.

    safetensors has no float8 for NumPy, so the bytes of such an array are read here.
    """
    header: dict[str, Any] = {}

    def stored(key: str) -> np.ndarray[Any, Any]:
        dtype = _dtype_name(file.get_slice(key))
        if not dtype.startswith("float8"):
            array: np.ndarray[Any, Any] = file.get_tensor(key)
            return array
        with open(shown, "rb") as raw:
            start = 8 + int.from_bytes(raw.read(8), "little")
            if not header:
                header.update(json.loads(raw.read(start - 8)))
            first, end = header[key]["data_offsets"]
            raw.seek(start + first)
            content = bytearray(raw.read(end - first))
        return np.frombuffer(content, np.dtype(dtype)).reshape(header[key]["shape"])

    return stored


def _saved_entries(
    shown: str, file: Any, stored: Callable[[str], np.ndarray[Any, Any]]
) -> dict[str, Saved]:
    """Return the entries in the header, checked against the metadata and the digest."""
    metadata = file.metadata() or {}
    if metadata.get("format") != CHECKPOINT_FORMAT:
        if any(key in metadata for key in _OURS):
            raise _damaged(shown, f"its format is {metadata.get('format')!r}")
        plain = {key: _plain_entry(file.get_slice(key)) for key in file.keys()}  # noqa: SIM118  # it is no dict
        return _readable(plain)
    version = metadata.get("version", "")
    if version not in ("1", str(CHECKPOINT_VERSION)):
        if version.isdecimal() and int(version[:9]) > CHECKPOINT_VERSION:
            raise CheckpointError(
                f"checkpoint {shown!r} has format version {version}, this geon reads up to "
                f"{CHECKPOINT_VERSION}; upgrade geon"
            )
        raise _damaged(shown, f"its format version is {version!r}, not {CHECKPOINT_VERSION}")
    try:
        notes = json.loads(metadata.get("entries", ""))
    except (ValueError, RecursionError) as error:
        raise _damaged(shown, f"its list of entries is no JSON ({error})") from error
    if not isinstance(notes, dict) or set(notes) != set(file.keys()):
        raise _damaged(shown, "its list of entries does not name the entries it has")
    saved = {
        key: _saved_entry(shown, key, note, file.get_slice(key)) for key, note in notes.items()
    }
    _readable(saved)
    if version == "1" and "digest" not in metadata:  # older files have no digest
        return saved
    if version == "1" or metadata.get("digest") != digest(saved, stored):
        raise _damaged(shown, "its digest is not that of what it holds")
    return saved


def _readable(saved: dict[str, Saved]) -> dict[str, Saved]:
    """Return the entries, after registering their dtypes with NumPy."""
    if any(entry.dtype in EXTENSIONS for entry in saved.values()):
        import ml_dtypes  # noqa: F401  # it tells NumPy of them
    return saved


def _saved_entry(shown: str, key: str, note: Any, tensor: Any) -> Saved:
    """Return one entry, after checking the axes in the metadata against the stored shape."""
    parts = isinstance(note, dict) and note.get("complex") is True
    match note:
        case {"axes": list(pairs), "automatic": bool(automatic)} if all(
            isinstance(pair, list) and list(map(type, pair)) == [str, int] for pair in pairs
        ):
            axes = tuple((name, size) for name, size in pairs)
        case _:
            raise _damaged(shown, f"what it says of entry {key!r} is malformed: {note!r}")
    shape = tuple(tensor.get_shape())
    dtype = _dtype_name(tensor)
    if parts and shape[-1:] == (2,) and dtype in _COMPLEX:
        shape, dtype = shape[:-1], _COMPLEX[dtype]
    if tuple(size for _, size in axes) != shape:
        raise _damaged(shown, f"entry {key!r} is over {axes_text(axes)} but has shape {shape}")
    if not is_known(dtype):
        raise _damaged(shown, f"entry {key!r} has the dtype {dtype}, which save does not write")
    return Saved(axes, dtype, automatic)


def _plain_entry(tensor: Any) -> Saved:
    """Return one entry of another program's file."""
    axes = tuple((f"#{k}", size) for k, size in enumerate(tensor.get_shape()))
    return Saved(axes, _dtype_name(tensor), automatic=False, named=False)


def is_known(dtype: str) -> bool:
    """Return True if variables can have this dtype of a file."""
    return dtype in (*_DTYPES.values(), *_COMPLEX.values())


def _dtype_name(tensor: Any) -> str:
    code = str(tensor.get_dtype())
    return _DTYPES.get(code, code)


def _damaged(shown: str, what: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {shown!r} is damaged: {what}; restore from another one")


def axes_text(axes: Sequence[tuple[str, int | None]]) -> str:
    """Return axes with their lengths as text, for messages."""
    return f"({', '.join(name if size is None else f'{name}={size}' for name, size in axes)})"
