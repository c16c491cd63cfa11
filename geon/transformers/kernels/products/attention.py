"""Recognition of attention in chains: a product, a softmax over its rows, and a second product."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex
from ....op_graph.op_graph import Op
from ....op_graph.rows.elementwise import CAST
from ....op_graph.values.dtypes import FLOAT32, HALVES, DType, kind, name_of
from ..ir.nest import Loop, Nest, Pass, Reduction, Store
from ..ir.scalar_code import Apply, Contracted, Kept, Load, Number, Reduced, Scalar, walk
from .contraction import Contraction
from .row_blocking import Blocked

ONE = ("first_lane",)  # variables that are 0 where rows are processed one by one


@dataclass(frozen=True, eq=False, slots=True)
class Attention:
    """A softmax of ``score`` over keys, per batch and row, and its weighted sum of ``values``.

    ``first`` is the product of queries (``query``, over ``rows``) and keys (``key``, over
    ``keys``). ``second`` is the product of the softmax and values (``value``, over ``results``).
    ``score`` is scalar code of a nest, which loads the result of ``first`` as ``scores``.
    ``indices`` maps the nest's loops to those of ``first``; ``nest_operands`` are the nest's
    operands. ``places`` maps loops of ``second`` to loops of ``first``. ``rounded`` is the half
    dtype that the softmax is rounded to, or None.
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
    """A nest that stores a softmax of ``score``, which loads ``scores``, by ``store``."""

    score: Scalar
    scores: Load
    store: Store
    loops: tuple[Loop, ...]


def attention_of(work: Blocked) -> Attention | None:
    """Return the attention that a chain computes, or None."""
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
    indices = match_loops(first.stores[0].offset, found.scores.offset, every(first), found.loops)
    own = nest.operands[found.store.operand]
    pairs = [(second.left, second.right, second.columns), (second.right, second.left, second.rows)]
    loads = [strip_casts(weights) for weights, _, _ in pairs]
    whose = [isinstance(x, Load) and second.operands[x.operand] is own for x in loads]
    if True not in whose:
        return None
    _, value, results = pairs[whose.index(True)]
    load = loads[whose.index(True)]
    assert isinstance(load, Load)
    inner = match_loops(found.store.offset, load.offset, found.loops, every(second))
    if indices is None or inner is None:
        return None
    places = {name: indices[other] for name, other in inner.items()}
    named = {indices[loop.name] for loop in nest.passes[-1].loops if loop.name in indices}
    sides = [(first.left, first.right, first.rows, first.columns),
             (first.right, first.left, first.columns, first.rows)]  # fmt: skip
    for query, key, rows, keys in sides:
        if named == {loop.name for loop in nontrivial_loops(keys)} and orderly(
            first, second, keys, places
        ):
            rounded = rounding(found.store.value)
            return Attention(
                first, query, key, rows, keys, found.score, found.scores, indices, nest.operands,
                second, value, results, places, rounded,
            )  # fmt: skip
    return None


def every(work: Contraction) -> tuple[Loop, ...]:
    """Return all loops of a contraction."""
    return (*work.batch, *work.rows, *work.columns, *work.summed)


