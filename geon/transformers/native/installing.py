"""What is compiled when geon is installed, for the machine that it is installed on.

    python -m geon.transformers.native.installing FOLDER

A compiler takes half a second for each of the units that products share, so that the first program
of a machine, or of a container without a cache, had waited for these.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from .objects import unit_objects
from .product_kernels import product_units
from .product_shape import TAGS, shape
from .toolchain import find_toolchain


def install(folder: Path) -> None:
    """Compile what products of each type share into a folder, in place of what was there.

    Nothing without a compiler.
    """
    shutil.rmtree(folder, ignore_errors=True)
    toolchain = find_toolchain()
    if toolchain is None:
        return
    folder.mkdir(parents=True)
    units = [u for type in TAGS for u in product_units(shape(type, toolchain.vector_bytes))]
    for made in unit_objects(toolchain, units):
        shutil.copyfile(made, folder / made.name)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
