"""The memory of a device as ``runtime.memory`` wants it: values are addresses with a shape."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from .device import Array, Device


class DeviceArray:
    """A value in the memory of a device; the bytes are free when nothing refers to it."""

    __slots__ = ("__weakref__", "address", "device", "dtype", "shape")

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: Any) -> None:
        self.device, self.shape, self.dtype = device, tuple(shape), np.dtype(dtype)
        self.address = 0  # of what has no elements, which nobody looks at
        if self.nbytes:
            self.address = device.allocate(self.nbytes)
            weakref.finalize(self, device.free, self.address).atexit = False

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return self.size * self.dtype.itemsize


class Shown:
    """What another library has in the memory of a device, which ``owner`` keeps there."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.owner, self.address = owner, address
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)


class DeviceMemory:
    """The memory of one device, whose values begin at multiples of 256 bytes."""

    on_host = False

    def __init__(self, device: Device) -> None:
        self.device = device

    def allocate(self, shape: tuple[int, ...], dtype: Any, alignment: int = 1) -> DeviceArray:
        """A value of any contents."""
        return DeviceArray(self.device, shape, dtype)

    def copy_in(self, array: Array | Shown, value: DeviceArray | None = None) -> DeviceArray:
        """``value`` with the elements of an array, of the host or shown, or a new one."""
        into = self.allocate(array.shape, array.dtype) if value is None else value
        if not into.nbytes:
            return into
        if isinstance(array, Shown):
            self.device.copy(into.address, array.address, into.nbytes)
        else:
            self.device.copy_in(into.address, array)
        return into

    def copy_out(self, value: DeviceArray) -> Array:
        """The elements as a new array, which has them when ``synchronise`` was called."""
        found = np.empty(value.shape, value.dtype)
        if value.nbytes:
            self.device.copy_out(found, value.address)
        return found

    def synchronise(self) -> None:
        """Wait for all that was begun."""
        self.device.synchronise()

    def shown(self, value: Any) -> Shown | None:
        """What ``__cuda_array_interface__`` shows; None for what has none, or lies not in order.

        What its owner has begun on a stream is waited for.
        """
        told = getattr(value, "__cuda_array_interface__", None)
        if told is None:
            return None
        dtype = np.dtype(told["typestr"])
        strides = told.get("strides")
        if strides is not None and 0 not in told["shape"]:
            if tuple(strides) != np.empty(told["shape"], dtype).strides:
                return None
        if told.get("mask") is not None:
            return None
        if told.get("stream") is not None:
            self.device.wait_for(told["stream"])
        return Shown(value, told["data"][0], told["shape"], dtype)

    def room(self) -> tuple[int, str]:
        """What is free on the device."""
        found = self.device.room()
        return found, f"the device {self.device.name!r} has {found:,} free"
