"""Records of compiled programs: all that a call needs besides the code, without the op graph.

A record is stored in the disk cache under the program's key, beside the shared object. A process
that requests the same program again runs no stage of the compiler.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....lazy_dataclasses import dataclass
from ...cache import disk
from ...cache.serialization import RecordStore

if TYPE_CHECKING:
    from ...lowering.planning.iteration_spaces import Loops
    from ...sizes.buffers import Buffer
    from ...sizes.scratch import Size
    from ...sizes.spaces import Space
    from ..sizes.products import PackedCopy
    from ..toolchain.compilers import Toolchain

ALL = "geon.transformers.sizes"
OWN = "geon.transformers.native.sizes"
# The classes that a record may contain and their modules, which are imported on demand.
PARTS = {
    "Record": __name__,
    "Shown": __name__,
    "Buffer": f"{ALL}.buffers",
    "PerThread": f"{ALL}.scratch",
    "Largest": f"{ALL}.scratch",
    "Cut": f"{ALL}.blocks",
    "BlockedScratch": f"{OWN}.kernel_scratch",
    "Copies": f"{OWN}.kernel_scratch",
    "PartTotals": f"{OWN}.kernel_scratch",
    "SortScratch": f"{OWN}.kernel_scratch",
    "PackedCopy": f"{OWN}.products",
    "PlannedProduct": f"{ALL}.product_problem",
    "ProductPlan": f"{ALL}.product_plan",
    "ProductScratch": f"{OWN}.products",
    "Shape": f"{ALL}.product_blocks",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A value that a kernel prints: its label, shape and dtype."""

    label: str
    lengths: tuple[Size, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class Record:
    """A compiled program.

    ``file`` is the name of the shared object in the cache. ``suffix`` ends the name of its
    function. ``pointers`` is the number of pointers that the function takes. ``keeps`` is True if
    the last of them is the table of cached packed operands. ``lengths`` are the names of the open
    lengths that the function takes. ``work`` has the iteration spaces of the kernels, each with the
    number of kernels that have it. ``buffers`` are the arena buffers, ``alignment`` their alignment
    in bytes. ``lifetimes`` are the live ranges of the arena buffers, as first and last step.
    ``kept`` are the cached packed operands. ``beside`` has the bytes of each result. ``results``
    has the shape and dtype of each result. ``shown`` has the printed values, by kernel number.
    ``checks`` has for each kernel that can fail the attributes of its check, as a plain tuple, or
    None for a check that values are finite. ``loops`` has
    the loops around each kernel that can fail inside of a loop. ``stops`` is True if the program
    has loops that end at an interrupt. ``external`` are the keys of the external functions that it
    calls, in the order in which ``geon_link_external`` takes their addresses.
    """

    file: str
    suffix: str
    pointers: int
    keeps: bool
    lengths: tuple[str, ...]
    work: tuple[tuple[Space, int], ...]
    buffers: tuple[Buffer, ...]
    alignment: int
    lifetimes: tuple[tuple[int, int], ...]
    kept: tuple[PackedCopy, ...]
    beside: tuple[Size, ...]
    results: tuple[tuple[tuple[Size, ...], Any], ...]
    shown: dict[int, Shown]
    checks: dict[int, tuple[Any, ...] | None]
    loops: dict[int, Loops]
    stops: bool
    external: tuple[str, ...]


# On disk ------------------------------------------------------------------------------------------


RECORDS = RecordStore("program", PARTS)


def load(key: str, toolchain: Toolchain) -> tuple[Record, Path] | None:
    """Return the record stored under a program's key and its shared object's path, or None."""
    record: Record | None = RECORDS.load(key, *_machine(toolchain))
    path = None if record is None else disk.find(record.file)
    return None if record is None or path is None else (record, path)


def save(key: str, toolchain: Toolchain, record: Record) -> None:
    """Store a record under its program's key."""
    RECORDS.save(record, key, *_machine(toolchain))


def _machine(toolchain: Toolchain) -> tuple[str, ...]:
    """Return the compiler's command, version and flags, and the processor."""
    flags = (*toolchain.flags, *toolchain.lean)
    return *toolchain.command, toolchain.version, *flags, toolchain.cpu
