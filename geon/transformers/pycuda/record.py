"""What a call needs to know of a compiled program: its module, memory and results; no op is in it.

It is kept on disk under the key of the program. The text of its kernels is part of it, by which
their machine code is found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...op_graph.axes.affine import Size
from .. import disk_cache, recorded
from ..lowering.looping import Loops, loops_of
from ..lowering.memory import Plan, kernels_of
from ..lowering.spaces import spaces_of
from ..lowering.value_sizes import bytes_of
from ..sizes.buffers import Buffer
from ..sizes.spaces import Space
from . import asking, convolution, launches, scratch, sorting
from .by_library import LibraryScratch
from .device import Signature, Stages
from .emit import Module
from .source import Piece, Source


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """Of a program: its module, the arena, results, and what can fail.

    ``beside`` has the bytes of results, ``results`` their lengths and dtypes; ``spaces`` the axes
    over which kernels go; ``checks``, for each kernel that can report an error, the length that
    positions are checked against, or None where a value is not finite; ``loops`` the loops around
    those that are in any.
    """

    module: Module
    buffers: tuple[Buffer, ...]
    lifetimes: tuple[tuple[int, int], ...]
    beside: tuple[Size, ...]
    results: tuple[tuple[tuple[Size, ...], Any], ...]
    spaces: frozenset[Space]
    checks: dict[int, Any]
    loops: dict[int, Loops]


def record_of(plan: Plan, module: Module) -> Record:
    """The record of a plan and its module."""
    outputs, kernels = plan.schedule.program.outputs, list(kernels_of(plan))
    raising = {number for number, kernel in kernels if kernel.raises}
    return Record(
        module,
        tuple(plan.buffers),
        tuple(plan.lifetimes),
        tuple([bytes_of(op) for op in outputs]),
        tuple([(op.axes.lengths, op.dtype) for op in outputs]),
        frozenset(spaces_of(plan)),
        {
            number: kernel.op.attrs if kernel.op.primitive.name == "checked" else None
            for number, kernel in kernels
            if kernel.raises
        },
        {number: around for number, around in loops_of(plan).items() if number in raising},
    )


def load(key: str) -> Record | None:
    """The record under a program's key; None where there is none."""
    content = disk_cache.load(_name(key))
    found: Record | None = None if content is None else made(json.loads(content))
    return found


def save(key: str, record: Record) -> None:
    """Keep a record under its program's key."""
    disk_cache.keep_bytes(_name(key), json.dumps(plain(record)).encode("ascii"))


def plain(value: Any) -> Any:
    """A record, or a part of one, as JSON has values."""
    return recorded.plain(value, PARTS)


def made(value: Any) -> Any:
    """What ``plain`` wrote."""
    return recorded.made(value, PARTS)


PARTS = {
    kind.__name__: kind.__module__
    for kind in (
        Record, Module, Source, Piece, Signature, Stages, Buffer, LibraryScratch, scratch.Slots,
        scratch.Bytes, scratch.Columns, scratch.PartSums, scratch.RowParts, scratch.Largest,
        launches.Parts, launches.Grid, launches.Grids, launches.Launch, launches.Fixed,
        launches.Copy, launches.Show, launches.Choice, launches.Turns, launches.Turn,
        launches.Round, launches.Until, launches.Stack, launches.Carry, launches.Timed,
        launches.Branches,
        asking.Ask, asking.Product, asking.Strides, convolution.Convolution, convolution.Spatial,
        sorting.SortMemory,
    )
}  # fmt: skip


def _name(key: str) -> str:
    made_by = recorded.made_by(), recorded.changed_texts()
    return f"program-{disk_cache.digest('cuda program', key, *made_by)}"
