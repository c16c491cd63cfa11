"""Sequences and optionals, which are lists and None when the model is built."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import ArgumentError, IndexRangeError
from ...positional.indexing import select
from ...positional.movement import concat, split
from ...positional.reshaping import unsqueeze
from ...positional.values import HostArray, Value, host, known_list, position
from ..builder import Subgraph
from ..table import row

MAX_TENSORS = 4096  # of a sequence that a tensor is split into


def construct(*values: Value) -> list[Value]:
    """Return a sequence of tensors."""
    return list(values)


def empty() -> list[Value]:
    """Return a sequence of no tensors."""
    return []


def _index(position: int | None, count: int, last: int) -> int:
    """Return a position from 0 in ``count`` places, ``last`` if none is given."""
    if position is None:
        return last
    if not -count <= position < count:
        raise IndexRangeError(f"position {position} in a sequence with {count} positions")
    return position % count


def element(values: list[Value], position: int, /) -> Value:
    """Return a tensor of a sequence."""
    return values[_index(position, len(values), 0)]


def insert(values: list[Value], new: Value, position: int | None = None, /) -> list[Value]:
    """Return a sequence with one tensor more, by default at the end."""
    end = len(values)
    at = end if position == end else _index(position, end, end)
    return [*values[:at], new, *values[at:]]


def erase(values: list[Value], position: int | None = None, /) -> list[Value]:
    """Return a sequence without one tensor, by default the last."""
    at = _index(position, len(values), len(values) - 1)
    return [*values[:at], *values[at + 1 :]]


def length(values: list[Value], /) -> HostArray:
    """Return the number of tensors."""
    return host(np.array(len(values), np.int64))


def split_to_sequence(
    x: Value, lengths: Value | None = None, /, *, axis: int = 0, keepdims: int = 1
) -> list[Value]:
    """Return the parts of a tensor along ``axis``: of given lengths, or each of one length."""
    at = position(axis, len(x.shape))
    whole = x.shape[at]
    if lengths is None or not lengths.shape:
        if not isinstance(whole, int):
            raise ArgumentError(f"{x} is split into a sequence along {whole}; give the length")
        each = 1 if lengths is None else int(known_list(lengths, "split")[0])
        if each < 1 or -(-whole // each) > MAX_TENSORS:
            raise ArgumentError(f"{whole} elements in parts of {each}; at most {MAX_TENSORS} parts")
        parts: list[Any] = [min(each, whole - first) for first in range(0, whole, each)]
    else:
        parts = known_list(lengths, "split")
    if lengths is None and not keepdims:
        return [select(x, at, number) for number in range(len(parts))]
    return split(x, at, parts)


def concat_from_sequence(values: list[Value], /, *, axis: int, new_axis: int = 0) -> Value:
    """Return the tensors of a sequence joined along an axis, or along a new one."""
    if not values:
        raise ArgumentError("a sequence without tensors is joined")
    at = position(axis, len(values[0].shape), new_axis)
    return concat([unsqueeze(v, [at]) for v in values] if new_axis else values, at)


def sequence_map(values: list[Value], /, *more: Any, body: Subgraph) -> tuple[list[Value], ...]:
    """Return the sequences of the results of a graph for each tensor of a sequence.

    Of further sequences the graph gets the tensors at the same position, and tensors as they are.
    """
    for each in more:
        if isinstance(each, list) and len(each) != len(values):
            raise ArgumentError(f"sequences of {len(values)} and {len(each)} tensors are mapped")
    rows = [
        body(value, *[each[k] if isinstance(each, list) else each for each in more])
        for k, value in enumerate(values)
    ]
    return tuple([[row[k] for row in rows] for k in range(body.outputs)])


def optional(value: Any = None, /) -> Any:
    """Return an optional: the value, or None."""
    return value


def has_element(value: Any = None, /) -> HostArray:
    """Return true if an optional has a value."""
    return host(np.array(value is not None))


def get_element(value: Any = None, /) -> Any:
    """Return the value of an optional."""
    if value is None:
        raise ArgumentError("the value of an optional that has none is read")
    return value


ROWS = [
    row("SequenceConstruct", construct),
    row("SequenceEmpty", empty),
    row("SequenceAt", element),
    row("SequenceInsert", insert),
    row("SequenceErase", erase),
    row("SequenceLength", length),
    row("SplitToSequence", split_to_sequence),
    row("ConcatFromSequence", concat_from_sequence),
    row("SequenceMap", sequence_map),
    row("Optional", optional),
    row("OptionalHasElement", has_element),
    row("OptionalGetElement", get_element),
]
