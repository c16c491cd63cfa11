"""Checkpoints: save and load the persistent variables of a transformer, in one file."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import CheckpointError, FeedError
from ...op_graph.values.arrays import EXTENSIONS
from .checkpoint_file import (
    RESERVED_KEY,
    Contents,
    Saved,
    axes_text,
    file_pieces,
    is_known,
    with_file,
)
from .checkpoint_selection import Choice, Restored
from .feeding import convert
from .files import path_text, replace, writable
from .memory import own_copy

_MAX_LISTED_ENTRIES = 8
_HOME = ", or restore into the model that saved the file"


@dataclass(frozen=True)
class CheckpointEntry:
    """Description of one persistent variable for a checkpoint.

    ``key`` is its name in the file; ``automatic`` is True if that was made by counting. ``kind``
    begins automatic keys. ``axes`` are names and lengths, ``None`` for a length that is open and
    not yet fixed. ``label`` is for messages: its name, axes and the user's file:line.
    """

    key: str
    automatic: bool
    kind: str
    axes: tuple[tuple[str, int | None], ...]
    dtype: str
    label: str


# Keys --------------------------------------------------------------------------------------------


def keys_for(variables: Iterable[tuple[str | None, str, tuple[str, ...], str]]) -> list[str]:
    """Return the key of each variable: (user's name or ``None``, kind, names of its axes, label).

    A user's name is its own key; other variables are counted per kind and axes, as in
    ``variable(C,N).0``. Raises ``CheckpointError`` if two variables would have one key.
    """
    counts: Counter[str] = Counter()
    owners: dict[str, str] = {}
    for name, kind, axis_names, label in variables:
        form = f"{kind}({','.join(axis_names)})"
        key = f"{form}.{counts[form]}" if name is None else name
        counts[form] += name is None
        if key in owners or key == RESERVED_KEY:
            holder = owners.get(key, "the header of the file")
            raise CheckpointError(
                f"two things of one checkpoint have the name {key!r}: {holder} and {label}; "
                "give the variable another name="
            )
        owners[key] = label
    return list(owners)


def as_saved(
    entries: Sequence[CheckpointEntry], automatic: Sequence[str]
) -> Sequence[CheckpointEntry]:
    """Return the entries with the keys that a file with these automatic keys uses for them.

    Older files count the counters of random streams among other variables.
    """
    unnamed = {entry.kind for entry in entries if entry.automatic} - {"variable"}
    forms = {_form_of(key).partition("(")[0] for key in automatic}
    if not unnamed or "variable" not in forms or not unnamed.isdisjoint(forms):
        return entries
    described = [
        (None if e.automatic else e.key, "variable", tuple(name for name, _ in e.axes), e.label)
        for e in entries
    ]
    return [
        CheckpointEntry(key, e.automatic, e.kind, e.axes, e.dtype, e.label)
        for e, key in zip(entries, keys_for(described), strict=True)
    ]


def _form_of(key: str) -> str:
    """Return an automatic key without its number."""
    return key.rpartition(".")[0]


# Saving ------------------------------------------------------------------------------------------


def save(
    path: str | os.PathLike[str], entries: Sequence[CheckpointEntry], arrays: Sequence[np.ndarray]
) -> None:
    """Write ``arrays``, in the order of ``entries``, as the checkpoint at ``path``.

    If the process is killed, the old file or the new one is complete (a ``.geon-*.tmp`` may stay
    beside it until the next save there); after an exception no temporary file stays. A replaced
    file keeps its permission bits, a link stays a link. The file's bytes are in memory in addition
    to the arrays. Raises ``CheckpointError``.
    """
    shown = path_text(path)
    target, mode = writable(f"checkpoint {shown!r}", shown)
    tensors = {}
    notes = {}
    for entry, array in zip(entries, arrays, strict=True):
        tensors[entry.key] = _checked_value(shown, entry, array)
        axes = tuple((name, size) for (name, _), size in zip(entry.axes, array.shape, strict=True))
        notes[entry.key] = Saved(axes, entry.dtype, entry.automatic)
    replace(f"checkpoint {shown!r}", target, file_pieces(tensors, notes), mode)


def _checked_value(shown: str, entry: CheckpointEntry, array: np.ndarray) -> np.ndarray:
    """Return ``array`` in row-major order, after checking its axes and dtype against the entry."""
    expected = _dtype(entry.dtype)
    sizes = [size for _, size in entry.axes]
    same_axes = len(sizes) == array.ndim and all(
        size in (None, length) for size, length in zip(sizes, array.shape, strict=True)
    )
    if not same_axes or array.dtype.newbyteorder("=") != expected:
        raise CheckpointError(
            f"checkpoint {shown!r}: entry {entry.key!r} ({entry.label}) is {entry.dtype} over "
            f"{axes_text(entry.axes)}, but its value is {array.dtype} of shape {array.shape}; "
            "set a value that fits the variable"
        )
    return np.asarray(array, dtype=expected, order="C")


def _dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of this name; NumPy itself lacks bfloat16 and float8."""
    if name not in EXTENSIONS:
        return np.dtype(name)
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


# Loading -----------------------------------------------------------------------------------------


def load(
    path: str | os.PathLike[str], entries: Sequence[CheckpointEntry], choice: Choice
) -> tuple[list[np.ndarray | None], Restored]:
    """Return new arrays from the file at ``path`` in the order of ``entries``, and a report.

    Variables that are not set have None. Everything is checked before anything is returned. Raises
    ``CheckpointError`` for a file that is missing, damaged, truncated or of a newer version, and,
    depending on ``choice``, for an entry that is missing, extra, ambiguous, or has other axes,
    lengths or dtype than its variable.
    """
    found: tuple[list[np.ndarray | None], Restored] = with_file(
        path, lambda contents: _CheckpointLoader(contents, entries, choice).done()
    )
    return found


class _CheckpointLoader:
    """Loads one file into the given variables, as ``choice`` asks."""

    def __init__(
        self, contents: Contents, entries: Sequence[CheckpointEntry], choice: Choice
    ) -> None:
        self.contents, self.choice = contents, choice
        self.shown, self.saved = contents.shown, contents.saved
        self.entries = as_saved(entries, [key for key, e in self.saved.items() if e.automatic])
        self.wanted = choice.chosen(self.shown, [entry.key for entry in self.entries])
        self.names = choice.names(self.shown, self.saved)
        self.kept: dict[str, str] = {}

    def done(self) -> tuple[list[np.ndarray | None], Restored]:
        """Return the arrays and the report."""
        chosen = [entry for entry in self.entries if entry.key in self.wanted]
        self.kept = {e.key: "not among only=" for e in self.entries if e.key not in self.wanted}
        self.check_ambiguity(chosen)
        self.check_presence(chosen)
        arrays = {}
        for entry in chosen:
            if entry.key not in self.kept:
                array = self.array(entry)
                if array is not None:
                    arrays[entry.key] = array
        taken = {key: self.names[key] for key in arrays}
        if chosen and not taken:
            raise CheckpointError(
                f"checkpoint {self.shown!r} has nothing for the variables here"
                f"{_listing('; it has', list(self.saved))}"
                f"{_listing('; the variables are', [e.key for e in chosen])}; "
                f"{self._matching(chosen)}"
            )
        given = {entry: name for name, entry in self.names.items()}
        left = {
            entry: self.why_left(given.get(entry))
            for entry in self.saved
            if entry not in taken.values()
        }
        kept = {e.key: self.kept[e.key] for e in self.entries if e.key in self.kept}
        found = [arrays.get(entry.key) for entry in self.entries]
        return found, Restored(self.shown, taken, kept, left)

    def why_left(self, name: str | None) -> str:
        """Return why an entry, which maps to the variable ``name``, was not used."""
        if name is None:
            return "rename= gave None"
        if name not in self.kept:
            return "no variable has its name"
        return "it did not fit" if name in self.wanted else "its variable is not among only="

    def refuse(self, entry: CheckpointEntry, why: str, rest: str) -> None:
        """Raise for an entry that cannot be used; if not strict, record the reason."""
        if self.choice.strict:
            raise CheckpointError(f"checkpoint {self.shown!r}: {why}; {rest}")
        self.kept[entry.key] = why

    def check_ambiguity(self, chosen: Sequence[CheckpointEntry]) -> None:
        """Refuse unnamed variables whose entries could be swapped: their keys just count.

        Two entries of equal value do no harm, such as streams that initial values drew from. If a
        file is loaded in part, it must have as many such entries as there are variables.
        """
        unnamed = [entry for entry in self.entries if entry.automatic]
        both = {entry.key for entry in chosen}
        for first, second in itertools.combinations(unnamed, 2):
            if not (_same_form(first, second) and both & {first.key, second.key}):
                continue
            if not self.same_value(first, second):
                for entry in (first, second):
                    self.refuse(
                        entry,
                        f"entry {first.key!r} is ambiguous: it could belong to "
                        f"{first.label} or to {second.label}, both {first.dtype} over "
                        f"{axes_text(first.axes)} and without a name",
                        "name the variables, streams of random numbers by geon.Random(seed, name=) "
                        "(their counts of calls are variables), and save again; for a file that "
                        f"exists, say whose each is by rename={{{first.key!r}: ..., "
                        f"{second.key!r}: ..., '*': '*'}}",
                    )
        if self.choice.whole and self.choice.rename is None:
            return
        here = Counter(_form_of(entry.key) for entry in unnamed)
        there = Counter(_form_of(key) for key, saved in self.saved.items() if saved.automatic)
        for entry in chosen:
            name = self.names.get(entry.key)
            if entry.automatic and name is not None and self.saved[name].automatic:
                form = _form_of(entry.key)
                if here[form] != there[form]:
                    self.refuse(
                        entry,
                        f"the name of entry {name!r} was made by counting, and the file has "
                        f"{there[form]} of {form} where there are {here[form]} here, so it may be "
                        f"another's than that of {entry.label}",
                        "give the variable a name= and the entry that name with rename=",
                    )

    def same_value(self, first: CheckpointEntry, second: CheckpointEntry) -> bool:
        """Return True if the file has equal values for both, so that swapping them does no harm."""
        names = [self.names.get(entry.key) for entry in (first, second)]
        arrays = [self.contents.read(name) for name in names if name is not None]
        if len(arrays) < 2 or arrays[0].dtype != arrays[1].dtype:
            return False
        one, other = arrays
        return one.shape == other.shape and one.tobytes() == other.tobytes()

    def _matching(self, chosen: Sequence[CheckpointEntry]) -> str:
        """Return why no chosen variable was set, if known; else a hint how to match them."""
        reasons = [self.kept[entry.key] for entry in chosen if entry.key in self.names]
        return reasons[0] if reasons else "rename= matches them"

    def check_presence(self, chosen: Sequence[CheckpointEntry]) -> None:
        """Check that every chosen variable has an entry, and for a whole file, vice versa."""
        expected = {entry.key for entry in self.entries}
        extra = [entry for name, entry in self.names.items() if name not in expected]
        missing = [entry for entry in chosen if entry.key not in self.names]
        if not self.choice.strict:
            self.kept.update((entry.key, "the file has no such entry") for entry in missing)
            return
        if missing:
            others = [entry.key for entry in missing[1:]]
            key = missing[0].key
            if key in self.saved:
                renamed = [name for name, entry in self.names.items() if entry == key]
                into = f"makes it {renamed[0]!r}" if renamed else "leaves it out"
                raise CheckpointError(
                    f"checkpoint {self.shown!r} has an entry {key!r} for {missing[0].label}, and "
                    f"rename= {into}; put {{{key!r}: {key!r}}} first in rename="
                )
            raise CheckpointError(
                f"checkpoint {self.shown!r} has no entry {missing[0].key!r}, which is expected for "
                f"{missing[0].label}{_listing('; also missing', others)}"
                f"{_listing('; in the file and of no variable', extra)}; give the variable the "
                "name= that it was saved under, match them with rename=, take what there is with "
                f"strict=False{_HOME}"
            )
        if extra and self.choice.whole:
            first = self.saved[extra[0]]
            counted = ", a name made by counting" if first.automatic else ""
            raise CheckpointError(
                f"checkpoint {self.shown!r} has the extra entry {extra[0]!r}{counted} "
                f"({first.dtype} over {axes_text(first.axes)}), which no persistent variable of "
                f"this transformer takes{_listing('; also extra', extra[1:])}; make the "
                "computation that uses it before restoring, take those of the variables here with "
                f'only="*"{_HOME}'
            )

    def array(self, entry: CheckpointEntry) -> np.ndarray | None:
        """Return the value of a variable; None if it does not fit and loading is not strict."""
        name = self.names[entry.key]
        saved = self.saved[name]
        wrong = _misfit(name, entry, saved)
        if wrong is not None:
            self.refuse(entry, wrong[0], wrong[1] + _HOME)
            return None
        array = self.contents.read(name)
        if saved.named:
            return _fresh(array)
        try:
            return own_copy(convert(_fresh(array), _dtype(entry.dtype), entry.label))
        except FeedError as error:
            self.refuse(entry, f"entry {name!r}: {error}", "build the variable with its dtype")
            return None


def _fresh(array: np.ndarray) -> np.ndarray:
    """Return a copy; in files of other programs, any non-zero byte of a bool counts as true."""
    return own_copy(array.view(np.uint8) != 0 if array.dtype == np.bool_ else array)


def _same_form(first: CheckpointEntry, second: CheckpointEntry) -> bool:
    same_axes = _names(first.axes) == _names(second.axes) and all(
        None in (one, other) or one == other
        for (_, one), (_, other) in zip(first.axes, second.axes, strict=True)
    )
    return same_axes and (first.kind, first.dtype) == (second.kind, second.dtype)


def _misfit(name: str, entry: CheckpointEntry, saved: Saved) -> tuple[str, str] | None:
    """Return why an entry of the file does not fit its variable, and the cure; None if it fits."""

    def difference(has: str, expected: str, cure: str) -> tuple[str, str]:
        return f"entry {name!r} has {has}, but {expected} is expected for {entry.label}", cure

    has, expected = axes_text(saved.axes), axes_text(entry.axes)
    if not saved.named:
        fits = len(saved.shape) == len(entry.axes) and all(
            length in (None, size)
            for size, (_, length) in zip(saved.shape, entry.axes, strict=True)
        )
        cure = "its axes have no names, so they must be in the order of the variable's"
        if fits and not is_known(saved.dtype):
            return difference(f"dtype {saved.dtype}", entry.dtype, "write it with another dtype")
        return None if fits else difference(f"shape {saved.shape}", expected, cure)
    if _names(saved.axes) != _names(entry.axes):
        return difference(f"the axes {has}", expected, f"build the variable over {has}")
    if saved.dtype != entry.dtype:
        cure = f"build the variable with dtype={saved.dtype!r}"
        return difference(f"dtype {saved.dtype}", entry.dtype, cure)
    for (axis, size), (_, length) in zip(saved.axes, entry.axes, strict=True):
        if length not in (None, size):
            cure = f"give {axis} the length {size} before the variable is allocated"
            return difference(f"length {size} along {axis}", f"{length}", cure)
    return None


def _names(axes: Sequence[tuple[str, int | None]]) -> list[str]:
    return [name for name, _ in axes]


def _listing(what: str, keys: Sequence[str]) -> str:
    """Return ``what: keys``, or empty text without keys."""
    if not keys:
        return ""
    rest = f" and {len(keys) - _MAX_LISTED_ENTRIES} more" if len(keys) > _MAX_LISTED_ENTRIES else ""
    return f"{what}: {', '.join(map(repr, keys[:_MAX_LISTED_ENTRIES]))}{rest}"
