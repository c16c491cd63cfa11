"""The node that a row is applied to, for operators that need more than inputs and attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NodeInfo:
    """A node that is built: its operator, the version of its domain, and its outputs.

    ``outputs`` are their names, "" for those that nothing reads. ``find`` returns the value of a
    name that the node sees.
    """

    name: str
    operator: str
    version: int
    outputs: tuple[str, ...]
    find: Callable[[str], Any]

    def wants(self, number: int) -> bool:
        """Return True if the output of this number is there."""
        return number < len(self.outputs) and bool(self.outputs[number])
