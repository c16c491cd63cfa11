"""In how many segments a loop is run: what is asked for, and how many are best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

from ...errors import ArgumentError
from ..attributes import as_int, is_parts
from ..axes import Axis
from ..lengths import evaluate
from ..op_graph import RegionOp
from .scan_facts import ScanAttributes
from .segments import MARKED, Numbers

OPEN = 64  # segments of a loop along an axis whose length is not known
UNEVEN = 1.25  # how many more carries and steps than least may be kept for segments that come out


def numbers_of(what: str, segments: Any, axis: Axis) -> Numbers:
    """The number of segments, of those in each of these, and so on; none for None.

    Raises ``ArgumentError`` for what is no such number.
    """
    if segments is None:
        return ()
    if segments == "sqrt":
        length = axis.expression
        number = root_segments(length) if isinstance(length, int) else OPEN
        return (number,) if number > 1 else ()
    several = isinstance(segments, Sequence) and not isinstance(segments, str)
    found = tuple(map(as_int, segments if several else (segments,)))
    if not is_parts(found):
        raise ArgumentError(
            f"{what}: segments={segments!r} is no number of segments; give 'sqrt', an integer of "
            "at least 2, or several ones for segments of segments; without, what "
            "each step begins with is kept"
        )
    return found


def root_segments(length: int) -> int:
    """In how many segments so many steps take least memory, a segment and its start the same.

    One that divides the length, so that no steps are left, is taken where it is near the least.
    """
    least = isqrt(max(length - 1, 0)) + 1 if length > 1 else 1
    most = UNEVEN * 2 * least
    for away in range(least):
        for number in (least - away, least + away):
            if length % number == 0 and number + length // number <= most:
                return number
        if least - away + length // max(least - away, 1) > most:
            break
    return least


class ForBytes:
    """The division of all scans whose stacks take at least so many bytes, of these lengths.

    There are so many ``levels`` of segments, all of about as many parts; marks have it their way.
    """

    def __init__(self, levels: int, least: int, lengths: Mapping[str, int]) -> None:
        self.levels, self.least, self.lengths = levels, least, lengths

    def of(self, scan: RegionOp) -> Numbers:
        """The numbers for a scan."""
        a = ScanAttributes(scan.attrs)
        length = evaluate(a.axis.expression, self.lengths)
        if self.levels == 1:
            numbers: Numbers = (root_segments(length),)
        else:
            numbers = (max(round(length ** (1 / (self.levels + 1))), 1),) * self.levels
        stacks = sum(
            length * evaluate(value.axes.size, self.lengths) * value.dtype.itemsize
            for value in (*a.body.parameters[: a.carries], *a.body.results[a.carries :])
        )
        fits = is_parts(numbers) and stacks >= self.least
        return MARKED.of(scan) or (numbers if fits else ())
