"""Affine index expressions: sums of variables, quotients and remainders times lengths.

A loop variable is a string. An index that was divided by a length appears as ``Quotient`` and
``Remainder`` atoms. Other code may use its own atoms; they need only be hashable.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache

from ...lazy_dataclasses import dataclass
from .lengths import Length

Size = int | Length


class AffineIndex:
    """An affine expression: ``constant`` plus the sum of ``terms``, each an atom times a length.

    Equal sums compare equal. A quotient and a remainder of the same division are merged, so that
    ``(i // n) * n + i % n`` is ``i``.
    """

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: Iterable[tuple[Hashable, Size]] = (), constant: Size = 0) -> None:
        self.terms: dict[Hashable, Size] = {atom: step for atom, step in terms if step != 0}
        self.constant = constant
        self._hash: int | None = None  # computed on demand: most are never hashed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineIndex):
            return NotImplemented
        return self is other or (self.constant == other.constant and self.terms == other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.constant))
        return self._hash

    def __repr__(self) -> str:
        return self.text()

    def text(self, shown: Callable[[Hashable], str] = str) -> str:
        """Return the expression as Python; ``shown`` returns the text of an atom that is no
        quotient or remainder.
        """
        parts = [
            _factor(atom, shown)
            if step == 1
            else f"{_factor(step, shown)} * {_factor(atom, shown)}"
            for atom, step in self.terms.items()
        ]
        return " + ".join([*parts, str(self.constant)] if self.constant or not parts else parts)

    def __add__(self, other: AffineIndex | Size) -> AffineIndex:
        if not isinstance(other, AffineIndex):
            return _of_terms(self.terms, self.constant + other)
        terms = dict(self.terms)
        for atom, step in other.terms.items():
            terms[atom] = terms[atom] + step if atom in terms else step
        return _merge_quotients(terms, self.constant + other.constant)

    def __sub__(self, other: AffineIndex | Size) -> AffineIndex:
        return self + other * -1

    def __mul__(self, factor: Size) -> AffineIndex:
        if factor == 0:
            return AffineIndex()
        if factor == 1:
            return self
        terms = {atom: step * factor for atom, step in self.terms.items()}
        return _of_terms(terms, self.constant * factor)

    def step(self, atom: Hashable) -> Size:
        """Return the coefficient of ``atom``; 0 if it does not occur."""
        return self.terms.get(atom, 0)


def _of_terms(terms: dict[Hashable, Size], constant: Size) -> AffineIndex:
    """Return an index of terms of which none is 0; indices may share them."""
    made = object.__new__(AffineIndex)
    made.terms, made.constant, made._hash = terms, constant, None
    return made


@dataclass(frozen=True, slots=True)
class Quotient:
    """The floor of an index divided by a length; indices are not negative."""

    of: AffineIndex
    by: Size

    def __str__(self) -> str:
        return _factor(self, str)


@dataclass(frozen=True, slots=True)
class Remainder:
    """The remainder of an index divided by a length."""

    of: AffineIndex
    by: Size

    def __str__(self) -> str:
        return _factor(self, str)


def _factor(value: Hashable, shown: Callable[[Hashable], str]) -> str:
    """Return the text of an index, length or atom, in parentheses if it has operators."""
    if isinstance(value, AffineIndex):
        atoms = [*value.terms] if value.constant == 0 else []
        single = len(atoms) == 1 and value.terms[atoms[0]] == 1
        return _factor(atoms[0], shown) if single else _in_parentheses(value.text(shown))
    if isinstance(value, (Quotient, Remainder)):
        symbol = "//" if isinstance(value, Quotient) else "%"
        return f"({_factor(value.of, shown)} {symbol} {_factor(value.by, shown)})"
    return _in_parentheses(str(value)) if isinstance(value, Size) else shown(value)


def _in_parentheses(text: str) -> str:
    return f"({text})" if any(symbol in text for symbol in " */") else text


@lru_cache(maxsize=4096)
def variable(atom: Hashable) -> AffineIndex:
    """Return the affine expression of one atom."""
    return AffineIndex([(atom, 1)])


def weighted_sum(parts: Iterable[tuple[AffineIndex, Size]], constant: Size = 0) -> AffineIndex:
    """Return ``constant`` plus the sum of indices, each times a length."""
    terms: dict[Hashable, Size] = {}
    for index, factor in parts:
        single = type(factor) is int and factor == 1
        if type(index.constant) is not int or index.constant != 0:
            constant = constant + (index.constant if single else index.constant * factor)
        divides = False
        for atom, step in index.terms.items():
            more = step if single else step * factor
            terms[atom] = terms[atom] + more if atom in terms else more
            divides |= not isinstance(atom, str)
        if divides:
            merged = _merge_quotients(terms, constant)
            terms, constant = merged.terms, merged.constant
    return AffineIndex(terms.items(), constant)


def divide(index: AffineIndex, by: Size) -> tuple[AffineIndex, AffineIndex]:
    """Return the quotient, rounded down, and the remainder of an index divided by a length.

    An index whose coefficients are multiples of the length needs no division atoms.
    """
    at = index.constant
    if isinstance(by, int) and isinstance(at, int):
        steps = [(a, s // by) for a, s in index.terms.items() if isinstance(s, int) and s % by == 0]
        if len(steps) == len(index.terms):
            return AffineIndex(steps, at // by), AffineIndex((), at % by)
    return variable(Quotient(index, by)), variable(Remainder(index, by))


def unravel(index: AffineIndex, lengths: Sequence[Size]) -> list[AffineIndex]:
    """Return the row-major indices over ``lengths`` of a flat index into their product."""
    indices: list[AffineIndex] = []
    for length in reversed(lengths[1:]):
        if length == 1:
            indices.append(AffineIndex())
            continue
        indices.append(variable(Remainder(index, length)))
        index = variable(Quotient(index, length))
    return [index, *reversed(indices)]


def ravel(indices: Iterable[AffineIndex], lengths: Iterable[Size]) -> AffineIndex:
    """Return the flat index into the product of ``lengths`` of row-major indices over them."""
    total = AffineIndex()
    for index, length in zip(indices, lengths, strict=True):
        total = total * length + index
    return total


@lru_cache(maxsize=4096)
def strides(lengths: tuple[Size, ...]) -> tuple[Size, ...]:
    """Return the element strides of contiguous memory; lengths are given outermost first."""
    result: list[Size] = []
    step: Size = 1
    for length in reversed(lengths):
        result.append(step)
        step = step * length
    return tuple(reversed(result))


def _merge_quotients(terms: dict[Hashable, Size], constant: Size) -> AffineIndex:
    """Return the sum, with a quotient and a remainder of the same division merged if possible."""
    for atom, step in terms.items():
        if isinstance(atom, Quotient):
            rest = Remainder(atom.of, atom.by)
            each = terms.get(rest, 0)
            if each != 0 and step == each * atom.by:
                kept = {a: s for a, s in terms.items() if a not in (atom, rest)}
                return AffineIndex(kept.items(), constant) + atom.of * each
    return AffineIndex(terms.items(), constant)
