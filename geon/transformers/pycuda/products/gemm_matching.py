"""Memory access of a contraction's factors, and contractions that are plain matrix products.

A factor in memory has strides of loops and guarded window axes. A library computes sums of products
and adds a bias along columns. All other operations on the sums run as a pass over the result, so
that they round as in every other kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import HALVES, name_of
from ...kernels.ir.nest import Loop, Store
from ...kernels.ir.scalar_code import Apply, Clamped, Contracted, Load, Scalar
from ...kernels.products.contraction import Contraction, inside_borders, is_negative
from ..launches.library_requests import ProductCall, Strides

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


def product_of(work: Contraction, writes: bool) -> ProductCall | None:
    """Return a contraction as a matrix product, or None; ``writes`` if it writes a variable."""
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    left, right = factor_of(work.left, loops), factor_of(work.right, loops)
    if left is None or right is None or left.dtype != right.dtype:
        return None
    if not (left.is_plain and right.is_plain):
        return None
    store = work.stores[0]
    if not all(isinstance(atom, str) for atom in store.offset.terms) or store.offset.constant != 0:
        return None
    out = {str(atom): step for atom, step in store.offset.terms.items()}
    parts = (work.batch, work.rows, work.columns, work.summed)
    all_strides = (left.steps, right.steps, out)
    found = [each for part in parts if (each := merge_strides(part, all_strides)) is not None]
    if len(found) < len(parts):
        return None
    (batch, of_batch), (rows, down), (columns, across), (deep, along) = found
    left_strides = Strides(of_batch[0], down[0], along[0])
    right_strides = Strides(of_batch[1], along[1], across[1])
    out_strides = Strides(of_batch[2], down[2], across[2])
    bias, ends = None, False
    if len(work.stores) == 1:
        bias, ends = ending(store, work.columns, name_of(work.dtype))
    apart = not ends and (writes or store.dtype != work.dtype)
    result = name_of(work.dtype if apart else store.dtype)
    if apart:  # scratch memory is row-major
        out_strides = Strides(rows * columns, columns, 1)
    if not (_is_matrix(left_strides) and _is_matrix(right_strides) and out_strides.across == 1):
        return None
    if out_strides.down == 0 or result not in MATRICES:
        return None
    return ProductCall(
        batch, rows, columns, deep, left.operand, right.operand, store.operand, bias,
        left_strides, right_strides, out_strides, left.dtype, result, ends, apart,
    )  # fmt: skip


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


def _is_matrix(strides: Strides) -> bool:
    """Return True if elements are contiguous along rows or along columns."""
    if strides.across == 1:
        return strides.down != 0
    return strides.down == 1 and strides.across != 0


def ending(store: Store, columns: Sequence[Loop], dtype: str) -> tuple[int | None, bool]:
    """Return the bias operand, and True if nothing else is done with the sums."""
    value = store.value
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(store.dtype) in HALVES:
        return None, isinstance(value.args[0], Contracted)
    if isinstance(value, Contracted):
        return None, True
    if isinstance(value, Apply) and value.row.name == "add":
        loads = [arg for arg in value.args if isinstance(arg, Load)]
        if len(loads) == 1 and any(isinstance(arg, Contracted) for arg in value.args):
            (load,) = loads
            if name_of(load.dtype) == dtype and _is_line(load.offset, columns):
                return load.operand, True
    return None, False


def _is_line(offset: AffineIndex, columns: Sequence[Loop]) -> bool:
    """Return True if an offset is contiguous over all columns."""
    terms = {str(atom): step for atom, step in offset.terms.items()}
    named = {loop.name for loop in columns if loop.extent != 1}
    found = merge_strides(columns, [terms])
    return offset.constant == 0 and set(terms) == named and found is not None and found[1] == [1]
