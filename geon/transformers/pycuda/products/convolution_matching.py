"""Recognise contractions that are convolutions: forward, weight gradient or input gradient.

A factor is read through windows if a kept and a summed loop share one of its axes. Guards at
borders show this; without borders, overlapping strides do. The signs and divisors of the index, and
the relative length of the two loops, tell whether the response, the filter or the image is
computed. Windows that neither overlap nor have borders are not matched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import HALVES, name_of
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Apply, Contracted
from ...kernels.products.contraction import Contraction, is_negative
from ..launches.library_requests import PARTS, ConvolutionCall, Spatial
from .gemm_matching import Factor, Steps, Walk, factor_of, merge_strides

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
class WindowLoops:
    """A spatial axis, with its loops over ``kept`` and ``summed`` indices; None for extent 1.

    The index is (``each_kept`` * kept + ``each_summed`` * summed + ``constant``) / ``by``, into
    ``length`` elements with stride ``step``.
    """

    kept: Loop | None
    summed: Loop | None
    each_kept: int
    each_summed: int
    constant: Size
    by: int
    length: Size
    step: Size


def convolution_of(work: Contraction, writes: bool) -> ConvolutionCall | None:
    """Return the convolution that a contraction is, or None; ``writes`` if it writes a variable."""
    store = work.stores[0]
    value = store.value
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(store.dtype) in HALVES:
        (value,) = value.args
    ends = len(work.stores) == 1 and isinstance(value, Contracted)
    apart = not ends and (writes or store.dtype != work.dtype)
    out = _stored(work, apart)
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    factors = [factor_of(value, loops) for value in (work.left, work.right)]
    for windowed, other in (factors, factors[::-1]):
        if out is None or windowed is None or other is None or other.walks:
            continue
        if windowed.dtype != other.dtype or windowed.start != 0 or other.start != 0:
            continue
        if windowed.turned:
            continue
        made = _WindowedContraction(work, windowed, other, out).convolution()
        if made is not None:
            result = name_of(work.dtype if apart else store.dtype)
            return replace(made, result=result, ends=ends, apart=apart)
    return None


def _stored(work: Contraction, apart: bool) -> Steps | None:
    """Return the result's strides by loop; for sums in scratch memory, contiguous ones."""
    if apart:
        kept = (*work.batch, *work.rows, *work.columns)
        return {
            loop.name: product(inner.extent for inner in kept[k + 1 :])
            for k, loop in enumerate(kept)
        }
    offset = work.stores[0].offset
    steps = {str(atom): step for atom, step in offset.terms.items()}
    simple = all(isinstance(atom, str) for atom in offset.terms) and offset.constant == 0
    return steps if simple and not any(map(is_negative, steps.values())) else None


