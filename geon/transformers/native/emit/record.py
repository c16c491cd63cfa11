"""What a call needs to know of a compiled program but its code: no op is in it.

It is kept on disk under the key of the program, beside the shared object: a process that asks for
a program that was compiled before runs no stage of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cache import disk, serialization

if TYPE_CHECKING:
    from ...lowering.planning.plan_loops import Loops
    from ...sizes.buffers import Buffer
    from ...sizes.scratch import Size
    from ...sizes.spaces import Space
    from ..sizes.products import PackedCopy
    from ..toolchain.compilers import Toolchain

ALL = "geon.transformers.sizes"
OWN = "geon.transformers.native.sizes"
# The classes of what records are made of, and their modules, which are imported where a record has
# such a part.
PARTS = {
    "Record": __name__,
    "Shown": __name__,
    "Buffer": f"{ALL}.buffers",
    "PerThread": f"{ALL}.scratch",
    "Cut": f"{ALL}.blocks",
    "BlockedScratch": f"{OWN}.chains",
    "Copies": f"{OWN}.scatters",
    "PartTotals": f"{OWN}.prefixes",
    "SortScratch": f"{OWN}.sorts",
    "OneOf": f"{OWN}.products",
    "PackedCopy": f"{OWN}.products",
    "ProductScratch": f"{OWN}.products",
    "Sides": f"{OWN}.products",
    "Shape": "geon.transformers.native.sizes.blocking",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A value that a kernel prints: its label, and how it lies in memory."""

    label: str
    lengths: tuple[Size, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class Record:
    """Of a program: the tables that its function takes, memory, results, and what can fail.

    ``file`` is the name of its shared object in the cache, ``suffix`` ends that of its function.
    The function takes ``pointers`` pointers, the last of them to the table of kept copies where it
    ``keeps`` any, and the open ``lengths``. ``work`` has the axes over which kernels go, with how
    many do; ``beside`` the bytes of results; ``checks`` by kernel the length that positions must
    lie in and whether they may count from its end, None for a check that values are finite;
    ``loops`` the loops around those that are in any. It ``stops`` at an interrupt where it has
    loops.
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
    checks: dict[int, tuple[Size, bool] | None]
    loops: dict[int, Loops]
    stops: bool


# On disk ------------------------------------------------------------------------------------------


def load(key: str, toolchain: Toolchain) -> tuple[Record, Path] | None:
    """The record under a program's key, with its shared object; None where one is not there."""
    content = disk.load(_name(key, toolchain))
    if content is None:
        return None
    record: Record = made(json.loads(content))
    path = disk.find(record.file)
    return None if path is None else (record, path)


def save(key: str, toolchain: Toolchain, record: Record) -> None:
    """Keep a record under its program's key."""
    disk.keep_bytes(_name(key, toolchain), json.dumps(plain(record)).encode("ascii"))


def plain(value: Any) -> Any:
    """A record, or a part of one, as JSON has values."""
    return serialization.plain(value, PARTS)


def made(value: Any) -> Any:
    """What ``plain`` wrote."""
    return serialization.made(value, PARTS)


def _name(key: str, toolchain: Toolchain) -> str:
    flags = (*toolchain.flags, *toolchain.lean)
    parts = (*toolchain.command, toolchain.version, *flags, toolchain.cpu)
    made_by = serialization.made_by(), serialization.changed_texts()
    return f"program-{disk.digest('program', key, *made_by, *parts)}"
