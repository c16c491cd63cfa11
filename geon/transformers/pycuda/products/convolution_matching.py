"""Convolutions that a library computes: which contractions are one, whichever way it is asked.

A factor is read through windows where two loops share an axis of it: one over what is kept, one
over what is summed. Borders show it, and where windows lie inside, steps that overlap. By the signs
and divisions of such an index, and by which of its loops is shorter, it is the response, the
filter or the image that is computed. Windows that do not overlap and have no border are none.
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
from ..launches.convolution import PARTS, Convolution, Spatial
from .gemm_matching import joined
from .operand_access import Factor, Steps, Walk, factor_of

Value = TypeVar("Value")
MOST_AXES = 3  # spatial ones
# What is read through windows, what else is read, and what is computed.
WAYS = {
    "response": ("image", "filter", "response"),
    "filter": ("image", "response", "filter"),
    "image": ("response", "filter", "image"),
}
SHARED = {  # what loops go over that are not spatial, by whose axes they are
    "images": {"image", "response"},
    "channels": {"image", "filter"},
    "filters": {"filter", "response"},
    "groups": set(PARTS),
}
OUTER = {"image": "images", "filter": "filters", "response": "images"}
INNER = {"image": "channels", "filter": "channels", "response": "filters"}


@dataclass(frozen=True, slots=True)
class Window:
    """A spatial axis: loops over ``kept`` and ``summed`` indices, None for one element.

    The element that is read is ``each_kept`` and ``each_summed`` times these and ``constant``,
    divided by ``by``, of ``length`` elements that are ``step`` apart.
    """

    kept: Loop | None
    summed: Loop | None
    each_kept: int
    each_summed: int
    constant: Size
    by: int
    length: Size
    step: Size


def convolution_of(work: Contraction, writes: bool) -> Convolution | None:
    """The convolution that a contraction is, which ``writes`` a variable or not."""
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
        made = _Reading(work, windowed, other, out).convolution()
        if made is not None:
            result = name_of(work.dtype if apart else store.dtype)
            return replace(made, result=result, ends=ends, apart=apart)
    return None


def _stored(work: Contraction, apart: bool) -> Steps | None:
    """The steps of the result; of sums that are put apart, one after the other."""
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


class _Reading:
    """A contraction of a factor that is read through windows, and another one."""

    def __init__(self, work: Contraction, windowed: Factor, other: Factor, out: Steps) -> None:
        self.windowed, self.other = windowed, other
        self.loops = {
            loop.name: loop for loop in (*work.batch, *work.rows, *work.columns, *work.summed)
        }
        self.summed = {loop.name for loop in work.summed}
        self.plain = dict(windowed.steps)  # of loops with an axis to themselves
        self.found = (self.plain, dict(other.steps), dict(out))
        self.operands = windowed.operand, other.operand, work.stores[0].operand
        self.dtype = windowed.dtype

    def convolution(self) -> Convolution | None:
        """The convolution, if it is one."""
        windows = self.windows()
        if not windows:
            return None
        kinds = {_kind(window) for window in windows}
        if kinds == {"response"} and all(map(_makes_filter, windows)):
            kinds = {"filter"}
        (made, *others) = kinds
        return None if others or made is None else self.said(made, windows)

    def windows(self) -> list[Window]:
        """The spatial axes; none where one is more than that."""
        found = []
        for walk in self.windowed.walks:
            names = {str(name) for name in walk.of.terms}
            kept, summed = sorted(names - self.summed), sorted(names & self.summed)
            if len(kept) > 1 or len(summed) > 1 or names & set(self.plain):
                return []
            found.append(self.window(walk, kept, summed))
        return found + self.inside()

    def window(self, walk: Walk, kept: Sequence[str], summed: Sequence[str]) -> Window:
        """A spatial axis along borders, with the summed loop as it goes through the filter."""
        each = {name: step for name, step in walk.of.terms.items() if isinstance(step, int)}
        constant, step = walk.of.constant, sum(each[name] for name in summed)
        if self.other.turned.issuperset(summed) and summed:
            constant, step = constant + step * (self.loops[summed[0]].extent - 1), -step
        loops = [self.loops[names[0]] if names else None for names in (kept, summed)]
        own = sum(each[name] for name in kept)
        return Window(loops[0], loops[1], own, step, constant, walk.by, walk.length, walk.step)

    def inside(self) -> list[Window]:
        """The spatial axes without borders: loops of steps that overlap; they leave ``plain``."""
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

    def overlapping(self, kept: Loop, summed: Loop) -> Window | None:
        """Two loops as one spatial axis, where each goes further than a step of the other."""
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
        return Window(kept, summed, own, inner, 0, 1, reach[0] + reach[1] + 1, least)

    def said(self, made: str, windows: Sequence[Window]) -> Convolution | None:
        """The convolution that computes this, with all that is done to its sums left out."""
        steps = dict(zip(WAYS[made], self.found, strict=True))
        spatial = [_spatial(made, window, steps) for window in windows]
        sizes: dict[str, Size] = {}
        strides: dict[str, dict[str, Size]] = {}
        for name, whose in SHARED.items():
            own = [n for n in self.loops if {part for part in PARTS if n in steps[part]} == whose]
            if name == "images" and joined(*self.together(own, whose, steps)) is None:
                spatial += [self.untouched(n, steps) for n in own[1:]]
                own = own[:1]
            together = joined(*self.together(own, whose, steps))
            if together is None:
                return None
            sizes[name] = together[0]
            strides[name] = dict(zip(sorted(whose), together[1], strict=True))
            for part in whose:
                for n in own:
                    del steps[part][n]
        if any(steps.values()) or not _grouped(sizes, strides) or len(spatial) > MOST_AXES:
            return None
        walked = [each for axis in spatial for each in zip(axis.lengths, axis.steps, strict=True)]
        if any(step == 0 and length != 1 for length, step in walked):
            return None  # one element stands for many
        operands = dict(zip(WAYS[made], self.operands, strict=True))
        return Convolution(
            made, in_order(operands),
            sizes["images"], sizes["groups"], sizes["channels"], sizes["filters"], tuple(spatial),
            in_order({part: strides[OUTER[part]][part] for part in PARTS}),
            in_order({part: strides[INNER[part]][part] for part in PARTS}),
            self.dtype, self.dtype, ends=True, apart=False,
        )  # fmt: skip

    def together(
        self, names: Sequence[str], whose: set[str], steps: Mapping[str, Steps]
    ) -> tuple[list[Loop], list[Steps]]:
        """Loops and their steps in each of these."""
        return [self.loops[n] for n in names], [steps[part] for part in sorted(whose)]

    def untouched(self, name: str, steps: Mapping[str, Steps]) -> Spatial:
        """A spatial axis along which a window is one element."""
        extent = self.loops[name].extent
        image, response = steps["image"].pop(name), steps["response"].pop(name)
        return Spatial((extent, 1, extent), (image, 0, response), 1, 1, 0)


def in_order(values: Mapping[str, Value]) -> tuple[Value, Value, Value]:
    """What there is of image, filter and response."""
    return values["image"], values["filter"], values["response"]


def _kind(window: Window) -> str | None:
    """What is computed along an axis: the response, which may be the filter, or the image."""
    if window.by > 1 or window.each_summed < 0:
        return "image" if window.each_kept in (0, 1) and window.each_summed <= 0 else None
    return "response" if window.each_kept >= 0 else None


def _makes_filter(window: Window) -> bool:
    """Whether what is kept is shorter than what is summed."""
    kept, summed = (1 if each is None else each.extent for each in (window.kept, window.summed))
    return isinstance(kept, int) and not (isinstance(summed, int) and summed <= kept)


def _spatial(made: str, window: Window, steps: Mapping[str, Steps]) -> Spatial:
    """A spatial axis of what computes this; its loops leave ``steps``."""
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
    """Whether channels of groups follow each other; where one is all, its step is the group's."""
    if sizes["groups"] == 1:
        return True
    for part, name in (("image", "channels"), ("response", "filters"), ("filter", "filters")):
        step = strides["groups"][part]
        if sizes[name] == 1:
            strides[name][part] = step
        if step != sizes[name] * strides[name][part]:
            return False
    return True
