"""Factors of contractions in memory: strides by loop, and axes that are read under guards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import HALVES, name_of
from ..ir.nest import Loop
from ..ir.scalar_code import Apply, Clamped, Load, Scalar
from .contraction import inside_borders, is_negative

MATRICES = ("float32", "float64", *HALVES)
Steps = dict[str, Size]


@dataclass(frozen=True, slots=True)
class GuardedAxis:
    """An axis of ``length`` elements with stride ``step``, read at index ``of`` / ``by``.

    Outside of it, and where the division has a remainder, the value is 0.
    """

    of: AffineIndex
    by: int
    length: Size
    step: Size


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor in memory: operand, start offset, strides by loop, and guarded ``axes``.

    Loops in ``turned`` have negative strides; ``start`` and ``steps`` are as if these were
    positive.
    """

    operand: int
    dtype: str
    start: Size
    steps: Steps
    axes: tuple[GuardedAxis, ...] = ()
    turned: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Return True if the factor is an array read forwards from its first element."""
        return self.start == 0 and not self.axes and not self.turned


def factor_access(value: Scalar, loops: Sequence[Loop]) -> Factor | None:
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
    axes = []
    for atom, step in found.offset.terms.items():
        if isinstance(atom, str):
            steps[atom] = step
            if is_negative(step):
                start, steps[atom] = start + step * (extents[atom] - 1), -step
                turned.add(atom)
            continue
        if not isinstance(atom, Clamped):
            return None
        axis = _guarded(atom, step)
        if axis is None or is_negative(step):
            return None
        axes.append(axis)
        left -= set(atom.guards)
    if left:
        return None
    return Factor(found.operand, dtype, start, steps, tuple(axes), frozenset(turned))


def _before_cast(value: Scalar) -> Scalar:
    """Return the operand of a cast to float32, else the value."""
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(value.dtype) == "float32":
        return value.args[0]
    return value


def _guarded(atom: Clamped, step: Size) -> GuardedAxis | None:
    """Return the axis of a guarded index; None if other guards than borders apply."""
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
    return GuardedAxis(index, by, (borders[0].high + by - 1) // by, step)


def merge_strides(
    loops: Sequence[Loop], strides: Sequence[Mapping[str, Size]]
) -> tuple[Size, list[Size]] | None:
    """Collapse loops to one; return its extent and its stride in each matrix, or None."""
    total: Size = 1
    steps: list[Size] = [0] * len(strides)
    for loop in reversed(loops):
        if loop.extent == 1:
            continue
        own = [each.get(loop.name, 0) for each in strides]
        if total == 1 and not any(step != 0 for step in steps):
            steps = own
        elif any(step != inner * total for step, inner in zip(own, steps, strict=True)):
            return None
        total = total * loop.extent
    return total, steps
