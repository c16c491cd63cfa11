"""What a device can do for programs: memory by address, modules of kernels, launches in order.

PyCUDA does it on a GPU (``gpu``); ``host`` runs the same text on a CPU, where tests need no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from .module_text import Source

Array = np.ndarray[Any, Any]
STAGES = 4


@dataclass(frozen=True, slots=True)
class Stages:
    """Parts of a block's shared memory that are filled in turn, of so many ``bytes`` each.

    A kernel is given as many as there is room for, ``most`` at most and no fewer than ``least``:
    room for as many blocks ``together`` on a processor as have registers, if that leaves the least.
    Where a block ``goes_on``, to what further blocks would do, there are no more of them than there
    are processors.
    """

    bytes: int
    least: int
    together: int = 1
    most: int = STAGES
    goes_on: bool = False

    def number(self, of_block: int, of_processor: int) -> int:
        """How many a kernel is given where a block may share so many bytes, and all blocks of a
        processor together; less than ``least`` where there is no room.
        """
        beside = max(of_processor // self.together // self.bytes, self.least)
        return min(self.most, beside, of_block // self.bytes)


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel of a module: its name, the types of its parameters, and whether its threads meet.

    Every parameter is a pointer or an ``int64_t``. ``stages`` are those of a kernel that has any.
    """

    name: str
    ctypes: tuple[str, ...]
    meets: bool
    stages: Stages | None = None


def most_blocks(kernel: Signature, processors: int) -> int:
    """How many blocks of a kernel a device has at most: what each finds hangs on no other one."""
    goes_on = kernel.stages is not None and kernel.stages.goes_on
    return processors if goes_on else sys.maxsize


class Multiplication(NamedTuple):
    """A product of matrices: addresses, lengths, and steps from batch to batch, down and across.

    ``dtype`` is that of both factors, ``result`` that of ``out`` and of ``bias``, which is added
    along columns (0 where there is none). Sums of halves are made in float32. The library works in
    ``size`` bytes at ``works``.
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
        """The same at these addresses, of both factors, the result and the bias."""
        left, right, out, bias = addresses
        return self._replace(left=left, right=right, out=out, bias=bias, works=works)


class Convolving(NamedTuple):
    """A convolution: the addresses of image, filter and response, ``made`` being what is computed.

    Shapes and steps are those of the three, each outer, inner and along spatial axes: images and
    channels, filters and channels of a group, images and filters. Numbers of each spatial axis
    follow: how far apart positions and places of a window are, and the elements of padding before
    and after an image. ``dtype`` is that of both factors, ``result`` that of what is made. Sums of
    halves are made in float32. The library works in ``size`` bytes at ``works``.
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
        """The same at these addresses."""
        image, window, response = addresses
        return self._replace(addresses=(image, window, response), works=works)


LibraryCall = Multiplication | Convolving


class Device(Protocol):
    """A device; what is begun on it is done in the order in which it was begun, but in lanes.

    All raise ``DeviceError`` where it fails, or has failed before; its ``lost`` says that nothing
    can be done with the device any more. ``name`` tells devices apart whose modules differ;
    ``dlpack`` is what DLPack calls it, its kind and number, and ``stream_number`` that of the
    stream on which all is done, where others can wait for it. Kernels are told that what has no
    elements lies at ``nothing``, and look at none of it.
    """

    name: str
    dlpack: tuple[int, int]
    stream_number: int | None
    nothing: int

    def allocate(self, size: int) -> int:
        """The address of so many bytes; ``DeviceError`` where there is no room."""

    def room(self) -> int:
        """How many bytes are free."""

    def free(self, address: int) -> None:
        """Give memory back, once all that was begun is done."""

    def pin(self, size: int) -> int:
        """The address of so many bytes of the host, which copies reach while Python goes on."""

    def unpin(self, address: int) -> None:
        """Give such memory back, once all that was begun is done."""

    def copy_in(self, address: int, array: Array) -> None:
        """Put the bytes of a contiguous array at an address.

        The array may change from then on, unless it is of pinned memory.
        """

    def copy_out(self, array: Array, address: int) -> None:
        """Fill a contiguous array with the bytes at an address; ``synchronise`` waits for it."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes from address to address; both may be the same."""

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""

    def load(self, source: Source, kernels: Sequence[Signature]) -> Mapping[str, Any]:
        """The compiled kernels of a module, by name."""

    def launch(self, kernel: Any, blocks: int, threads: int, words: Sequence[int]) -> None:
        """Run a kernel; ``words`` are its arguments, addresses and lengths."""

    def takes(self, call: LibraryCall) -> bool:
        """Whether a library computes a product or a convolution, whatever its addresses."""

    def call(self, call: LibraryCall) -> None:
        """Begin a product of matrices or a convolution by a library."""

    def synchronise(self) -> None:
        """Wait for all that was begun."""

    def mark(self, again: Any = None) -> Any:
        """What is passed when all that was begun until now is done.

        It may be ``again`` the one of before, which nobody waits for any more.
        """

    def clock(self) -> Any:
        """A mark that also tells when it is passed; it is not captured."""

    def seconds(self, first: Any, last: Any) -> float:
        """How many seconds after a ``clock`` another was passed, once both are."""

    def passed(self, mark: Any) -> bool:
        """Whether a mark is passed; does not wait."""

    def wait(self, mark: Any) -> None:
        """Wait until a mark is passed."""

    def wait_for(self, stream: int) -> None:
        """Wait for what others have begun on a stream of this number."""

    def beside(self, lanes: int) -> AbstractContextManager[Callable[[int], None]]:
        """Lanes that may run at one time, after all that was begun before and before what follows.

        It gives what chooses the lane, from 0 on, of all that is begun from then on.
        """

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """What begins again all that ``run`` would, without Python and with the same addresses.

        ``run`` begins nothing now. It launches, clears, and copies between the device and pinned
        memory; anything else is a ``DeviceError``.
        """

    def replay(self, graphs: Sequence[Callable[[], None]], again: Any = None) -> Any:
        """Begin what was captured, one after another, and ``mark`` the end of it."""

    def steady(
        self,
        inputs: Sequence[tuple[Any, ...]],
        results: Sequence[tuple[Any, ...]],
        report: Array | None,
        graphs: Sequence[Callable[[], None]],
    ) -> Any | None:
        """A shorter way into what was captured, as ``steady.c`` has it; None where there is none.

        ``inputs`` and ``results`` have shapes, dtypes, and arrays of pinned memory.
        """

    def fail(self, status: int) -> NoReturn:
        """Raise ``DeviceError`` for a status that the shorter way gave."""
