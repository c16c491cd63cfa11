"""Rules for loops that the compiler vectorises: blocks of folds, with states of fitting widths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....op_graph.rows.elementwise import add
from ....op_graph.rows.logic import bitwise_and, bitwise_or, logical_and, logical_or
from ....op_graph.values.dtypes import (
    BOOL,
    FLOAT64,
    INT32,
    DType,
    kind,
    named_dtype,
)
from ...kernels.analysis.integer_ranges import before_widening
from ...kernels.ir.loop_variables import variables
from ...kernels.ir.nest import folded_row
from ...kernels.ir.scalar_code import Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...sizes.limits import AVX512_BYTES, LONG_LOOP_TURNS, PAGE_BYTES
from .. import transformations as shape
from ..access import is_straight, most, only_folds
from ..partial_states import (
    block_level,
    block_of,
    is_folded_once,
    rfactor,
    total_states,
    widened,
)
from ..tree import (
    Fold,
    Kind,
    LoopNode,
    Role,
    Tree,
    VectorWidth,
    changed,
    find,
    loops_in,
    loops_of,
    replace,
    replaced,
    require,
    walk,
    with_body,
)

# Truths between two tests whether they are decided.
TRUTHS_PER_CHECK = PAGE_BYTES
# The same for terms of each column: a test reads the states of all columns.
TERMS_PER_CHECK = LONG_LOOP_TURNS
# Maximum 16-bit terms whose sum fits into 32 bits, and the fewest for which blocks pay off.
MAX_NARROW_BLOCK_TERMS = np.iinfo(INT32).max // np.iinfo(np.uint16).max
MIN_NARROW_BLOCK_TERMS = AVX512_BYTES // INT32.itemsize
TRUTHS = (logical_or, logical_and)
BITS = (bitwise_or, bitwise_and)  # folds of truths as numbers
DECIDED = "it ends when all truths are decided"


def with_partial_states(tree: Tree, outer: Sequence[LoopNode], block: int) -> Tree:
    """Fold in states of fitting widths, for blocks of a loop that the compiler vectorises.

    ``outer`` are that loop and those around it that fold into the same states. Float sums have
    blocks of ``block`` terms, which are added in float64. Sums of narrow integers are of 32 bits
    within a block. Truths are numbers of the width of what they are computed from; where a loop
    does nothing else, it ends after the block that decides them.
    """
    name = outer[0].variable
    tree = unwidened(tree, name)
    folds = [each for each in find(tree, name)[0].body if isinstance(each, Fold)]
    ends = len(folds) == len(outer[0].body) and all(x.reducer.folds in TRUTHS for x in folds)
    dtypes = {each.into[0]: partial_dtype(tree, each) for each in folds}
    sums = {each.into[0] for each in folds if is_float_sum(tree, each)}
    terms = [each.size for each in outer]
    few = block_level(terms, MIN_NARROW_BLOCK_TERMS - 1)[0] == len(outer)
    if few:
        dtypes = dict.fromkeys(dtypes)
    narrow = any(dtype is INT32 for dtype in dtypes.values())
    size = MAX_NARROW_BLOCK_TERMS if narrow and not sums else TRUTHS_PER_CHECK if ends else block
    level, inside = block_level(terms, size)
    around, many = outer[-1].variable, level < len(outer)
    if many and (sums or narrow or ends):
        inner = outer[max(level - 1, 0)]
        tree, around = block_of(tree, outer[level].variable, size // inside, inner)
    for dtype in dict.fromkeys(dtypes.values()):
        taken = {number for number, each in dtypes.items() if each is dtype}
        parts = many or any(variables(fold.offset) for fold in folds)
        if parts:
            tree = rfactor(tree, around, dtype=dtype, only=taken)
        elif dtype is not None:
            tree = with_dtype(tree, around, taken, dtype)
    if sums and many:
        tree = widened(tree, total_states(tree, sums), FLOAT64)
    if ends and many:
        for each in find(tree, around)[1]:
            if each.variable in {loop.variable for loop in outer}:
                tree = replaced(
                    tree, each.variable, lambda loop: (replace(loop, ends=True, reason=DECIDED),)
                )
    return tree


def with_dtype(tree: Tree, around: str, numbers: set[int], dtype: DType) -> Tree:
    """Fold in states of another dtype in a loop: in partial ones where other loops fold too."""
    alone = {number for number in numbers if is_folded_once(tree, number)}
    tree = widened(tree, alone, dtype) if alone else tree
    others = numbers - alone
    return rfactor(tree, around, dtype=dtype, only=others) if others else tree


def is_float_sum(tree: Tree, fold: Fold) -> bool:
    """Return True if a fold is a sum of floats."""
    return fold.reducer.folds is add and kind(tree.buffers[fold.into[0]].dtype) == "f"


def partial_dtype(tree: Tree, fold: Fold) -> DType | None:
    """Return the dtype of a fold's partial states where it is not that of the state."""
    dtype = tree.buffers[fold.into[0]].dtype
    if fold.reducer.folds in TRUTHS and dtype is BOOL:
        loads = [x for x in walk_scalars(*fold.elements) if isinstance(x, Load)]
        return named_dtype(f"uint{8 * max([x.dtype.itemsize for x in loads], default=1)}")
    (element,) = fold.elements
    narrow = kind(element.dtype) != "f" and element.dtype.itemsize <= 2
    wide = kind(dtype) == "i" and dtype.itemsize > 4
    return INT32 if fold.reducer.folds is add and narrow and wide else None


