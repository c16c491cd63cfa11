"""Convolutions as data, for any target: which values, groups, channels and spatial axes they have.

A convolution has an image, a filter and a response, one of which is computed from the others. Image
element ``i`` meets filter element ``r`` at output position ``p`` where ``i = stride * p +
dilation * r - before`` along each spatial axis. The response sums over channels and filter elements
(forward), the filter over images and positions (weight gradient), and the image over filters and
the positions whose windows contain it (input gradient).
"""

from __future__ import annotations

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product

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
class ConvolutionShape:
    """A convolution of ``images`` with ``filters`` filters per group and ``channels`` per group.

    ``made`` names what is computed, one of ``PARTS``. ``operands`` are the operand numbers of the
    contraction in the order of ``PARTS``. ``outer`` has the strides between images, between filters
    and between images of the response; ``inner`` those between channels, between channels of a
    filter, and between filters in the response. ``dtype`` is the dtype of both factors.
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
        shape = self.shapes()[self.out]
        return product(shape)

    @property
    def multiplications(self) -> Size:
        """Return the number of multiplications, including those with padding."""
        sizes = [length for axis in self.spatial for length in axis.lengths[1:]]
        return product([self.images, self.groups, self.channels, self.filters, *sizes])

    def shapes(self) -> tuple[tuple[Size, ...], ...]:
        """Return the shapes of image, filter and response: outer, inner, then spatial axes."""
        of_group = (
            (self.images, self.groups * self.channels),
            (self.groups * self.filters, self.channels),
            (self.images, self.groups * self.filters),
        )
        return tuple(
            (*both, *(axis.lengths[k] for axis in self.spatial)) for k, both in enumerate(of_group)
        )
