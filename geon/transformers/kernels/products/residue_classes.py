"""Classes of indices by their remainders: what guards on remainders say of a contraction's terms.

Of windows that begin some elements apart each element is in a few, which ones depends on its
remainder. So results fall into classes, each of which sums over classes of positions alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Affine, Remainder, Size, variable
from ....op_graph.axes.index_map import Guard
from ..analysis.index_boxes import guards_of
from ..ir.nest import Loop
from ..ir.scalar_code import Apply, Number, Scalar, Select, walk

MOST = 16  # classes of results that are contractions of their own
KEEP_ZERO = frozenset(("cast", "negative", "add", "subtract", "multiply"))  # 0 of zeros
TERMS = 64  # classes of what is summed that are looked at for one of these


@dataclass(frozen=True, slots=True)
class Class:
    """The indices from ``first`` on that are so many ``apart``; none where it is ``empty``."""

    first: int = 0
    apart: int = 1
    empty: bool = False

    def turns(self, extent: Size) -> Size:
        """How many of ``extent`` indices there are."""
        return 0 if self.empty else (extent - self.first + self.apart - 1) // self.apart

    def index(self, turn: Affine) -> Affine:
        """The index at a turn of a loop over them."""
        return turn * self.apart + self.first


@dataclass(frozen=True, slots=True)
class Test:
    """Whether ``of`` divided by ``by`` leaves a rest from ``low`` on and below ``high``."""

    of: Affine
    by: int
    low: int
    high: int

    def holds(self, rests: Mapping[str, int]) -> bool:
        """Whether it does where variables leave these rests."""
        constant = self.of.constant
        assert isinstance(constant, int)
        steps = self.of.terms.items()
        at = constant + sum(_known(step) * rests[str(atom)] for atom, step in steps)
        return self.low <= at % self.by < self.high


def classes_of(
    operands: Sequence[Scalar], kept: Sequence[Loop], summed: Sequence[Loop]
) -> list[dict[str, Class]]:
    """For each class of results the classes of all axes that it takes, by the axes' names.

    None where no guard is on a remainder, or where these are more than which classes meet.
    """
    loops = {loop.name: loop for loop in (*kept, *summed)}
    tests = _tests(operands, loops)
    periods: dict[str, int] = {}
    for test in tests:
        for name, step in test.of.terms.items():
            period = test.by // math.gcd(test.by, _known(step))
            periods[str(name)] = math.lcm(periods.get(str(name), 1), period)
    outer = {loop.name: periods[loop.name] for loop in kept if loop.name in periods}
    inner = {loop.name: periods[loop.name] for loop in summed if loop.name in periods}
    if not outer or math.prod(outer.values()) > MOST or math.prod(inner.values()) > TERMS:
        return []
    found = []
    for rests in _rests(outer):
        terms = [each for each in _rests(inner) if all(t.holds({**rests, **each}) for t in tests)]
        if len(terms) > 1:
            return []
        taken = {n: Class(first, outer[n]) for n, first in rests.items()}
        if terms:
            taken.update({n: Class(k, inner[n]) for n, k in terms[0].items()})
        else:
            taken[summed[0].name] = Class(empty=True)
        if all(taken[n].turns(loops[n].extent) != 0 for n in outer):
            found.append({loops[n].axes[0]: each for n, each in taken.items()})
    return found


def _tests(operands: Sequence[Scalar], loops: Mapping[str, Loop]) -> list[Test]:
    """The guards on remainders; none where one is on more than steps of loops that are known, or
    where there are terms without it.
    """
    found = []
    for guard in dict.fromkeys(guards_of(*operands)):
        divided = [atom for atom in guard.index.terms if isinstance(atom, Remainder)]
        if not divided:
            continue
        if not any(vanishes(operand, guard) for operand in operands):
            return []
        (atom, *others), by = divided, divided[0].by
        bounds = (guard.low, guard.high, guard.index.constant, atom.of.constant, by)
        plain = guard.index == variable(atom) and not others
        steps = all(name in loops and isinstance(s, int) for name, s in atom.of.terms.items())
        if not plain or not steps or not all(isinstance(each, int) for each in bounds):
            return []
        found.append(Test(atom.of, _known(by), _known(guard.low), _known(guard.high)))
    return found


def vanishes(operand: Scalar, guard: Guard) -> bool:
    """Whether an operand is known to be 0 wherever a guard does not hold."""
    zeros: set[int] = set()
    for node in walk(operand):
        if isinstance(node, Number):
            zero = bool(node.value == 0)
        elif isinstance(node, Select):
            zero = id(node.other) in zeros and (guard in node.guards or id(node.value) in zeros)
        elif isinstance(node, Apply):
            # A product with what may be infinite is 0 only of what is chosen after it.
            factors = node.row.name == "multiply"
            args = [x for x in node.args if not (factors and _is_finite(x))] or node.args
            zero = node.row.name in KEEP_ZERO and all(id(x) in zeros for x in args)
        else:
            zero = False
        if zero:
            zeros.add(id(node))
    return id(operand) in zeros


def _is_finite(value: Scalar) -> bool:
    return isinstance(value, Number) and math.isfinite(value.value)


def _rests(periods: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """What loops of these periods leave, one combination after the other."""
    for each in itertools.product(*map(range, periods.values())):
        yield dict(zip(periods, each, strict=True))


def _known(size: Size) -> int:
    assert isinstance(size, int), "only what is known is tested"
    return size
