"""``one_file``: the units of a module as one C file, which a compiler accepts as it stands.

Units are compiled one by one and repeat what they share: types, helper functions, headers. They
also use one name for several macros, types and static functions. One file leaves a definition out
where an earlier unit has it with the same meaning: its text is equal, and so is that of all macros
in it. A macro is undefined where a unit uses its name otherwise, and any other name that a unit
defines otherwise than one before it gets a number, by a macro.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*$", re.M)
EFFECT = re.compile(r"^# *(define|undef) +(\w+)", re.M)
# What no other unit sees, with its name and the arguments of a macro that makes it: a structure, a
# type, a static function or array.
OWN = re.compile(
    r"^(?:typedef )?(?:struct|union|enum) (\w+)(?= \{)()"
    r"|^typedef\b[^;{}]*?\b(\w+)()\s*(?:__attribute__\(\([^;]*)?;"
    r"|^\} ?(\w+)()\s*(?:__attribute__\(\([^;]*)?;"
    r"|^(?:static|GEON_INLINE|GEON_OUTLINED)\b(?:__attribute__\(\(.*?\)\)|[^;{}()=])*?"
    r"(?:\(\*const )?\b(?!__attribute__)(\w+)(\([\w, ]*\))?(?=\(|\[|;| =)",
    re.M,
)
LINE = re.compile(r"#[^\n]*\n")
TAG = re.compile(r"^(?:struct|union|enum) (\w+) \{", re.M)
CONDITION = re.compile(r"^# *(?:if|elif).*$", re.M)
MACRO = re.compile(r"#define (\w+)(?:\(([\w, .]*)\))?\s+(\S[^\n]*)")
KEPT_UNITS = 64  # units whose pieces are kept: those of files are parts of many modules


class Piece(NamedTuple):
    """A part of a unit at the top level: a directive, a group of them, or a definition.

    ``fresh`` are the macros that it defines where they are none before it.
    ``plain`` is its text without comments, and ``names`` are the identifiers in that. ``effects``
    are the names that it defines as macros (True) or undefines, in order. ``own`` are those of its
    types and static functions, with the arguments of macros that make them. ``is_code`` says
    whether it has more than such directives.
    """

    text: str
    plain: str
    names: frozenset[str]
    effects: tuple[tuple[str, bool], ...]
    fresh: frozenset[str]
    own: tuple[tuple[str, str], ...]
    is_code: bool

    @property
    def others(self) -> set[str]:
        """The names of its types, static functions and arrays, but for those of structures."""
        return {name for name, _ in self.own} - set(TAG.findall(self.plain))

    @property
    def is_single(self) -> bool:
        """Whether it defines or undefines one macro, whatever others are."""
        return not self.is_code and len(self.effects) == 1 and not self.plain.startswith("#if")


class Macro(NamedTuple):
    """A macro: a key that is equal for equal definitions, the identifiers in its text, and that."""

    key: Hashable
    names: frozenset[str]
    text: str


class Found(NamedTuple):
    """A piece of a unit with its key, and those of its identifiers that are macros before it."""

    piece: Piece
    key: Hashable
    before: frozenset[str]


def one_file(units: Iterable[str]) -> str:
    """Join units to one C file, in their order."""
    file = _File()
    for unit in units:
        file.add(unit)
    return "".join(file.written)


class _File:
    def __init__(self) -> None:
        self.written: list[str] = []
        self.code: set[Hashable] = set()
        self.macros: dict[str, Hashable] = {}  # those at the end of what is written, by their keys
        self.ever: set[str] = set()  # names that were macros
        # The keys of what types and static functions are declared by, which are numbered.
        self.named: dict[str, dict[Hashable, int]] = {}
        self.numbered: set[str] = set()  # those that have another number than 1 in this unit

    def add(self, unit: str) -> None:
        """Write the pieces of a unit that the file does not have."""
        known: dict[str, Macro] = {}
        own: set[str] = set()
        tags = [tag for piece in pieces(unit) for tag in TAG.findall(piece.plain)]
        # Structures whose names functions or arrays of the unit have, too.
        twice = set(tags) & {name for piece in pieces(unit) for name in piece.others}
        self.numbered = set()
        waiting: list[Found] = []  # directives that no code has needed yet
        for piece in pieces(unit):
            found = _found(piece, known)
            for name in names_of(piece, known):
                if name not in own and name not in known:
                    own.add(name)
                    numbers = self.named.setdefault(name, {})
                    key = unit if name in twice else found.key
                    number = numbers.setdefault(key, len(numbers) + 1)
                    if number > 1:
                        self.numbered.add(name)
                        define = _piece(f"#define {name} {name}_{number}\n")
                        waiting.append(_found(define, known))
                        _follow(waiting[-1], known)
            found = _found(piece, known)
            _follow(found, known)
            if not piece.is_code:
                waiting.append(found)
            elif found.key not in self.code:
                self.code.add(found.key)
                for each in without_pairs(waiting):
                    self.direct(each)
                waiting = []
                self.write(found)

    def direct(self, found: Found) -> None:
        """Write directives, unless the macros are so already."""
        wanted = dict(found.piece.effects)
        keys = [found.key if defined else None for defined in wanted.values()]
        if [self.macros.get(name) for name in wanted] != keys:
            self.write(found)

    def write(self, found: Found) -> None:
        """Write a piece where those of its identifiers are macros that are in its unit."""
        piece = found.piece
        undefined = piece.fresh & self.ever
        if not piece.is_single:
            undefined -= self.numbered
            undefined |= (self.macros.keys() & piece.names) - found.before
        for name in sorted(undefined):
            self.append(f"#undef {name}\n")
            self.macros.pop(name, None)
        for name, defined in piece.effects:
            self.ever.add(name)
            self.macros.pop(name, None)
            if defined:
                self.macros[name] = found.key
        self.append(piece.text)

    def append(self, text: str) -> None:
        """Add a text, with an empty line before it unless both are directives of one line."""
        lines = [each for each in (*self.written[-1:], text) if LINE.fullmatch(each)]
        if self.written and len(lines) < 2:
            self.written.append("\n")
        self.written.append(text)


def _found(piece: Piece, known: dict[str, Macro]) -> Found:
    """A piece after the macros of its unit before it."""
    key: Hashable = piece.plain
    if not piece.is_single:
        key = piece.plain, meaning(piece.names, known)
    return Found(piece, key, piece.names & known.keys())


def _follow(found: Found, known: dict[str, Macro]) -> None:
    """Change the macros of a unit as a piece does.

    What a group of directives undefines it may also not: then a condition does not hold.
    """
    for name, defined in found.piece.effects:
        if defined or not found.piece.is_single:
            known[name] = Macro(found.key, found.piece.names, found.piece.plain)
        else:
            known.pop(name, None)


def meaning(names: frozenset[str], known: dict[str, Macro]) -> frozenset[tuple[str, Hashable]]:
    """Return the macros that identifiers stand for, those in their texts, and so on."""
    found: dict[str, Hashable] = {}
    waiting = list(names & known.keys())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name].key
            waiting += known[name].names & known.keys()
    return frozenset(found.items())


def names_of(piece: Piece, known: dict[str, Macro]) -> list[str]:
    """Return the names of a piece's types and static functions, be they macros before or in it."""
    found: dict[str, None] = {}
    for name, arguments in piece.own:
        inner = re.findall(rf"^# *define {name} (\w+)$", piece.plain, re.M)
        found.update(dict.fromkeys(inner or [expanded(name, arguments, known)]))
    return list(found)


