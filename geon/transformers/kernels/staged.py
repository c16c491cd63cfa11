"""Loads that are read ahead of the innermost loop, in an order of their own.

Short axes that memory does not walk as one are one loop nevertheless, where its loads alone need
its digits: quotients and remainders of its variable by known lengths. Such loads are read into an
array first, by a loop for each digit, and the loop over elements reads neighbours from there. So
are loads that walk backwards beside elements of other widths, of which compilers make no vectors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ...op_graph.affine import Affine, Quotient, Remainder, flattened, variable
from ...op_graph.dtypes import kind
from .digits import digits_of
from .reach import names_in
from .scalar import NODES, Load, Scalar, walk
from .types import Pass

PERIOD = 128  # turns after which the inner digits of a loop that is taken apart come again, at most
MOST = 6  # loads of a pass that are read ahead


@dataclass(frozen=True, slots=True)
class Staged:
    """A load by ``digits``, the variables and lengths of the inner ones, outermost first; that of
    the outermost one is ``first``. ``offset`` is by these variables.
    """

    load: Load
    offset: Affine
    first: str
    digits: tuple[tuple[str, int], ...] = ()

    @property
    def period(self) -> int:
        """The turns of the loop that one turn of the outermost digit stands for."""
        return math.prod(length for _, length in self.digits)


def staged(step: Pass) -> list[Staged]:
    """The loads of a pass that are read ahead of its innermost loop."""
    if not step.loops:
        return []
    inner, values = step.loops[-1], step.computed
    loads = [value for value in walk(*values) if isinstance(value, Load)]
    lengths = digits_of([load.offset for load in loads], inner.name, inner.extent)
    known = [length for length in lengths[1:] if isinstance(length, int)]
    if len(known) + 1 != len(lengths) or not 0 < math.prod(known) <= PERIOD:
        known = []
    digits = [(f"{inner.name}_digit{k}", length) for k, length in enumerate(known, 1)]
    parts = _parts(inner.name, f"{inner.name}_digit0", digits)
    mixed = len(set(_widths(step, values))) > 1
    found = [_staged(load, inner.name, parts, tuple(digits), mixed) for load in loads]
    made = [each for each in found if each is not None]
    return made if len(made) <= MOST else []


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
    load: Load,
    name: str,
    parts: dict[Hashable, Affine],
    digits: tuple[tuple[str, int], ...],
    mixed: bool,
) -> Staged | None:
    """How a load is read ahead; None where it is read in its place."""
    terms = load.offset.terms
    if any(isinstance(atom, NODES) for atom in terms):
        return None
    step = terms.get(name, 0)
    divided = any(atom in parts for atom in terms if atom != name)
    if not divided and not (mixed and isinstance(step, int) and step < 0):
        return None
    found = Affine((), load.offset.constant)
    for atom, each in terms.items():
        if atom not in parts and name in set(names_in(atom)):
            return None
        found = found + (parts[atom] if divided and atom in parts else variable(atom)) * each
    return Staged(load, found, f"{name}_digit0" if divided else name, digits if divided else ())
