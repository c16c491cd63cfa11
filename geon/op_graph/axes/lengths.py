"""Lengths of axes: integers, or integer expressions over open names in one normal form.

An expression is a polynomial with integer coefficients. Its atoms are open names and floor
divisions of two expressions. Equal polynomials are one object, so two lengths that are written
differently but expand alike compare equal. Divisions may be nested to any depth: functions that
traverse them are iterative, innermost first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from ...errors import SymbolicError
from ..core.source_info import describe, user_site
from .length_operators import LengthOperators, is_exact

if TYPE_CHECKING:
    import sympy


class FloorDiv(NamedTuple):
    """The atom ``numerator // denominator`` of a length expression."""

    numerator: int | Length
    denominator: int | Length


Atom = str | FloorDiv
Monomial = tuple[tuple[Atom, int], ...]


Terms = tuple[tuple[Monomial, int], ...]
T = TypeVar("T")

MAX_KEY_CHARACTERS = (
    400  # characters of a sort key; beyond, a digest bounds keys of nested divisions
)
KEY_DIVISION = "({0})//({1})"


def _atom_key(atom: Atom) -> str:
    return (
        atom if isinstance(atom, str) else f"~{_key_of(atom.numerator)}~{_key_of(atom.denominator)}"
    )


def _key_of(length: int | Length) -> str:
    """Return the sort key of a length: its text, or the beginning and a digest of a long one."""
    if not isinstance(length, Length):
        return str(length)
    stack = [] if length.key else [length]
    while stack:
        waiting = [inner for inner in stack[-1].inside if not inner.key]
        if waiting:
            stack += waiting
            continue
        top = stack.pop()
        parts: dict[int | Length, str] = {inner: inner.key for inner in top.inside}
        text = top._written(parts, KEY_DIVISION, "{0}")
        if len(text) > MAX_KEY_CHARACTERS:
            import hashlib  # imported late: it loads OpenSSL, which would slow down `import geon`

            text = text[:MAX_KEY_CHARACTERS] + hashlib.sha256(text.encode()).hexdigest()
        object.__setattr__(top, "key", text)
    return length.key


