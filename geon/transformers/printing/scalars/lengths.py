"""Lengths as C expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import FloorDiv


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
