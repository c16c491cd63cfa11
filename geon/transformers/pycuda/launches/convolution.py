"""Convolutions as data: image, filter and response, one of which is computed from the others.

Image element ``i`` meets filter element ``r`` at output position ``p`` where ``i = stride * p +
dilation * r - before`` along each spatial axis. The response sums over channels and filter elements
(forward), the filter over images and positions (weight gradient), and the image over filters and
the positions whose windows contain it (input gradient).
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
    """A spatial axis; lengths and element strides are in the order image, filter, response."""

    lengths: tuple[Size, Size, Size]
    steps: tuple[Size, Size, Size]
    stride: int
    dilation: int
    before: Size


@dataclass(frozen=True, slots=True)
class ConvolutionCall:
    """A convolution of ``images`` with ``filters`` filters per group and ``channels`` per group.

    ``made`` names what is computed, one of ``PARTS``. ``operands`` are the operand numbers of the
    contraction in the order of ``PARTS``. ``outer`` has the strides between images, between filters
    and between images of the response; ``inner`` those between channels, between channels of a
    filter, and between filters in the response. ``dtype`` is the dtype of both factors, ``result``
    that of the stored value. ``ends`` is True if no pass over the sums follows. ``apart`` is True
    if the sums lie in scratch memory until that pass.
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
        """Return the index of what is computed in ``PARTS`` and ``operands``."""
        return PARTS.index(self.made)

    @property
    def terms(self) -> Size:
        """Return the maximum number of products per sum."""
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
        """Return the number of sums."""
        shape = self._shapes()[self.out]
        return product(shape)

    @property
    def multiplications(self) -> Size:
        """Return the number of multiplications, including those with padding."""
        sizes = [length for axis in self.spatial for length in axis.lengths[1:]]
        return product([self.images, self.groups, self.channels, self.filters, *sizes])

    def _shapes(self) -> tuple[tuple[Size, ...], ...]:
        """Return the shapes of image, filter and response: outer, inner, then spatial axes."""
        of_group = (
            (self.images, self.groups * self.channels),
            (self.groups * self.filters, self.channels),
            (self.images, self.groups * self.filters),
        )
        return tuple(
            (*both, *(axis.lengths[k] for axis in self.spatial)) for k, both in enumerate(of_group)
        )

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> Convolving | None:
        """Return the library call for these lengths, without addresses; None if unsupported.

        Spatial axes are in the image's memory order, which libraries expect. Elements beyond the
        last window are padding, or are cut from the image. A computed image cannot be cut, since it
        is 0 there.
        """
        axes = sorted(self.spatial, key=lambda axis: -evaluate(axis.steps[0], lengths))
        return replace(self, spatial=tuple(axes))._ordered(lengths, works, size)

    def _ordered(self, lengths: Mapping[str, int], works: int, size: int) -> Convolving | None:
        """Return the library call with spatial axes in the present order."""
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
        """Yield the spatial strides of image, filter and response."""
        return ([axis.steps[k] for axis in self.spatial] for k in range(3))


def _distinct(steps: list[int], shape: list[int]) -> Iterator[int]:
    """Yield strides, replacing that of each axis of length 1 by the stride over the whole value."""
    whole = max(step * n for step, n in zip(steps, shape, strict=True))
    return (whole if n == 1 else step for step, n in zip(steps, shape, strict=True))