class Length(LengthOperators):
    """An integer expression over open axis names: ``+ - * //`` with integers and lengths.

    With other numbers and with tensors, with ``/`` and ``**``, and in NumPy's functions, the result
    is a weak integer tensor. ``inside`` are the lengths directly inside its floor divisions, as
    numerators or denominators.
    """

    __slots__ = ("__weakref__", "_hash", "_names", "inside", "key", "terms")

    _hash: int
    _names: frozenset[str]
    inside: tuple[Length, ...]
    key: str
    terms: Terms

    def __new__(cls, terms: Terms) -> Length:
        known = _KNOWN.get(terms)
        if known is not None:
            return known
        self = object.__new__(cls)
        atoms = [atom for monomial, _ in terms for atom, _ in monomial]
        halves = [half for atom in atoms if not isinstance(atom, str) for half in atom]
        inside = tuple(dict.fromkeys([half for half in halves if isinstance(half, Length)]))
        names = frozenset([atom for atom in atoms if isinstance(atom, str)])
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "_hash", hash(terms))
        object.__setattr__(self, "inside", inside)
        object.__setattr__(self, "_names", names.union(*[inner._names for inner in inside]))
        object.__setattr__(self, "key", "")
        return _KNOWN.setdefault(terms, self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a length expression is immutable; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a length expression is immutable; build a new one")

    @staticmethod
    def of(name: str) -> Length:
        """Return the open length called ``name``."""
        return Length(((((name, 1),), 1),))

    def __reduce__(self) -> tuple[type[Length], tuple[tuple[tuple[Monomial, int], ...]]]:
        return Length, (self.terms,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Length):
            return NotImplemented
        # Equal lengths can be two objects only if two threads built them at the same time.
        return self is other or (self._hash == other._hash and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Any) -> Any:
        if not is_exact(other):
            return self._tensor() + other
        if isinstance(other, Length):
            return _from_terms([*self.terms, *other.terms])
        *terms, (last, constant) = self.terms  # the constant term, if any, is the last one
        if last:
            terms, constant = [*terms, (last, constant)], 0
        constant += int(other)
        return Length((*terms, ((), constant)) if constant else tuple(terms))

    __radd__ = __add__

    def __neg__(self) -> Length:
        return Length(tuple([(monomial, -step) for monomial, step in self.terms]))

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not is_exact(other):
            return self._tensor() * other
        if isinstance(other, Length):
            pairs = [(left, right) for left in self.terms for right in other.terms]
            return _from_terms([(_times(m, n), c * d) for (m, c), (n, d) in pairs])
        factor = int(other)
        return factor and Length(tuple([(m, step * factor) for m, step in self.terms]))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return floor_divide(self, other) if is_exact(other) else self._tensor() // other

    def __rfloordiv__(self, other: Any) -> Any:
        return floor_divide(other, self) if is_exact(other) else other // self._tensor()

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other if is_exact(other) else self._tensor() % other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self if is_exact(other) else other % self._tensor()

    def __pos__(self) -> Length:
        return self

    def __index__(self) -> NoReturn:
        raise SymbolicError(
            f"the open length {self} is no integer at {describe(user_site())}: data give it when "
            "they come; use it in lengths of axes, as a tensor with geon.tensor_size, or count "
            "along an axis with geon.iota(axis)"
        )

    def _refuse_order(self, other: object) -> NoReturn:
        raise SymbolicError(
            f"the open length {self} cannot be compared with {other!r} at "
            f"{describe(user_site())}: data give it when they come; geon.tensor_size(x) is a "
            "tensor with it, of which geon.maximum and geon.where choose"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order

    def names(self) -> frozenset[str]:
        """Return the open names that the expression reads."""
        return self._names

    def evaluate(self, lengths: Mapping[str, int]) -> int:
        """Return its value for these lengths of the open names; ``KeyError`` for a missing one."""
        return self._outwards(lambda each, inner: each._value(inner, lengths))

    def _outwards(self, of: Callable[[Length, Mapping[int | Length, T]], T]) -> T:
        """Apply ``of`` to the lengths inside, innermost first, and then to this length.

        ``of`` takes a length and a mapping with its results for the lengths inside.
        """
        result: dict[int | Length, T] = {}
        if not self.inside:
            return of(self, result)
        stack = [self]
        while stack:
            top = stack[-1]
            waiting = [inner for inner in top.inside if inner not in result]
            if waiting:
                stack += waiting
            else:
                result[stack.pop()] = of(top, result)
        return result[self]

    def _value(self, inner: Mapping[int | Length, int], lengths: Mapping[str, int]) -> int:
        total = 0
        for monomial, coefficient in self.terms:
            product = coefficient
            for atom, power in monomial:
                if isinstance(atom, str):
                    base = lengths[atom]
                else:
                    top, bottom = (inner[h] if isinstance(h, Length) else h for h in atom)
                    base = top // bottom
                product *= base**power
            total += product
        return total

    def text(self, division: str | None = None, name: str = "{0}") -> str:
        """Return the expression as source text.

        ``division`` and ``name`` are the format strings of a division and an open name in the
        target language. Without ``division`` the text is Python, with the parentheses that it
        needs.
        """
        return self._outwards(lambda each, inner: each._written(inner, division, name))

    def _written(self, inner: Mapping[int | Length, str], division: str | None, name: str) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            factors = []
            for atom, power in monomial:
                if isinstance(atom, str):
                    written = name.format(atom)
                else:
                    halves = [inner[h] if isinstance(h, Length) else str(h) for h in atom]
                    quotient = _quotient(atom, halves, division)
                    # A leading minus would bind to the numerator only.
                    is_term = monomial == ((atom, 1),) and coefficient in (
                        (1, -1) if parts else (1,)
                    )
                    written = quotient if is_term and division is None else f"({quotient})"
                factors += [written] * power
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "- " if coefficient < 0 else "+ "
            parts.append(sign + "*".join(factors))
        joined = " ".join(parts)
        return joined[2:] if joined.startswith("+ ") else "-" + joined[2:]

    def c_text(self) -> str:
        """Return the expression as C over ``long long`` names, with the runtime's ``floor_div``."""
        return self.text(division="floor_div({0}, {1})")

    def sympy(self) -> sympy.Expr:
        """Return the expression as a SymPy expression over non-negative integer symbols."""
        return self._outwards(Length._in_sympy)

    def _in_sympy(self, inner: Mapping[int | Length, Any]) -> Any:
        import sympy

        total = sympy.Integer(0)
        for monomial, coefficient in self.terms:
            product = sympy.Integer(coefficient)
            for atom, power in monomial:
                if isinstance(atom, str):
                    base = sympy.Symbol(atom, integer=True, nonnegative=True)
                else:
                    top, bottom = (inner[h] if isinstance(h, Length) else h for h in atom)
                    base = sympy.floor(sympy.sympify(top) / bottom)
                product *= base**power
            total += product
        return total

    def _with(
        self, inner: Mapping[int | Length, int | Length], lengths: Mapping[str, int]
    ) -> int | Length:
        if not self._names & lengths.keys():
            return self
        total: int | Length = 0
        for monomial, coefficient in self.terms:
            product: int | Length = coefficient
            for atom, power in monomial:
                base: int | Length
                if isinstance(atom, str):
                    base = lengths[atom] if atom in lengths else Length.of(atom)
                else:
                    base = floor_divide(*[inner.get(half, half) for half in atom])
                for _ in range(power):
                    product = product * base
            total = total + product
        return total

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


# All live lengths. Equal lengths inside of divisions are one object, so a comparison of terms
# does not recurse into them.
_KNOWN: weakref.WeakValueDictionary[Terms, Length] = weakref.WeakValueDictionary()


def _quotient(atom: FloorDiv, halves: Sequence[str], division: str | None) -> str:
    """Return the text of a division from the texts of its numerator and denominator.

    Python needs no parentheses around a product or a division on the left of ``//``.
    """
    if division is not None:
        return division.format(*halves)
    numerator, denominator = halves
    if any(coefficient < 0 for _, coefficient in _terms(atom.numerator)) or " " in numerator:
        numerator = f"({numerator})"
    is_name = [atom.denominator] == [Length.of(name) for name in names_of(atom.denominator)]
    if not is_name and not denominator.isdigit():
        denominator = f"({denominator})"
    return f"{numerator}//{denominator}"


def _terms(value: int | Length) -> Iterable[tuple[Monomial, int]]:
    return value.terms if isinstance(value, Length) else (((), int(value)),)


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _atom_key(item[0])))


