"""Recognise contractions that are convolutions: forward, weight gradient or input gradient.

A factor is read through windows if a kept and a summed loop share one of its axes. Guards at
borders show this; without borders, overlapping strides do. The signs and divisors of the index, and
the relative length of the two loops, tell whether the response, the filter or the image is
computed. Windows that neither overlap nor have borders are not matched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ..ir.nest import Loop
from .contraction import Contraction
from .convolutions import PARTS, ConvolutionShape, Spatial
from .factors import Factor, GuardedAxis, Steps, factor_access, merge_strides
from .windows import WindowLoops, overlapping_windows, window_loops

Value = TypeVar("Value")
MAX_SPATIAL_AXES = 3  # max. spatial axes
# The factor that is read through windows, the other factor, and what is computed.
WAYS = {
    "response": ("image", "filter", "response"),
    "filter": ("image", "response", "filter"),
    "image": ("response", "filter", "image"),
}
SHARED = {  # non-spatial loops, by the values that have their axis
    "images": {"image", "response"},
    "channels": {"image", "filter"},
    "filters": {"filter", "response"},
    "groups": set(PARTS),
}
OUTER = {"image": "images", "filter": "filters", "response": "images"}
INNER = {"image": "channels", "filter": "channels", "response": "filters"}


@dataclass(frozen=True, slots=True)
class SpatialWindows:
    """The windows along a spatial axis of ``length`` elements with stride ``step``.

    Their index is divided by ``by``.
    """

    loops: WindowLoops
    by: int
    length: Size
    step: Size


def convolution_of(work: Contraction, result: Steps) -> ConvolutionShape | None:
    """Return the convolution that a contraction is, or None.

    ``result`` has the strides of its sums by loop.
    """
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    factors = [factor_access(value, loops) for value in (work.left, work.right)]
    for windowed, other in (factors, factors[::-1]):
        if windowed is None or other is None or other.axes or windowed.turned:
            continue
        if windowed.dtype != other.dtype or windowed.start != 0 or other.start != 0:
            continue
        found = _WindowedContraction(work, windowed, other, result).convolution()
        if found is not None:
            return found
    return None


class _WindowedContraction:
    """A contraction of a factor that is read through windows with another factor."""

    def __init__(self, work: Contraction, windowed: Factor, other: Factor, out: Steps) -> None:
        self.windowed, self.other = windowed, other
        self.kept = (*work.batch, *work.rows, *work.columns)
        self.loops = {loop.name: loop for loop in (*self.kept, *work.summed)}
        self.summed = work.summed
        self.plain = dict(windowed.steps)  # strides of loops that do not share an axis
        self.found = (self.plain, dict(other.steps), dict(out))
        self.operands = windowed.operand, other.operand, work.stores[0].operand
        self.dtype = windowed.dtype

    def convolution(self) -> ConvolutionShape | None:
        """Return the convolution, or None if the contraction is none."""
        windows = self.windows()
        if not windows:
            return None
        kinds = {_kind(window) for window in windows}
        if kinds == {"response"} and all(map(_makes_filter, windows)):
            kinds = {"filter"}
        (made, *others) = kinds
        return None if others or made is None else self.said(made, windows)

    def windows(self) -> list[SpatialWindows]:
        """Return the spatial axes; empty if one does not match."""
        found = [self.window(axis) for axis in self.windowed.axes]
        known = [each for each in found if each is not None]
        return known + self.inside() if len(known) == len(found) else []

    def window(self, axis: GuardedAxis) -> SpatialWindows | None:
        """Return a spatial axis with borders; its summed loop is reversed if the filter's is."""
        loops = window_loops(axis.of, self.kept, self.summed)
        if loops is None or set(axis.of.terms) & set(self.plain):
            return None
        if loops.summed is not None and loops.summed.name in self.other.turned:
            loops = loops.reversed()
        return SpatialWindows(loops, axis.by, axis.length, axis.step)

    def inside(self) -> list[SpatialWindows]:
        """Return the spatial axes without borders and remove their loops from ``plain``."""
        found = []
        names = [name for name in self.plain if name not in self.other.turned]
        inner = [loop for name in names for loop in self.summed if loop.name == name]
        for kept in [loop for name in names for loop in self.kept if loop.name == name]:
            for summed in inner if kept.name not in self.other.steps else ():
                both = overlapping_windows(kept, summed, self.plain)
                if both is not None:
                    loops, step = both
                    reach = loops.stride * (kept.extent - 1), loops.dilation * (summed.extent - 1)
                    found.append(SpatialWindows(loops, 1, reach[0] + reach[1] + 1, step))
                    inner.remove(summed)
                    del self.plain[kept.name], self.plain[summed.name]
                    break
        return found

    def said(self, made: str, windows: Sequence[SpatialWindows]) -> ConvolutionShape | None:
        """Return the convolution that computes ``made``, without operations on its sums."""
        steps = dict(zip(WAYS[made], self.found, strict=True))
        spatial = [_spatial(made, window, steps) for window in windows]
        sizes: dict[str, Size] = {}
        strides: dict[str, dict[str, Size]] = {}
        for name, whose in SHARED.items():
            own = [n for n in self.loops if {part for part in PARTS if n in steps[part]} == whose]
            if name == "images" and merge_strides(*self.together(own, whose, steps)) is None:
                spatial += [self.untouched(n, steps) for n in own[1:]]
                own = own[:1]
            together = merge_strides(*self.together(own, whose, steps))
            if together is None:
                return None
            sizes[name] = together[0]
            strides[name] = dict(zip(sorted(whose), together[1], strict=True))
            for part in whose:
                for n in own:
                    del steps[part][n]
        if any(steps.values()) or not _grouped(sizes, strides) or len(spatial) > MAX_SPATIAL_AXES:
            return None
        walked = [each for axis in spatial for each in zip(axis.lengths, axis.steps, strict=True)]
        if any(step == 0 and length != 1 for length, step in walked):
            return None  # a broadcast operand
        operands = dict(zip(WAYS[made], self.operands, strict=True))
        return ConvolutionShape(
            made, in_order(operands),
            sizes["images"], sizes["groups"], sizes["channels"], sizes["filters"], tuple(spatial),
            in_order({part: strides[OUTER[part]][part] for part in PARTS}),
            in_order({part: strides[INNER[part]][part] for part in PARTS}),
            self.dtype,
        )  # fmt: skip

    def together(
        self, names: Sequence[str], whose: set[str], steps: Mapping[str, Steps]
    ) -> tuple[list[Loop], list[Steps]]:
        """Return loops, and their strides in each value of ``whose``."""
        return [self.loops[n] for n in names], [steps[part] for part in sorted(whose)]

    def untouched(self, name: str, steps: Mapping[str, Steps]) -> Spatial:
        """Return a spatial axis along which the filter has one element."""
        extent = self.loops[name].extent
        image, response = steps["image"].pop(name), steps["response"].pop(name)
        return Spatial((extent, 1, extent), (image, 0, response), 1, 1, 0)


