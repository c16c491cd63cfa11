"""C types of dtypes, properties of languages of the C family, lengths as C, texts in comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import FloorDiv

C_TYPES: dict[str, str] = {
    "bool": "_Bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for bits in (8, 16, 32, 64) for sign in ("", "u")},
    "float16": "geon_half",
    "bfloat16": "geon_bfloat",
    "float8_e4m3fn": "uint8_t",
    "float8_e5m2": "uint8_t",
    "float32": "float",
    "float64": "double",
}
# The suffix of function names, by dtype.
SUFFIXES: dict[str, str] = {
    "bool": "bool",
    **{
        f"{sign}int{bits}": f"{sign or 'i'}{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")
    },
    "float16": "half",
    "bfloat16": "bfloat",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float32": "f32",
    "float64": "f64",
}
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED


class Dialect(NamedTuple):
    """A language of the C family.

    ``wraps``: signed integers wrap around. ``spares``: loads are guarded, so that nothing is read
    that no select uses. ``masks``: truths that innermost loops use are masks, which compilers
    vectorise better.
    """

    wraps: bool
    spares: bool
    masks: bool


def comment(text: str) -> str:
    """Return a text that is safe in a C comment: one line of printable ASCII characters."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in plain)
    return plain.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?").rstrip("\\")


def c_length(length: Size, names: Mapping[Any, str]) -> str:
    """Return a length as C over ``int64_t``.

    ``names`` are the identifiers of open lengths, and of quotients that are computed before.
    """
    if isinstance(length, int):
        return str(length)
    parts = []
    for monomial, coefficient in length.terms:
        factors = [] if abs(coefficient) == 1 and monomial else [str(abs(coefficient))]
        for atom, power in monomial:
            known = names.get(atom)
            if known is None:
                assert isinstance(atom, FloorDiv), f"length {atom} has no name"
                known = division(atom, names)
            factors += [known] * power
        parts.append(("- " if coefficient < 0 else "+ ") + " * ".join(factors))
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else "-" + text[2:]


def divides(length: Size) -> bool:
    """Return True if the C text of a length calls ``geon_floor_div``."""
    if isinstance(length, int):
        return False
    atoms = [atom for monomial, _ in length.terms for atom, _ in monomial]
    return any(isinstance(atom, FloorDiv) for atom in atoms)


def divisions(length: Size) -> Iterator[FloorDiv]:
    """Yield the quotients in a length, inner ones first."""
    for monomial, _ in () if isinstance(length, int) else length.terms:
        for atom, _ in monomial:
            if isinstance(atom, FloorDiv):
                yield from (*divisions(atom.numerator), *divisions(atom.denominator), atom)


def division(atom: FloorDiv, names: Mapping[Any, str]) -> str:
    """Return a quotient as C."""
    return f"geon_floor_div({c_length(atom.numerator, names)}, {c_length(atom.denominator, names)})"
