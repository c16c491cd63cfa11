"""Selection and renaming of checkpoint entries for ``restore``, and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError, CheckpointError

Rename = Mapping[str, str] | Callable[[str], str | None] | None
_MAX_REPORT_LINES = 40


@dataclass(frozen=True)
class Restored:
    """Report of ``restore``; as text, it has a line for each variable and each entry.

    ``taken`` maps each variable that was set to its entry. ``kept`` has, for each other variable,
    why it is unchanged. ``left`` has, for each unused entry of the file, why it was not used.
    """

    path: str
    taken: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        taken = [
            name if name == entry else f"{name} from {entry}" for name, entry in self.taken.items()
        ]
        kept = [f"{name}: {why}" for name, why in self.kept.items()]
        left = [f"{name}: {why}" for name, why in self.left.items()]
        parts = [("set", taken), ("kept as it was", kept), ("left in the file", left)]
        lines = [f"checkpoint {self.path!r}"]
        for title, named in parts:
            if named:
                shown = [
                    *named[:_MAX_REPORT_LINES],
                    *([f"... {len(named)} in all"] * (len(named) > _MAX_REPORT_LINES)),
                ]
                lines += [f"{title}:", *(f"  {line}" for line in shown)]
        return "\n".join(lines)


class Choice:
    """The options of ``restore``.

    ``only`` are patterns of variables' names. ``rename`` maps patterns of names in the file to
    names here, or is a function that does (None for an entry to ignore). In a pattern, ``*``
    matches any text; in the new name, it stands for the matched text.
    """

    def __init__(
        self, strict: bool = True, only: str | Iterable[str] | None = None, rename: Rename = None
    ) -> None:
        if not (only is None or isinstance(only, Iterable)):
            raise ArgumentError(
                f"only={only!r} are no names; give the names of variables, or patterns of them "
                "such as 'encoder.*', in which * is any text"
            )
        patterns = [only] if isinstance(only, str) else only
        self.only = None if patterns is None else [_checked("only", p) for p in patterns]
        self.strict, self.rename = bool(strict), rename
        if isinstance(rename, Mapping):
            for pattern, name in rename.items():
                _checked("rename", pattern)
                if _checked("rename", name).count("*") > pattern.count("*"):
                    raise ArgumentError(
                        f"rename={{{pattern!r}: {name!r}}} has more * on the right than on the "
                        "left; each stands for the text of one there"
                    )
        elif rename is not None and not callable(rename):
            raise ArgumentError(
                f"rename={rename!r} is no dictionary of names and no function; give "
                "{'name in the file': 'name of the variable'}, in which * is any text"
            )

    @property
    def whole(self) -> bool:
        """Return True if every variable and every entry must match one of the other."""
        return self.strict and self.only is None

    def chosen(self, shown: str, keys: Iterable[str]) -> set[str]:
        """Return the keys of variables to be set; raise ``CheckpointError`` without a match."""
        names = list(keys)
        if self.only is None:
            return set(names)
        found: set[str] = set()
        for pattern in self.only:
            matched = {name for name in names if _texts(pattern, name) is not None}
            if not matched:
                raise CheckpointError(
                    f"checkpoint {shown!r}: only={pattern!r} is the name of no persistent variable "
                    f"here; there are {', '.join(map(repr, names)) or 'none'}"
                )
            found |= matched
        return found

    def names(self, shown: str, entries: Iterable[str]) -> dict[str, str]:
        """Return a dict from variables' names to entries; raise ``CheckpointError`` for clashes."""
        found: dict[str, str] = {}
        used: set[str] = set()
        listed = list(entries)
        for entry in listed:
            name = self._renamed(entry, used)
            if name is None:
                continue
            if name in found:
                raise CheckpointError(
                    f"checkpoint {shown!r}: the entries {found[name]!r} and {entry!r} are both "
                    f"renamed to {name!r}; give them two names"
                )
            found[name] = entry
        if isinstance(self.rename, Mapping):
            unused = [pattern for pattern in self.rename if pattern not in used]
            if unused:
                raise CheckpointError(
                    f"checkpoint {shown!r}: rename={unused[0]!r} is the name of no entry; there "
                    f"are {', '.join(map(repr, listed)) or 'none'}"
                )
        return found

    def _renamed(self, entry: str, used: set[str]) -> str | None:
        if isinstance(self.rename, Mapping):
            for pattern, name in self.rename.items():
                texts = _texts(pattern, entry)
                if texts is not None:
                    used.add(pattern)
                    first, *rest = name.split("*")
                    return first + "".join(map("".join, zip(texts, rest, strict=False)))
            return entry
        if self.rename is None:
            return entry
        made = self.rename(entry)
        if made is not None and not isinstance(made, str):
            raise ArgumentError(f"rename gave {made!r} for {entry!r}; give a text, or None")
        return made


def _checked(option: str, pattern: Any) -> str:
    if not isinstance(pattern, str):
        raise ArgumentError(f"{option}= has {pattern!r}, which is no text; give names, or patterns")
    return pattern


def _texts(pattern: str, name: str) -> list[str] | None:
    """Return the shortest text that each ``*`` matches in ``name``; None if it does not match."""
    first, *rest = pattern.split("*")
    if not rest:
        return [] if name == first else None
    if not name.startswith(first):
        return None
    left, found = name[len(first) :], []
    for piece in rest[:-1]:
        text, met, left = left.partition(piece) if piece else ("", " ", left)
        if not met:
            return None
        found.append(text)
    if not left.endswith(rest[-1]):
        return None
    return [*found, left[: len(left) - len(rest[-1])]]
