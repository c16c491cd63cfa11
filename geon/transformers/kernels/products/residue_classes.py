"""Residue classes of indices, which remove the zero terms of contractions guarded by remainders.

In strided windows, the windows that contain an element depend on its remainder by the stride. So
results fall into residue classes, each of which sums over one class of positions only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Remainder, Size, variable
from ....op_graph.axes.index_map import InRange
from ...sizes.limits import MAX_CANDIDATES, MAX_SEARCHED
from ..analysis.index_boxes import guards_of
from ..ir.nest import Loop
from ..ir.scalar_code import Apply, Number, Scalar, Select, walk

MAX_RESULT_CLASSES = 2 * MAX_CANDIDATES  # maximum classes of results, each a contraction of its own
KEEP_ZERO = frozenset(("cast", "negative", "add", "subtract", "multiply"))  # f(0, ...) == 0
# Maximum classes of summed indices that are tested per class of results.
MAX_SUMMED_CLASSES = MAX_SEARCHED


@dataclass(frozen=True, slots=True)
class Class:
    """The indices ``first``, ``first + apart``, ...; no index if ``empty``."""

    first: int = 0
    apart: int = 1
    empty: bool = False

    def turns(self, extent: Size) -> Size:
        """Return the number of indices of the class below ``extent``."""
        return 0 if self.empty else (extent - self.first + self.apart - 1) // self.apart

    def index(self, turn: AffineIndex) -> AffineIndex:
        """Return the index in iteration ``turn``."""
        return turn * self.apart + self.first


@dataclass(frozen=True, slots=True)
class Test:
    """The condition ``low <= of % by < high``."""

    of: AffineIndex
    by: int
    low: int
    high: int

    def holds(self, rests: Mapping[str, int]) -> bool:
        """Return True if the condition holds where variables have these remainders."""
        constant = self.of.constant
        assert isinstance(constant, int)
        steps = self.of.terms.items()
        at = constant + sum(_known(step) * rests[str(atom)] for atom, step in steps)
        return self.low <= at % self.by < self.high


def classes_of(
    operands: Sequence[Scalar], kept: Sequence[Loop], summed: Sequence[Loop]
) -> list[dict[str, Class]]:
    """Return, for each class of results, the classes of all axes that it covers, by axis name.

    Return [] if no guard is on a remainder, or if the guards are not of a form that classes
    resolve.
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
    if (
        not outer
        or math.prod(outer.values()) > MAX_RESULT_CLASSES
        or math.prod(inner.values()) > MAX_SUMMED_CLASSES
    ):
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
    """Return the conditions on remainders in guards.

    Return [] if a guard has another form, or if terms outside of it may not be zero.
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


def vanishes(operand: Scalar, guard: InRange) -> bool:
    """Return True if an operand is known to be 0 wherever a guard fails."""
    zeros: set[int] = set()
    for node in walk(operand):
        if isinstance(node, Number):
            zero = bool(node.value == 0)
        elif isinstance(node, Select):
            zero = id(node.other) in zeros and (guard in node.guards or id(node.value) in zeros)
        elif isinstance(node, Apply):
            # 0 times a value that may be infinite is NaN, so all other factors must be 0, too.
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
    """Yield each combination of remainders of loops with these periods."""
    for each in itertools.product(*map(range, periods.values())):
        yield dict(zip(periods, each, strict=True))


def _known(size: Size) -> int:
    assert isinstance(size, int), "only what is known is tested"
    return size
