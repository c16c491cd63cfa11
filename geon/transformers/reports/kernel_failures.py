"""Errors that the kernels of compiled programs report, on CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import IndexRangeError, LinearAlgebraError, NonFiniteError
from ..runtime.loop_steps import at_steps
from ..runtime.value_errors import not_finite, outside, unfactorised


def kernel_failure(
    kernel: int,
    check: tuple[Any, ...] | None,
    words: Sequence[int],
    size_of: Callable[[Any], int],
    loops: Iterable[tuple[str, Any]],
    step: int,
) -> Exception:
    """Return the error that a compiled kernel, number ``kernel`` of the program, has reported.

    ``check`` is None for a finite check, whose ``words`` are the number of such values, that of all
    values, and the bits of the first one as float64. Else it is (length, from the end, batch): the
    words are the least and greatest index, or, if there is a batch of matrices, 1 + the number of
    the one that cannot be factorised. ``size_of`` evaluates lengths. ``loops`` are those around the
    kernel, (axis, length) with the outermost first, and ``step`` is the flat index over all of
    them.
    """
    error: NonFiniteError | LinearAlgebraError | IndexRangeError
    if check is None:
        count, total, first = words
        error = not_finite(count, total, np.int64(first).view(np.float64))
    elif check[2] is not None:
        sizes = [(name, size_of(size)) for name, size in check[2]]
        error = unfactorised(words[0] - 1, sizes)
    else:
        low, high, *_ = words
        size = size_of(check[0])
        error = outside(low, high, -size if check[1] else 0, size)
    error.kernel = kernel  # type: ignore[union-attr]  # read where the graph is known
    return at_steps(error, [(axis, size_of(length)) for axis, length in loops], step)
