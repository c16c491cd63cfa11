"""What is read ahead of the innermost loop, in an order of its own: loads, indices, and choices.

Short axes that memory does not walk as one are one loop nevertheless, where its loads, numbers that
are indices, and guards of choices alone need its digits: quotients and remainders of its variable
by known lengths. These are put into an array first, by a loop for each digit, and the loop over
elements reads neighbours from there. So are loads that walk backwards beside elements of other
widths, of which compilers make no vectors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Affine, Quotient, Remainder, Size, flattened, variable
from ....op_graph.axes.index_map import Guard
from ....op_graph.values.dtypes import BOOL, DType, kind
from ..analysis.footprint import names_in
from ..analysis.loop_depth import digit
from ..ir.nest import Loop, Pass
from ..ir.scalar_code import (
    NODES,
    Clamped,
    IndexNumber,
    Load,
    Scalar,
    Select,
    indices,
    inside,
    walk,
)
from .mixed_radix import digits_of, divisions

PERIOD = 128  # turns after which the inner digits of a loop that is taken apart come again, at most
MOST = 6  # values and choices of a pass that are read ahead

Guards = tuple[Guard, ...]
Ahead = Load | IndexNumber | Guards


@dataclass(frozen=True, slots=True)
class Staged:
    """What is read ahead by ``digits``, the variables and lengths of the inner ones, outermost
    first; that of the outermost one is ``first``.

    By these variables, ``index`` is the offset of a load or the number itself, and ``guards`` are
    those of a choice. Where ``every`` is not 0, a choice holds at no turn but where it divides the
    variable and ``index`` together.
    """

    value: Ahead
    index: Affine
    first: str
    digits: tuple[tuple[str, int], ...] = ()
    guards: Guards = ()
    every: int = 0

    @property
    def dtype(self) -> DType:
        """That of the values."""
        return BOOL if isinstance(self.value, tuple) else self.value.dtype

    @property
    def period(self) -> int:
        """The turns of the loop that one turn of the outermost digit stands for."""
        return math.prod(length for _, length in self.digits)


def staged(step: Pass) -> list[Staged]:
    """What is read ahead of the innermost loop of a pass."""
    if not step.loops or step.loops[-1].extent == 1:
        return []
    inner, values = step.loops[-1], step.computed
    nodes = list(walk(*values))
    used: list[Ahead] = [node for node in nodes if isinstance(node, Load | IndexNumber)]
    choices = dict.fromkeys(node.guards for node in nodes if isinstance(node, Select))
    lengths = _lengths(used, list(choices), inner)
    known = [length for length in lengths[1:] if isinstance(length, int)]
    if len(known) + 1 != len(lengths) or not 0 < math.prod(known) <= PERIOD:
        known = []
    digits = [(digit(inner.name, k), length) for k, length in enumerate(known, 1)]
    parts = _parts(inner.name, digit(inner.name, 0), digits)
    mixed = len(set(_widths(step, values))) > 1
    found = [_staged(each, inner.name, parts, tuple(digits), mixed) for each in (*used, *choices)]
    made = [each for each in found if each is not None]
    return made if len(made) <= MOST else []


def chooses_in_place(step: Pass) -> bool:
    """Whether a pass divides for choices of each element, since they are not read ahead."""
    ahead = {each.value for each in staged(step)}
    names = {loop.name for loop in step.loops}
    return any(
        isinstance(node, Select)
        and node.guards not in ahead
        and any(
            not names.isdisjoint(names_in(atom))
            for index in indices(node)
            for atom in divisions(index)
        )
        for node in walk(*step.computed)
    )


def _lengths(used: Iterable[Ahead], choices: Iterable[Guards], inner: Loop) -> list[Size]:
    """The lengths of a loop's digits: those that values take apart, else the one of choices.

    What choices divide besides needs no digit of its own: it is computed of the others.
    """
    found = digits_of([index for each in used for index in indices_of(each)], *_named(inner))
    if found:
        return found
    own = variable(inner.name)
    atoms = (atom for each in choices for index in indices_of(each) for atom in divisions(index))
    return digits_of([variable(atom) for atom in atoms if atom.of == own], *_named(inner))


def _named(loop: Loop) -> tuple[str, Size]:
    return loop.name, loop.extent


def indices_of(value: Ahead) -> tuple[Affine, ...]:
    """Where a load reads, what number an index is, or what guards look at."""
    if isinstance(value, tuple):
        return tuple([guard.index for guard in value])
    return indices(value)


def _widths(step: Pass, values: Iterable[Scalar]) -> Iterable[int]:
    """The bytes of the values that a pass loads, computes and stores; truths are masks."""
    yield from (store.dtype.itemsize for store in step.stores)
    for value in walk(*values):
        if isinstance(value, Load) or kind(value.dtype) != "b":
            yield value.dtype.itemsize


def _parts(name: str, first: str, digits: list[tuple[str, int]]) -> dict[Hashable, Affine]:
    """What divisions of a loop's variable are by the variables of its digits."""
    variables = [variable(first), *(variable(digit) for digit, _ in digits)]
    lengths = [0, *(length for _, length in digits)]
    found: dict[Hashable, Affine] = {name: flattened(variables, lengths)}
    rest = variable(name)
    for k in range(len(digits), 0, -1):
        found[Remainder(rest, lengths[k])] = variables[k]
        found[Quotient(rest, lengths[k])] = flattened(variables[:k], lengths[:k])
        rest = variable(Quotient(rest, lengths[k]))
    return found