class _WindowedContraction:
    """A contraction of a factor that is read through windows with another factor."""

    def __init__(self, work: Contraction, windowed: Factor, other: Factor, out: Steps) -> None:
        self.windowed, self.other = windowed, other
        self.loops = {
            loop.name: loop for loop in (*work.batch, *work.rows, *work.columns, *work.summed)
        }
        self.summed = {loop.name for loop in work.summed}
        self.plain = dict(windowed.steps)  # strides of loops that do not share an axis
        self.found = (self.plain, dict(other.steps), dict(out))
        self.operands = windowed.operand, other.operand, work.stores[0].operand
        self.dtype = windowed.dtype

    def convolution(self) -> ConvolutionCall | None:
        """Return the convolution, or None if the contraction is none."""
        windows = self.windows()
        if not windows:
            return None
        kinds = {_kind(window) for window in windows}
        if kinds == {"response"} and all(map(_makes_filter, windows)):
            kinds = {"filter"}
        (made, *others) = kinds
        return None if others or made is None else self.said(made, windows)

    def windows(self) -> list[WindowLoops]:
        """Return the spatial axes; empty if one does not match."""
        found = []
        for walk in self.windowed.walks:
            names = {str(name) for name in walk.of.terms}
            kept, summed = sorted(names - self.summed), sorted(names & self.summed)
            if len(kept) > 1 or len(summed) > 1 or names & set(self.plain):
                return []
            found.append(self.window(walk, kept, summed))
        return found + self.inside()

    def window(self, walk: Walk, kept: Sequence[str], summed: Sequence[str]) -> WindowLoops:
        """Return a spatial axis with borders; its summed loop is reversed if the filter's is."""
        each = {name: step for name, step in walk.of.terms.items() if isinstance(step, int)}
        constant, step = walk.of.constant, sum(each[name] for name in summed)
        if self.other.turned.issuperset(summed) and summed:
            constant, step = constant + step * (self.loops[summed[0]].extent - 1), -step
        loops = [self.loops[names[0]] if names else None for names in (kept, summed)]
        own = sum(each[name] for name in kept)
        return WindowLoops(loops[0], loops[1], own, step, constant, walk.by, walk.length, walk.step)

    def inside(self) -> list[WindowLoops]:
        """Return the spatial axes without borders and remove their loops from ``plain``."""
        found = []
        alone = [name for name in self.plain if name not in self.other.turned]
        kept = [n for n in alone if n not in self.summed and n not in self.other.steps]
        for name in kept:
            for inner in [n for n in alone if n in self.summed and n in self.plain]:
                window = self.overlapping(self.loops[name], self.loops[inner])
                if window is not None:
                    found.append(window)
                    del self.plain[name], self.plain[inner]
                    break
        return found

    def overlapping(self, kept: Loop, summed: Loop) -> WindowLoops | None:
        """Return two loops as one spatial axis if their index ranges overlap, else None."""
        steps = self.plain[kept.name], self.plain[summed.name]
        if steps[0] == steps[1]:
            least, own, inner = steps[0], 1, 1
        elif isinstance(steps[0], int) and isinstance(steps[1], int):
            least = min(steps)
            own, inner = steps[0] // min(steps), steps[1] // min(steps)
            if (own * least, inner * least) != steps:
                return None
        else:
            return None
        reach = own * (kept.extent - 1), inner * (summed.extent - 1)
        far = [
            across >= step for across, step in zip(reach, (inner, own), strict=True)
            if isinstance(across, int)
        ]  # fmt: skip
        if not far or not all(far):
            return None
        return WindowLoops(kept, summed, own, inner, 0, 1, reach[0] + reach[1] + 1, least)

    def said(self, made: str, windows: Sequence[WindowLoops]) -> ConvolutionCall | None:
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
        return ConvolutionCall(
            made, in_order(operands),
            sizes["images"], sizes["groups"], sizes["channels"], sizes["filters"], tuple(spatial),
            in_order({part: strides[OUTER[part]][part] for part in PARTS}),
            in_order({part: strides[INNER[part]][part] for part in PARTS}),
            self.dtype, self.dtype, ends=True, apart=False,
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


def _kind(window: WindowLoops) -> str | None:
    """Return what is computed along an axis: "image", or "response", which may be a filter."""
    if window.by > 1 or window.each_summed < 0:
        return "image" if window.each_kept in (0, 1) and window.each_summed <= 0 else None
    return "response" if window.each_kept >= 0 else None


def _makes_filter(window: WindowLoops) -> bool:
    """Return True if the kept extent is shorter than the summed one."""
    kept, summed = (1 if each is None else each.extent for each in (window.kept, window.summed))
    return isinstance(kept, int) and not (isinstance(summed, int) and summed <= kept)


def _spatial(made: str, window: WindowLoops, steps: Mapping[str, Steps]) -> Spatial:
    """Return a spatial axis and remove its loops from ``steps``."""
    kept, summed = window.each_kept or 1, abs(window.each_summed) or 1
    along: dict[str, tuple[Size, Size]] = {WAYS[made][0]: (window.length, window.step)}
    for loop, part in ((window.summed, WAYS[made][1]), (window.kept, made)):
        along[part] = (1, 0) if loop is None else (loop.extent, steps[part].pop(loop.name, 0))
    stride, dilation = {
        "response": (kept, summed), "filter": (summed, kept), "image": (window.by, summed)
    }[made]  # fmt: skip
    before = window.constant if made == "image" else -window.constant
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
