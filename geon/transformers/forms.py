"""Index forms: sums of loop variables times lengths, the offsets of strided views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from ..op_graph.lengths import FloorDiv, Length

Size = int | Length


class Form:
    """``constant`` + the sum of ``terms``: a variable (a C identifier) times a length."""

    __slots__ = ("constant", "key", "terms")

    def __init__(self, terms: Iterable[tuple[str, Size]] = (), constant: Size = 0) -> None:
        self.terms = dict(terms)
        self.constant = constant
        self.key = (tuple(sorted(self.terms.items(), key=lambda item: item[0])), constant)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Form | Size) -> Form:
        if not isinstance(other, Form):
            return Form(self.terms.items(), self.constant + other)
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            total = terms.get(name, 0) + factor
            if total == 0:
                terms.pop(name, None)
            else:
                terms[name] = total
        return Form(terms.items(), self.constant + other.constant)

    def times(self, factor: Size) -> Form:
        """The form multiplied by a length."""
        if factor == 0:
            return Form()
        terms = ((name, each * factor) for name, each in self.terms.items())
        return Form(terms, self.constant * factor)

    def text(self, length: Callable[[Size], str]) -> str:
        """The form as C; ``length`` writes a length."""
        parts = []
        for name, factor in self.terms.items():
            parts.append(name if factor == 1 else f"{name} * {_factor(length(factor))}")
        if self.constant != 0 or not parts:
            parts.append(length(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


def variable(name: str) -> Form:
    """The form that is one variable."""
    return Form([(name, 1)])


def _factor(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def c_length(length: Size, names: Mapping[str, str]) -> str:
    """A length as C over ``int64_t``; ``names`` are the identifiers of open lengths."""
    if isinstance(length, int):
        return str(length)
    parts = []
    for monomial, coefficient in length.terms:
        factors = [] if abs(coefficient) == 1 and monomial else [str(abs(coefficient))]
        for atom, power in monomial:
            factors += [names[atom] if isinstance(atom, str) else _division(atom, names)] * power
        parts.append(("- " if coefficient < 0 else "+ ") + " * ".join(factors))
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else "-" + text[2:]


def _division(atom: FloorDiv, names: Mapping[str, str]) -> str:
    return f"geon_floor_div({c_length(atom.numerator, names)}, {c_length(atom.denominator, names)})"


@lru_cache(maxsize=4096)
def strides(lengths: tuple[Size, ...]) -> tuple[Size, ...]:
    """The element strides of contiguous memory whose lengths are given outermost first."""
    made: list[Size] = []
    step: Size = 1
    for length in reversed(lengths):
        made.append(step)
        step = step * length
    return tuple(reversed(made))