@lru_cache(maxsize=4096)
def _order(monomial: Monomial) -> tuple[bool, str]:
    # Constants last, the rest by text, as in "N*C + N + 1".
    return (not monomial, " ".join([f"{_atom_key(atom)}^{power}" for atom, power in monomial]))


def _from_terms(terms: Iterable[tuple[Monomial, int]]) -> int | Length:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    kept = [(m, c) for m, c in total.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Length(tuple(sorted(kept, key=lambda term: _order(term[0]))))


def floor_divide(numerator: int | Length, denominator: int | Length) -> int | Length:
    """Return ``numerator // denominator`` rounded down, in normal form.

    Terms that an integer denominator divides exactly leave the division, so that ``(4*N + 5)//2``
    is ``2*N + 2``. Raises ``ZeroDivisionError`` for a zero denominator.
    """
    if isinstance(numerator, int) and isinstance(denominator, int):
        return numerator // denominator
    if isinstance(denominator, Length):
        return Length((((((FloorDiv(numerator, denominator)), 1),), 1),))
    if denominator == 0:
        raise ZeroDivisionError("a length is divided by 0")
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    outside, inside = [], []
    for monomial, coefficient in _terms(numerator):
        quotient, rest = divmod(coefficient, denominator)
        outside.append((monomial, quotient if not monomial or not rest else 0))
        if rest:
            inside.append((monomial, rest if not monomial else coefficient))
    rest_length = _from_terms(inside)
    whole = _from_terms(outside)
    if isinstance(rest_length, int):
        return whole + rest_length // denominator
    bound: int | Length = whole + Length((((((FloorDiv(rest_length, denominator)), 1),), 1),))
    return bound


def exact_quotient(numerator: int | Length, denominator: int | Length) -> int | Length | None:
    """Return ``numerator / denominator`` if the denominator divides each term; else None.

    The denominator must be an integer times a product of open names; for a sum the result is None.
    """
    terms = tuple(_terms(denominator))
    if len(terms) != 1 or terms[0][1] == 0:
        return None
    if numerator == 0:
        return 0
    ((divisor, factor),) = terms
    factors = []
    for monomial, coefficient in _terms(numerator):
        powers = dict(monomial)
        for atom, power in divisor:
            powers[atom] = powers.get(atom, 0) - power
        if coefficient % factor or any(power < 0 for power in powers.values()):
            return None
        kept = tuple([(atom, power) for atom, power in powers.items() if power])
        factors.append((kept, coefficient // factor))
    return _from_terms(factors)


def is_multiple(length: int | Length, of: int) -> bool:
    """Return True if a length is a multiple of ``of`` for all values of the open names."""
    return exact_quotient(length, of) is not None


def least_unless_zero(length: int | Length) -> int:
    """Return a lower bound of a length for the case that it is not zero.

    The bound is an integer itself, or the coefficient of a single product of open lengths. It is 0
    for a sum, which may have any value.
    """
    if isinstance(length, int):
        return length
    return length.terms[0][1] if len(length.terms) == 1 else 0


def is_below(length: int | Length, bound: int) -> bool:
    """Return True if a length is an integer below ``bound``; False for an expression."""
    return isinstance(length, int) and length < bound


def is_never_negative(length: int | Length) -> bool:
    """Return True if a length is a sum of products of lengths with coefficients of at least 0.

    Quotients of such lengths, also rounded up, are lengths too.
    """
    if not isinstance(length, Length):
        return length >= 0
    return all(
        step >= 0 and all(isinstance(atom, str) or _is_natural(atom) for atom, _ in monomial)
        for monomial, step in length.terms
    )


def _is_natural(quotient: FloorDiv) -> bool:
    """Return True if a quotient is not negative: it is at least 0, or 0 when it is rounded up."""
    top, bottom = quotient
    above = is_never_negative(top) or is_never_negative(top - (bottom - 1))
    return above and is_never_negative(bottom)


def may_equal(left: int | Length, right: int | Length) -> bool:
    """Return True if two lengths can be equal for some values of the open names."""
    return left == right or not isinstance(left - right, int)


def names_of(length: int | Length) -> frozenset[str]:
    """Return the open names that a length reads: none for an integer."""
    return length.names() if isinstance(length, Length) else frozenset()


def evaluate(length: int | Length, lengths: Mapping[str, int]) -> int:
    """Return the value of a length under ``lengths`` (open name to integer)."""
    return length.evaluate(lengths) if isinstance(length, Length) else length


def substitute_names(length: int | Length, lengths: Mapping[str, int]) -> int | Length:
    """Return the length with these open names replaced by integers; others stay open."""
    if isinstance(length, int):
        return length
    return length._outwards(lambda each, inner: each._with(inner, lengths))


def as_text(length: int | Length, division: str | None = None, name: str = "{0}") -> str:
    """Return the length as source text."""
    return length.text(division, name) if isinstance(length, Length) else str(length)


def to_sympy(length: int | Length) -> sympy.Expr:
    """Return the length as a SymPy expression."""
    import sympy

    return length.sympy() if isinstance(length, Length) else sympy.Integer(length)


def product(lengths: Iterable[int | Length]) -> int | Length:
    """Return the product of lengths; 1 for none."""
    number = 1  # integers are multiplied first: each product of lengths is a new, interned object
    total: int | Length = 1
    for length in lengths:
        if isinstance(length, Length):
            total = length if total == 1 else total * length
        else:
            number *= length
    return number if total == 1 else total * number
