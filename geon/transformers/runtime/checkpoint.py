"""Checkpoint files: the persistent variables of a transformer as one safetensors file.

A file has one entry per variable under its key. Its metadata hold ``format`` (``geon``),
``version`` and ``entries``: JSON that gives for each key its axes (names and lengths) and whether
the key is automatic, that is, made by counting.
"""

import itertools
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import CheckpointError
from .files import path_text, replace, writable

CHECKPOINT_FORMAT = "geon"
CHECKPOINT_VERSION = 1

_RESERVED = "__metadata__"
_ENTRIES_LISTED = 8

# What safetensors calls each dtype, and its name here.
_DTYPES = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Entry:
    """One persistent variable as a checkpoint sees it.

    ``axes`` are names and lengths, ``None`` for a length that is open and not yet fixed; ``label``
    is what messages call the variable: its name, axes and the user's file:line.
    """

    key: str
    automatic: bool
    kind: str
    axes: tuple[tuple[str, int | None], ...]
    dtype: str
    label: str


@dataclass(frozen=True)
class _Saved:
    """One entry as a file has it."""

    axes: tuple[tuple[str, int], ...]
    dtype: str
    automatic: bool


# Keys --------------------------------------------------------------------------------------------


def keys_for(variables: Iterable[tuple[str | None, str, tuple[str, ...], str]]) -> list[str]:
    """The key of each variable: (user's name or ``None``, kind, names of its axes, label).

    A user's name is its own key; the others are counted per kind and axes among the unnamed, as in
    ``variable(C,N).0``. Raises ``CheckpointError`` where two variables would have one key.
    """
    counts: Counter[str] = Counter()
    owners: dict[str, str] = {}
    for name, kind, axis_names, label in variables:
        form = f"{kind}({','.join(axis_names)})"
        key = f"{form}.{counts[form]}" if name is None else name
        counts[form] += name is None
        if key in owners or key == _RESERVED:
            holder = owners.get(key, "the header of the file")
            raise CheckpointError(
                f"two things of one checkpoint have the name {key!r}: {holder} and {label}; "
                "give the variable another name="
            )
        owners[key] = label
    return list(owners)


# Saving ------------------------------------------------------------------------------------------


def save(
    path: str | os.PathLike[str], entries: Sequence[Entry], arrays: Sequence[np.ndarray]
) -> None:
    """Writes ``arrays``, in the order of ``entries``, as the checkpoint at ``path``.

    Killed at any instant, the old file or the new one is whole (a ``.geon-*.tmp`` may stay beside
    it); after an exception no temporary stays. A replaced file keeps its permission bits, a link
    stays a link. Memory holds the file's bytes beside the arrays. Raises ``CheckpointError``.
    """
    from safetensors.numpy import save as serialized

    shown = path_text(path)
    target, mode = writable(f"checkpoint {shown!r}", shown)
    tensors = {}
    notes = {}
    for entry, array in zip(entries, arrays, strict=True):
        tensors[entry.key] = _checked(shown, entry, array)
        axes = [[name, size] for (name, _), size in zip(entry.axes, array.shape, strict=True)]
        notes[entry.key] = {"axes": axes, "automatic": entry.automatic}
    metadata = {
        "format": CHECKPOINT_FORMAT,
        "version": str(CHECKPOINT_VERSION),
        "entries": json.dumps(notes),
    }
    replace(f"checkpoint {shown!r}", target, serialized(tensors, metadata), mode)


def _checked(shown: str, entry: Entry, array: np.ndarray) -> np.ndarray:
    """``array`` as the file holds it: its axes and dtype are the entry's, its bytes in order."""
    expected = _dtype(entry.dtype)
    sizes = [size for _, size in entry.axes]
    same_axes = len(sizes) == array.ndim and all(
        size in (None, length) for size, length in zip(sizes, array.shape, strict=True)
    )
    if not same_axes or array.dtype.newbyteorder("=") != expected:
        raise CheckpointError(
            f"checkpoint {shown!r}: entry {entry.key!r} ({entry.label}) is {entry.dtype} over "
            f"{_axes_text(entry.axes)}, but its value is {array.dtype} of shape {array.shape}; "
            "set a value that fits the variable"
        )
    return np.asarray(array, dtype=expected, order="C")


def _dtype(name: str) -> np.dtype[Any]:
    """The dtype of that name; NumPy itself does not know bfloat16."""
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


# Loading -----------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], entries: Sequence[Entry]) -> list[np.ndarray]:
    """The arrays of the checkpoint at ``path`` in the order of ``entries``, fresh and writable.

    Everything is checked before anything is returned. Raises ``CheckpointError`` for a file that
    is missing, damaged, cut off, no checkpoint or of a newer version, and for an entry that is
    missing, extra, ambiguous, or has other axes, lengths or dtype than its variable.
    """
    from safetensors import SafetensorError, safe_open

    shown = path_text(path)
    try:
        if not stat.S_ISREG(os.stat(shown).st_mode):
            raise CheckpointError(
                f"checkpoint {shown!r} cannot be read: that is a folder or a device, not a file; "
                "give the path that save was given"
            )
        # Opened here too: safe_open says of a file without permission that it does not exist.
        with open(shown, "rb"), safe_open(shown, framework="numpy") as file:
            saved = _saved_entries(shown, file)
            _check_ambiguity(shown, entries)
            _check_presence(shown, entries, saved)
            for entry in entries:
                _check_form(shown, entry, saved[entry.key])
            return [_fresh(file.get_tensor(entry.key)) for entry in entries]
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


