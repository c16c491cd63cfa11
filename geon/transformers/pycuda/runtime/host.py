"""CPU as a ``Device``: kernels compiled as C++, with CUDA's names from a header.

It serves tests and inspection of programs. The blocks of a launch run one after another, and so do
launches of different Python threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ....errors import DeviceError
from ...cache import disk
from ...loading.compiling import find_program, run_program
from ...runtime.memory import HOST
from ..launches.device import Array, CudaSource, Signature, most_blocks
from ..launches.dialect import cuda_text
from ..launches.dlpack import DeviceType
from ..launches.library_requests import OPTIONS, Convolving, LibraryCall, ProductCall
from ..launches.memory import ALIGNMENT_BYTES
from ..products.cufft import CuFft
from ..products.cusolver import CuSolver
from ..products.nvmath_bindings import SharedWorkspace
from .host_library import HostBlas, HostFourier, HostLibraryError, HostSolver, convolve, multiply

COMPILERS = ("g++", "clang++", "c++")
CURE = "install g++ (apt install g++)"
FLAGS = ("-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fwrapv", "-fno-math-errno",
         "-fno-trapping-math", "-fPIC", "-w", "-pipe")  # fmt: skip
# Multiprocessors that kernels are told of: few, so that persistent blocks loop.
SIMULATED_PROCESSORS = 3


class HostKernel(NamedTuple):
    """A kernel in this process: address, whether its threads synchronise, maximum of blocks."""

    address: int
    meets: bool
    most: int


@cache
def find_compiler() -> tuple[str, str] | None:
    """Return the C++ compiler's path and version text; None if there is none."""
    for name in COMPILERS:
        path = find_program(name)
        if path is not None:
            status, version, _ = run_program([path, "--version"])
            if status == 0:
                return path, version
    return None


def shared_object(source: str, flags: Sequence[str] = (), linked: Sequence[str] = ()) -> str:
    """Return the path of the shared object of a C++ text, from the disk cache or newly compiled.

    ``flags`` are for compiling, ``linked`` for linking.
    """
    compiler = find_compiler()
    if compiler is None:
        raise DeviceError(f"kernels run on a CPU need a C++ compiler: {CURE}")
    path, version = compiler
    name = f"cuda-{disk.digest(path, version, *FLAGS, *flags, *linked, source)}.so"
    found = disk.find(name)
    if found is not None:
        return str(found)
    with disk.scratch_file(name) as made, disk.scratch_file(".o") as object_file:
        command = [path, *FLAGS, *flags, "-c", "-x", "c++", "-", "-o", str(object_file)]
        link = [path, "-shared", str(object_file), *linked, "-o", str(made)]
        for step in (command, link):
            status, _, said = run_program(step, source)
            if status != 0:
                message = f"{path} does not compile a module of kernels:"
                raise DeviceError(f"{message}\n{said[:4000]}")
        return str(disk.keep(name, made))


@cache
def runtime() -> Any:
    """Return the library that runs kernels; modules find its functions by name."""
    text = cuda_text("host.cpp").replace('#include "races.hpp"\n', cuda_text("races.hpp"))
    library = ctypes.CDLL(shared_object(text), ctypes.RTLD_GLOBAL)
    library.geon_host_launch.restype = ctypes.c_char_p
    library.geon_host_launch.argtypes = (
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_int,
    )  # fmt: skip
    library.geon_host_nowhere.restype = ctypes.c_uint64
    return library


def sanitizer(what: str, address: int, size: int) -> None:
    """Poison or unpoison memory for AddressSanitizer, by ``what``."""
    function = getattr(ctypes.CDLL(None), f"__asan_{what}_memory_region")
    function(ctypes.c_void_p(address), ctypes.c_size_t(size))


def entries(kernels: Sequence[Signature]) -> str:
    """Return C functions that call kernels with arguments from an array of words."""
    lines = []
    for kernel in kernels:
        words = ", ".join(f"({ctype})words[{k}]" for k, ctype in enumerate(kernel.ctypes))
        head = f'extern "C" void geon_call_{kernel.name}(const uint64_t *words)'
        lines.append(f"{head} {{ {kernel.name}({words}); }}")
    return "\n".join(lines) + "\n"


