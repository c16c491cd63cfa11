"""The kernels that a run of the tests schedules, by structure, and how two runs compare.

    python -m pytest -n 2 --all -p tests.reach --reach=all    # the keys of each process in all/
    python -m pytest -n 2 -p tests.reach --reach=usual
    python -m tests.reach all usual                           # the share of all that usual reaches

A key is the digest of a kernel's structure: loops, reductions, stores and scalar code, with dtypes
and without names. There are two: one with all lengths and other numbers, of which random programs
have ever new ones, and one in which all numbers from 2 on are the same. A kernel that is one call
of a library has the name and the dtypes of its op. Branches of the code are compared with
coverage.py.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

import pytest

from geon.transformers import pipeline
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.products.row_blocking import Blocked
from geon.transformers.kernels.scans.sequential_scan import OrderedLoop
from geon.transformers.kernels.structural_key import structure
from geon.transformers.lowering.fusion.kernel import Kernel

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NUMBER = re.compile(r"\b(?!0\b|1\b)\d+\b")  # from 2 on; not those in names such as float32
KINDS = ("structures", "structures with lengths")
_keys: set[str] = set()


def keys(kernel: Kernel) -> list[str]:
    """Return the digests of a kernel's structure, without and with lengths."""
    work = kernel.work
    if isinstance(work, Nest | Contraction | Blocked | OrderedLoop):
        text = ADDRESS.sub("", repr(structure(work)))
    else:
        dtypes = [str(getattr(op, "dtype", "void")) for op in (kernel.op, *kernel.op.args)]
        text = f"{type(work).__name__} {kernel.op.primitive.name} {dtypes}"
    texts = (NUMBER.sub("n", text), text)
    return [f"{k} {hashlib.sha256(t.encode()).hexdigest()[:20]}" for k, t in enumerate(texts)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--reach``."""
    parser.addoption("--reach", metavar="FOLDER", help="write the keys of scheduled kernels here")


def pytest_configure(config: pytest.Config) -> None:
    """Note each kernel that is scheduled from here on."""
    schedule = pipeline.make_schedule

    def scheduled(*args, **keywords):  # type: ignore[no-untyped-def]  # those of the function
        made = schedule(*args, **keywords)
        _keys.update(each for kernel in made.kernels for each in keys(kernel))
        return made

    if config.option.reach is not None:
        pipeline.make_schedule = scheduled


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the keys of this process."""
    if session.config.option.reach is not None:
        folder = Path(session.config.option.reach)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.keys").write_text("\n".join([*sorted(_keys), ""]))


def keys_in(folder: str) -> set[str]:
    """Return the keys that a run wrote."""
    return {line for path in Path(folder).glob("*.keys") for line in path.read_text().splitlines()}


def main(first: str, second: str) -> None:
    """Print how many keys of the first run the second one has, of each kind."""
    for k, kind in enumerate(KINDS):
        every, found = ({key for key in keys_in(f) if key[0] == str(k)} for f in (first, second))
        shared = len(every & found)
        print(f"{kind}: {shared} of {len(every)} of {first} are in {second}: ", end="")
        print(f"{100 * shared / max(len(every), 1):.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
