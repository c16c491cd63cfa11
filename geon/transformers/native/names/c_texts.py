"""The C files of ``c/`` as texts that are complete: a compiler needs no folder to find files in.

So the text of a unit, which is what its object is found by in the cache, has all that it is made
of: the files, those that they include, and the macros.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "c"


@cache
def c_text(name: str) -> str:
    """A file with those that it includes by name in their places."""
    lines = (FOLDER / name).read_text("utf-8").splitlines(keepends=True)
    return "".join(
        c_text(line.split('"')[1]) if line.startswith('#include "') else line for line in lines
    )
