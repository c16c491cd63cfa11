"""Mixed-radix digits of an axis: separate loops for the quotients and remainders of its index.

Where axes are flattened that are not contiguous, or an index is a remainder, each element of a
single loop needs divisions. A loop per digit needs none, and iterations along a digit are
contiguous in memory again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ....op_graph.axes.lengths import exact_quotient
from ..ir.scalar_code import atoms


def digits_of(offsets: Iterable[AffineIndex], name: str, extent: Size) -> list[Size]:
    """Return the lengths of the digits that offsets divide variable ``name`` into, outermost first.

    Return [] if offsets do not divide it, divide it in several ways, or leave a remainder.
    """
    atoms = {atom for offset in offsets for atom in divisions(offset)}
    found: list[Size] = []
    rest = variable(name)
    while True:
        lengths = {atom.by for atom in atoms if atom.of == rest}
        if len(lengths) != 1:
            return [] if lengths or not found else [extent, *reversed(found)]
        (length,) = lengths
        whole = exact_quotient(extent, length)
        if whole is None:
            return []
        found.append(length)
        extent, rest = whole, variable(Quotient(rest, length))


def divisions(index: AffineIndex) -> Iterator[Quotient | Remainder]:
    """Return the divisions in an index, including those of divided indices."""
    return (atom for atom in atoms(index) if isinstance(atom, (Quotient, Remainder)))


def without_divisions(index: AffineIndex, ranges: Mapping[Hashable, Size]) -> AffineIndex:
    """Simplify divisions in an index whose results follow from the ``ranges`` of atoms."""
    if not any(isinstance(atom, (Quotient, Remainder)) for atom in index.terms):
        return index
    found = AffineIndex((), index.constant)
    for atom, step in index.terms.items():
        found = found + _term(atom, ranges) * step
    return found


def _term(atom: Hashable, ranges: Mapping[Hashable, Size]) -> AffineIndex:
    if not isinstance(atom, (Quotient, Remainder)):
        return variable(atom)
    of = without_divisions(atom.of, ranges)
    halves = _divided(of, atom.by, ranges)
    if halves is None:
        return variable(type(atom)(of, atom.by))
    return halves[isinstance(atom, Remainder)]


def _divided(
    index: AffineIndex, by: Size, ranges: Mapping[Hashable, Size]
) -> tuple[AffineIndex, AffineIndex] | None:
    """Return quotient and remainder with multiples of ``by`` taken out; None if there are none."""
    constant = exact_quotient(index.constant, by)
    if constant is None:
        return None
    whole, rest = [], []
    for atom, step in index.terms.items():
        quotient = exact_quotient(step, by)
        if quotient is not None:
            whole.append((atom, quotient))
        elif _is_positive(step):
            rest.append((atom, step))
        else:
            return None
    left = AffineIndex(rest)
    if _is_less(left, by, ranges):
        return AffineIndex(whole, constant), left
    if not whole:
        return None
    return AffineIndex(whole, constant) + variable(Quotient(left, by)), variable(
        Remainder(left, by)
    )


def _is_less(index: AffineIndex, by: Size, ranges: Mapping[Hashable, Size]) -> bool:
    """Return True if a sum with positive coefficients is known to be less than ``by``."""
    room = by - 1
    for atom, step in index.terms.items():
        if atom not in ranges:
            return False
        room = room - (ranges[atom] - 1) * step
    return isinstance(room, int) and room >= 0


def _is_positive(step: Size) -> bool:
    if isinstance(step, int):
        return step > 0
    return all(coefficient > 0 for _, coefficient in step.terms)
