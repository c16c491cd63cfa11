"""What a call needs to know of a compiled program but its code: no op is in it.

It is kept on disk under the key of the program, beside the shared object: a process that asks for
a program that was compiled before runs no stage of it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...op_graph.lengths import Length
from .. import disk_cache, recorded
from ..kernels.blocked import Cut
from ..lowering.looping import Loops, loops_of
from ..lowering.memory import Buffer, Plan, kernels_of
from ..lowering.schedule import bytes_of
from ..lowering.scratch import PerThread
from ..lowering.spaces import Space, spaces_of
from ..printing import c_expressions
from .emit import KEPT, Module
from .packed_copies import PackedCopy
from .prefix import PartTotals
from .product_shape import Shape
from .scattering import Copies
from .scratch import BlockedScratch, OneOf, ProductScratch, Sides
from .sorting import SortScratch
from .toolchain import Toolchain

Size = int | Length


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


def record_of(plan: Plan, module: Module, path: Path, suffix: str = "") -> Record:
    """The record of a plan whose module was compiled."""
    outputs, kernels = plan.schedule.program.outputs, list(kernels_of(plan))
    raising = {number for number, kernel in kernels if kernel.raises}
    return Record(
        path.name,
        suffix,
        len(module.pointers),
        KEPT in module.pointers,
        module.lengths,
        tuple(Counter(spaces_of(plan)).items()),
        tuple(plan.buffers),
        plan.schedule.target.alignment,
        tuple(plan.lifetimes),
        tuple(plan.kept.values()),
        tuple([bytes_of(op) for op in outputs]),
        tuple([(op.axes.lengths, op.dtype) for op in outputs]),
        {
            number: Shown(kernel.op.attrs[0], kernel.op.axes.lengths, kernel.op.dtype)
            for number, kernel in kernels
            if kernel.op.primitive.name == "print"
        },
        {
            number: kernel.op.attrs if kernel.op.primitive.name == "checked" else None
            for number, kernel in kernels
            if kernel.raises
        },
        {number: around for number, around in loops_of(plan).items() if number in raising},
        any(kernel.stops for kernel in plan.schedule.kernels),
    )


# On disk ------------------------------------------------------------------------------------------


def load(key: str, toolchain: Toolchain) -> tuple[Record, Path] | None:
    """The record under a program's key, with its shared object; None where one is not there."""
    content = disk_cache.load(_name(key, toolchain))
    if content is None:
        return None
    record: Record = made(json.loads(content))
    path = disk_cache.find(record.file)
    return None if path is None else (record, path)


def save(key: str, toolchain: Toolchain, record: Record) -> None:
    """Keep a record under its program's key."""
    disk_cache.keep_bytes(_name(key, toolchain), json.dumps(plain(record)).encode("ascii"))


def plain(value: Any) -> Any:
    """A record, or a part of one, as JSON has values."""
    return recorded.plain(value, PARTS)


def made(value: Any) -> Any:
    """What ``plain`` wrote."""
    return recorded.made(value, PARTS)


PARTS: tuple[type, ...] = (
    Record, Shown, Buffer, PackedCopy, Copies, PerThread, PartTotals, ProductScratch, Sides,
    SortScratch, OneOf, BlockedScratch, Cut, Shape,
)  # fmt: skip


def _name(key: str, toolchain: Toolchain) -> str:
    flags = (*toolchain.flags, *toolchain.lean)
    parts = (*toolchain.command, toolchain.version, *flags, toolchain.cpu)
    tables = repr(sorted(c_expressions.tables().items()))  # which a user may have added to
    return f"program-{disk_cache.digest('program', key, recorded.made_by(), tables, *parts)}"