def expanded(name: str, arguments: str, known: dict[str, Macro]) -> str:
    """Return the identifier that a macro of these arguments, "" for none, stands for."""
    while name in known:
        match = MACRO.fullmatch(known[name].text)
        if match is None or bool(match[2]) != bool(arguments):
            break
        text = match[3]
        if arguments:
            given = [expanded(each.strip(), "", known) for each in arguments[1:-1].split(",")]
            values: dict[str, str] = dict(
                zip(match[2].replace(" ", "").split(","), given, strict=False)
            )
            words: list[str] = re.split(r"\b", text)
            text = "".join([values.get(word, word) for word in words])
        call = re.fullmatch(r"(\w+)(\([\w, ]*\))?", re.sub(r"\s*##\s*", "", text))
        if call is None:
            break
        name, arguments = call[1], call[2] or ""
    return name


def without_pairs(waiting: list[Found]) -> list[Found]:
    """Leave out a macro that is undefined again before a directive has its name."""
    kept: list[Found] = []
    for each in waiting:
        name, defined = each.piece.effects[0]
        if each.piece.is_single and not defined:
            last = next(
                (k for k in reversed(range(len(kept))) if name in kept[k].piece.names), None
            )
            if last is not None:
                piece = kept[last].piece
                if piece.is_single and piece.effects == ((name, True),):
                    del kept[last]
        kept.append(each)
    return kept


@lru_cache(KEPT_UNITS)
def pieces(unit: str) -> tuple[Piece, ...]:
    """Return the pieces of a unit, each with the comments before it."""
    return tuple(map(_piece, top_level(unit)))


def _piece(text: str) -> Piece:
    plain = COMMENT.sub(" ", text).strip()
    effects = tuple([(name, kind == "define") for kind, name in EFFECT.findall(plain)])
    code = DIRECTIVE.sub("", plain)
    own = [(each[k], each[k + 1]) for each in OWN.findall(code) for k in (0, 2, 4, 6) if each[k]]
    is_code = not effects or bool(code.strip())
    asked = set(IDENTIFIER.findall(" ".join(CONDITION.findall(plain))))
    first = dict(reversed(effects))
    fresh = frozenset(name for name, defined in first.items() if defined and name not in asked)
    names = frozenset(IDENTIFIER.findall(plain))
    return Piece(text, plain, names, effects, fresh, tuple(own), is_code)


def top_level(unit: str) -> Iterator[str]:
    """Yield the directives, groups of directives and definitions of a unit.

    At the top level each ends where a line does.
    """
    lines: list[str] = []
    braces = groups = 0
    comment = directed = continued = False
    for line in unit.splitlines():
        inside = braces or groups or comment or continued
        if not line.strip() and not lines:
            continue
        if line.startswith("#") and lines and not inside:
            yield "\n".join([*lines, ""])  # comments, or a macro that needs no semicolon
            lines = []
        lines.append(line)
        directed = line.startswith("#") or (directed and continued)
        continued = line.endswith("\\")
        if line.startswith("#"):
            groups += line.startswith("#if") - line.startswith("#endif")
        code, rest = "", line
        while rest:
            before, mark, rest = rest.partition("*/" if comment else "/*")
            code += "" if comment else before
            comment ^= bool(mark)
        if not directed:
            braces += code.count("{") - code.count("}")
        ends = directed or code.rstrip().endswith((";", "}"))
        if ends and not (braces or groups or comment or continued):
            yield "\n".join([*lines, ""])
            lines = []
    if lines:
        yield "\n".join([*lines, ""])
