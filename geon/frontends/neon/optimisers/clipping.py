"""Gradient clipping: ``clip=`` of an optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ....op_graph.building.weak import in_dtype
from ....op_graph.functions.composites import clip, wide_norm
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.accumulation import widen
from ....op_graph.rows.elementwise import maximum
from ..checks import above_zero

Clip: TypeAlias = Callable[[Sequence[Tensor]], list[Tensor]]


@dataclass(frozen=True)
class Clipping:
    """Base of clipping by a limit ``largest``; raises ``ArgumentError`` unless that is above 0."""

    largest: float

    def __post_init__(self) -> None:
        above_zero(type(self).__name__, "largest", self.largest)


class ByValue(Clipping):
    """Clips each element to -largest and largest."""

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return [clip(slope, -self.largest, self.largest) for slope in slopes]


class ByNorm(Clipping):
    """Scales each gradient so that its norm is at most ``largest``."""

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return [clip_by_norm([slope], self.largest)[0] for slope in slopes]


class ByGlobalNorm(Clipping):
    """Scales all gradients by one factor, so that their common norm is at most ``largest``."""

    def __call__(self, slopes: Sequence[Tensor]) -> list[Tensor]:
        return clip_by_norm(slopes, self.largest)


def clip_by_norm(slopes: Sequence[Tensor], largest: float) -> list[Tensor]:
    """Return the gradients times one factor that makes their common norm at most ``largest``."""
    if not slopes:
        return []
    factor = largest / maximum(wide_norm(slopes, "clip"), largest)
    wide = map(widen, slopes)
    return [
        in_dtype(in_dtype(factor, x.dtype) * x, slope.dtype)
        for slope, x in zip(slopes, wide, strict=True)
    ]
