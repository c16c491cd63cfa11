"""Target description of the CUDA transformer."""

from __future__ import annotations

from dataclasses import dataclass

from ...lowering.facts.target import Target


@dataclass(frozen=True, eq=False)
class CudaTarget(Target):
    """A CUDA target; with ``tf32``, tensor cores multiply float32."""

    tf32: bool = False


def takes_tf32(target: Target) -> bool:
    """Return True if products of float32 are rounded to tf32."""
    return isinstance(target, CudaTarget) and target.tf32
