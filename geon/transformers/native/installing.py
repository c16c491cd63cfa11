"""What is made when geon is installed, for the machine that it is installed on.

    python -m geon.transformers.native.installing FOLDER

A compiler takes half a second for each of the units that products share, among them those of
few columns, whose vectors are half as wide, a fifth for the slope of a
table of which rows are looked up, an eighth for the pool of threads, and a quarter to be asked what
it can do. The first program of a machine, or of a container without a cache, would wait for these.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ..cache import disk
from .library.library_kernels import library_text
from .machine.threads import pool_library
from .products.product_kernels import product_units
from .sizes.blocking import TAGS, halved, shape
from .toolchain.compilers import find_toolchain, record_name, record_text
from .toolchain.shared_objects import unit_objects

POSITIONS = ("int32", "int64")  # dtypes of what rows of a table are mostly looked up by


def install(folder: Path) -> None:
    """Fill a folder, in place of what was there: the compiler as it is known, the pool, what
    products of each type share, those of few columns of float32, and what adds to rows of float32.

    Nothing without a compiler.
    """
    shutil.rmtree(folder, ignore_errors=True)
    toolchain = find_toolchain()
    if toolchain is None:
        return
    folder.mkdir(parents=True)
    whole = [shape(type, toolchain.vector_bytes) for type in TAGS]
    shapes = [*whole, *filter(None, map(halved, whole[:1]))]
    units = [unit for each in shapes for unit in product_units(each)]
    for position in POSITIONS:
        units += library_text("scatter_add", ("float32", position)).units
    name = record_name(toolchain.command)
    record = disk.keep_bytes(name, record_text(toolchain))
    for made in (record, pool_library(toolchain), *unit_objects(toolchain, units)):
        shutil.copyfile(made, folder / made.name)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
