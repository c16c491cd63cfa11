"""``out=`` arguments: checks of the user's arrays, and copies of results into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, FeedError
from ...op_graph.values.labels import dim_names, labels
from .dims import resolve

Array = np.ndarray[Any, Any]
CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100  # NumPy's flags of an array that is contiguous and aligned


class ResultDescription:
    """Description of a computation's result for messages: its text and the user's line.

    ``axes`` are its axes' names, ``dims`` their lengths; an effect has neither, and no dtype.
    """

    def __init__(
        self,
        shown: str,
        made_at: str,
        dtype: Any = None,
        axes: Sequence[str] = (),
        dims: Sequence[Any] | None = None,
    ) -> None:
        self.shown, self.line_info = shown, made_at
        self.dtype, self.axes, self.dims = dtype, axes, dims

    @property
    def label(self) -> str:
        """Return its description in messages."""
        kind = "effect" if self.dims is None else "result"
        return f"the {kind} {self.shown} (made at {self.line_info})"


class Destinations:
    """The arrays given with ``out=``, for each value that a program computes.

    After the results there are ``kept`` values, for which no array can be given. ``arrays`` has
    None for a new array. Raises ``ArgumentError`` for a value that is no array, or not one for each
    result, and ``FeedError`` for an array of another dtype, a read-only one, or one whose elements
    overlap. Arrays that share memory are written one after another, in the order of results.
    """

    def __init__(
        self, results: Sequence[ResultDescription], kept: int, single: bool, given: Any
    ) -> None:
        listed = [given] if single else given
        if not isinstance(listed, (list, tuple)):
            raise ArgumentError(
                f"out= was given {type(given).__name__} for {len(results)} results; give a list "
                "with an array or None for each"
            )
        if len(listed) != len(results):
            raise ArgumentError(
                f"out= was given {len(listed)} values for {len(results)} results "
                f"({', '.join(result.shown for result in results)}); give an array or None for each"
            )
        for result, array in zip(results, listed, strict=True):
            if array is not None:
                _check(result, array)
        both = [(r, a) for r, a in zip(results, listed, strict=True) if r.dims is not None]
        self.results = [result for result, _ in both]
        self.arrays: tuple[Array | None, ...] = (*(a for _, a in both), *(None,) * kept)

    def check(self, lengths: Mapping[str, int]) -> None:
        """Raise ``FeedError`` for an array that has another shape than its result."""
        for result, array in zip(self.results, self.arrays, strict=False):
            shape = tuple([resolve(dim, lengths) for dim in result.dims or ()])
            if array is not None and array.shape != shape:
                raise FeedError(
                    f"out= was given an array of shape {array.shape} for {result.label}, which has "
                    f"shape {shape} in this call: one dimension for each axis, in their order"
                )

    def direct(self, inputs: Sequence[Array]) -> tuple[Array | None, ...]:
        """Return the arrays that can be written while the inputs are read; None for the others."""
        found: list[Array | None] = []
        for array in self.arrays:
            used = [*inputs, *(other for other in found if other is not None)]
            if (
                array is not None
                and array.flags.num & CONTIGUOUS_AND_ALIGNED == CONTIGUOUS_AND_ALIGNED
                and not any(np.may_share_memory(array, other) for other in used)
            ):
                found.append(array)
            else:
                found.append(None)
        return tuple(found)

    def filled(self, values: Sequence[Array]) -> tuple[Array, ...]:
        """Return the values, copied to the given arrays."""
        results = []
        for array, value in zip(self.arrays, values, strict=True):
            if array is not None and value is not array:
                np.copyto(array, value)
            results.append(value if array is None else array)
        return tuple(results)


def _check(result: ResultDescription, array: Any) -> None:
    if result.dims is None:
        raise ArgumentError(
            f"out= was given an array for {result.label}, which has no value; give None for it"
        )
    dims = dim_names(array)
    if dims is not None:
        raise ArgumentError(
            f"out= was given {labels(dims, np.shape(array))} for {result.label}, whose elements "
            f"are written by position; give the .values of an array with the dims "
            f"({', '.join(result.axes)}), in that order"
        )
    if not isinstance(array, np.ndarray):
        raise ArgumentError(
            f"out= was given {type(array).__name__} for {result.label}; give a NumPy array, such "
            "as np.asarray shows of other libraries' arrays without a copy"
        )
    if array.dtype != result.dtype:
        raise FeedError(
            f"out= was given an array of dtype {array.dtype} for {result.label}, which has dtype "
            f"{result.dtype}; give an array of that dtype, or geon.cast the result"
        )
    if not array.flags.writeable:
        raise FeedError(
            f"out= was given a read-only array for {result.label}; give one that can be written"
        )
    if _may_overlap(array):
        raise FeedError(
            f"out= was given an array for {result.label} of which several elements lie in one "
            f"place (shape {array.shape}, strides {array.strides}); give one with a place for each"
        )


def _may_overlap(array: Array) -> bool:
    """Return True if elements of an array may overlap, as in a broadcast array.

    Sorted by stride, each axis must step over all elements of the previous ones.
    """
    taken = array.itemsize
    steps = [(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    for step, length in sorted(steps):
        if step < taken:
            return array.size > 0
        taken += step * (length - 1)
    return False
