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

    def __call__(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return [clip(gradient, -self.largest, self.largest) for gradient in gradients]


class ByNorm(Clipping):
    """Scales each gradient so that its norm is at most ``largest``."""

    def __call__(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return [clip_by_norm([gradient], self.largest)[0] for gradient in gradients]


class ByGlobalNorm(Clipping):
    """Scales all gradients by one factor, so that their common norm is at most ``largest``."""

    def __call__(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return clip_by_norm(gradients, self.largest)


def clip_by_norm(gradients: Sequence[Tensor], largest: float) -> list[Tensor]:
    """Return the gradients times one factor that makes their common norm at most ``largest``."""
    if not gradients:
        return []
    factor = largest / maximum(wide_norm(gradients, "clip"), largest)
    wide = map(widen, gradients)
    return [
        in_dtype(in_dtype(factor, x.dtype) * x, gradient.dtype)
        for gradient, x in zip(gradients, wide, strict=True)
    ]
