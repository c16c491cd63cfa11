"""Join the translation units of a module into one C file that compiles by itself.

Each unit is compiled on its own and repeats types, helper functions and headers. Units also use the
same name for different macros, types and static functions. ``one_file`` omits a definition that an
earlier unit has with the same meaning: the same text, with the same definitions of all macros in
it. It undefines a macro before a unit that defines its name differently, and renames other
conflicting names with a macro that appends a number.
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
# A definition that is local to its unit (struct, type, static function or array): its name, and the
# arguments if a macro makes the name.
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
PASTED = re.compile(r"\w+(?:\s*##\s*\w+)+")  # tokens that a macro makes one
MAX_CACHED_UNITS = 64  # cached parses of units: many modules share the units of C files
MAX_CACHED_MACROS = 64 * MAX_CACHED_UNITS  # cached patterns of macros: units have dozens


class UnitPiece(NamedTuple):
    """A top-level part of a unit: a directive, a group of directives, or a definition.

    ``text`` is its text with the comments before it, ``plain`` the text without comments. ``names``
    are the identifiers in ``plain``. ``effects`` are the macros that it defines (True) or undefines
    (False), in order. ``fresh`` are the macros that it defines and that must be undefined before
    it. ``own`` are its types and static functions, each with the arguments of the macro that makes
    its name, or "". ``is_code`` is True if it has more than ``#define`` and ``#undef`` directives.
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
        """Return the names of its types, static functions and arrays, without struct tags."""
        return {name for name, _ in self.own} - set(TAG.findall(self.plain))

    @property
    def is_single(self) -> bool:
        """Return True if it is a single ``#define`` or ``#undef`` outside of ``#if``."""
        return not self.is_code and len(self.effects) == 1 and not self.plain.startswith("#if")


class Macro(NamedTuple):
    """A macro definition.

    ``key`` is equal for equal definitions, ``names`` are the identifiers in its text, ``text`` is
    the directive.
    """

    key: Hashable
    names: frozenset[str]
    text: str


class Found(NamedTuple):
    """A piece of a unit in its context.

    ``key`` identifies its meaning. ``before`` are its identifiers that are macros at this point.
    """

    piece: UnitPiece
    key: Hashable
    before: frozenset[str]


def one_file(units: Iterable[str]) -> str:
    """Join units into one C file, in their order."""
    file = _File()
    for unit in units:
        file.add(unit)
    return "".join(file.written)


class _File:
    def __init__(self) -> None:
        self.written: list[str] = []
        self.code: set[Hashable] = set()
        self.macros: dict[str, Hashable] = {}  # keys of macros defined at the end of the file
        self.ever: set[str] = set()  # names that were macros at any point
        # For each name of a type or static function: its definitions' keys and their numbers.
        self.named: dict[str, dict[Hashable, int]] = {}
        self.numbered: set[str] = set()  # names that this unit renames (number > 1)

    def add(self, unit: str) -> None:
        """Append the pieces of a unit that the file does not have yet."""
        known: dict[str, Macro] = {}
        own: set[str] = set()
        tags = [tag for piece in pieces(unit) for tag in TAG.findall(piece.plain)]
        # Struct tags that are also names of functions, arrays or typedefs of the unit.
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
        """Write directives unless their macros are already in that state."""
        wanted = dict(found.piece.effects)
        keys = [found.key if defined else None for defined in wanted.values()]
        if [self.macros.get(name) for name in wanted] != keys:
            self.write(found)

    def write(self, found: Found) -> None:
        """Write a piece after undefining macros that its unit does not have at this point."""
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
            before = self.macros.pop(name, None)
            if defined:
                self.macros[name] = found.key
            elif not (piece.is_single or before in (None, found.key)):
                self.macros[name] = object()  # a condition decides; no unit has this definition
        self.append(piece.text)

    def append(self, text: str) -> None:
        """Append a text, with a blank line before it unless both are one-line directives."""
        lines = [each for each in (*self.written[-1:], text) if LINE.fullmatch(each)]
        if self.written and len(lines) < 2:
            self.written.append("\n")
        self.written.append(text)


