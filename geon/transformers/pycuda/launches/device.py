"""Device interface: memory by address, kernel modules, and launches in order.

``gpu`` implements it with PyCUDA. ``host`` runs the same CUDA text on a CPU, for tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from .module_text import CudaSource

Array = np.ndarray[Any, Any]
MAX_STAGES = 4


@dataclass(frozen=True, slots=True)
class PipelineStages:
    """Pipeline stages in a block's shared memory, of ``bytes`` each.

    A kernel gets between ``least`` and ``most`` stages: as many as let ``together`` blocks share a
    multiprocessor, but never fewer than ``least``. If ``goes_on``, a block loops over the work of
    further blocks, and there are at most as many blocks as multiprocessors.
    """

    bytes: int
    least: int
    together: int = 1
    most: int = MAX_STAGES
    goes_on: bool = False

    def number(self, of_block: int, of_processor: int) -> int:
        """Return the number of stages, given the shared memory per block and multiprocessor.

        The result is less than ``least`` if the device has too little memory.
        """
        beside = max(of_processor // self.together // self.bytes, self.least)
        return min(self.most, beside, of_block // self.bytes)


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


class Multiplication(NamedTuple):
    """A matrix product for a library: addresses, lengths, and strides (batch, row, column).

    ``dtype`` is the dtype of both factors, ``result`` that of ``out`` and ``bias``. ``bias`` is
    added along columns; its address is 0 if there is none. Half-precision products accumulate in
    float32. The library's workspace has ``size`` bytes at ``works``.
    """

    left: int
    right: int
    out: int
    bias: int
    works: int
    size: int
    batch: int
    rows: int
    columns: int
    deep: int
    left_strides: tuple[int, int, int]
    right_strides: tuple[int, int, int]
    out_strides: tuple[int, int, int]
    dtype: str
    result: str

    def placed(self, addresses: Sequence[int], works: int) -> Multiplication:
        """Return the same call with the addresses of both factors, result and bias."""
        left, right, out, bias = addresses
        return self._replace(left=left, right=right, out=out, bias=bias, works=works)


class Convolving(NamedTuple):
    """A convolution for a library; ``made`` names what is computed.

    ``addresses``, ``shapes`` and ``steps`` (strides) are in the order image, filter, response; each
    shape is outer, inner, then spatial axes, where outer and inner are images and channels, filters
    and channels of a group, or images and filters. ``strides``, ``dilations`` and the padding
    ``before`` and ``after`` have one number per spatial axis. ``dtype`` is the dtype of both
    factors, ``result`` that of the result. Half-precision sums accumulate in float32. The library's
    workspace has ``size`` bytes at ``works``.
    """

    addresses: tuple[int, int, int]
    works: int
    size: int
    made: str
    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[int, ...], ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    groups: int
    dtype: str
    result: str

    def placed(self, addresses: Sequence[int], works: int) -> Convolving:
        """Return the same call with addresses of image, filter, response and workspace."""
        image, window, response = addresses
        return self._replace(addresses=(image, window, response), works=works)


LibraryCall = Multiplication | Convolving


class Device(Protocol):
    """A device that runs work in the order of submission, except in concurrent lanes.

    All methods raise ``DeviceError`` if the device fails or has failed before; the error's ``lost``
    is True if the device is unusable from then on. ``name`` distinguishes devices whose modules
    differ. ``dlpack`` is the DLPack device type and number. ``stream_number`` is the number of the
    stream that runs all work, or None. ``nothing`` is the address passed for values without
    elements.
    """

    name: str
    dlpack: tuple[int, int]
    stream_number: int | None
    nothing: int

    def allocate(self, size: int) -> int:
        """Return the address of ``size`` new bytes; raise ``DeviceError`` if there are none."""

    def room(self) -> int:
        """Return the number of free bytes."""

    def free(self, address: int) -> None:
        """Free memory after all submitted work is done."""

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
        """Return True if a library supports this product or convolution, at any addresses."""

    def call(self, call: LibraryCall) -> None:
        """Submit a matrix product or convolution to a library."""

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
