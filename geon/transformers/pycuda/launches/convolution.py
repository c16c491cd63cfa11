"""A convolution as data: an image, a filter and a response, one of which the others make.

Element ``i`` of an image belongs to place ``r`` of the filter at position ``p`` of the response
where ``i = stride * p + dilation * r - before``, along each spatial axis. The response is a sum
over what an image and a filter have in common, the filter one over images and positions, and the
image one over filters and what positions each element is seen from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate, product
from .device import Convolving

PARTS = ("image", "filter", "response")


@dataclass(frozen=True, slots=True)
class Spatial:
    """A spatial axis: its lengths and steps in image, filter and response, in this order."""

    lengths: tuple[Size, Size, Size]
    steps: tuple[Size, Size, Size]
    stride: int
    dilation: int
    before: Size


@dataclass(frozen=True, slots=True)
class Convolution:
    """``images`` and ``filters`` of each of ``groups``, with ``channels`` of each group.

    ``made`` is what is computed, one of ``PARTS``; ``operands`` are those of a contraction, in
    this order. ``outer`` are the steps from image to image and filter to filter, those of the
    response from image to image; ``inner`` those from channel to channel, of the response from
    filter to filter. ``dtype`` is that of both factors, ``result`` that of what is stored. ``ends``
    says that this is all; else a pass over the sums follows, which lie in scratch memory where they
    are put ``apart``.
    """

    made: str
    operands: tuple[int, int, int]
    images: Size
    groups: Size
    channels: Size
    filters: Size
    spatial: tuple[Spatial, ...]
    outer: tuple[Size, Size, Size]
    inner: tuple[Size, Size, Size]
    dtype: str
    result: str
    ends: bool
    apart: bool

    @property
    def out(self) -> int:
        """The number of what is computed in ``operands``."""
        return PARTS.index(self.made)

    @property
    def terms(self) -> Size:
        """How many products a sum has, at most."""
        image, window, positions = (
            product(axis.lengths[k] for axis in self.spatial) for k in range(3)
        )
        return {
            "response": self.channels * window,
            "filter": self.images * positions,
            "image": self.filters * window,
        }[self.made]

    @property
    def results(self) -> Size:
        """How many sums there are."""
        shape = self._shapes()[self.out]
        return product(shape)

    @property
    def multiplications(self) -> Size:
        """How many products there are; those beyond an image's borders are counted."""
        sizes = [length for axis in self.spatial for length in axis.lengths[1:]]
        return product([self.images, self.groups, self.channels, self.filters, *sizes])

    def _shapes(self) -> tuple[tuple[Size, ...], ...]:
        """The lengths of all three: outer, inner, and along spatial axes."""
        of_group = (
            (self.images, self.groups * self.channels),
            (self.groups * self.filters, self.channels),
            (self.images, self.groups * self.filters),
        )
        return tuple(
            (*both, *(axis.lengths[k] for axis in self.spatial)) for k, both in enumerate(of_group)
        )

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> Convolving | None:
        """The convolution under these lengths, without addresses; None where a library takes none.

        Spatial axes are in the order in which an image lies in memory, which libraries look for.
        What is beyond the last position of a window is padding, or no part of an image: an image
        that is computed has none, since it is 0 there.
        """
        axes = sorted(self.spatial, key=lambda axis: -evaluate(axis.steps[0], lengths))
        return replace(self, spatial=tuple(axes))._ordered(lengths, works, size)

    def _ordered(self, lengths: Mapping[str, int], works: int, size: int) -> Convolving | None:
        """The same, with spatial axes as they are."""
        shapes = [[evaluate(n, lengths) for n in shape] for shape in self._shapes()]
        steps = [
            [evaluate(step, lengths) for step in (outer, inner, *along)]
            for outer, inner, along in zip(self.outer, self.inner, self._along(), strict=True)
        ]
        before = [evaluate(axis.before, lengths) for axis in self.spatial]
        after = []
        for k, axis in enumerate(self.spatial, 2):
            image, window, positions = (shape[k] for shape in shapes)
            reach = axis.stride * (positions - 1) + axis.dilation * (window - 1) + 1
            beyond = reach - before[k - 2] - image
            after.append(max(beyond, 0))
            if beyond < 0 and self.made == "image" and -beyond >= axis.stride:
                return None
            if beyond < 0 and self.made != "image":
                shapes[0][k] = image + beyond
        if min(before) < 0 or any(n < 1 for shape in shapes for n in shape):
            return None
        return Convolving(
            (0, 0, 0), works, size, self.made, tuple(map(tuple, shapes)),
            tuple(tuple(_distinct(s, n)) for s, n in zip(steps, shapes, strict=True)),
            tuple(axis.stride for axis in self.spatial),
            tuple(axis.dilation for axis in self.spatial),
            tuple(before), tuple(after), evaluate(self.groups, lengths), self.dtype, self.result,
        )  # fmt: skip

    def _along(self) -> Iterator[list[Size]]:
        """The steps along spatial axes, of all three."""
        return ([axis.steps[k] for axis in self.spatial] for k in range(3))


def _distinct(steps: list[int], shape: list[int]) -> Iterator[int]:
    """Steps, with one that goes over all where there is no more than one element."""
    whole = max(step * n for step, n in zip(steps, shape, strict=True))
    return (whole if n == 1 else step for step, n in zip(steps, shape, strict=True))
