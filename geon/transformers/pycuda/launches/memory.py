"""Device memory behind the interface of ``runtime.memory``: device arrays and copies."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy as np

from ....errors import DeviceMemoryError, FeedError
from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import EXTENSIONS, name_of
from ...runtime.dims import Room
from . import dlpack
from .device import Array, Device

ALIGNMENT_BYTES = 256  # alignment of all values in bytes, which programs rely on


def aligned(size: Size) -> Size:
    """Return bytes rounded up to the alignment of values."""
    return (size + ALIGNMENT_BYTES - 1) // ALIGNMENT_BYTES * ALIGNMENT_BYTES


class Held:
    """A block of device memory that is freed once.

    ``readers`` has the event behind the last read on each other stream that read it.
    """

    def __init__(self, device: Device, size: int) -> None:
        self.device, self.address = device, device.allocate(size)
        self.lent = False
        self.readers: dict[Device, Any] = {}

    def give_back(self) -> None:
        """Free the block, after waiting for other libraries if it was exported."""
        if self.lent:
            self.device.wait_for(0)
        self.device.free(self.address, tuple(self.readers.values()))


class DeviceArray:
    """An array in device memory; its memory is freed when nothing refers to it.

    Other libraries import it without a copy, by DLPack or CUDA's array interface; NumPy gets a
    copy. An importer keeps the memory alive. ``device`` is the stream that writes it, and
    ``written`` an event behind that work; None if none was recorded.
    """

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: Any) -> None:
        self.device, self.shape, self.dtype = device, tuple(shape), np.dtype(dtype)
        self.written: Any = None
        self.held: Held | None = None
        if self.nbytes:
            self.held = Held(device, self.nbytes)
            weakref.finalize(self, self.held.give_back).atexit = False

    @property
    def address(self) -> int:
        """Return the address of the first element; 0 for an array without elements."""
        return 0 if self.held is None else self.held.address

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self.size * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return a NumPy array with a copy of the elements."""
        if copy is False:
            raise ValueError("what lies on a device is an array of NumPy by a copy alone")
        memory = DeviceMemory(self.device)
        found = memory.copy_out(self)
        memory.synchronise()
        return found if dtype is None else found.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        name = name_of(self.dtype)
        if name in EXTENSIONS:
            raise AttributeError(f"CUDA's array interface has no word for {name}; take DLPack")
        self.lend()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.dlpack

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return a DLPack capsule without a copy, after waiting until the value is computed.

        Raise ``BufferError`` if a copy or another device is asked for.
        """
        if copy or dl_device not in (None, self.device.dlpack):
            raise BufferError("it is shown where it lies, without a copy; NumPy's way is a copy")
        self.lend()
        return dlpack.export_capsule(self, self.address, self.shape, self.dtype, self.device.dlpack)

    def lend(self) -> None:
        """Let other libraries use the memory on their own streams, once it is written."""
        if self.held is not None:
            self.held.lent = True
            self.device.wait(self.end_of_writing())

    def end_of_writing(self) -> Any:
        """Return an event behind the work that writes the elements."""
        if self.written is None:
            self.written = self.device.mark()
        return self.written

    def read_by(self, device: Device, mark: Any) -> None:
        """Record that a stream reads the elements until this event of it.

        The memory is then used for other work only after the event.
        """
        if self.held is not None and device is not self.device:
            self.held.readers[device] = mark

    def __repr__(self) -> str:
        return f"<{self.dtype} array of shape {self.shape} on {self.device.name}>"


class ForeignArray:
    """An array of another library in device memory; ``owner`` keeps it alive."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.owner, self.address = owner, address
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)


class Pinned:
    """Pinned host memory for asynchronous copies; views of ``bytes`` keep it alive."""

    def __init__(self, device: Device, size: int) -> None:
        self.bytes = np.empty(0, np.uint8)
        if size:
            address = device.pin(size)
            raw = (ctypes.c_uint8 * size).from_address(address)
            weakref.finalize(raw, device.unpin, address).atexit = False
            self.bytes = np.frombuffer(memoryview(raw), np.uint8)


