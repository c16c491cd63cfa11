"""Which entries of a file go into which variables, and the report of what was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError, CheckpointError

Rename = Mapping[str, str] | Callable[[str], str | None] | None
_LINES = 40


@dataclass(frozen=True)
class Restored:
    """What ``restore`` took of a file: as text, a line for each variable and each entry.

    ``taken`` has the entry of each variable that was set, ``kept`` why another variable stayed as
    it was, and ``left`` why an entry of the file was not used.
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
                shown = [*named[:_LINES], *([f"... {len(named)} in all"] * (len(named) > _LINES))]
                lines += [f"{title}:", *(f"  {line}" for line in shown)]
        return "\n".join(lines)


class Choice:
    """What ``restore`` was asked for.

    ``only`` are patterns of names of variables, ``rename`` patterns of names in the file with the
    names that they have here, or a function from one to the other (or None, for an entry to
    leave). In a pattern ``*`` is any text, and in the name behind it what stood there.
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
        """Whether every variable and every entry must find its own."""
        return self.strict and self.only is None

    def chosen(self, shown: str, keys: Iterable[str]) -> set[str]:
        """The keys of variables that are to be set; ``CheckpointError`` for a pattern of none."""
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
        """The entry for each name of a variable; ``CheckpointError`` where two have one name."""
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
    """The text of each ``*`` where ``name`` is such a name, as short as can be; else None."""
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
