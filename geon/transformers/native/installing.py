"""Ahead-of-time compilation of shared code for the machine on which geon is installed.

    python -m geon.transformers.native.installing FOLDER

Otherwise the first program on a machine, or in a container without a cache, waits for this code. A
compiler takes half a second for each unit of the product kernels (including those for few columns,
whose vectors are half as wide), a fifth for the gradient of a table lookup, an eighth for the
thread pool, and a quarter to report its properties.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ..cache import disk
from ..sizes.product_blocks import TAGS, half_vector_shape, shape
from .library.library_kernels import library_text
from .machine.threads import pool_library
from .products.product_text import product_units
from .toolchain.compilers import find_toolchain, record_name, record_text
from .toolchain.shared_objects import unit_objects

POSITIONS = ("int32", "int64")  # usual dtypes of table indices


def install(folder: Path) -> None:
    """Replace ``folder`` by one with the compiler's record, the thread pool and shared kernels.

    The kernels are the products of each type, those for few columns of float32, and ``scatter_add``
    of float32. Without a compiler the folder is only removed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    toolchain = find_toolchain()
    if toolchain is None:
        return
    folder.mkdir(parents=True)
    whole = [shape(type, toolchain.vector_bytes) for type in TAGS]
    shapes = [*whole, *filter(None, map(half_vector_shape, whole[:1]))]
    units = [unit for each in shapes for unit in product_units(each)]
    for position in POSITIONS:
        units += library_text("scatter_add", ("float32", position)).units
    name = record_name(toolchain.command)
    record = disk.keep_bytes(name, record_text(toolchain))
    for made in (record, pool_library(toolchain), *unit_objects(toolchain, units)):
        shutil.copyfile(made, folder / made.name)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
