"""Buffered loads: loads, index values and guards evaluated into a scratch array before a loop.

Short axes that memory does not traverse as one axis are nevertheless collapsed into one loop, if
only its loads, index values and the guards of selects need its digits: quotients and remainders of
its variable by known lengths. Loops over the digits fill an array first; the main loop then reads
adjacent elements of it. The same is done for loads of negative stride next to elements of other
widths, which compilers do not vectorise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, ravel, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import BOOL, DType, kind
from ...sizes.limits import L1_WAYS
from ..analysis.loop_depth import MAX_PERIOD_TURNS, digit
from ..ir.loop_variables import variables_in
from ..ir.nest import Loop, Pass
from ..ir.scalar_code import (
    NODES,
    Clamped,
    IndexNumber,
    Load,
    Scalar,
    Select,
    indices,
    inner_indices,
    walk,
)
from .mixed_radix import digits_of, divisions

MAX_BUFFERED_VALUES = L1_WAYS  # maximum number of buffers of a pass

Guards = tuple[InRange, ...]
Ahead = Load | IndexNumber | Guards


@dataclass(frozen=True, slots=True)
class Staged:
    """A load, index value or guard tuple that is evaluated before the loop.

    ``value`` is the node or the guards. ``index`` is the load offset or the index value, in terms
    of the digit variables. ``first`` is the variable of the outermost digit. ``digits`` are the
    variables and lengths of the other digits, outermost first. ``guards`` are those of a select, in
    terms of the digit variables. ``every``, if not 0, is the period of a select: its guards can
    hold only in iterations where ``every`` divides the loop variable plus ``index``.
    """

    value: Ahead
    index: AffineIndex
    first: str
    digits: tuple[tuple[str, Size], ...] = ()
    guards: Guards = ()
    every: int = 0

    @property
    def dtype(self) -> DType:
        """Return the dtype of the buffer: that of the value, or bool for guards."""
        return BOOL if isinstance(self.value, tuple) else self.value.dtype

    @property
    def period(self) -> Size:
        """Return the number of loop iterations per iteration of the outermost digit."""
        return product(length for _, length in self.digits)


def choose_buffered(step: Pass, most: int = 0) -> list[Staged]:
    """Return the values that are buffered before the innermost loop of a pass.

    ``most`` is the maximum of an open product of such lengths, or 0 if there is none.
    """
    if not step.loops or step.loops[-1].extent == 1:
        return []
    inner, values = step.loops[-1], step.computed
    nodes = list(walk(*values))
    used: list[Ahead] = [node for node in nodes if isinstance(node, Load | IndexNumber)]
    choices = dict.fromkeys(node.guards for node in nodes if isinstance(node, Select))
    lengths = _lengths(used, list(choices), inner)
    period = product(lengths[1:])
    whole = 0 < (period if isinstance(period, int) else most) <= MAX_PERIOD_TURNS
    digits = [
        (digit(inner.name, k), each) for k, each in enumerate(lengths[1:] if whole else (), 1)
    ]
    parts = _parts(inner.name, digit(inner.name, 0), digits)
    mixed = len(set(_widths(step, values))) > 1
    found = [_staged(each, inner.name, parts, tuple(digits), mixed) for each in (*used, *choices)]
    made = [each for each in found if each is not None]
    return made if len(made) <= MAX_BUFFERED_VALUES else []


def chooses_in_place(step: Pass) -> bool:
    """Return True if a pass evaluates guards with divisions per element, unbuffered."""
    ahead = {each.value for each in choose_buffered(step)}
    names = {loop.name for loop in step.loops}
    return any(
        isinstance(node, Select)
        and node.guards not in ahead
        and any(
            not names.isdisjoint(variables_in(atom))
            for index in indices(node)
            for atom in divisions(index)
        )
        for node in walk(*step.computed)
    )


def _lengths(used: Iterable[Ahead], choices: Iterable[Guards], inner: Loop) -> list[Size]:
    """Return the lengths of a loop's digits: those of loads and index values, else those of guards.

    Other divisions in guards need no digit of their own: they are computed from these digits.
    """
    found = digits_of([index for each in used for index in indices_of(each)], *_named(inner))
    if found:
        return found
    own = variable(inner.name)
    atoms = (atom for each in choices for index in indices_of(each) for atom in divisions(index))
    return digits_of([variable(atom) for atom in atoms if atom.of == own], *_named(inner))


def _named(loop: Loop) -> tuple[str, Size]:
    return loop.name, loop.extent


def indices_of(value: Ahead) -> tuple[AffineIndex, ...]:
    """Return the offset of a load, the index of an index value, or the indices of guards."""
    if isinstance(value, tuple):
        return tuple([guard.index for guard in value])
    return indices(value)


def _widths(step: Pass, values: Iterable[Scalar]) -> Iterable[int]:
    """Yield the bytes of the values that a pass loads, computes and stores; bools are masks."""
    yield from (store.dtype.itemsize for store in step.stores)
    for value in walk(*values):
        if isinstance(value, Load) or kind(value.dtype) != "b":
            yield value.dtype.itemsize


def _parts(name: str, first: str, digits: list[tuple[str, Size]]) -> dict[Hashable, AffineIndex]:
    """Return the loop variable and its quotients and remainders in terms of the digit variables."""
    variables = [variable(first), *(variable(digit) for digit, _ in digits)]
    lengths: list[Size] = [0, *(length for _, length in digits)]
    found: dict[Hashable, AffineIndex] = {name: ravel(variables, lengths)}
    rest = variable(name)
    for k in range(len(digits), 0, -1):
        found[Remainder(rest, lengths[k])] = variables[k]
        found[Quotient(rest, lengths[k])] = ravel(variables[:k], lengths[:k])
        rest = variable(Quotient(rest, lengths[k]))
    return found


def _staged(
    value: Ahead,
    name: str,
    parts: dict[Hashable, AffineIndex],
    digits: tuple[tuple[str, Size], ...],
    mixed: bool,
) -> Staged | None:
    """Return the buffered form of a value, or None if it is evaluated in the loop."""
    found, first = indices_of(value), digit(name, 0)
    if any(isinstance(atom, NODES) for index in found for atom in index.terms):
        return None
    divided = any(_divides(index, parts, name) for index in found)
    if isinstance(value, tuple):
        if not divided:
            return _at_each(value, name)
        guards = _guards_by_digits(value, parts, name)
        return None if guards is None else Staged(value, AffineIndex(), first, digits, guards)
    (index,) = found
    if divided:
        taken = _by_digits(index, parts, name)
        return None if taken is None else Staged(value, taken, first, digits)
    step = index.terms.get(name, 0)
    if isinstance(value, Load) and mixed and isinstance(step, int) and step < 0:
        return Staged(value, index, name)
    return None


def _at_each(guards: Guards, name: str) -> Staged | None:
    """Return the buffered form of guards of which one fixes a remainder; None for others."""
    for guard in guards:
        ((atom, step),) = guard.index.terms.items() if len(guard.index.terms) == 1 else ((None, 0),)
        if not isinstance(atom, Remainder) or step != 1 or guard.high - guard.low != 1:
            continue
        shift = atom.of - variable(name) + (guard.index.constant - guard.low)
        if isinstance(atom.by, int) and not any(name in variables_in(each) for each in shift.terms):
            others = tuple([each for each in guards if each is not guard])
            return Staged(guards, shift, name, guards=others, every=atom.by)
    return None


def _divides(index: AffineIndex, parts: Mapping[Hashable, AffineIndex], name: str) -> bool:
    """Return True if an index contains a division that the digits resolve."""
    return any(
        (atom in parts and atom != name)
        or any(_divides(each, parts, name) for each in inner_indices(atom))
        for atom in index.terms
    )


def _guards_by_digits(
    guards: Guards, parts: Mapping[Hashable, AffineIndex], name: str
) -> Guards | None:
    """Return the guards in terms of digit variables, or None if one cannot be expressed so."""
    found = [(guard, _by_digits(guard.index, parts, name)) for guard in guards]
    whole = [replace(guard, index=index) for guard, index in found if index is not None]
    return tuple(whole) if len(whole) == len(found) else None


def _by_digits(
    index: AffineIndex, parts: Mapping[Hashable, AffineIndex], name: str
) -> AffineIndex | None:
    """Return an index in terms of digit variables; None if the loop variable remains in it."""
    found = AffineIndex((), index.constant)
    for atom, step in index.terms.items():
        taken = parts.get(atom)
        if taken is None and name in variables_in(atom):
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
