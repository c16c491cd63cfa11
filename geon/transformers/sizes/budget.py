"""``Budget``: the maximum bytes of a call."""

from __future__ import annotations

from ...lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum ``bytes`` that a call with these lengths and threads may use besides inputs and
    variables.
    """

    bytes: int
    lengths: tuple[tuple[str, int], ...]
    threads: int
