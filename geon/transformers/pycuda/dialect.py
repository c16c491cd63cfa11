"""What CUDA says in its own way: the text that modules begin with, and rows side by side."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("cuda")


@cache
def cuda_text(name: str) -> str:
    """A file of ``cuda/``."""
    return (FOLDER / name).read_text("utf-8")


class RowStore(str):
    """A statement that stores a value of a row."""

    __slots__ = ()


class ThreadLanes:
    """Rows side by side are those of neighbouring threads: each thread has one of them.

    Passes by elements read what lies across from ``tiles`` in shared memory.
    """

    number = "1"
    windows = False
    wraps = False  # nvcc takes x + 1 > x for true

    def __init__(self, tiles: bool = False) -> None:
        self.tiles = tiles

    def held(self, name: str) -> str:
        """The value called ``name``, which each thread has of its row."""
        return name

    def alone(self, name: str) -> str:
        """The same where a row is by itself."""
        return name

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """The statement that makes ``name`` the value ``text``."""
        return [f"const {ctype} {name} = {text};"]

    def stored(self, statement: str, side_by_side: bool) -> str:
        """The statement that stores a value of the row, by one thread of those that share it."""
        return RowStore(f"if (first) {statement}")
