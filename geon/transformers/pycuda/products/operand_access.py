"""Memory access of a contraction's factors: strides of loops, and guarded window axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import HALVES, name_of
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Apply, Clamped, Load, Scalar
from ...kernels.products.contraction import inside_borders, is_negative

MATRICES = ("float32", "float64", *HALVES)
Steps = dict[str, Size]


@dataclass(frozen=True, slots=True)
class Walk:
    """An axis of ``length`` elements with stride ``step``, read at index ``of`` / ``by``.

    Outside of it, and where the division has a remainder, the value is 0.
    """

    of: AffineIndex
    by: int
    length: Size
    step: Size


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor in memory: operand, start offset, strides by loop, and window axes ``walks``.

    Loops in ``turned`` have negative strides; ``start`` and ``steps`` are as if these were
    positive.
    """

    operand: int
    dtype: str
    start: Size
    steps: Steps
    walks: tuple[Walk, ...] = ()
    turned: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Return True if the factor is an array read forwards from its first element."""
        return self.start == 0 and not self.walks and not self.turned


def factor_of(value: Scalar, loops: Sequence[Loop]) -> Factor | None:
    """Return the access of a factor, or None if it is computed or has guards other than borders.

    Casts from half precision to float32 are removed.
    """
    found, guards = inside_borders(_before_cast(value))
    left = set(guards)
    dtype = name_of(found.dtype)
    if not isinstance(found, Load) or dtype not in MATRICES:
        return None
    if dtype != name_of(value.dtype) and dtype not in HALVES:
        return None
    start, turned = found.offset.constant, set()
    extents = {loop.name: loop.extent for loop in loops}
    steps: Steps = {}
    walks = []
    for atom, step in found.offset.terms.items():
        if isinstance(atom, str):
            steps[atom] = step
            if is_negative(step):
                start, steps[atom] = start + step * (extents[atom] - 1), -step
                turned.add(atom)
            continue
        if not isinstance(atom, Clamped):
            return None
        walk = _walk(atom, step)
        if walk is None or is_negative(step):
            return None
        walks.append(walk)
        left -= set(atom.guards)
    if left:
        return None
    return Factor(found.operand, dtype, start, steps, tuple(walks), frozenset(turned))


def _before_cast(value: Scalar) -> Scalar:
    """Return the operand of a cast to float32, else the value."""
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(value.dtype) == "float32":
        return value.args[0]
    return value


def _walk(atom: Clamped, step: Size) -> Walk | None:
    """Return the window axis of a guarded index; None if other guards than borders apply."""
    index, by = atom.of, 1
    inner = next(iter(index.terms), None)
    if isinstance(inner, Quotient):
        if index != variable(inner) or not isinstance(inner.by, int):
            return None
        index, by = inner.of, inner.by
    borders = [guard for guard in atom.guards if guard.index == index and guard.low == 0]
    divides = {InRange(variable(Remainder(index, by)), 0, 1)} if by > 1 else set()
    if len(borders) != 1 or set(atom.guards) != {borders[0], *divides}:
        return None
    if not all(isinstance(n, str) and isinstance(s, int) for n, s in index.terms.items()):
        return None
    return Walk(index, by, (borders[0].high + by - 1) // by, step)
