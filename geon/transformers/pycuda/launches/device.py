"""Device interface: memory by address, kernel modules, and launches in order.

``gpu`` implements it with PyCUDA. ``host`` runs the same CUDA text on a CPU, for tests. The source
of a module is divisible into several translation units, compiled in parallel: kernels do not refer
to each other, and no unit defines global memory, so each group of kernels compiles with the shared
text alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import numpy as np

from ....lazy_dataclasses import dataclass
from .library_requests import LibraryCall

# Min. work of a translation unit, in characters: about 0.05 s for NVRTC, which takes 0.02 s for an
# empty text.
MIN_TEXT_WORK = 8000


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a module's source: the kernel ``kernel``, or shared text if that is None.

    ``work`` estimates the cost of compiling it, in characters.
    """

    text: str
    kernel: str | None = None
    work: int = 0


@dataclass(frozen=True, slots=True)
class CudaSource:
    """The common prelude of a module, and its pieces in order; a piece may use earlier ones."""

    common: str
    pieces: tuple[TextPiece, ...] = ()

    @property
    def whole(self) -> str:
        """Return the complete text."""
        return "\n".join([self.common, *(piece.text for piece in self.pieces)])

    @property
    def own(self) -> str:
        """Return the text without the prelude."""
        return "\n".join([piece.text for piece in self.pieces])

    def of(self, kernels: Collection[str]) -> str:
        """Return the text with these kernels only."""
        kept = [each.text for each in self.pieces if each.kernel is None or each.kernel in kernels]
        return "\n".join([self.common, *kept])

    def divided(self, most: int) -> list[list[str]]:
        """Partition the kernels into at most ``most`` groups of similar, sufficient work."""
        kernels = [(piece.work, piece.kernel) for piece in self.pieces if piece.kernel is not None]
        pay = sum(work for work, _ in kernels) // MIN_TEXT_WORK
        groups: list[list[str]] = [[] for _ in range(min(max(pay, 1), most, len(kernels)))]
        works = [0] * len(groups)
        for work, kernel in sorted(kernels, key=lambda each: -each[0]):
            lightest = works.index(min(works))
            groups[lightest].append(kernel)
            works[lightest] += work
        return groups


Array = np.ndarray[Any, Any]
MAX_STAGES = 8  # pipeline stages for which a block has barriers: GEON_MOST_STAGES


