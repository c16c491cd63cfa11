"""Clipping of slopes: ``clip=`` of an optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from ....op_graph.composites import L2_norm, clip, squared_L2
from ....op_graph.elementwise import add, maximum, sqrt
from ....op_graph.op_graph import Tensor

Clip: TypeAlias = Callable[[Sequence[Tensor]], list[Tensor]]


@dataclass(frozen=True)
class ByValue:
    """Each element between -largest and largest."""

    largest: float

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return [clip(slope, -self.largest, self.largest) for slope in slopes]


@dataclass(frozen=True)
class ByNorm:
    """Each slope scaled so that its norm is at most ``largest``."""

    largest: float

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return [self.largest / maximum(L2_norm(s), self.largest) * s for s in slopes]


@dataclass(frozen=True)
class ByGlobalNorm:
    """All slopes scaled by one factor, so that their common norm is at most ``largest``."""

    largest: float

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        if not slopes:
            return []
        norm = sqrt(reduce(add, [squared_L2(slope) for slope in slopes]))
        factor = self.largest / maximum(norm, self.largest)
        return [factor * slope for slope in slopes]
