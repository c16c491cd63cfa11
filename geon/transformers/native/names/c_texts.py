"""Self-contained texts of the C files in ``c/``: local includes are expanded in place.

The compiler needs no include path, and the text of a unit, from which its cache key is computed,
contains everything that the object depends on.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "c"


@cache
def c_text(name: str) -> str:
    """Return the text of a C file with its local includes expanded."""
    lines = (FOLDER / name).read_text("utf-8").splitlines(keepends=True)
    return "".join(
        c_text(line.split('"')[1]) if line.startswith('#include "') else line for line in lines
    )
