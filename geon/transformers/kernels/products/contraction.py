"""Contractions as data: loops by role, and operands and epilogue as scalar code."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size, variable
from ....op_graph.axes.index_map import Index, InRange
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import DType
from ..analysis.index_boxes import Facts
from ..ir.nest import Fused, Loop, Store
from ..ir.scalar_code import Clamped, Contracted, Load, Number, Scalar, Select, walk
from ..nests.inlining import Elements, OperandInliner
from .residue_classes import Class, classes_of


@dataclass(frozen=True, eq=False, slots=True)
class Contraction:
    """For each batch, row and column, the sum over ``summed`` of ``left`` times ``right``.

    The values of ``stores`` contain it as ``Contracted``. ``dtype`` is that of the sum. ``unit`` is
    the loop along which stores are contiguous; None for a single element. ``operands`` are the
    values in memory, by the numbers that loads and stores use. ``pieces`` are contractions that
    together store the same, without terms that are known to be zero.
    """

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    left: Scalar
    right: Scalar
    dtype: DType
    stores: tuple[Store, ...]
    unit: str | None
    operands: tuple[Op, ...]
    pieces: tuple[Contraction, ...] = ()


@dataclass(frozen=True, slots=True)
class StridedAccess:
    """Strided access to memory: operand number, offset of the first element, stride of each loop.

    Where a guard fails, the element is 0 instead.
    """

    operand: int
    start: Size
    strides: Mapping[str, Size]
    guards: tuple[InRange, ...] = ()


def make_contraction(fused: Fused, operands: OperandInliner) -> Contraction:
    """Return the contraction of a kernel, with the epilogue on its sums."""
    assert fused.dot is not None
    for op in operands.results:
        operands.number(op)
    whole = _part(fused, operands, {})
    if any(operands.extent(axis) != axis.expression for arg in fused.dot.args for axis in arg.axes):
        return whole  # a block of an axis has an unknown start
    kept = (*whole.batch, *whole.rows, *whole.columns)
    found = classes_of((whole.left, whole.right), kept, whole.summed)
    pieces = [_part(fused, operands, each) for each in found]
    return replace(whole, pieces=tuple(pieces), operands=tuple(operands.numbers))


def _part(fused: Fused, operands: OperandInliner, taken: Mapping[str, Class]) -> Contraction:
    """Return the contraction over the residue classes ``taken``, and other axes in full."""
    dot = fused.dot
    assert dot is not None
    x, y = dot.args
    axes = {axis.name: axis for arg in dot.args for axis in arg.axes}
    of = {n: taken.get(n, Class()) for n in axes}
    loops = {
        n: Loop(f"d{k}", (n,), of[n].turns(operands.extent(axis)))
        for k, (n, axis) in enumerate(axes.items())
    }
    summed: tuple[str, ...] = dot.attrs.over
    loops = _needed(loops, summed)
    index = {
        n: operands.at(n, of[n].index(variable(loops[n].name) if n in loops else AffineIndex()))
        for n in axes
    }
    decide = Facts().decide
    elements = Elements(operands, lambda guard: decide(guard, {}))
    left, right = (elements.value(op, _of(index, op)) for op in (x, y))
    turned = _backwards((left, right), loops, summed)
    if turned:
        last = {
            n: operands.at(n, of[n].index(variable(f.name) * -1 + (f.extent - 1)))
            for n, f in turned.items()
        }
        index.update(last)
        elements = Elements(operands, lambda guard: decide(guard, {}))
        left, right = (elements.value(op, _of(index, op)) for op in (x, y))

    def only(names: Iterable[str]) -> tuple[Loop, ...]:
        return tuple([loops[n] for n in names if n in loops])

    found = elements.code(Contracted, dot.dtype)
    elements.known[dot] = lambda index: found
    renamed = {new: old for old, new in fused.names}  # names of the axes in the results
    stores = tuple([_store(op, elements, index, renamed) for op in operands.results])
    order = only(renamed.get(n, n) for n in operands.order(operands.results[0]))
    unit = order[-1].name if order else None
    return Contraction(
        only(n for n in x.axes.names if n in y.axes and n not in summed),
        only(n for n in x.axes.names if n not in y.axes),
        only(n for n in y.axes.names if n not in x.axes),
        only(summed),
        left,
        right,
        dot.dtype,
        stores,
        unit,
        tuple(operands.numbers),
    )


def _needed(loops: dict[str, Loop], summed: tuple[str, ...]) -> dict[str, Loop]:
    """Return the loops whose extent is not 1, and at least one over the summed axes."""
    found = {n: loop for n, loop in loops.items() if loop.extent != 1}
    if summed and not any(n in found for n in summed):
        found[summed[-1]] = loops[summed[-1]]
    return found


def _backwards(
    operands: Sequence[Scalar], loops: Mapping[str, Loop], summed: Sequence[str]
) -> dict[str, Loop]:
    """Return the summed loops of negative stride in a padded operand, by their axes.

    They are reversed, so that window position and index form one contiguous run of memory.
    """
    found: dict[str, Loop] = {}
    for value in operands:
        walked = padded_access(value, loops.values())
        if walked is not None and walked.guards:
            steps = walked.strides
            back = [n for n in summed if n in loops and is_negative(steps.get(loops[n].name, 0))]
            found.update({n: loops[n] for n in back})
    return found


def is_negative(size: Size) -> bool:
    """Return True if a size is negative for all lengths."""
    if isinstance(size, int):
        return size < 0
    return all(step < 0 for _, step in size.terms)


def offsets_in(value: Scalar) -> list[AffineIndex]:
    """Return the offsets of loads, without clamps."""
    return [unheld(node.offset) for node in walk(value) if isinstance(node, Load)]


def _of(index: Index, op: Op) -> Index:
    return {n: index[n] for n in op.axes.names}


def _store(op: Op, elements: Elements, index: Index, renamed: Mapping[str, str]) -> Store:
    own = {n: index[renamed.get(n, n)] for n in op.axes.names}
    value = elements.value(op, own)
    operands = elements.operands
    return Store(operands.number(op), operands.offset(op, own), value, op.dtype)


def access(value: Scalar, loops: Iterable[Loop]) -> StridedAccess | None:
    """Return the strided access of an operand that lies in memory; None if it is computed."""
    names = {loop.name for loop in loops}
    if not isinstance(value, Load) or not names.issuperset(value.offset.terms):
        return None
    return StridedAccess(value.operand, value.offset.constant, _strides(value.offset.terms))


def padded_access(value: Scalar, loops: Iterable[Loop]) -> StridedAccess | None:
    """Return the strided access of an operand that is padded with zeros where guards fail.

    Return None if it is computed, or if guards depend on more than sums of loop variables.
    """
    names = {loop.name for loop in loops}
    value, guards = inside_borders(value)
    if not isinstance(value, Load):
        return None
    offset = unheld(value.offset)
    walked = [offset, *(guard.index for guard in guards)]
    if any(not names.issuperset(index.terms) for index in walked):
        return None
    return StridedAccess(value.operand, offset.constant, _strides(offset.terms), guards)


def inside_borders(value: Scalar) -> tuple[Scalar, tuple[InRange, ...]]:
    """Return the value inside of zero padding, and the guards under which it is used."""
    guards: list[InRange] = []
    while isinstance(value, Select) and _is_zero(value.other):
        guards += [InRange(unheld(guard.index), guard.low, guard.high) for guard in value.guards]
        value = value.value
    return value, tuple(guards)


def unheld(index: AffineIndex) -> AffineIndex:
    """Return an index without its clamps, valid where the guards hold."""
    found = AffineIndex((), index.constant)
    for atom, step in index.terms.items():
        of = unheld(atom.of) if isinstance(atom, Clamped) else variable(atom)
        found = found + of * step
    return found


def _is_zero(value: Scalar) -> bool:
    return isinstance(value, Number) and value.value == 0 and not math.copysign(1, value.value) < 0


def result_access(contraction: Contraction) -> StridedAccess | None:
    """Return the access of the result if the only epilogue is a plain store, else None."""
    store = contraction.stores[0]
    if len(contraction.stores) > 1 or not isinstance(store.value, Contracted):
        return None
    if not all(isinstance(atom, str) for atom in store.offset.terms):
        return None
    return StridedAccess(store.operand, store.offset.constant, _strides(store.offset.terms))


def unit_of(value: Scalar, loops: Iterable[Loop]) -> str | None:
    """Return the loop of unit stride in the load with most terms, or None."""
    names = {loop.name for loop in loops}
    widest = max(offsets_in(value), key=lambda offset: len(offset.terms), default=None)
    if widest is None:
        return None
    adjoining = (atom for atom, step in widest.terms.items() if step == 1 and atom in names)
    return next((atom for atom in adjoining if isinstance(atom, str)), None)


def plain_strides(
    value: Scalar, lines: Sequence[Loop], summed: Sequence[Loop], loops: Iterable[Loop]
) -> tuple[Size, Size] | None:
    """Return the strides of an operand between its lines and between its summed indices.

    Return None if it is computed or padded, has several strides along lines or along summed
    indices, or is contiguous along neither. ``loops`` are all loops of the contraction.
    """
    found = padded_access(value, loops)
    if found is None or found.guards:
        return None
    merged = [merge_loops(each, found.strides) for each in (lines, summed)]
    if any(len(own) > 1 for own, _ in merged):
        return None
    line, step = (strides[own[0].name] if own else 0 for own, strides in merged)
    return (line, step) if 1 in (line, step) else None


def as_one(
    loops: Sequence[Loop], pairs: Collection[tuple[str, str]]
) -> tuple[tuple[Loop, ...], tuple[str, ...]]:
    """Collapse loops by ``pairs`` (outer, inner) of names; return them and the removed names."""
    found: list[Loop] = []
    left_out = []
    for inner in loops:
        if found and (found[-1].name, inner.name) in pairs:
            outer = found.pop()
            left_out.append(outer.name)
            inner = Loop(inner.name, (*outer.axes, *inner.axes), outer.extent * inner.extent)
        found.append(inner)
    return tuple(found), tuple(left_out)


def merge_loops(
    loops: Sequence[Loop],
    strides: Mapping[str, Size],
    apart: Container[str] = (),
) -> tuple[tuple[Loop, ...], dict[str, Size]]:
    """Merge loops that one operand's strides cannot distinguish; return them and their strides.

    Loops in ``apart`` are not merged with others.
    """
    found: list[Loop] = []
    steps = {loop.name: strides.get(loop.name, 0) for loop in loops}
    for inner in loops:
        if inner.extent == 1:
            continue
        outer = found[-1] if found else None
        if outer is None or outer.name in apart or inner.name in apart:
            found.append(inner)
            continue
        if steps[outer.name] == steps[inner.name] * inner.extent:
            axes = (*outer.axes, *inner.axes)
            found[-1] = Loop(inner.name, axes, outer.extent * inner.extent)
            continue
        found.append(inner)
    if not found and loops:
        return (loops[-1],), {loops[-1].name: 0}
    return tuple(found), {loop.name: steps[loop.name] for loop in found}


def _strides(terms: Mapping[object, Size]) -> dict[str, Size]:
    return {str(atom): step for atom, step in terms.items()}