def nontrivial_loops(loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops whose extent is not 1."""
    return [loop for loop in loops if loop.extent != 1]


def orderly(
    first: Contraction, second: Contraction, keys: Sequence[Loop], places: Mapping[str, str]
) -> bool:
    """Return True if the second product sums keys in their order and keeps the batches."""
    summed = [places.get(loop.name) for loop in nontrivial_loops(second.summed)]
    batch = {loop.name for loop in first.batch}
    if summed != [loop.name for loop in nontrivial_loops(keys)]:
        return False
    return all(places.get(loop.name) in batch for loop in nontrivial_loops(second.batch))


def match_loops(
    left: AffineIndex, right: AffineIndex, lefts: Sequence[Loop], rights: Sequence[Loop]
) -> dict[str, str] | None:
    """Map each loop of ``rights`` to the loop of ``lefts`` that is the same index of one memory.

    ``left`` and ``right`` are the offsets. Return None if the loops do not correspond.
    """
    if left.constant != right.constant:
        return None
    pairs = []
    for offset, loops in ((left, lefts), (right, rights)):
        names = {loop.name for loop in loops}
        if not {*names, *ONE}.issuperset(offset.terms):
            return None
        turned = {loop.name for loop in nontrivial_loops(loops)}
        pairs.append({str(a): step for a, step in offset.terms.items() if a in turned})
    found = {}
    for name, step in pairs[1].items():
        same = [other for other, its in pairs[0].items() if its == step]
        if len(same) != 1:
            return None
        found[name] = same[0]
    return found if len(set(found.values())) == len(pairs[0]) == len(found) else None


def strip_casts(value: Scalar) -> Scalar:
    """Return a value without casts between floats."""
    while isinstance(value, Apply) and value.row is CAST and is_float(value):
        if not is_float(value.args[0]):
            break
        value = value.args[0]
    return value


def strip_rounding(value: Scalar, done: dict[Scalar, Scalar] | None = None) -> Scalar:
    """Return a float32 value with all round trips through halves removed."""
    done = {} if done is None else done
    if not isinstance(value, Apply):
        return value
    if value not in done:
        inner = value.args[0] if value.row is CAST and value.dtype is FLOAT32 else None
        if isinstance(inner, Apply) and inner.row is CAST and name_of(inner.dtype) in HALVES:
            done[value] = strip_rounding(inner.args[0], done)
        else:
            args = tuple([strip_rounding(arg, done) for arg in value.args])
            same = all(a is b for a, b in zip(args, value.args, strict=True))
            done[value] = value if same else replace(value, args=args)
    return done[value]


def scale_of(work: Attention) -> float | None:
    """Return the positive factor from products to scores; None if scores are anything else."""
    first = factor_of(
        strip_rounding(work.first.stores[0].value), lambda x: isinstance(x, Contracted)
    )
    then = factor_of(strip_rounding(work.score), lambda x: x == work.scores)
    found = None if first is None or then is None else first * then
    return found if found is not None and 0 < found < math.inf else None


def factor_of(value: Scalar, is_whole: Callable[[Scalar], bool]) -> float | None:
    """Return the factor between ``value`` and the node that satisfies ``is_whole``, or None."""
    value = strip_casts(value)
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
    """Return True if a value has a floating-point dtype."""
    return kind(value.dtype) == "f"


def rounding(value: Scalar) -> DType | None:
    """Return the half dtype that a value is rounded to, or None."""
    while isinstance(value, Apply) and value.row is CAST:
        if name_of(value.dtype) in HALVES:
            return value.dtype
        value = value.args[0]
    return None


def softmax_of(nest: Nest, source: Op) -> Softmax | None:
    """Return the softmax of values of ``source`` that a nest stores, or None."""
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
    score = match_softmax(reductions, stores[0].value, kept)
    if score is None:
        return None
    loads = [v for v in walk(score) if isinstance(v, Load) and nest.operands[v.operand] is source]
    if len(loads) != 1:
        return None
    return Softmax(score, loads[0], stores[0], (*rows, *loops))


def match_softmax(
    reductions: Sequence[Reduction], stored: Scalar, kept: Mapping[int, Scalar]
) -> Scalar | None:
    """Return the score if ``stored`` is its softmax: exp(score - max) / sum(exp(score - max)).

    Return None for other values.
    """
    largest, total = reductions
    power = strip_casts(total.elements[0])
    if len(total.elements) != 1 or not is_row(power, "exp"):
        return None
    shifted = strip_casts(power.args[0])
    if not is_row(shifted, "subtract"):
        return None
    score, most = shifted.args
    if not is_reduced(most, largest) or strip_casts(score) is not strip_casts(largest.elements[0]):
        return None
    if score.dtype is not FLOAT32 or len(largest.elements) != 1:
        return None

    def is_power(value: Scalar) -> bool:
        value = strip_casts(value)
        return strip_casts(kept[value.number] if isinstance(value, Kept) else value) is power

    stored = strip_casts(stored)
    if is_row(stored, "divide"):
        above, below = stored.args
        return score if is_power(above) and is_reduced(below, total) else None
    if not is_row(stored, "multiply"):
        return None
    for above, share in (stored.args, stored.args[::-1]):
        share = strip_casts(share)
        if is_power(above) and is_row(share, "divide"):
            one, below = share.args
            if isinstance(one, Number) and one.value == 1 and is_reduced(below, total):
                return score
    return None


def is_row(value: Scalar, name: str) -> TypeGuard[Apply]:
    """Return True if a value is an application of the elementwise primitive ``name``."""
    return isinstance(value, Apply) and value.row.name == name


def is_reduced(value: Scalar, reduction: Reduction) -> bool:
    """Return True if a value is the result of ``reduction``."""
    value = strip_casts(value)
    return isinstance(value, Reduced) and value.number == reduction.number
