"""The node that a row is applied to, for operators that need more than inputs and attributes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeInfo:
    """A node that is built: its operator, the version of its domain, and its outputs.

    ``outputs`` are their names, "" for those that nothing reads.
    """

    name: str
    operator: str
    version: int
    outputs: tuple[str, ...]

    def wants(self, number: int) -> bool:
        """Return True if the output of this number is there."""
        return number < len(self.outputs) and bool(self.outputs[number])