def _staged(
    value: Ahead,
    name: str,
    parts: dict[Hashable, Affine],
    digits: tuple[tuple[str, int], ...],
    mixed: bool,
) -> Staged | None:
    """How a value is read ahead; None where it is read in its place."""
    found, first = indices_of(value), digit(name, 0)
    if any(isinstance(atom, NODES) for index in found for atom in index.terms):
        return None
    divided = any(_divides(index, parts, name) for index in found)
    if isinstance(value, tuple):
        if not divided:
            return _at_each(value, name)
        guards = _guards_by_digits(value, parts, name)
        return None if guards is None else Staged(value, Affine(), first, digits, guards)
    (index,) = found
    if divided:
        taken = _by_digits(index, parts, name)
        return None if taken is None else Staged(value, taken, first, digits)
    step = index.terms.get(name, 0)
    if isinstance(value, Load) and mixed and isinstance(step, int) and step < 0:
        return Staged(value, index, name)
    return None


def _at_each(guards: Guards, name: str) -> Staged | None:
    """Guards of which one holds at each so many turns of a loop alone; None of others."""
    for guard in guards:
        ((atom, step),) = guard.index.terms.items() if len(guard.index.terms) == 1 else ((None, 0),)
        if not isinstance(atom, Remainder) or step != 1 or guard.high - guard.low != 1:
            continue
        shift = atom.of - variable(name) + (guard.index.constant - guard.low)
        if isinstance(atom.by, int) and not any(name in names_in(each) for each in shift.terms):
            others = tuple([each for each in guards if each is not guard])
            return Staged(guards, shift, name, guards=others, every=atom.by)
    return None


def _divides(index: Affine, parts: Mapping[Hashable, Affine], name: str) -> bool:
    """Whether an index has a division that digits are the parts of."""
    return any(
        (atom in parts and atom != name)
        or any(_divides(each, parts, name) for each in inside(atom))
        for atom in index.terms
    )


def _guards_by_digits(guards: Guards, parts: Mapping[Hashable, Affine], name: str) -> Guards | None:
    """Guards by the variables of digits."""
    found = [(guard, _by_digits(guard.index, parts, name)) for guard in guards]
    whole = [replace(guard, index=index) for guard, index in found if index is not None]
    return tuple(whole) if len(whole) == len(found) else None


def _by_digits(index: Affine, parts: Mapping[Hashable, Affine], name: str) -> Affine | None:
    """An index by the variables of digits; None where it has more of the loop's than these."""
    found = Affine((), index.constant)
    for atom, step in index.terms.items():
        taken = parts.get(atom)
        if taken is None and name in set(names_in(atom)):
            if not isinstance(atom, (Quotient, Remainder, Clamped)):
                return None
            of = _by_digits(atom.of, parts, name)
            if of is None:
                return None
            taken = variable(replace(atom, of=of))
            if isinstance(atom, Clamped):
                guards = _guards_by_digits(atom.guards, parts, name)
                if guards is None:
                    return None
                taken = variable(Clamped(of, guards))
        found = found + (variable(atom) if taken is None else taken) * step
    return found