# searching C++'s library at load time takes longer
ALONE = ("-nodefaultlibs", "-lm", "-lc", "-lgcc")
# Flags by the value of ``checks``: for compiling a module, and for linking it.
CHECKS = {
    "": ((), ALONE),
    "races": (("-fsanitize=thread",), ()),
    "loads": (("-O0",), ALONE),
    "memory": (
        ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g"),
        ("-fsanitize=address,undefined",),
    ),
}


class HostDevice:
    """The CPU behind the device interface, for tests.

    With ``checks="races"``, a kernel fails if two threads access the same address without a barrier
    in between and one of them writes. With ``"memory"``, the process ends at the first access
    outside of allocated memory, or undefined operation; it must have been started with the
    sanitizer. A kernel that reads an array without elements fails in all modes, but compilers may
    remove an unused load; with ``"loads"`` they do not.
    """

    dlpack: tuple[int, int] = (DeviceType.EXT_DEV, 0)
    stream_number: int | None = None
    # Of all devices: the library that runs kernels has one launch at a time.
    lock = threading.RLock()

    def __init__(self, checks: str = "", owner: Any = None) -> None:
        self.owner = owner or object()
        self.name = f"host {checks}".rstrip()
        self.checks, self.flags = checks, CHECKS[checks]
        self.nothing = runtime().geon_host_nowhere()
        if checks == "races":
            runtime().geon_host_look()
        self.blocks: dict[int, Array] = {}
        self.pinned: dict[int, Array] = {}
        self.recorded: list[Callable[[], Any]] | None = None
        shared = SharedWorkspace(self.allocate, self.free)
        self.libraries: dict[str, Any] = {
            "matrices": CuSolver(HostSolver(), HostBlas(), (HostLibraryError,), shared),
            "transforms": CuFft(HostFourier(), shared),
        }

    def do(self, begun: Callable[[], Any]) -> None:
        """Execute an operation, or record it during capture."""
        with self.lock:
            if self.recorded is None:
                begun()
            else:
                self.recorded.append(begun)

    def not_captured(self, what: str) -> None:
        """Raise ``DeviceError`` during capture, as a GPU does."""
        with self.lock:  # waits for a capture by another thread
            if self.recorded is not None:
                raise DeviceError(f"{what} is nothing that can be captured")

    def allocate(self, size: int) -> int:
        """Return the address of new memory."""
        self.not_captured("allocating memory")
        raw = np.empty(size + ALIGNMENT_BYTES, np.uint8)
        start = raw.ctypes.data
        address = start + -start % ALIGNMENT_BYTES
        self.blocks[address] = raw
        if self.checks == "memory":  # poison the bytes before and behind
            sanitizer("poison", start, address - start)
            sanitizer("poison", address + size, start + ALIGNMENT_BYTES - address)
        return address

    def room(self) -> int:
        """Return the available memory of the machine."""
        return HOST.room()[0]

    def free(self, address: int, readers: Sequence[Any] = ()) -> None:
        """Free memory."""
        raw = self.blocks.pop(address)
        if self.checks == "memory":
            sanitizer("unpoison", raw.ctypes.data, raw.nbytes)

    def pin(self, size: int) -> int:
        """Return the address of new memory that is registered as pinned."""
        self.not_captured("pinning memory")
        made = np.empty(size, np.uint8)
        self.pinned[made.ctypes.data] = made
        return made.ctypes.data

    def unpin(self, address: int) -> None:
        """Free pinned memory."""
        del self.pinned[address]

    def is_pinned(self, array: Array) -> bool:
        """Return True if an array lies in pinned memory."""
        at = array.ctypes.data
        # A copy at once: making a list of pairs may collect garbage, which unpins memory.
        blocks = self.pinned.copy()
        return any(start <= at < start + made.nbytes for start, made in blocks.items())

    def copy_in(self, address: int, array: Array) -> None:
        """Copy an array to an address."""
        if not self.is_pinned(array):
            self.not_captured("a copy from memory that is not pinned")
        source, size = array.ctypes.data, array.nbytes
        self.do(lambda: ctypes.memmove(address, source, size))

    def copy_out(self, array: Array, address: int) -> None:
        """Copy from an address to an array."""
        if not self.is_pinned(array):
            self.not_captured("a copy to memory that is not pinned")
        target, size = array.ctypes.data, array.nbytes
        self.do(lambda: ctypes.memmove(target, address, size))

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes."""
        self.do(lambda: ctypes.memmove(target, source, size))

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""
        self.do(lambda: ctypes.memset(address, 0, size))

    def load(self, source: CudaSource, kernels: Sequence[Signature]) -> Mapping[str, HostKernel]:
        """Return the kernels of a module, compiled as C++."""
        runtime()
        text = cuda_text("host.hpp") + source.whole + entries(kernels)
        library = ctypes.CDLL(shared_object(text, *self.flags))
        found = {}
        for kernel in kernels:
            entry = library[f"geon_call_{kernel.name}"]
            address = ctypes.cast(entry, ctypes.c_void_p).value
            assert address is not None
            found[kernel.name] = HostKernel(
                address, kernel.meets, most_blocks(kernel, SIMULATED_PROCESSORS)
            )
        return found

    def launch(self, kernel: HostKernel, blocks: int, threads: int, words: Sequence[int]) -> None:
        """Run a kernel."""
        given = (ctypes.c_uint64 * max(len(words), 1))(*words)
        self.do(lambda: self.run(kernel, given, min(blocks, kernel.most), threads))

    def run(self, kernel: HostKernel, given: Any, blocks: int, threads: int) -> None:
        """Run a kernel; its failure makes the device unusable for the transformer, as on a GPU."""
        with self.lock:
            wrong = runtime().geon_host_launch(kernel.address, given, blocks, threads, kernel.meets)
        if wrong is not None:
            error = DeviceError(f"a kernel failed: {wrong.decode()}")
            error.lost = True
            raise error

    def takes(self, call: LibraryCall) -> bool:
        """Return True: NumPy and SciPy compute all library calls."""
        option = OPTIONS[type(call)]
        return option not in self.libraries or bool(self.libraries[option].takes(call))

    def call(self, call: LibraryCall, addresses: Sequence[int], works: int) -> None:
        """Compute a library call by NumPy and SciPy."""
        if isinstance(call, ProductCall):
            self.do(lambda: multiply(call, addresses))
        elif isinstance(call, Convolving):
            self.do(lambda: convolve(call, addresses))
        else:
            library = self.libraries[OPTIONS[type(call)]]
            self.do(lambda: library.call(call, addresses, works, 0))

    def synchronise(self) -> None:
        """Do nothing: work is complete when submitted."""
        self.not_captured("waiting")

    def mark(self, again: Any = None) -> None:
        """Return None: work is complete when submitted."""
        self.not_captured("a mark")

    def clock(self) -> list[float]:
        """Return a list that receives the time when earlier work is done."""
        self.not_captured("a clock")
        made: list[float] = []
        self.do(lambda: made.append(time.perf_counter()))
        return made

    def seconds(self, first: list[float], last: list[float]) -> float:
        """Return the time between two clocks in seconds."""
        return last[0] - first[0]

    def passed(self, mark: Any) -> bool:
        """Return True: work is complete when submitted."""
        return True

    def wait(self, mark: Any) -> None:
        """Do nothing: work is complete when submitted."""

    def follow(self, mark: Any) -> None:
        """Do nothing: work is complete when submitted."""

    def wait_for(self, stream: int) -> None:
        """Do nothing: work is complete when submitted."""

    @contextlib.contextmanager
    def beside(self, lanes: int) -> Iterator[Callable[[int], None]]:
        """Run lanes one after another, the last one first, to reveal dependences on their order."""
        with self.lock:
            before, begun = self.recorded, [list[Callable[[], Any]]() for _ in range(lanes)]

            def choose(lane: int) -> None:
                self.recorded = begun[lane]

            choose(0)
            try:
                yield choose
            finally:
                self.recorded = before
            for lane in reversed(begun):
                for each in lane:
                    self.do(each)

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that repeats the recorded operations with the same addresses."""
        with self.lock:
            recorded: list[Callable[[], Any]] = []
            self.recorded = recorded
            try:
                run()
            finally:
                self.recorded = None

        def replay() -> None:
            for each in recorded:
                self.do(each)

        return replay

    def replay(self, graphs: Sequence[Callable[[], None]], again: Any = None) -> Any:
        """Repeat the recorded operations."""
        for graph in graphs:
            graph()
        return self.mark(again)

    def steady(self, *_: Any) -> None:
        """Return None: there is no fast path."""

    def fail(self, status: int) -> NoReturn:
        """Raise NotImplementedError: there is no fast path."""
        raise NotImplementedError(status)


@cache
def device(checks: str = "", stream: Hashable = None) -> HostDevice:
    """Return the host device with these checks, one per process and name of a stream.

    All of them own the host's memory.
    """
    return HostDevice(checks, HOST)
