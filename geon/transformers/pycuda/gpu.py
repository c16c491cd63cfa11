"""A GPU behind the interface of a device, by PyCUDA; NVRTC and graphs are cuda-bindings'.

Both packages are imported when a device is first asked for. All is done on one stream, so in the
order in which it was begun. What fails in a kernel makes the context useless: everything after it
is refused with the first error.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...errors import DeviceError
from .. import disk_cache
from .device import Array, Signature
from .nvrtc import compiled

PACKAGES = "pip install 'geon[cuda]'"
DRIVER = "install the NVIDIA driver: nvidia-smi must list a device"


@cache
def missing() -> str | None:
    """What a GPU needs that is not here, with the command that mends it; None where all is here."""
    for name in ("pycuda", "cuda"):
        if importlib.util.find_spec(name) is None:
            package = "PyCUDA" if name == "pycuda" else "cuda-bindings"
            return f"{package} is not installed: {PACKAGES}"
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return f"there is no NVIDIA driver (libcuda.so.1): {DRIVER}"
    count = ctypes.c_int(0)
    if library.cuInit(0) != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return f"the NVIDIA driver does not start: {DRIVER}"
    return None if count.value else f"the NVIDIA driver has no device: {DRIVER}"


@cache
def device(number: int) -> GpuDevice:
    """The GPU of this number; ``DeviceError`` where it is missing."""
    needed = missing()
    if needed is not None:
        raise DeviceError(f"there is no GPU to use: {needed}")
    return GpuDevice(number)


class GpuDevice:
    """One GPU: its primary context, a stream, and a pool of memory."""

    def __init__(self, number: int) -> None:
        import pycuda.driver as driver

        self.driver = driver
        driver.init()
        count = driver.Device.count()
        if not 0 <= number < count:
            raise DeviceError(f"device={number}: there are {count} devices, numbered from 0")
        self.gpu = driver.Device(number)
        self.name = f"gpu {number}"
        major, minor = self.gpu.compute_capability()
        self.architecture = f"sm_{major}{minor}"
        self.context = self.gpu.retain_primary_context()
        self.lock = threading.RLock()
        self.depth = 0
        self.lost: str | None = None
        self.allocations: dict[int, Any] = {}
        with self.entered("a stream is made"):
            import pycuda.tools

            self.stream = driver.Stream()
            self.pool = pycuda.tools.DeviceMemoryPool()

    @contextlib.contextmanager
    def entered(self, what: str) -> Iterator[None]:
        """Make the context that of this thread while ``what`` is done; its errors say so."""
        with self.lock:
            if self.lost is not None:
                raise DeviceError(
                    f"{self.name} failed before, and does nothing any more: {self.lost}; start a "
                    "new process"
                )
            if self.depth == 0:
                self.context.push()
            self.depth += 1
            try:
                yield
            except self.driver.MemoryError as error:
                free, total = self.driver.mem_get_info()
                raise DeviceError(
                    f"{self.name} has no room: {error}; {free} of {total} bytes are free"
                ) from None
            except (self.driver.LaunchError, self.driver.RuntimeError) as error:
                self.lost = f"while {what}: {error}"
                raise DeviceError(f"{self.name} failed {self.lost}") from None
            except (self.driver.Error, self.driver.LogicError) as error:
                raise DeviceError(f"{self.name} failed while {what}: {error}") from None
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.context.pop()

    # Memory -------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """The address of memory from the pool."""
        with self.entered(f"{size} bytes are allocated"):
            made = self.pool.allocate(size)
            address = int(made)
            self.allocations[address] = made
            return address

    def room(self) -> int:
        """What the driver has free, and what the pool holds for later."""
        with self.entered("free memory is asked for"):
            free, _ = self.driver.mem_get_info()
            return int(free + self.pool.managed_bytes - self.pool.active_bytes)

    def free(self, address: int) -> None:
        """Give memory back to the pool: what is begun later on the stream may have it."""
        if self.lost is None:
            with self.entered("memory is freed"):
                del self.allocations[address]

    def copy_in(self, address: int, array: Array) -> None:
        """Put the bytes of an array at an address; those were read when this returns."""
        with self.entered(f"{array.nbytes} bytes are copied in"):
            self.driver.memcpy_htod_async(address, bytes_of(array), self.stream)

    def copy_out(self, array: Array, address: int) -> None:
        """Fill an array with the bytes at an address."""
        with self.entered(f"{array.nbytes} bytes are copied out"):
            self.driver.memcpy_dtoh_async(bytes_of(array), address, self.stream)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes."""
        with self.entered(f"{size} bytes are copied"):
            self.driver.memcpy_dtod_async(target, source, size, self.stream)

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""
        with self.entered(f"{size} bytes are cleared"):
            self.driver.memset_d8_async(address, 0, size, self.stream)

    # Kernels ------------------------------------------------------------------------------------

    def load(self, source: str, kernels: Sequence[Signature]) -> Mapping[str, Any]:
        """The kernels of a module, compiled for this architecture or found compiled."""
        name = f"cubin-{disk_cache.digest(source, self.architecture)}"
        binary = disk_cache.load(name)
        if binary is None:
            binary = compiled(source, self.architecture)
            disk_cache.keep_bytes(name, binary)
        with self.entered("a module is loaded"):
            module = self.driver.module_from_buffer(binary)
            found = {}
            for kernel in kernels:
                function = module.get_function(kernel.name)
                function.prepare("q" * len(kernel.ctypes))
                found[kernel.name] = kernel.name, function, module  # which lives as long
            return found

    def launch(self, kernel: Any, blocks: int, threads: int, words: Sequence[int]) -> None:
        """Begin a kernel."""
        name, function, _ = kernel
        with self.entered(f"{name} is launched"):
            grid, block = (blocks, 1), (threads, 1, 1)
            function.prepared_async_call(grid, block, self.stream, *words)

    def synchronise(self) -> None:
        """Wait for the stream."""
        with self.entered("kernels run"):
            self.stream.synchronize()

    def wait_for(self, stream: int) -> None:
        """Wait for all of the context: whose a stream is cannot be told from its number."""
        with self.entered("another stream is waited for"):
            self.context.synchronize()

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """All that ``run`` begins as one CUDA graph, which is launched as a whole."""
        from cuda.bindings import driver as bindings

        handle = self.stream.handle
        with self.entered("a graph is captured"):
            mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            self.done(bindings.cuStreamBeginCapture(handle, mode))
            try:
                run()
            finally:
                (graph,) = self.done(bindings.cuStreamEndCapture(handle))
            (made,) = self.done(bindings.cuGraphInstantiate(graph, 0))
            self.done(bindings.cuGraphDestroy(graph))

        def replay() -> None:
            with self.entered("a graph is launched"):
                self.done(bindings.cuGraphLaunch(made, handle))

        return replay

    def done(self, answer: Any) -> tuple[Any, ...]:
        """What a function of cuda-bindings gave, unless it failed."""
        status, *values = answer
        if int(status) != 0:
            raise DeviceError(f"{self.name} failed: {status}")
        return tuple(values)


def bytes_of(array: Array) -> Array:
    """The memory of a contiguous array: not every dtype can be handed over as it is."""
    return array.reshape(-1).view(np.uint8)