def _fresh(array: np.ndarray) -> np.ndarray:
    """An own copy; a byte that is no proper bool, in a damaged file, counts as true."""
    return np.array(array.view(np.uint8) != 0 if array.dtype == np.bool_ else array)


def _saved_entries(shown: str, file: Any) -> dict[str, _Saved]:
    """What the header says of each entry, checked against the metadata."""
    metadata = file.metadata() or {}
    if metadata.get("format") != CHECKPOINT_FORMAT:
        raise CheckpointError(
            f"checkpoint {shown!r} is a safetensors file but no checkpoint of geon: its metadata "
            f"say format {metadata.get('format')!r}, not {CHECKPOINT_FORMAT!r}; give a file that "
            "save has written"
        )
    version = metadata.get("version", "")
    if version != str(CHECKPOINT_VERSION):
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
    return {key: _saved_entry(shown, key, note, file.get_slice(key)) for key, note in notes.items()}


def _saved_entry(shown: str, key: str, note: Any, tensor: Any) -> _Saved:
    """One entry: the axes that the metadata state must have the lengths of the stored shape."""
    match note:
        case {"axes": list(pairs), "automatic": bool(automatic)} if all(
            isinstance(pair, list) and list(map(type, pair)) == [str, int] for pair in pairs
        ):
            axes = tuple((name, size) for name, size in pairs)
        case _:
            raise _damaged(shown, f"what it says of entry {key!r} is malformed: {note!r}")
    shape = tuple(tensor.get_shape())
    if tuple(size for _, size in axes) != shape:
        raise _damaged(shown, f"entry {key!r} is over {_axes_text(axes)} but has shape {shape}")
    code = str(tensor.get_dtype())
    return _Saved(axes, _DTYPES.get(code, code), automatic)


def _damaged(shown: str, what: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {shown!r} is damaged: {what}; restore from another one")


# What a file has against what is expected --------------------------------------------------------


def _check_ambiguity(shown: str, entries: Sequence[Entry]) -> None:
    """Refuses two unnamed variables that one entry would fit: counting could have swapped them."""
    unnamed = [entry for entry in entries if entry.automatic]
    for first, second in itertools.combinations(unnamed, 2):
        same_axes = _names(first.axes) == _names(second.axes) and all(
            None in (one, other) or one == other
            for (_, one), (_, other) in zip(first.axes, second.axes, strict=True)
        )
        if same_axes and (first.kind, first.dtype) == (second.kind, second.dtype):
            raise CheckpointError(
                f"checkpoint {shown!r}: entry {first.key!r} is ambiguous: it could belong to "
                f"{first.label} or to {second.label}, both {first.dtype} over "
                f"{_axes_text(first.axes)} and without a name; name the variables and save again "
                "(or, for a file that exists, give each the name of its entry: "
                f"name={first.key!r} and name={second.key!r})"
            )


def _check_presence(shown: str, entries: Sequence[Entry], saved: Mapping[str, _Saved]) -> None:
    """Every variable has an entry and every entry a variable."""
    expected = {entry.key for entry in entries}
    extra = [key for key in saved if key not in expected]
    missing = [entry for entry in entries if entry.key not in saved]
    if missing:
        others = [entry.key for entry in missing[1:]]
        raise CheckpointError(
            f"checkpoint {shown!r} has no entry {missing[0].key!r}, which is expected for "
            f"{missing[0].label}{_listing('; also missing', others)}"
            f"{_listing('; in the file and of no variable', extra)}; give the variable the name= "
            "that it was saved under, or restore into the model that saved the file"
        )
    if extra:
        first = saved[extra[0]]
        counted = ", a name made by counting" if first.automatic else ""
        raise CheckpointError(
            f"checkpoint {shown!r} has the extra entry {extra[0]!r}{counted} ({first.dtype} over "
            f"{_axes_text(first.axes)}), which no persistent variable of this transformer takes"
            f"{_listing('; also extra', extra[1:])}; make the computation that uses it before "
            "restoring, or restore into the model that saved the file"
        )


def _check_form(shown: str, entry: Entry, saved: _Saved) -> None:
    """Axes, lengths and dtype of one entry are its variable's."""

    def check(right: bool, has: str, expected: str, cure: str) -> None:
        if not right:
            raise CheckpointError(
                f"checkpoint {shown!r}: entry {entry.key!r} has {has}, but {expected} is expected "
                f"for {entry.label}; {cure}, or restore into the model that saved the file"
            )

    has, expected = _axes_text(saved.axes), _axes_text(entry.axes)
    same_names = _names(saved.axes) == _names(entry.axes)
    check(same_names, f"the axes {has}", expected, f"build the variable over {has}")
    same_dtype = saved.dtype == entry.dtype
    cure = f"build the variable with dtype={saved.dtype!r}"
    check(same_dtype, f"dtype {saved.dtype}", entry.dtype, cure)
    for (name, size), (_, length) in zip(saved.axes, entry.axes, strict=True):
        cure = f"give {name} the length {size} before the variable is allocated"
        check(length in (None, size), f"length {size} along {name}", f"{length}", cure)


def _names(axes: Sequence[tuple[str, int | None]]) -> list[str]:
    return [name for name, _ in axes]


def _axes_text(axes: Sequence[tuple[str, int | None]]) -> str:
    return f"({', '.join(name if size is None else f'{name}={size}' for name, size in axes)})"


def _listing(what: str, keys: Sequence[str]) -> str:
    """``what: keys``, or nothing where there are none."""
    if not keys:
        return ""
    rest = f" and {len(keys) - _ENTRIES_LISTED} more" if len(keys) > _ENTRIES_LISTED else ""
    return f"{what}: {', '.join(map(repr, keys[:_ENTRIES_LISTED]))}{rest}"
