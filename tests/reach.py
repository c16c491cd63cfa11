"""The kernels that a run of the tests schedules, by structure, and how two runs compare.

    python -m pytest -n 2 --all -p tests.reach --reach all    # the keys of each process in all/
    python -m pytest -n 2 -p tests.reach --reach usual
    python -m tests.reach all usual                           # the share of all that usual reaches

A key is the digest of a kernel's structure: loops, reductions, stores and scalar code, with lengths
and dtypes, and without names. A kernel that is one call of a library has the name and the dtypes of
its op. Branches of the code are compared with coverage.py.
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
_keys: set[str] = set()


def key(kernel: Kernel) -> str:
    """Return the digest of a kernel's structure."""
    work = kernel.work
    if isinstance(work, Nest | Contraction | Blocked | OrderedLoop):
        text = ADDRESS.sub("", repr(structure(work)))
    else:
        dtypes = [str(getattr(op, "dtype", "void")) for op in (kernel.op, *kernel.op.args)]
        text = f"{type(work).__name__} {kernel.op.primitive.name} {dtypes}"
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--reach``."""
    parser.addoption("--reach", metavar="FOLDER", help="write the keys of scheduled kernels here")


def pytest_configure(config: pytest.Config) -> None:
    """Note each kernel that is scheduled from here on."""
    schedule = pipeline.make_schedule

    def scheduled(*args, **keywords):  # type: ignore[no-untyped-def]  # those of the function
        made = schedule(*args, **keywords)
        _keys.update(map(key, made.kernels))
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
    return {line for path in Path(folder).glob("*.keys") for line in path.read_text().split()}


def main(first: str, second: str) -> None:
    """Print how many keys of the first run the second one has."""
    every, found = keys_in(first), keys_in(second)
    shared = len(every & found)
    print(f"{first}: {len(every)} kernels, {second}: {len(found)}")
    print(f"{shared} of {first} are in {second}: {100 * shared / max(len(every), 1):.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
