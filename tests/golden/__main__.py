"""``python -m tests.golden``: what would change in the golden files, or with ``--update`` that."""

import difflib
import json
import os
import sys

from geon.transformers.pycuda.runtime.nvrtc import find_nvcc

from . import registers
from .emitting import FOLDER, golden_files, golden_texts, whole_cuda


def differences(texts: dict[str, str]) -> str:
    """The changes from the golden files to these texts; empty where there are none."""
    old = {path.name: path.read_text(encoding="utf-8") for path in golden_files()}
    found: list[str] = []
    for name in sorted(old.keys() | texts.keys()):
        before, after = old.get(name, ""), texts.get(name, "")
        pair = before.splitlines(keepends=True), after.splitlines(keepends=True)
        found += difflib.unified_diff(*pair, f"golden/{name}", f"emitted/{name}")
    return "".join(found)


def update(texts: dict[str, str]) -> None:
    """Make the golden files have these texts, and no others be there."""
    for path in golden_files():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def main(options: list[str]) -> None:
    os.environ["GEON_TRANSFORMER"] = "numpy"  # that of the examples, which then need no compiler
    sys.path.insert(0, str(FOLDER.parents[1] / "examples"))
    if options == ["--update"]:
        update(golden_texts())
        if find_nvcc() is not None:
            registers.FILE.write_text(registers.table(whole_cuda()), encoding="utf-8")
    elif options == ["--json"]:  # for the tests, which emit in a process of its own
        json.dump(golden_texts(), sys.stdout)
    elif not options:
        found = differences(golden_texts())
        sys.stdout.write(found)
        sys.exit(bool(found))
    else:
        sys.exit("usage: python -m tests.golden [--update]")


if __name__ == "__main__":
    main(sys.argv[1:])
