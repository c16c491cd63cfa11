"""What CUDA's stages are told beside what all targets are."""

from __future__ import annotations

from dataclasses import dataclass

from ...lowering.facts.target import Target


@dataclass(frozen=True, eq=False)
class CudaTarget(Target):
    """A target that multiplies float32 by tensor cores where ``tf32`` is set."""

    tf32: bool = False


def takes_tf32(target: Target) -> bool:
    """Whether products of float32 are rounded to tf32."""
    return isinstance(target, CudaTarget) and target.tf32
