"""Operators with blocks: loops, branches, recurrences; and arrays of tensors.

The function of a block takes the values of its parameters, in order, and returns its results. Each
operator is one loop or branch of geon, whose derivative is its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....op_graph.op_graph import Tensor
from ....op_graph.transforms.batching import with_further
from ...positional.elementwise import elementwise
from ...positional.indexing import gather
from ...positional.movement import flip, with_axis
from ...positional.picking import gather_at, numbers, scatter_at
from ...positional.programs import cast
from ...positional.regions import Sliced, fitted, scan
from ...positional.reshaping import reshape, unsqueeze
from ...positional.values import Value, array, as_array, fresh, renamed
from ..evaluation import inference
from ..registry import ProgramError
from ..values import ProgramValue, TensorArray, chosen, constant, parts, rebuilt
from .rows import BLOCK, INT, INTS, Row
from .sequences import begins, lengths_of, sequence_numbers

Block = Callable[[Sequence[ProgramValue]], list[Any]]
Values = list[ProgramValue]


def truth(value: Value) -> Tensor:
    """Return a condition of one element as a bool scalar."""
    return as_array(cast(reshape(value, []), bool)).tensor


def tensors_of(values: Sequence[ProgramValue]) -> list[Tensor]:
    """Return the tensors of values, none of them weak."""
    return [geon.cast(p.tensor, p.dtype) for value in values for p in parts(value)]


def like(values: Sequence[ProgramValue], tensors: Sequence[Tensor]) -> Values:
    """Return values like ``values`` of the tensors that ``tensors_of`` gives for them."""
    rest = iter(tensors)
    return [rebuilt(value, [next(rest) for _ in parts(value)]) for value in values]


def fitting(values: Sequence[ProgramValue], first: Sequence[ProgramValue]) -> list[Tensor]:
    """Return the tensors of values that have the shapes and dtypes of ``first``."""
    return [
        fitted(cast(new, old.dtype), old, "a variable that the block writes")
        for value, before in zip(values, first, strict=True)
        for new, old in zip(parts(value), parts(before), strict=True)
    ]


def loop_of(
    X: Values, sub_block: Block, condition: int, carried: Sequence[int]
) -> tuple[Values, Callable[..., Tensor], Callable[..., list[Tensor]]]:
    """Return the first carried values of a loop, its condition, and its step, of their tensors."""
    first = [X[k] for k in carried]

    def test(tensors: list[Tensor]) -> Tensor:
        return truth(parts(like(first, tensors)[condition])[0])

    def step(tensors: list[Tensor]) -> list[Tensor]:
        now = dict(zip(carried, like(first, tensors), strict=True))
        return fitting(sub_block([now.get(k, value) for k, value in enumerate(X)]), first)

    return first, test, step


def while_(
    X: Values, *, sub_block: Block = BLOCK, condition: int = INT, carried: Sequence[int] = INTS,
    max_steps: int = -1,
) -> Values:  # fmt: skip
    """Return the carried values after ``sub_block`` ran while the condition was true.

    ``condition`` is the position of the condition among those that are carried.
    """
    first, test, step = loop_of(X, sub_block, condition, carried)
    limit = None if max_steps < 0 else max_steps
    return like(first, geon.while_loop(test, step, tensors_of(first), limit))


def conditional(
    Cond: Value, X: Values, *, sub_block: Block = BLOCK, carried: Sequence[int] = INTS
) -> Values:
    """Return what ``sub_block`` writes if the condition is true, else the values before."""
    first = [X[k] for k in carried]
    made = geon.cond(truth(Cond), lambda: fitting(sub_block(X), first), lambda: tensors_of(first))
    return like(first, made)


def if_else(
    Cond: Value, X: Values, Y: Values, *, true_block: Block = BLOCK, false_block: Block = BLOCK,
    true_rows: Sequence[int] = INTS, false_rows: Sequence[int] = INTS,
) -> Values:  # fmt: skip
    """Return rows of the results of one block where the condition is true, else of the other.

    A block is a function of each row: in its row inputs, one of its own rows stands for those of
    the other block.
    """
    # Rows have a name of their own, so that a gather from a table renames no axis of rows.
    taken = [d.name for v in (*X, *Y) for part in parts(v) for d in part.dims if d is not None]
    rows = as_array(cast(reshape(Cond, [Cond.shape[0]]), bool))
    mask = renamed(rows, [fresh("branch_row", taken)])
    yes = _of_rows(true_block, X, true_rows, mask)
    no = _of_rows(false_block, Y, false_rows, elementwise(geon.logical_not, mask))
    return [as_array(chosen(mask, a, b)) for a, b in zip(yes, no, strict=True)]


def _of_rows(block: Block, values: Values, rows: Sequence[int], mask: Value) -> list[Any]:
    own = with_axis(as_array(mask), 0).tensor
    axis = own.axes[0]
    # The first row of the branch: 0 if there is none, also of no rows at all.
    ordinal = geon.cumsum(geon.cast(own, "int64"), axis)
    is_first = geon.logical_and(own, geon.equal(ordinal, 1))
    one = array(geon.sum(geon.where(is_first, geon.iota(axis), 0)), [])
    at = elementwise(geon.where, mask, numbers(mask.shape[0]), one)
    given = list(values)
    for k in rows:
        found = gather(parts(given[k])[0], at, 0)
        each = as_array(chosen(array(geon.any(own), []), found, 1))
        names = [None if dim is None else dim.name for dim in each.dims]
        given[k] = renamed(each, [axis.name, *names[1:]])
    for k in rows if inference.is_running else ():
        _refuse_mixed_rows(block, given, k)
    return block(given)


def _refuse_mixed_rows(block: Block, values: Values, k: int) -> None:
    """Raise ``DerivativeError`` if a block combines the rows of its input ``k``."""
    value = parts(values[k])[0]
    if value.dims[0] is not None:
        leaf, other = (geon.placeholder(value.tensor.axes, value.dtype) for _ in range(2))
        results = block([*values[:k], array(leaf, value.dims), *values[k + 1 :]])
        rows = geon.Axes([value.dims[0]])
        tensors = [parts(each)[0].tensor for each in results]
        with_further(tensors, {leaf: other}, rows, "a block of if_else, which is for each row")


def recurrent(
    Steps: list[Value], Boot: list[Value], X: Values, Offsets: Value | None,
    Positions: Value | None, *, sub_block: Block = BLOCK, is_reverse: bool = False,
) -> tuple[list[Value], list[Value]]:  # fmt: skip
    """Return the results of all steps, and the memories after the last one.

    Step t takes index t of the first dimension of ``Steps`` and the memories, which begin as
    ``Boot``. With ``Offsets`` the rows of sequences are the steps: each sequence keeps its memories
    after its last row, and the results are rows again. ``Positions`` are the numbers from 0 up to
    the greatest length, without it.
    """
    inputs, count = list(Steps), None
    if Offsets is not None and Positions is not None:
        count, first = (cast(f(Offsets), "int64") for f in (lengths_of, begins))
        place = unsqueeze(Positions, [1])
        inside = elementwise(geon.greater, count, place)
        at = elementwise(lambda i, b, p: geon.where(i, b + p, 0), inside, first, place)
        inputs = [chosen(inside, gather(x, at, 0), 0) for x in Steps] + [Positions]

    def step(old: list[Value], slices: list[Value], _: Value) -> tuple[list[Any], list[Any]]:
        found = sub_block([*slices[: len(Steps)], *old, *X])  # type: ignore[list-item]  # tensors
        new: list[Any] = [cast(v, b.dtype) for v, b in zip(found, old, strict=False)]
        if count is not None:
            runs = elementwise(geon.greater, count, slices[-1])
            new = [chosen(runs, a, b) for a, b in zip(new, old, strict=True)]
        return new, found[len(old) :]

    boot: list[Value] = list(map(as_array, Boot))
    last, stacks = scan(step, boot, [Sliced(x, 0, is_reverse) for x in inputs])
    results: list[Value] = [flip(each, [0]) if is_reverse else each for each in stacks]
    if Offsets is not None:
        sequence = sequence_numbers(Steps[0], Offsets)
        begin = gather(cast(begins(Offsets), "int64"), sequence, 0)
        row = elementwise(geon.subtract, numbers(Steps[0].shape[0]), begin)
        results = [gather_at(each, {0: row, 1: sequence}) for each in results]
    return results, last


def _array(value: Any) -> TensorArray:
    if not isinstance(value, TensorArray):
        raise ProgramError(f"{value} is no array of tensors; make one with array_write")
    return value


def write_to_array(
    X: Value, Index: Value, Array: TensorArray | None, *, capacity: int = 0
) -> TensorArray:
    """Return an array of tensors with X at Index; a new one of ``capacity`` without Array."""
    if Array is None:
        if capacity < 1:
            raise ProgramError("a new array needs its capacity, the number of its tensors; give it")
        whole = constant(0, (capacity, *X.shape), X.dtype)
        Array = TensorArray(whole, constant(0, (), "int64"))
    at = cast(reshape(Index, []), "int64")
    length = elementwise(lambda n, i: geon.maximum(n, i + 1), _array(Array).length, at)
    return TensorArray(scatter_at(Array.values, {0: at}, X, "set"), length)


def read_from_array(X: TensorArray, Index: Value) -> Value:
    """Return the tensor at Index of an array."""
    return gather(_array(X).values, cast(reshape(Index, []), "int64"), 0)


def array_length(X: TensorArray) -> Value:
    """Return the number of tensors up to the last one that was written."""
    return reshape(_array(X).length, [1])


ROWS = [
    Row("while", while_, "", "X*", "Out*", takes_rows=True),
    Row("conditional_block", conditional, "", "Cond X*?", "Out*", takes_rows=True),
    Row("if_else", if_else, "", "Cond X*? Y*?", "Out*"),
    Row("recurrent", recurrent, "", "Steps* Boot*? X*? Offsets?@1 Positions?@1", "Out* Last*"),
    Row("write_to_array", write_to_array, "", "X Index Array?"),
    Row("read_from_array", read_from_array, "", "X Index"),
    Row("array_length", array_length, gradient=False),
]