class DeviceMemory:
    """The memory of one device; all values are aligned to ``ALIGNMENT_BYTES`` bytes."""

    on_host = False

    def __init__(self, device: Device) -> None:
        self.device = device

    def allocate(self, shape: tuple[int, ...], dtype: Any, alignment: int = 1) -> DeviceArray:
        """Return an uninitialised array."""
        return DeviceArray(self.device, shape, dtype)

    def copy_in(self, array: Array | ForeignArray, value: DeviceArray | None = None) -> DeviceArray:
        """Copy a host or imported array to ``value``, or to a new device array."""
        into = self.allocate(array.shape, array.dtype) if value is None else value
        into.written = None
        if not into.nbytes:
            return into
        if isinstance(array, ForeignArray):
            self.device.copy(into.address, array.address, into.nbytes)
            if isinstance(array.owner, DeviceArray) and array.owner.device is not self.device:
                array.owner.read_by(self.device, self.device.mark())
        else:
            self.device.copy_in(into.address, array)
        return into

    def copy_out(self, value: DeviceArray) -> Array:
        """Return a new host array that has the elements after the next ``synchronise``."""
        found = np.empty(value.shape, value.dtype)
        if value.nbytes:
            self.device.copy_out(found, value.address)
        return found

    def synchronise(self) -> None:
        """Wait for all submitted work."""
        self.device.synchronise()

    def holds(self, value: Any) -> bool:
        """Return True for an array of geon on this device, written by any of its streams."""
        return isinstance(value, DeviceArray) and value.device.owner is self.device.owner

    def shown(self, value: Any) -> ForeignArray | None:
        """Return a value of another library as a ``ForeignArray``, if it is contiguous and on this
        device.

        Otherwise return None. Work submitted later begins after the work of another stream that
        writes an array of geon. For others, CUDA's array interface is tried first, then DLPack;
        work that the owner has submitted to a stream is waited for. Raise ``FeedError`` for an
        array on another device.
        """
        if isinstance(value, np.ndarray):
            return None
        if self.holds(value):
            if value.device is not self.device:
                self.device.follow(value.end_of_writing())
            return ForeignArray(value, value.address, value.shape, value.dtype)
        return self.by_interface(value) or self.by_dlpack(value)

    def by_interface(self, value: Any) -> ForeignArray | None:
        """Import a value by ``__cuda_array_interface__``; None if that fails."""
        try:
            told = value.__cuda_array_interface__
        except Exception:  # libraries raise different errors for dtypes that the interface lacks
            return None
        dtype = np.dtype(told["typestr"])
        strides = told.get("strides")
        if told.get("mask") is not None or not in_order(told["shape"], strides, dtype.itemsize):
            return None
        if told.get("stream") is not None:
            self.device.wait_for(told["stream"])
        return ForeignArray(value, told["data"][0], told["shape"], dtype)

    def by_dlpack(self, value: Any) -> ForeignArray | None:
        """Import a value by ``__dlpack__``; None if it fails or is on another type of device.

        Raise ``FeedError`` for a value on another device of this type.
        """
        if not hasattr(value, "__dlpack_device__"):
            return None
        kind, number = value.__dlpack_device__()
        if kind != self.device.dlpack[0]:
            return None
        if number != self.device.dlpack[1]:
            raise FeedError(
                f"an array lies on device {number}, and this transformer computes on device "
                f"{self.device.dlpack[1]}: move it there, or make a transformer with "
                f"device={number}"
            )
        stream = self.device.stream_number
        options = {} if stream is None else {"stream": stream}
        try:
            capsule = value.__dlpack__(**options)
        except Exception:  # mostly BufferError
            return None
        found = dlpack.import_capsule(capsule)
        if found is None or not in_order(found.shape, found.strides, 1):
            return None
        return ForeignArray((value, found.owner), found.address, found.shape, found.dtype)

    def room(self) -> Room:
        """Return the free memory of the device."""
        found = self.device.room()
        return Room(
            found,
            f"the device {self.device.name!r} has {found:,} free",
            DeviceMemoryError,
            ", or close what else uses the device",
        )


def in_order(shape: tuple[int, ...], strides: Any, unit: int) -> bool:
    """Return True if elements are contiguous and row-major; ``unit`` is one element's stride."""
    if strides is None or 0 in shape:
        return True
    found = []
    for length in reversed(shape):
        found.append(unit)
        unit *= length
    expected = reversed(found)
    return all(n == 1 or s == e for n, s, e in zip(shape, strides, expected, strict=True))
