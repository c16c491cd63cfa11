"""The examples of the op reference: cells of the files in ``docs/examples``, run one by one.

A file is a group of functions, named by its docstring. A cell begins with a line ``# %% NAME`` and
is the example of that function; it runs by itself after what ``begin.py`` has.
"""

import contextlib
import gc
import io
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "examples"
CELL = re.compile(r"^# %% (\w+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """The example of one function: its group, its lines, and what they print."""

    group: str
    code: str
    output: str


def beginning() -> str:
    """What every example begins with, as text."""
    return (FOLDER / "begin.py").read_text().split("\n", 2)[2].strip() + "\n"


def cells() -> dict[str, tuple[str, str]]:
    """The group and the lines of every example, by the name of its function."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(FOLDER.glob("*.py")):
        title = path.read_text().split('"""')[1]
        names_and_codes = CELL.split(path.read_text())[1:]
        for name, code in zip(names_and_codes[::2], names_and_codes[1::2], strict=True):
            if name in found:
                raise ValueError(f"{path.name}: there are two examples of {name}")
            found[name] = title, code.strip() + "\n"
    return found


def output(name: str, code: str) -> str:
    """What an example prints; lines in messages are those of ``begin.py`` and ``example.py``."""
    gc.collect()  # equal ops of examples before, which would have lines there
    printed = io.StringIO()
    namespace: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(printed):
        exec(compile(beginning(), "begin.py", "exec"), namespace)
        try:
            exec(compile(code, "example.py", "exec"), namespace)
        except Exception as error:
            error.add_note(f"in the example of {name}")
            raise
    return printed.getvalue()


def examples() -> dict[str, Example]:
    """Every example by the name of its function, run.

    What lives already, modules above all, is kept out of the garbage collection before each.
    """
    exec(compile(beginning(), "begin.py", "exec"), {"__name__": "__main__"})  # imports
    gc.collect()
    gc.freeze()
    try:
        return {
            name: Example(group, code, output(name, code))
            for name, (group, code) in cells().items()
        }
    finally:
        gc.unfreeze()
