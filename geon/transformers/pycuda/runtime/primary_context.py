"""The primary context of a GPU, which all of its streams share."""

from __future__ import annotations

import numpy as np

from ....errors import DeviceError
from ..launches.device import Array
from ..launches.dlpack import DeviceType
from .free_list import Spares

# oldest compute capability: it has independent thread scheduling with warp barriers
MIN_ARCHITECTURE = (7, 0)


class PrimaryContext:
    """What the streams of one GPU share: its context, free lists of memory, and the first error.

    ``lost`` is the error after which the GPU does nothing any more, or None. Raises ``DeviceError``
    if there is no GPU of this number, or if it is too old.
    """

    def __init__(self, number: int) -> None:
        import pycuda.driver as driver

        self.driver = driver
        driver.init()
        count = driver.Device.count()
        if not 0 <= number < count:
            raise DeviceError(f"device={number}: there are {count} devices, numbered from 0")
        self.gpu = driver.Device(number)
        self.name = f"gpu {number}"
        self.dlpack: tuple[int, int] = (DeviceType.CUDA, number)
        self.architecture = architecture(self.name, *self.gpu.compute_capability())
        known = driver.device_attribute
        self.processors = int(self.gpu.get_attribute(known.MULTIPROCESSOR_COUNT))
        self.context = self.gpu.retain_primary_context()
        self.lost: str | None = None
        self.memory = Spares(driver.mem_alloc, driver.MemoryError)
        # Copies that use a pinned block are done when it is given back: all streams share them.
        self.pinned = Spares(
            lambda size: PinnedBlock(driver.pagelocked_empty(size, np.uint8)), driver.MemoryError
        )


class PinnedBlock:
    """Page-locked memory for ``Spares``; as an int, it is its address."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __int__(self) -> int:
        return int(self.array.ctypes.data)


def architecture(name: str, major: int, minor: int) -> str:
    """Return the compiler's name of an architecture, including architecture-specific features.

    Raise ``DeviceError`` if it is too old.
    """
    if (major, minor) < MIN_ARCHITECTURE:
        raise DeviceError(
            f"{name} is of compute capability {major}.{minor}, and kernels need "
            f"{MIN_ARCHITECTURE[0]}.{MIN_ARCHITECTURE[1]} or newer: choose another with "
            "device=, or "
            'geon.make_transformer("native")'
        )
    alone = "a" if (major, minor) == (9, 0) else ""  # enables warp-group matrix instructions
    return f"sm_{major}{minor}{alone}"
