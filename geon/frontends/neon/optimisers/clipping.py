"""Clipping of slopes: ``clip=`` of an optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from ....op_graph.composites import L2_norm, clip, squared_L2
from ....op_graph.elementwise import add, maximum, sqrt
from ....op_graph.op_graph import Tensor
from ..checks import above_zero

Clip: TypeAlias = Callable[[Sequence[Tensor]], list[Tensor]]


@dataclass(frozen=True)
class Clipping:
    """Makes slopes smaller, by ``largest``; ``ArgumentError`` where that is not above 0."""

    largest: float

    def __post_init__(self) -> None:
        above_zero(type(self).__name__, "largest", self.largest)


class ByValue(Clipping):
    """Each element between -largest and largest."""

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return [clip(slope, -self.largest, self.largest) for slope in slopes]


class ByNorm(Clipping):
    """Each slope scaled so that its norm is at most ``largest``."""

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return [self.largest / maximum(L2_norm(s), self.largest) * s for s in slopes]


class ByGlobalNorm(Clipping):
    """All slopes scaled by one factor, so that their common norm is at most ``largest``."""

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        if not slopes:
            return []
        norm = sqrt(reduce(add, [squared_L2(slope) for slope in slopes]))
        factor = self.largest / maximum(norm, self.largest)
        return [factor * slope for slope in slopes]
