"""A stream of an NVIDIA GPU as a ``Device``: launches by PyCUDA, graphs by cuda-bindings.

Both packages are imported at first use. The work of a device runs in order on its CUDA stream;
concurrent lanes have streams of their own, with which it synchronises. The streams of one GPU share
its primary context, and each has its own lock, libraries and way into captured graphs. A failed
kernel makes the context unusable: every later operation is refused with the first error.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ....errors import DeviceError, DeviceMemoryError
from ...cache import disk
from ...loading.compiling import available
from ..launches.device import Array, CudaSource, Signature, most_blocks
from ..launches.library_requests import OPTIONS, LibraryCall
from ..products.cublaslt import CublasLt
from ..products.cudnn import CuDnn
from ..products.cufft import load_cufft
from ..products.cusolver import load_cusolver
from . import graph_replay
from .context import CAPTURES, Entered, Graph, Owned, capturing, pushed
from .nvrtc import compiled_together, identity
from .primary_context import PrimaryContext

PACKAGES = "pip install 'geon[cuda]'"
REBUILD = "pip install --force-reinstall --no-cache-dir --no-binary pycuda pycuda"
MAX_SPIN_SECONDS = 2e-3  # seconds of busy waiting for an event
MAX_PARALLEL_COMPILES = 8  # max. texts that are compiled in parallel
POLL_SECONDS = 5e-5  # seconds between polls of an event after that
STAGE_ALIGNMENT_BYTES = 1024  # alignment of pipeline stages in bytes
RESERVED_BYTES_PER_BLOCK = 1024  # bytes of shared memory per block that the driver reserves
DRIVER = "install the NVIDIA driver: nvidia-smi must list a device"


# The library of each option of the transformer, on a ``GpuDevice`` whose context is current.
LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "products": lambda gpu: CublasLt(gpu.name),
    "convolutions": lambda gpu: CuDnn(gpu.name),
    "matrices": lambda gpu: load_cusolver(gpu.name, gpu.allocate, gpu.free),
    "transforms": lambda gpu: load_cufft(gpu.name, gpu.allocate, gpu.free),
}


@cache
def missing() -> str | None:
    """Return what a GPU lacks here, with the command that installs it; None if nothing."""
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
    if not count.value:
        return f"the NVIDIA driver has no device: {DRIVER}"
    try:
        importlib.import_module("pycuda.driver")
    except Exception as error:  # one that was built for another toolkit may raise anything
        return f"PyCUDA does not start ({error}): {REBUILD}"
    return None


devices: dict[tuple[int, Hashable], GpuDevice] = {}  # by number and name of the stream
_making = threading.RLock()


def device(number: int, stream: Hashable = None) -> GpuDevice:
    """Return a stream of the GPU of this number, made at its first use.

    ``stream`` is any name of it; None is the stream of transformers that name none. Raises
    ``DeviceError`` if the GPU is unavailable.
    """
    needed = missing()
    if needed is not None:
        raise DeviceError(f"there is no GPU to use: {needed}")
    with _making:
        found = devices.get((number, stream))
        if found is None:
            owner = None if stream is None else device(number).owner
            found = devices[number, stream] = GpuDevice(number, owner)
        return found


class GpuDevice:
    """One stream of a GPU; ``owner`` is the context that its streams share."""

    def __init__(self, number: int, owner: PrimaryContext | None = None) -> None:
        owner = owner or PrimaryContext(number)
        self.owner, self.driver, self.context = owner, owner.driver, owner.context
        self.gpu, self.name, self.dlpack = owner.gpu, owner.name, owner.dlpack
        self.architecture, self.processors = owner.architecture, owner.processors
        self.memory, self.pinned = owner.memory, owner.pinned
        self.lock = threading.RLock()
        self.depth = 0
        self.capturing = False
        self.libraries: dict[str, Any] = {}  # by option of the transformer
        with self.entered("a stream is made"):
            self.stream = self.current = self.driver.Stream()
        self.lanes: list[Any] = []
        self.marks: list[Any] = []
        self.stream_number: int | None = int(self.stream.handle)
        self.nothing = 0
        self.short = graph_replay.driver(int(self.context.handle), self.stream_number)

    @property
    def lost(self) -> str | None:
        """The first error after which the GPU is unusable, on any stream; None if there is none."""
        return self.owner.lost

    @lost.setter
    def lost(self, error: str) -> None:
        self.owner.lost = error

    def entered(self, what: str, *values: Any) -> Entered:
        """Return a ``with`` block in which the context is current; errors contain ``what``."""
        return Entered(self, what, values)

    def refuse_lost(self) -> None:
        """Raise ``DeviceError`` if the device has failed before."""
        if self.lost is not None:
            error = DeviceError(
                f"{self.name} failed before, and does nothing any more: {self.lost}; start a new "
                "process"
            )
            error.lost = True
            raise error

    def translated(self, what: str, error: Exception) -> DeviceError:
        """Return the device error for an error of the driver."""
        full = isinstance(error, self.driver.MemoryError)
        return self.full(what, error) if full else self.failure(what, error)

    def full(self, what: str, error: Exception) -> DeviceError:
        """Return the out-of-memory error, with the free and total bytes."""
        free, total = self.driver.mem_get_info()
        return DeviceMemoryError(
            f"{self.name} has no room where {what} ({error}): {free:,} of {total:,} bytes are "
            "free; use smaller lengths or a smaller batch, or close what else uses the device"
        )

    def failure(self, what: str, error: Exception) -> DeviceError:
        """Return the device error for a driver's error; mark the device lost if it is unusable."""
        made = DeviceError(f"{self.name} failed while {what}: {error}")
        if isinstance(error, self.driver.LaunchError) or self.goes_on_to_fail():
            self.lost = f"while {what}: {error}"
            made = DeviceError(f"{made}; start a new process, and restore a checkpoint")
            made.lost = True
        return made

    def goes_on_to_fail(self) -> bool:
        """Return True if the device is unusable: then every operation fails."""
        if self.capturing:  # waiting is forbidden
            return False
        try:
            self.stream.synchronize()
        except self.driver.Error:
            return True
        return False

    # Memory -------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Return the address of memory of exactly this size."""
        with self.entered("{:,} bytes are allocated", size):
            return self.memory.take(size, self)

    def room(self) -> int:
        """Return the bytes that are free in the driver and in the free list."""
        with self.entered("free memory is asked for"):
            free, _ = self.driver.mem_get_info()
            return int(free) + self.memory.bytes

    def free(self, address: int, readers: Sequence[Any] = ()) -> None:
        """Put memory in the free list; work submitted later may use it."""
        self.memory.give_back(address, self, readers)

    def pin(self, size: int) -> int:
        """Return the address of page-locked host memory."""
        with self.entered("{:,} bytes of the host are pinned", size):
            return self.pinned.take(size)

    def unpin(self, address: int) -> None:
        """Put page-locked memory in its free list."""
        self.pinned.give_back(address)

    def copy_in(self, address: int, array: Array) -> None:
        """Copy an array to an address; pageable memory has been read when this returns."""
        with self.entered("{} bytes are copied in", array.nbytes):
            self.driver.memcpy_htod_async(address, bytes_of(array), self.stream)

    def copy_out(self, array: Array, address: int) -> None:
        """Copy from an address to an array."""
        with self.entered("{} bytes are copied out", array.nbytes):
            self.driver.memcpy_dtoh_async(bytes_of(array), address, self.stream)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes."""
        with self.entered("{} bytes are copied", size):
            self.driver.memcpy_dtod_async(target, source, size, self.current)

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""
        with self.entered("{} bytes are cleared", size):
            self.driver.memset_d8_async(address, 0, size, self.current)

    # Kernels ------------------------------------------------------------------------------------

    def load(self, source: CudaSource, kernels: Sequence[Signature]) -> Mapping[str, Any]:
        """Return the kernels of a module, compiled for this architecture or from the disk cache.

        A module that takes long to compile is divided into several, compiled in parallel.
        """
        groups = source.divided(min(available(), MAX_PARALLEL_COMPILES))
        binaries = self.binaries([source.of(group) for group in groups])
        with self.entered("a module is loaded"):
            modules = {}
            for group, binary in zip(groups, binaries, strict=True):
                modules.update(dict.fromkeys(group, self.driver.module_from_buffer(binary)))
            found = {}
            for kernel in kernels:
                module = modules[kernel.name]
                function = module.get_function(kernel.name)
                function.prepare("q" * len(kernel.ctypes))
                size = self.room_for_stages(function, kernel)
                most = most_blocks(kernel, self.processors)
                found[kernel.name] = kernel.name, Owned(self, (function, module)), size, most
            return found

    def binaries(self, sources: Sequence[str]) -> list[bytes]:
        """Return the cubins of texts, compiling those that are not in the disk cache."""
        names = [f"cubin-{disk.digest(source, *identity(self.architecture))}" for source in sources]
        texts = dict(zip(names, sources, strict=True))
        found = {name: made for name in names if (made := disk.load(name)) is not None}
        lacking = [name for name in texts if name not in found]
        compiled = compiled_together([texts[name] for name in lacking], self.architecture)
        for name, binary in zip(lacking, compiled, strict=True):
            disk.keep_bytes(name, binary)
            found[name] = binary
        return [found[name] for name in names]

    def room_for_stages(self, function: Any, kernel: Signature) -> int:
        """Return the bytes of dynamic shared memory of a kernel: pipeline stages and alignment."""
        stages = kernel.stages
        if stages is None:
            return 0
        known, own = (
            self.driver.device_attribute,
            STAGE_ALIGNMENT_BYTES + int(function.shared_size_bytes),
        )
        of_block = self.gpu.get_attribute(known.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        of_all = self.gpu.get_attribute(known.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
        each = own + RESERVED_BYTES_PER_BLOCK
        number = stages.number(of_block - own, of_all - each * stages.together)
        if number < stages.least:
            raise DeviceError(
                f"{self.name} has {of_block:,} bytes for what a block shares, and {kernel.name} "
                f"needs {own + stages.least * stages.bytes:,}: choose another with device="
            )
        size = STAGE_ALIGNMENT_BYTES + number * stages.bytes
        function.set_attribute(self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, size)
        return size

    def launch(self, kernel: Any, blocks: int, threads: int, words: Sequence[int]) -> None:
        """Launch a kernel."""
        name, owned, size, most = kernel
        with self.entered("{} is launched", name):
            grid, block = (min(blocks, most), 1), (threads, 1, 1)
            owned.made[0].prepared_async_call(grid, block, self.current, *words, shared_size=size)

    def has_library(self, option: str) -> bool:
        """Return True if the library of an option is installed and starts."""
        try:
            return bool(self.load_library(option))
        except DeviceError:
            return False

    def load_library(self, option: str) -> Any:
        """Return the library that an option of the transformer selects, loading it at first use.

        Raises ``DeviceError`` if it is unavailable.
        """
        with self.entered("a library is loaded"):
            if option not in self.libraries:
                self.libraries[option] = LIBRARIES[option](self)
            return self.libraries[option]

    def takes(self, call: LibraryCall) -> bool:
        """Return True if the library of a call has an algorithm or a plan."""
        library = self.load_library(OPTIONS[type(call)])
        with self.asking(f"{library.title} prepares a call", library.errors):
            return bool(library.takes(call))

    def call(self, call: LibraryCall, addresses: Sequence[int], works: int) -> None:
        """Submit a call to its library."""
        library = self.load_library(OPTIONS[type(call)])
        with self.asking(library.calling, library.errors):
            library.call(call, addresses, works, int(self.current.handle))

    @contextlib.contextmanager
    def asking(self, what: str, fails: tuple[type[Exception], ...]) -> Iterator[None]:
        """Return a ``with`` block for library calls in the context; errors contain ``what``."""
        with self.entered(what):
            try:
                yield
            except fails as error:
                raise self.failure(what, error) from None

    # Order --------------------------------------------------------------------------------------

    def synchronise(self) -> None:
        """Wait for the work submitted so far; other threads may submit more meanwhile."""
        self.wait(self.mark())

    def mark(self, again: Any = None) -> Any:
        """Record an event on the stream."""
        with self.entered("an event is recorded"):
            flags = self.driver.event_flags.DISABLE_TIMING
            event = again or Owned(self, self.driver.Event(flags))
            event.made.record(self.stream)
            return event

    def try_mark(self) -> Any | None:
        """Record an event on the stream; None if a thread is submitting or capturing work."""
        if not self.lock.acquire(blocking=False):
            return None
        try:
            return None if self.capturing else self.mark()
        finally:
            self.lock.release()

    def follow(self, mark: Any) -> None:
        """Let work that is submitted to the stream from now on begin after an event."""
        with self.entered("an event is followed"):
            self.stream.wait_for_event(mark.made)

    def clock(self) -> Any:
        """Record a timing event on the stream."""
        with self.entered("an event is recorded"):
            return Owned(self, self.driver.Event().record(self.stream))

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds between two events; the driver counts milliseconds."""
        with self.entered("kernels run"):
            return float(first.made.time_till(last.made)) * 1e-3

    def passed(self, mark: Any) -> bool:
        """Return True if an event has completed, or failed: waiting then raises the error."""
        try:
            return self.come(mark)
        except DeviceError:
            return True

    def come(self, mark: Any) -> bool:
        """Return True if an event has completed; raise the error of earlier work."""
        if self.lost is not None:
            self.refuse_lost()
        try:
            return bool(mark.made.query())  # needs no context
        except self.driver.Error:
            with self.entered("kernels run"):
                raise

    def wait(self, mark: Any) -> None:
        """Poll an event until it completes, letting other threads run."""
        if self.come(mark):
            return
        start = time.perf_counter()
        while not self.come(mark):
            time.sleep(0 if time.perf_counter() - start < MAX_SPIN_SECONDS else POLL_SECONDS)

    def wait_for(self, stream: int) -> None:
        """Wait for the whole context, since a stream's number does not tell its owner.

        Finalisers call this, so it does not take the lock of this stream.
        """
        self.refuse_lost()
        with CAPTURES, pushed(self.context):
            try:
                self.context.synchronize()
            except self.driver.Error as error:
                raise self.translated("another stream is waited for", error) from None

    @contextlib.contextmanager
    def beside(self, lanes: int) -> Iterator[Callable[[int], None]]:
        """Run each lane but the first on a stream of its own; events order them, in graphs too."""
        with self.entered("kernels are begun side by side"):
            self.make_lanes(lanes)
            streams = [self.stream, *self.lanes[: lanes - 1]]

            def choose(lane: int) -> None:
                self.current = streams[lane]

            mark = self.marks[0].record(self.stream)
            for stream in streams[1:]:
                stream.wait_for_event(mark)
            try:
                yield choose
            finally:
                self.current = self.stream
            for stream, mark in zip(streams[1:], self.marks[1:], strict=False):
                self.stream.wait_for_event(mark.record(stream))

    def make_lanes(self, lanes: int) -> None:
        """Create streams and events for this many lanes."""
        while len(self.marks) < lanes:
            self.marks.append(self.driver.Event(self.driver.event_flags.DISABLE_TIMING))
        while len(self.lanes) < lanes - 1:
            self.lanes.append(self.driver.Stream())

    def capture(self, run: Callable[[], None]) -> Graph:
        """Capture the work of ``run`` as a CUDA graph."""
        from cuda.bindings import driver as bindings

        handle = self.stream.handle
        with self.entered("a graph is captured"), capturing():
            mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            self.done(bindings.cuStreamBeginCapture(handle, mode))
            self.capturing = True
            try:
                run()
            except BaseException:
                bindings.cuStreamEndCapture(handle)  # its result is not used
                raise
            finally:
                self.capturing = False
            (graph,) = self.done(bindings.cuStreamEndCapture(handle))
            (made,) = self.done(bindings.cuGraphInstantiate(graph, 0))
            self.done(bindings.cuGraphDestroy(graph))
        return Graph(self, bindings, made)

    def replay(self, graphs: Sequence[Callable[[], None]], again: Any = None) -> Any:
        """Launch graphs and record an event after them."""
        with self.entered("a graph is launched"):
            for graph in graphs:
                graph()
            return self.mark(again)

    def steady(
        self,
        inputs: Sequence[graph_replay.Row],
        results: Sequence[graph_replay.Row],
        report: Array | None,
        graphs: Sequence[Callable[[], None]],
    ) -> Any | None:
        """Return the fast path into graphs, one C call; None without the extension."""
        if self.short is None:
            return None
        numbers = [int(graph.made) for graph in graphs if isinstance(graph, Graph)]
        held = inputs, results, report, graphs
        try:
            return graph_replay.steady(self.short, inputs, results, report, numbers, held)
        # the driver cannot create an event, or memory is exhausted
        except (RuntimeError, MemoryError):
            return None

    def fail(self, status: int) -> NoReturn:
        """Raise the error for a status of the fast path, negative if nothing was submitted."""
        with self.entered("a graph is launched" if status < 0 else "kernels run"):
            raise self.driver.Error(status_name(abs(status)))

    def done(self, answer: Any) -> tuple[Any, ...]:
        """Return the values of a cuda-bindings call, or raise its error."""
        status, *values = answer
        if int(status) != 0:
            error = DeviceError(f"{self.name} failed: {status}")
            if self.goes_on_to_fail():
                self.lost, error.lost = str(status), True
            raise error
        return tuple(values)


def status_name(status: int) -> str:
    """Return CUDA's name of a driver status."""
    from cuda.bindings import driver as bindings

    try:
        return str(bindings.CUresult(status).name)
    except ValueError:  # newer than the bindings
        return f"status {status}"


def bytes_of(array: Array) -> Array:
    """Return the bytes of a contiguous array, since not every dtype has a buffer interface."""
    return array.reshape(-1).view(np.uint8)