def _found(piece: UnitPiece, known: dict[str, Macro]) -> Found:
    """Return a piece with its key, given the macros that its unit defined before it."""
    key: Hashable = piece.plain
    if not piece.is_single:
        key = piece.plain, meaning(piece.names, known)
    return Found(piece, key, piece.names & known.keys())


def _follow(found: Found, known: dict[str, Macro]) -> None:
    """Update the macros of a unit with the effects of a piece.

    A macro that a conditional group undefines may remain defined, so it is kept.
    """
    for name, defined in found.piece.effects:
        if defined or not found.piece.is_single:
            known[name] = Macro(found.key, found.piece.names, found.piece.plain)
        else:
            known.pop(name, None)


def meaning(names: frozenset[str], known: dict[str, Macro]) -> frozenset[tuple[str, Hashable]]:
    """Return the keys of the macros that ``names`` expand to, transitively."""
    found: dict[str, Hashable] = {}
    waiting = list(names & known.keys())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name].key
            waiting += known[name].names & known.keys()
            for pattern in pasted(known[name].text):
                waiting += filter(pattern.fullmatch, known)
    return frozenset(found.items())


@lru_cache(MAX_CACHED_MACROS)
def pasted(macro: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns of the identifiers that a macro makes with ``##``, one for each of them.

    Such an identifier can be a macro too, such as the number that a name has in the file.
    """
    match = MACRO.match(macro.replace("\\\n", " ")) if "##" in macro else None
    if match is None:
        return ()
    arguments = {each.strip() for each in (match[2] or "").split(",")}
    return tuple(
        re.compile("".join(r"\w*" if part in arguments else part for part in parts))
        for parts in (re.split(r"\s*##\s*", each) for each in PASTED.findall(match[3]))
    )


def names_of(piece: UnitPiece, known: dict[str, Macro]) -> list[str]:
    """Return the names of a piece's types and static functions, after macro expansion."""
    found: dict[str, None] = {}
    for name, arguments in piece.own:
        inner = re.findall(rf"^# *define {name} (\w+)$", piece.plain, re.M)
        found.update(dict.fromkeys(inner or [expand_macro(name, arguments, known)]))
    return list(found)


def expand_macro(name: str, arguments: str, known: dict[str, Macro]) -> str:
    """Return the identifier to which a macro ``name`` with ``arguments`` ("": none) expands."""
    while name in known:
        match = MACRO.fullmatch(known[name].text)
        if match is None or bool(match[2]) != bool(arguments):
            break
        text = match[3]
        if arguments:
            given = [expand_macro(each.strip(), "", known) for each in arguments[1:-1].split(",")]
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
    """Drop a ``#define`` that is undefined again before any directive uses its name."""
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


@lru_cache(MAX_CACHED_UNITS)
def pieces(unit: str) -> tuple[UnitPiece, ...]:
    """Return the top-level pieces of a unit, each with the comments before it."""
    return tuple(map(_piece, top_level(unit)))


def _piece(text: str) -> UnitPiece:
    plain = COMMENT.sub(" ", text).strip()
    effects = tuple([(name, kind == "define") for kind, name in EFFECT.findall(plain)])
    code = DIRECTIVE.sub("", plain)
    own = [(each[k], each[k + 1]) for each in OWN.findall(code) for k in (0, 2, 4, 6) if each[k]]
    is_code = not effects or bool(code.strip())
    asked = set(IDENTIFIER.findall(" ".join(CONDITION.findall(plain))))
    first = dict(reversed(effects))
    fresh = frozenset(name for name, defined in first.items() if defined and name not in asked)
    names = frozenset(IDENTIFIER.findall(plain))
    return UnitPiece(text, plain, names, effects, fresh, tuple(own), is_code)


def top_level(unit: str) -> Iterator[str]:
    """Yield the directives, groups of directives and definitions of a unit.

    At the top level each ends at the end of a line.
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
