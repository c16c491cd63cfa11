"""``out=``: arrays of the user's that the results of a call are put into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, FeedError
from ..op_graph.labelled import dim_names, labels
from ..op_graph.lengths import evaluate
from ..op_graph.op_graph import Op, Tensor

Array = np.ndarray[Any, Any]
DIRECT = 0x0001 | 0x0100  # NumPy's flags of an array that is contiguous and aligned


class Destinations:
    """The arrays that were given with ``out=``, for each value that a program computes.

    ``arrays`` has None where a new array is to be made. Raises ``ArgumentError`` for what is no
    array, or not one for each result, and ``FeedError`` for an array of another dtype, or one
    that cannot be written.
    """

    def __init__(
        self, results: Sequence[Op], keep: Sequence[Tensor], single: bool, given: Any
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
                f"({', '.join(map(str, results))}); give an array or None for each"
            )
        for op, array in zip(results, listed, strict=True):
            if array is not None:
                _check(op, array)
        both = [(op, a) for op, a in zip(results, listed, strict=True) if isinstance(op, Tensor)]
        self.ops = [op for op, _ in both]
        self.arrays: tuple[Array | None, ...] = (*(a for _, a in both), *(None for _ in keep))

    def check(self, lengths: Mapping[str, int]) -> None:
        """Raise ``FeedError`` for an array that has another shape than its result."""
        for op, array in zip(self.ops, self.arrays, strict=False):
            shape = tuple([evaluate(n, lengths) for n in op.axes.lengths])
            if array is not None and array.shape != shape:
                raise FeedError(
                    f"out= was given an array of shape {array.shape} for {_label(op)}, which has "
                    f"shape {shape} in this call: one dimension for each axis, in their order"
                )

    def direct(self, inputs: Sequence[Array]) -> tuple[Array | None, ...]:
        """Those arrays that can be written while the inputs are read; None for the others."""
        found: list[Array | None] = []
        for array in self.arrays:
            used = [*inputs, *(other for other in found if other is not None)]
            if (
                array is not None
                and array.flags.num & DIRECT == DIRECT
                and not any(np.may_share_memory(array, other) for other in used)
            ):
                found.append(array)
            else:
                found.append(None)
        return tuple(found)

    def filled(self, values: Sequence[Array]) -> tuple[Array, ...]:
        """The values, in the arrays that were given for them."""
        results = []
        for array, value in zip(self.arrays, values, strict=True):
            if array is not None and value is not array:
                np.copyto(array, value)
            results.append(value if array is None else array)
        return tuple(results)


def _check(op: Op, array: Any) -> None:
    if not isinstance(op, Tensor):
        raise ArgumentError(
            f"out= was given an array for the effect {op} (made at {op.file_info}), which has no "
            "value; give None for it"
        )
    dims = dim_names(array)
    if dims is not None:
        raise ArgumentError(
            f"out= was given {labels(dims, np.shape(array))} for {_label(op)}, whose elements are "
            f"written by position; give the .values of an array with the dims "
            f"({', '.join(op.axes.names)}), in that order"
        )
    if not isinstance(array, np.ndarray):
        raise ArgumentError(
            f"out= was given {type(array).__name__} for {_label(op)}; give a NumPy array, such "
            "as np.asarray shows of other libraries' arrays without a copy"
        )
    if array.dtype != op.dtype:
        raise FeedError(
            f"out= was given an array of dtype {array.dtype} for {_label(op)}, which has dtype "
            f"{op.dtype}; give an array of that dtype, or geon.cast the result"
        )
    if not array.flags.writeable:
        raise FeedError(
            f"out= was given a read-only array for {_label(op)}; give one that can be written"
        )


def _label(op: Op) -> str:
    return f"the result {op} (made at {op.file_info})"
