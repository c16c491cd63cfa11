"""``Budget``: the bytes that a call may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """The bytes that a call may take beside inputs and variables, of lengths and threads."""

    bytes: int
    lengths: tuple[tuple[str, int], ...]
    threads: int
