"""Operators with blocks: loops, branches, recurrences; and arrays of tensors.

The function of a block takes the values of its parameters, in order, and returns its results. Each
operator is one loop or branch of geon, whose derivative is its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ....op_graph.op_graph import Tensor
from ....op_graph.transforms.batching import with_further
from ...positional.elementwise import elementwise
from ...positional.indexing import gather
from ...positional.movement import with_axis
from ...positional.picking import gather_at, numbers, scatter_at
from ...positional.programs import cast
from ...positional.regions import Sliced, fitted, scan
from ...positional.reshaping import reshape, unsqueeze
from ...positional.values import Value, array, as_array, host
from ..evaluation import inference
from ..registry import REQUIRED, Attribute, ProgramError, Slot, at_least, register_operator
from ..values import ProgramValue, TensorArray, constant, parts, rebuilt
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
    found, rest = [], list(tensors)
    for value in values:
        count = len(parts(value))
        found.append(rebuilt(value, rest[:count]))
        rest = rest[count:]
    return found


def fitting(values: Sequence[ProgramValue], first: Sequence[ProgramValue]) -> list[Tensor]:
    """Return the tensors of values that have the shapes and dtypes of ``first``."""
    return [
        fitted(cast(new, old.dtype), old, "a variable that the block writes")
        for value, before in zip(values, first, strict=True)
        for new, old in zip(parts(value), parts(before), strict=True)
    ]


def while_(
    X: Values, *, sub_block: Block, condition: int, carried: Sequence[int], max_steps: int | None
) -> Values:
    """Return the carried values after ``sub_block`` ran while the condition was true.

    ``condition`` is the position of the condition among those that are carried.
    """
    first = [X[k] for k in carried]

    def body(tensors: list[Tensor]) -> list[Tensor]:
        given = list(X)
        for k, value in zip(carried, like(first, tensors), strict=True):
            given[k] = value
        return fitting(sub_block(given), first)

    last = geon.while_loop(
        lambda tensors: truth(like(first, tensors)[condition]),  # type: ignore[arg-type]  # a tensor
        body,
        tensors_of(first),
        max_steps,
    )
    return like(first, last)


def conditional(Cond: Value, X: Values, *, sub_block: Block, carried: Sequence[int]) -> Values:
    """Return what ``sub_block`` writes if the condition is true, else the values before."""
    first = [X[k] for k in carried]
    last = geon.cond(truth(Cond), lambda: fitting(sub_block(X), first), lambda: tensors_of(first))
    return like(first, last)


def if_else(
    Cond: Value, X: Values, Y: Values, *, true_block: Block, false_block: Block,
    true_rows: Sequence[int], false_rows: Sequence[int],
) -> Values:  # fmt: skip
    """Return rows of the results of one block where the condition is true, else of the other.

    A block is a function of each row: in its row inputs, one of its own rows stands for those of
    the other block.
    """
    chosen = cast(reshape(Cond, [Cond.shape[0]]), bool)
    results = [
        _of_rows(block, values, rows, mask)
        for block, values, rows, mask in (
            (true_block, X, true_rows, chosen),
            (false_block, Y, false_rows, elementwise(geon.logical_not, chosen)),
        )
    ]
    merged: Values = []
    for yes, no in zip(*results, strict=True):
        mask = unsqueeze(chosen, range(1, len(yes.shape)))
        merged.append(as_array(elementwise(geon.where, mask, yes, no)))
    return merged


def _of_rows(block: Block, values: Values, rows: Sequence[int], mask: Value) -> list[Any]:
    given = list(values)
    own = with_axis(as_array(mask), 0)
    axis = own.tensor.axes[0]
    # The first row of the branch: 0 if there is none, also of no rows at all.
    ordinal = geon.cumsum(geon.cast(own.tensor, "int64"), axis)
    is_first = geon.logical_and(own.tensor, geon.equal(ordinal, 1))
    one = array(geon.sum(geon.where(is_first, geon.iota(axis), 0)), [])
    some = array(geon.any(own.tensor), [])
    at = elementwise(geon.where, mask, numbers(mask.shape[0]), one)
    for k in rows:
        found = gather(given[k], at, 0)  # type: ignore[arg-type]  # a tensor
        known = unsqueeze(some, range(len(found.shape)))
        ones = host(np.ones((), found.dtype))
        given[k] = as_array(elementwise(geon.where, known, found, ones))
    results = block(given)
    if inference.is_running:
        _refuse_mixed_rows(block, values, rows)
    return results


def _refuse_mixed_rows(block: Block, values: Values, rows: Sequence[int]) -> None:
    """Raise an error if a block combines the rows of its inputs."""
    for k in rows:
        value = parts(values[k])[0]
        if value.dims[0] is None:
            continue
        leaf = geon.placeholder(value.tensor.axes, value.dtype)
        given = [*values[:k], array(leaf, value.dims), *values[k + 1 :]]
        tensors = [parts(each)[0].tensor for each in block(given)]
        again = geon.placeholder(value.tensor.axes, value.dtype)
        rows_axis = geon.Axes([value.dims[0]])
        with_further(tensors, {leaf: again}, rows_axis, "a block of if_else, which is for each row")


def recurrent(
    Steps: list[Value], Boot: list[Value], X: Values, Offsets: Value | None,
    Positions: Value | None, *, sub_block: Block, is_reverse: bool,
) -> tuple[Values, Values]:  # fmt: skip
    """Return the results of all steps, and the memories after the last one.

    Step t takes index t of the first dimension of ``Steps`` and the memories, which begin as
    ``Boot``. With ``Offsets`` the rows of sequences are the steps: each sequence keeps its memories
    after its last row, and the results are rows again. ``Positions`` are the numbers from 0 up to
    the greatest length, without it.
    """
    count = None if Offsets is None else cast(lengths_of(Offsets), "int64")
    inputs = Steps if count is None else [_padded(x, Offsets, count, Positions) for x in Steps]
    steps = [Sliced(x, 0, is_reverse) for x in inputs]
    if count is not None:
        steps.append(Sliced(Positions, 0, is_reverse))  # type: ignore[arg-type]  # beside Offsets

    def step(old: list[Value], slices: list[Value], _: Value) -> tuple[list[Any], list[Any]]:
        found = sub_block([*slices[: len(Steps)], *old, *X])  # type: ignore[list-item]  # tensors
        pairs = zip(found[: len(Boot)], old, strict=True)
        new: list[Any] = [cast(value, before.dtype) for value, before in pairs]
        if count is not None:
            inside = elementwise(geon.greater, count, slices[-1])
            new = [_chosen(inside, a, b) for a, b in zip(new, old, strict=True)]
        return new, found[len(Boot) :]

    boot: list[Value] = [as_array(value) for value in Boot]
    last, stacks = scan(step, boot, steps)
    results: list[Value] = [_flipped(each) if is_reverse else each for each in stacks]
    if Offsets is not None:
        results = [_rows(each, Steps[0], Offsets) for each in results]
    return list(map(as_array, results)), list(map(as_array, last))


def _flipped(value: Value) -> Value:
    given = as_array(value)
    assert given.dims[0] is not None
    return array(geon.flip(given.tensor, given.dims[0]), given.dims)


def _chosen(condition: Value, x: Value, y: Value) -> Value:
    return elementwise(geon.where, unsqueeze(condition, range(1, len(x.shape))), x, y)


def _padded(x: Value, offsets: Value | None, count: Value, positions: Value | None) -> Value:
    """Return rows of sequences as steps (T, N, ...), with a row of the sequence after its end."""
    assert offsets is not None and positions is not None
    first = cast(begins(offsets), "int64")
    place = unsqueeze(positions, [1])
    inside = elementwise(geon.greater, count, place)
    at = elementwise(lambda i, b, p: geon.where(i, b + p, 0), inside, first, place)
    found = gather(x, at, 0)
    mask = unsqueeze(inside, range(2, len(found.shape)))
    return elementwise(lambda i, t: geon.where(i, t, geon.cast(0, t.dtype)), mask, found)


def _rows(steps: Value, rows: Value, offsets: Value) -> Value:
    """Return results of steps (T, N, ...) as the rows of sequences."""
    sequence = sequence_numbers(rows, offsets)
    begin = gather(cast(begins(offsets), "int64"), sequence, 0)
    place = elementwise(geon.subtract, numbers(rows.shape[0]), begin)
    return gather_at(steps, {0: place, 1: sequence})


def write_to_array(
    X: Value, Index: Value, Array: TensorArray | None, *, capacity: int | None
) -> Any:
    """Return an array of tensors with X at Index; a new one of ``capacity`` without Array."""
    if Array is None:
        if capacity is None:
            raise ProgramError("a new array needs its capacity, the number of its tensors; give it")
        whole = constant(0, (capacity, *X.shape), X.dtype)
        Array = TensorArray(whole, constant(0, (), "int64"))
    at = cast(reshape(Index, []), "int64")
    values = scatter_at(Array.values, {0: at}, X, "set")
    length = elementwise(lambda n, i: geon.maximum(n, i + 1), Array.length, at)
    return TensorArray(values, length)


def read_from_array(X: TensorArray, Index: Value) -> Value:
    """Return the tensor at Index of an array."""
    return gather(X.values, cast(reshape(Index, []), "int64"), 0)


def array_length(X: TensorArray) -> Value:
    """Return the number of tensors up to the last one that was written."""
    return reshape(X.length, [1])


BLOCK = Attribute("sub_block", "block", comment="the block that it runs")
CARRIED = Attribute("carried", "ints", comment="the positions in X of what the block writes")
LIMIT = Attribute("max_steps", "int", None, "the largest number of steps", at_least(0))
REVERSE = Attribute("is_reverse", "bool", False, "True to begin at the last step")
CAPACITY = Attribute("capacity", "int", None, "the number of tensors of a new array", at_least(1))


def ints(name: str, comment: str) -> Attribute:
    """Return a required attribute of positions."""
    return Attribute(name, "ints", REQUIRED, comment)


OUT = Slot("Out", duplicable=True)
TABLE: Any = (
    ("while", while_, "X*", [OUT],
     [BLOCK, Attribute("condition", "int", comment="the position of the condition"), CARRIED,
      LIMIT]),
    ("conditional_block", conditional, "Cond X*", [OUT], [BLOCK, CARRIED]),
    ("if_else", if_else, "Cond X* Y*", [OUT],
     [Attribute("true_block", "block"), Attribute("false_block", "block"),
      ints("true_rows", "the positions in X of inputs by rows"),
      ints("false_rows", "the positions in Y of inputs by rows")]),
    ("recurrent", recurrent, "Steps* Boot* X* Offsets? Positions?", [OUT, "Last*"],
     [BLOCK, REVERSE]),
    ("write_to_array", write_to_array, "X Index Array?", ["Out"], [CAPACITY]),
    ("read_from_array", read_from_array, "X Index", ["Out"], []),
)  # fmt: skip
for type, function, inputs, outputs, attributes in TABLE:
    register_operator(
        type, function, inputs.split(), outputs, attributes,
        positional=True, comment=function.__doc__ or "",
    )  # fmt: skip
register_operator(
    "array_length", array_length, differentiable=False, positional=True,
    comment=array_length.__doc__ or "",
)  # fmt: skip