@dataclass(frozen=True, slots=True)
class PipelineStages:
    """Pipeline stages in a block's shared memory, of ``bytes`` each.

    A kernel gets between ``least`` and ``MAX_STAGES`` stages: as many as let ``together`` blocks
    share a multiprocessor, but never fewer than ``least``. If ``goes_on``, a block loops over the
    work of further blocks, and there are at most as many blocks as multiprocessors.
    """

    bytes: int
    least: int
    together: int = 1
    goes_on: bool = False

    def number(self, of_block: int, of_processor: int) -> int:
        """Return the number of stages, given the shared memory per block and multiprocessor.

        The result is less than ``least`` if the device has too little memory.
        """
        beside = max(of_processor // self.together // self.bytes, self.least)
        return min(MAX_STAGES, beside, of_block // self.bytes)


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel of a module: name, C types of its parameters, and whether its threads synchronise.

    Every parameter is a pointer or an ``int64_t``. ``stages`` is None for kernels without any.
    """

    name: str
    ctypes: tuple[str, ...]
    meets: bool
    stages: PipelineStages | None = None


def most_blocks(kernel: Signature, processors: int) -> int:
    """Return the maximum number of blocks that a launch of ``kernel`` may have on a device.

    ``processors`` is the number of multiprocessors.
    """
    goes_on = kernel.stages is not None and kernel.stages.goes_on
    return processors if goes_on else sys.maxsize


class Device(Protocol):
    """A stream of a device: it runs work in the order of submission, except in concurrent lanes.

    ``owner`` is the same object for all streams of one device. They read each other's memory, and
    their work is ordered by events only (``mark`` and ``follow``). All methods raise
    ``DeviceError`` if the device fails or has failed before; the error's ``lost`` is True if the
    device is unusable from then on. ``name`` distinguishes devices whose modules differ. ``dlpack``
    is the DLPack device type and number. ``stream_number`` is the number of the stream that runs
    all work, or None. ``nothing`` is the address passed for values without
    elements.
    """

    name: str
    owner: Any
    dlpack: tuple[int, int]
    stream_number: int | None
    nothing: int

    def allocate(self, size: int) -> int:
        """Return the address of ``size`` new bytes; raise ``DeviceError`` if there are none."""

    def room(self) -> int:
        """Return the number of free bytes."""

    def free(self, address: int, readers: Sequence[Any] = ()) -> None:
        """Free memory after all submitted work is done.

        ``readers`` are events behind work of other streams that reads it. Finalisers call this, in
        any thread: it must not wait for a lock that is held while work is submitted.
        """

    def pin(self, size: int) -> int:
        """Return the address of ``size`` bytes of pinned host memory, for asynchronous copies."""

    def unpin(self, address: int) -> None:
        """Free pinned memory after all submitted work is done."""

    def copy_in(self, address: int, array: Array) -> None:
        """Copy a contiguous array to an address.

        The array may change after the call, unless it is in pinned memory.
        """

    def copy_out(self, array: Array, address: int) -> None:
        """Copy from an address to a contiguous array; ``synchronise`` waits for the data."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes between addresses; source and target may be equal."""

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""

    def load(self, source: CudaSource, kernels: Sequence[Signature]) -> Mapping[str, Any]:
        """Compile and load a module; return its kernels by name."""

    def launch(self, kernel: Any, blocks: int, threads: int, words: Sequence[int]) -> None:
        """Launch a kernel; ``words`` are its arguments, addresses and lengths."""

    def takes(self, call: LibraryCall) -> bool:
        """Return True if a library supports this call, at any addresses.

        The memory that it works in is then allocated, unless it is given with a call.
        """

    def call(self, call: LibraryCall, addresses: Sequence[int], works: int) -> None:
        """Submit a call of a library.

        ``addresses`` are those of its operands, 0 for one that is absent, ``works`` that of the
        workspace of a product or convolution.
        """

    def synchronise(self) -> None:
        """Wait for all submitted work."""

    def mark(self, again: Any = None) -> Any:
        """Return an event that completes when all work submitted so far is done.

        ``again`` is an older event that may be reused, since nobody waits for it any more.
        """

    def clock(self) -> Any:
        """Return a timing event; it is not captured."""

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds between two completed ``clock`` events."""

    def passed(self, mark: Any) -> bool:
        """Return True if an event has completed, without waiting."""

    def wait(self, mark: Any) -> None:
        """Wait for an event."""

    def follow(self, mark: Any) -> None:
        """Let work submitted from now on begin after an event of a stream of the same owner."""

    def wait_for(self, stream: int) -> None:
        """Wait for the work submitted so far to another stream."""

    def beside(self, lanes: int) -> AbstractContextManager[Callable[[int], None]]:
        """Return a context of ``lanes`` concurrent lanes, ordered with work before and after.

        It yields a function that selects the lane, from 0 on, of the work that follows.
        """

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that resubmits the work of ``run``, as a CUDA graph does.

        ``run`` is called but executes nothing now. It may launch, clear, and copy between device
        and pinned memory; anything else raises ``DeviceError``.
        """

    def replay(self, graphs: Sequence[Callable[[], None]], again: Any = None) -> Any:
        """Submit captured graphs in order, then return an event as ``mark`` does."""

    def steady(
        self,
        inputs: Sequence[tuple[Any, ...]],
        results: Sequence[tuple[Any, ...]],
        report: Array | None,
        graphs: Sequence[Callable[[], None]],
    ) -> Any | None:
        """Return a fast path for captured graphs, by ``steady.c``; None if there is none.

        ``inputs`` and ``results`` have shapes, dtypes and arrays in pinned memory.
        """

    def fail(self, status: int) -> NoReturn:
        """Raise ``DeviceError`` for a status that the fast path returned."""
