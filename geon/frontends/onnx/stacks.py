"""Stacked results of loops whose number of steps is computed by the call, up to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length, may_equal
from ..positional.values import PositionalArray, Size, Value, array, known, known_list


@dataclass(frozen=True, eq=False, slots=True)
class PartialStack:
    """A stacked result, of which a call makes the first ``count`` rows.

    ``held`` has a row for each step up to the limit of the loop, 0 for those not taken. ``steps``
    is the length that stands for ``count``; no input has it.
    """

    held: PositionalArray
    count: geon.Tensor
    steps: Length

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.held.dtype

    @property
    def shape(self) -> tuple[Size, ...]:
        """The length at each position."""
        return (self.steps, *self.held.shape[1:])

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"

    def refused(self, what: str) -> ArgumentError:
        """Return the error of a use that needs the number of rows before a call."""
        return ArgumentError(
            f"{what} has {self}: the number of steps depends on values of a call, and so does the "
            "length of stacked results; geon needs a length that is known before, such as that of "
            f"a Pad with zeros up to the {self.held.shape[0]} steps that the loop may take"
        )

    def apply(self, operator: str, inputs: Sequence[Any]) -> Any:
        """Return an operator's result: itself, in reverse order, or padded with zeros to the limit.

        Raises ``ArgumentError`` for all others.
        """
        if operator == "Identity":
            return self
        if inputs[0] is self and operator == "Reshape" and self._keeps(inputs[1]):
            return self
        if inputs[0] is self and operator == "Slice" and self._reverses(inputs[1:]):
            return self._reversed()
        if inputs[0] is self and operator == "Pad" and self._completes(*inputs[1:]):
            return self.held
        raise self.refused(f"an input of {operator}")

    def _keeps(self, target: Value) -> bool:
        lengths = known_list(target, "the shape")
        same = len(lengths) == len(self.shape) and lengths[0] == self.steps
        return same and all(map(may_equal, lengths[1:], self.shape[1:]))

    def _reverses(self, bounds: Sequence[Value]) -> bool:
        first, last, *rest = [known_list(each) for each in bounds]
        return first == [-1] and last[0] <= -(2**31) and rest == [[0], [-1]]

    def _reversed(self) -> PartialStack:
        line = self.held.dims[0]
        assert line is not None
        number = geon.iota(line)
        index = geon.where(number < self.count, self.count - 1 - number, number)
        turned = geon.gather(self.held.tensor, index, line)
        return PartialStack(array(turned, self.held.dims), self.count, self.steps)

    def _completes(self, pads: Value, fill: Value | None = None) -> bool:
        before = [0] * len(self.shape)
        widths = [self.held.shape[0] - self.steps, *before[1:]]
        return known_list(pads) == [*before, *widths] and (fill is None or not known(fill).any())
