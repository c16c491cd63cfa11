"""The C files of ``c/`` as texts that are complete: a compiler needs no folder to find files in.

So the text of a unit, which is what its object is found by in the cache, has all that it is made
of: the files, those that they include, and the macros.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("c")


@cache
def c_text(name: str) -> str:
    """A file with those that it includes by name in their places."""
    lines = (FOLDER / name).read_text("utf-8").splitlines(keepends=True)
    return "".join(
        c_text(line.split('"')[1]) if line.startswith('#include "') else line for line in lines
    )


def defines(macros: Mapping[str, object]) -> str:
    """The lines that define macros, by name with parameters."""
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


def instance(file: str, name: str, macros: Mapping[str, object]) -> tuple[str, str]:
    """The name and the text of a function that a file defines for these macros.

    The file calls the function NAME, and PART(x) what else it defines. No macro is left defined.
    """
    given = {"NAME": name, "PART(part)": f"{name}_##part", **macros}
    undefined = "".join(f"#undef {macro.partition('(')[0]}\n" for macro in given)
    return name, defines(given) + c_text(file) + undefined
