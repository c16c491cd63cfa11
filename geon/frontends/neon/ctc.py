"""CTC forward algorithm: the probability of a label sequence over all alignments, as one scan.

A state is the progress in the sequence: state 2 i is the blank before label i, state 2 i + 1 the
label itself. All probabilities are logarithms; ``LOG_ZERO`` stands for log 0 and is finite, so that
the derivative of an impossible alignment is 0 and not NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, AxisError, DTypeError
from ...op_graph.axes.axes import Axis
from ...op_graph.building.resolve_axes import axis_of
from ...op_graph.core.source_info import user_call
from ...op_graph.functions.composites import log_softmax, logsumexp, outer
from ...op_graph.op_graph import Tensor, make
from ...op_graph.regions.scan import scan
from ...op_graph.rows.accumulation import floating, widen
from ...op_graph.rows.concatenation import pad
from ...op_graph.rows.elementwise import (
    cast,
    equal,
    exp,
    greater,
    less,
    log,
    maximum,
    not_equal,
    stop_gradient,
    where,
)
from ...op_graph.rows.indexing import CHECKED, gather, held_by_int64
from ...op_graph.rows.leaves import iota
from ...op_graph.rows.logic import logical_and, logical_or
from ...op_graph.rows.movement import broadcast
from ...op_graph.rows.reductions import tensor_size
from ...op_graph.values.dtypes import kind
from .checks import is_integer
from .classes import CLASS_NUMBER, class_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...op_graph.building.typing import AxisLike

LOG_ZERO = -1e30  # stays finite in float32 when added over any feasible number of steps


class Alignment:
    """Scores over times and classes, and labels to be aligned with them."""

    def __init__(
        self, scores: Tensor, labels: Tensor, over: AxisLike | None, along: AxisLike, blank: int
    ) -> None:
        self.along = axis_of(scores, along, "ctc")
        self.classes = class_axis(scores, over, "ctc")
        self.batch = scores.axes.without([self.along, self.classes])
        own = labels.axes.without(self.batch)
        if len(own) != 1 or own[0].name in scores.axes or kind(labels.dtype) != "i":
            raise AxisError(
                f"{user_call('ctc')}: {labels} (made at {labels.line_info}) of dtype "
                f"{labels.dtype.name} has no row of labels for each row of {scores} (made at "
                f"{scores.line_info}); give integers over {self.batch} and an axis of their own"
            )
        count = self.classes.expression
        if not is_integer(blank) or blank < 0 or (isinstance(count, int) and blank >= count):
            raise ArgumentError(
                f"{user_call('ctc')}: blank={blank} is no class of {self.classes}; give its number"
            )
        self.scores, self.labels, self.blank = scores, labels, blank
        self.row: Axis = own[0]
        self.state = Axis(f"{self.row.name}.state", 2 * self.row.expression + 1)

    def cost(self, lengths: Tensor | None, label_lengths: Tensor | None) -> Tensor:
        """Return the cost over the batch, given the numbers of valid times and labels."""
        lengths, label_lengths = self.counted(lengths), self.counted(label_lengths)
        times = tensor_size(self.scores, [self.along])
        known = tensor_size(self.labels, [self.row])
        end = self.reached(lengths, label_lengths)
        last = 2 * (known if label_lengths is None else label_lengths)
        state = iota(self.state)
        ends = logical_or.apply(equal.apply(state, last), equal.apply(state, last - 1))
        total = logsumexp(where(ends, end, 2 * LOG_ZERO), self.state)
        never = less(total, LOG_ZERO / 2)
        for given, most in ((lengths, times), (label_lengths, known)):
            if given is not None:
                wrong = logical_or(less(given, 0), greater.apply(given, most))
                never = logical_or.apply(never, wrong)
        return where(never, np.inf, 0 - total)  # never returns -0.0

    def reached(self, lengths: Tensor | None, label_lengths: Tensor | None) -> Tensor:
        """Return the log-probability of each state after the last time."""
        said, skips = self.said(label_lengths)
        logs = log_softmax(widen(floating(self.scores)), self.classes)
        state = iota(self.state)
        odd = equal(state % 2, 1)
        emitted = maximum(gather(logs, said, self.classes), LOG_ZERO)
        blanks = logical_and.apply(odd, equal(said, self.blank))
        emitted = where(blanks, LOG_ZERO, emitted)
        axes = emitted.axes.without([self.along])
        first = broadcast(cast(where(equal(state, 0), 0, LOG_ZERO), emitted.dtype), axes)
        parts = [emitted]
        if lengths is not None:
            parts.append(outer(less, iota(self.along), lengths))

        def step(before: Tensor, parts: Sequence[Tensor]) -> tuple[Tensor, None]:
            skipped = where(skips, self.shifted(before, 2), LOG_ZERO)
            after = log_sum([before, self.shifted(before, 1), skipped]) + parts[0]
            return (where(parts[1], after, before) if len(parts) > 1 else after), None

        end, _ = scan(step, first, parts, over=self.along)
        return end

    def said(self, label_lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return each state's class, and True for states that may follow the one two before."""
        place = iota(self.state) // 2
        labels = self.counted_labels(label_lengths)
        padded = [pad(labels, {self.row: widths}, value=self.blank) for widths in ((0, 1), (1, 0))]
        here, before = (gather(each, place, self.row) for each in padded)
        odd = equal(iota(self.state) % 2, 1)
        skips = logical_and.apply(odd, not_equal(here, before))
        return where.apply(odd, here, self.blank), skips

    def counted_labels(self, label_lengths: Tensor | None) -> Tensor:
        """Return the valid labels, checked to be class numbers, and blanks for the others."""
        held: Any = held_by_int64(self.labels)
        labels = cast(held, "int64")
        if label_lengths is not None:
            counted = outer(less, iota(self.row), label_lengths)
            # Under the name of the labels, which messages show.
            labels = where(counted, labels, self.blank, name=self.labels.name or "labels")
        known = make(CHECKED, (labels,), (self.classes.expression, False, None, ""))
        known.add_tags(CLASS_NUMBER)
        return known

    def shifted(self, x: Tensor, by: int) -> Tensor:
        """Return ``x`` shifted by this many states."""
        return pad(x, {self.state: (by, 0)}, value=LOG_ZERO)[{self.state.name: slice(0, -by)}]

    def counted(self, given: Tensor | None) -> Tensor | None:
        """Return lengths as integers over the batch."""
        if given is None:
            return None
        if kind(given.dtype) != "i" or len(given.axes.without(self.batch)):
            raise DTypeError(
                f"{user_call('ctc')}: {given} (made at {given.line_info}) of dtype "
                f"{given.dtype.name} are no lengths of rows; give integers over {self.batch}"
            )
        return cast(given, "int64")


def log_sum(xs: Sequence[Tensor]) -> Tensor:
    """Return the log of the sum of exponentials, elementwise over the list."""
    largest = xs[0]
    for x in xs[1:]:
        largest = maximum(largest, x)
    largest = stop_gradient(largest)
    total = exp(xs[0] - largest)
    for x in xs[1:]:
        total = total + exp(x - largest)
    return largest + log(total)
