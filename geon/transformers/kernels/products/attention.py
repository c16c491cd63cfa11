"""Chains that are attention: a product, its softmax over rows, and a product of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from ....op_graph.axes.affine import Affine
from ....op_graph.op_graph import Op
from ....op_graph.rows.elementwise import CAST
from ....op_graph.values.dtypes import FLOAT32, HALVES, DType, kind, name_of
from ..ir.nest import Loop, Nest, Pass, Reduction, Store
from ..ir.scalar_code import Apply, Contracted, Kept, Load, Number, Reduced, Scalar, walk
from .contraction import Contraction
from .row_blocking import Blocked

ONE = ("first_lane",)  # where rows are taken one by one, it is 0


@dataclass(frozen=True, eq=False, slots=True)
class Attention:
    """For each batch and row the softmax over keys of ``score``, and the sum of ``values`` by it.

    ``first`` is the product of queries (``query``, over ``rows``) and keys (``key``, over
    ``keys``); ``second`` that of the softmax and values (``value``, over ``results``). ``score``
    is scalar code of a nest, whose loops are those of ``first`` that ``indices`` name, and reads
    what ``first`` stores as ``scores``; ``nest_operands`` are its operands. ``places`` say which
    loop of ``first`` each loop of ``second`` is. ``rounded`` is the half that the softmax is
    rounded to, if any.
    """

    first: Contraction
    query: Scalar
    key: Scalar
    rows: tuple[Loop, ...]
    keys: tuple[Loop, ...]
    score: Scalar
    scores: Load
    indices: Mapping[str, str]
    nest_operands: tuple[Op, ...]
    second: Contraction
    value: Scalar
    results: tuple[Loop, ...]
    places: Mapping[str, str]
    rounded: DType | None


@dataclass(frozen=True, eq=False, slots=True)
class Softmax:
    """A nest that is a softmax of ``score``, which reads ``scores``, stored by ``store``."""

    score: Scalar
    scores: Load
    store: Store
    loops: tuple[Loop, ...]


def attention_of(work: Blocked) -> Attention | None:
    """What a chain computes, where that is attention; None for other chains."""
    if len(work.whole) != 3:
        return None
    first, nest, second = work.whole
    if not (isinstance(first, Contraction) and isinstance(nest, Nest)):
        return None
    if not isinstance(second, Contraction) or len(first.stores) != 1:
        return None
    found = softmax_of(nest, first.operands[first.stores[0].operand])
    if found is None or first.dtype is not FLOAT32 or second.dtype is not FLOAT32:
        return None
    indices = matched(first.stores[0].offset, found.scores.offset, every(first), found.loops)
    own = nest.operands[found.store.operand]
    pairs = [(second.left, second.right, second.columns), (second.right, second.left, second.rows)]
    loads = [bare(weights) for weights, _, _ in pairs]
    whose = [isinstance(x, Load) and second.operands[x.operand] is own for x in loads]
    if True not in whose:
        return None
    _, value, results = pairs[whose.index(True)]
    load = loads[whose.index(True)]
    assert isinstance(load, Load)
    inner = matched(found.store.offset, load.offset, found.loops, every(second))
    if indices is None or inner is None:
        return None
    places = {name: indices[other] for name, other in inner.items()}
    named = {indices[loop.name] for loop in nest.passes[-1].loops if loop.name in indices}
    sides = [(first.left, first.right, first.rows, first.columns),
             (first.right, first.left, first.columns, first.rows)]  # fmt: skip
    for query, key, rows, keys in sides:
        if named == {loop.name for loop in long(keys)} and orderly(first, second, keys, places):
            rounded = rounding(found.store.value)
            return Attention(
                first, query, key, rows, keys, found.score, found.scores, indices, nest.operands,
                second, value, results, places, rounded,
            )  # fmt: skip
    return None


def every(work: Contraction) -> tuple[Loop, ...]:
    """All loops of a contraction."""
    return (*work.batch, *work.rows, *work.columns, *work.summed)


def long(loops: Sequence[Loop]) -> list[Loop]:
    """The loops of more than one turn."""
    return [loop for loop in loops if loop.extent != 1]


def orderly(
    first: Contraction, second: Contraction, keys: Sequence[Loop], places: Mapping[str, str]
) -> bool:
    """Whether the second product goes over keys in their order, and has batches of the first."""
    summed = [places.get(loop.name) for loop in long(second.summed)]
    batch = {loop.name for loop in first.batch}
    if summed != [loop.name for loop in long(keys)]:
        return False
    return all(places.get(loop.name) in batch for loop in long(second.batch))


def matched(
    left: Affine, right: Affine, lefts: Sequence[Loop], rights: Sequence[Loop]
) -> dict[str, str] | None:
    """For each loop of ``right`` the one of ``left`` that is the same index: two offsets in one
    memory. None where loops do not correspond.
    """
    if left.constant != right.constant:
        return None
    pairs = []
    for offset, loops in ((left, lefts), (right, rights)):
        names = {loop.name for loop in loops}
        if not {*names, *ONE}.issuperset(offset.terms):
            return None
        turned = {loop.name for loop in long(loops)}
        pairs.append({str(a): step for a, step in offset.terms.items() if a in turned})
    found = {}
    for name, step in pairs[1].items():
        same = [other for other, its in pairs[0].items() if its == step]
        if len(same) != 1:
            return None
        found[name] = same[0]
    return found if len(set(found.values())) == len(pairs[0]) == len(found) else None


def bare(value: Scalar) -> Scalar:
    """A value without casts between floats: what differs by rounding alone."""
    while isinstance(value, Apply) and value.row is CAST and is_float(value):
        if not is_float(value.args[0]):
            break
        value = value.args[0]
    return value


def unrounded(value: Scalar, done: dict[Scalar, Scalar] | None = None) -> Scalar:
    """A value of float32 whose parts are not rounded to halves and back."""
    done = {} if done is None else done
    if not isinstance(value, Apply):
        return value
    if value not in done:
        inner = value.args[0] if value.row is CAST and value.dtype is FLOAT32 else None
        if isinstance(inner, Apply) and inner.row is CAST and name_of(inner.dtype) in HALVES:
            done[value] = unrounded(inner.args[0], done)
        else:
            args = tuple([unrounded(arg, done) for arg in value.args])
            same = all(a is b for a, b in zip(args, value.args, strict=True))
            done[value] = value if same else replace(value, args=args)
    return done[value]


def scale_of(work: Attention) -> float | None:
    """The positive number by which products are multiplied to make scores; None where scores are
    something else of them.
    """
    first = factor_of(unrounded(work.first.stores[0].value), lambda x: isinstance(x, Contracted))
    then = factor_of(unrounded(work.score), lambda x: x == work.scores)
    found = None if first is None or then is None else first * then
    return found if found is not None and 0 < found < math.inf else None


def factor_of(value: Scalar, is_whole: Callable[[Scalar], bool]) -> float | None:
    """The number by which something whole is multiplied to make a value; None if it is no such."""
    value = bare(value)
    if is_whole(value):
        return 1.0
    if not (isinstance(value, Apply) and value.row.name == "multiply"):
        return None
    numbers = [float(arg.value) for arg in value.args if isinstance(arg, Number)]
    others = [arg for arg in value.args if not isinstance(arg, Number)]
    if len(numbers) != 1 or len(others) != 1:
        return None
    inner = factor_of(others[0], is_whole)
    return None if inner is None else numbers[0] * inner


def is_float(value: Scalar) -> bool:
    """Whether a value is a float."""
    return kind(value.dtype) == "f"


def rounding(value: Scalar) -> DType | None:
    """The half that a value is rounded to before it is used."""
    while isinstance(value, Apply) and value.row is CAST:
        if name_of(value.dtype) in HALVES:
            return value.dtype
        value = value.args[0]
    return None


def softmax_of(nest: Nest, source: Op) -> Softmax | None:
    """The softmax of values of ``source`` that a nest computes and stores; None if it does else."""
    steps = [step for step in nest.steps if isinstance(step, Pass)]
    rows = [*nest.rows, *([] if nest.across is None else [nest.across])]
    plain = not (nest.ending or nest.pieces or nest.fill)
    if not plain or not rows or len(steps) != len(nest.steps):
        return None
    reductions = [each for step in steps for each in step.reductions]
    stores = [store for step in steps for store in step.stores]
    kept = {keep.number: keep.value for step in steps for keep in step.keeps}
    loops = steps[-1].loops
    if [each.folds for each in reductions] != ["maximum", "add"] or len(stores) != 1:
        return None
    if any(step.loops != loops for step in steps):
        return None
    score = scored(reductions, stores[0].value, kept)
    if score is None:
        return None
    loads = [v for v in walk(score) if isinstance(v, Load) and nest.operands[v.operand] is source]
    if len(loads) != 1:
        return None
    return Softmax(score, loads[0], stores[0], (*rows, *loops))


def scored(
    reductions: Sequence[Reduction], stored: Scalar, kept: Mapping[int, Scalar]
) -> Scalar | None:
    """What is stored as a softmax of it: exp(score - largest) divided by the sum of these."""
    largest, total = reductions
    power = bare(total.elements[0])
    if len(total.elements) != 1 or not is_row(power, "exp"):
        return None
    shifted = bare(power.args[0])
    if not is_row(shifted, "subtract"):
        return None
    score, most = shifted.args
    if not is_reduced(most, largest) or bare(score) is not bare(largest.elements[0]):
        return None
    if score.dtype is not FLOAT32 or len(largest.elements) != 1:
        return None

    def is_power(value: Scalar) -> bool:
        value = bare(value)
        return bare(kept[value.number] if isinstance(value, Kept) else value) is power

    stored = bare(stored)
    if is_row(stored, "divide"):
        above, below = stored.args
        return score if is_power(above) and is_reduced(below, total) else None
    if not is_row(stored, "multiply"):
        return None
    for above, share in (stored.args, stored.args[::-1]):
        share = bare(share)
        if is_power(above) and is_row(share, "divide"):
            one, below = share.args
            if isinstance(one, Number) and one.value == 1 and is_reduced(below, total):
                return score
    return None


def is_row(value: Scalar, name: str) -> TypeGuard[Apply]:
    """Whether a value is a row of elementwise ops applied."""
    return isinstance(value, Apply) and value.row.name == name


def is_reduced(value: Scalar, reduction: Reduction) -> bool:
    """Whether a value is what a reduction has found."""
    value = bare(value)
    return isinstance(value, Reduced) and value.number == reduction.number