def unwidened(tree: Tree, name: str) -> Tree:
    """Remove the casts of integers to a wider dtype that a fold into that dtype does itself."""

    def change(loop: LoopNode) -> tuple[LoopNode]:
        body = [
            changed(each, elements=tuple(map(before_widening, each.elements)))
            if isinstance(each, Fold) and each.reducer.folds is add
            else each
            for each in loop.body
        ]
        return (with_body(loop, tuple(body)),)

    return replaced(tree, name, change)


def deciding(tree: Tree) -> Iterator[str]:
    """Yield the loops around copies that do nothing but fold truths of columns."""
    for loop in loops_of(tree.body):
        copies = any(each.kind is Kind.COPIES for each in loops_in(loop).values())
        if not copies or loop.role is not Role.SERIAL:
            continue
        if all(isinstance(each, LoopNode) or folds_truths(each) for each, _ in walk(loop.body)):
            yield loop.variable


def folds_truths(each: object) -> bool:
    """Return True if a statement folds truths into one, which further ones may not change."""
    if not isinstance(each, Fold) or each.merges or each.elements[0].dtype is not BOOL:
        return False
    return each.reducer.folds in (*TRUTHS, *BITS)


def ended(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """End a loop over terms after the block that decides the truths of all columns."""
    loop, above = find(tree, name)
    if any(each.ends for each in above):
        return tree
    folds = [each for each, _ in walk(loop.body) if isinstance(each, Fold)]
    shared = all(only_folds(loop, x) and name not in variables(x.offset) for x in folds)
    require(shared, f"iterations of {name} fold into states of their own")
    copies = [
        x.size for x in loops_in(loop).values() if x.kind is Kind.COPIES and isinstance(x.size, int)
    ]
    blocks, size = TERMS_PER_CHECK // max(copies), most(loop.extent)
    long = not isinstance(size, int) or size > blocks
    require(long, f"{name} has at most {TERMS_PER_CHECK} terms")
    tree = block_of(tree, name, blocks, loop)[0]
    return replaced(tree, name, lambda loop: (replace(loop, ends=True, reason=DECIDED),))


def compilable(tree: Tree) -> Iterator[str]:
    """Yield the innermost loops that are neither tasks nor vectors, and merge no states.

    Short axes of buffered values are unrolled instead.
    """
    for loop in loops_of(tree.body):
        merges = any(isinstance(each, Fold) and each.merges for each in loop.body)
        short = loop.kind is Kind.DIGIT
        if loop.role is Role.SERIAL and is_straight(loop.body) and not merges and not short:
            yield loop.variable


def in_any_order(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Let the compiler make vectors of a loop's iterations."""
    folds = [each for each in find(tree, name)[0].body if isinstance(each, Fold)]
    lanes = all(folded_row(each.reducer) for each in folds)
    require(lanes, f"{name} folds what has no state for each lane")
    return shape.set_role(tree, name, Role.SIMD, "the compiler makes vectors")