def in_order(values: Mapping[str, Value]) -> tuple[Value, Value, Value]:
    """Return the values of image, filter and response, in this order."""
    return values["image"], values["filter"], values["response"]


def _kind(window: SpatialWindows) -> str | None:
    """Return what is computed along an axis: "image", or "response", which may be a filter."""
    stride, dilation = window.loops.stride, window.loops.dilation
    if window.by > 1 or dilation < 0:
        return "image" if stride in (0, 1) and dilation <= 0 else None
    return "response" if stride >= 0 else None


def _makes_filter(window: SpatialWindows) -> bool:
    """Return True if the kept extent is shorter than the summed one."""
    loops = window.loops.kept, window.loops.summed
    kept, summed = (1 if each is None else each.extent for each in loops)
    return isinstance(kept, int) and not (isinstance(summed, int) and summed <= kept)


def _spatial(made: str, window: SpatialWindows, steps: Mapping[str, Steps]) -> Spatial:
    """Return a spatial axis and remove its loops from ``steps``."""
    loops = window.loops
    kept, summed = loops.stride or 1, abs(loops.dilation) or 1
    along: dict[str, tuple[Size, Size]] = {WAYS[made][0]: (window.length, window.step)}
    for loop, part in ((loops.summed, WAYS[made][1]), (loops.kept, made)):
        along[part] = (1, 0) if loop is None else (loop.extent, steps[part].pop(loop.name, 0))
    stride, dilation = {
        "response": (kept, summed), "filter": (summed, kept), "image": (window.by, summed)
    }[made]  # fmt: skip
    before = loops.constant if made == "image" else -loops.constant
    lengths = in_order({part: length for part, (length, _) in along.items()})
    steps_along = in_order({part: step for part, (_, step) in along.items()})
    return Spatial(lengths, steps_along, stride, dilation, before)


def _grouped(sizes: Mapping[str, Size], strides: Mapping[str, dict[str, Size]]) -> bool:
    """Return True if the channels of successive groups are contiguous.

    If a group has one channel, its stride becomes that of the group.
    """
    if sizes["groups"] == 1:
        return True
    for part, name in (("image", "channels"), ("response", "filters"), ("filter", "filters")):
        step = strides["groups"][part]
        if sizes[name] == 1:
            strides[name][part] = step
        if step != sizes[name] * strides[name][part]:
            return False
    return True
