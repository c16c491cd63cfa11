"""The thread pool that all compiled computations of this process share."""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from pathlib import Path
from typing import Any

from ....errors import ArgumentError, UnavailableError
from ....lazy_dataclasses import dataclass
from ....version import __version__
from ...cache.disk import fork_safe_lock
from ...loading.compiling import available
from ...loading.environment import THREADS, setting
from ..names.c_texts import c_text
from ..toolchain.compilers import Toolchain, find_toolchain, missing_compiler
from ..toolchain.shared_objects import shared_object

MAX_THREADS = 1024
# Prefix of the library's file name, by which threadpoolctl recognises it.
PREFIX = "libgeon_pool"

_lock = fork_safe_lock()
_pool: Pool | None = None


@dataclass(frozen=True)
class Pool:
    """The loaded thread pool: addresses for compiled modules, and the limit of threads.

    ``run_address`` is that of ``void geon_pool_run(void (*task)(void *argument, int64_t index),
    void *argument, int64_t count, int32_t threads)``. ``run_short_address`` is that of
    ``geon_pool_run_short``, which also takes the expected duration. ``seat_address`` is that of
    ``int32_t geon_seat(void)``. ``interrupt_address`` and ``watched_address`` are those of the flag
    and the function by which loops detect an interrupt. ``watch_address`` and ``unwatch_address``
    are those of the functions that start and stop watching for interrupts.
    """

    library: ctypes.CDLL
    path: Path
    run_address: int
    run_short_address: int
    seat_address: int
    interrupt_address: int
    watched_address: int
    watch_address: int
    unwatch_address: int

    def limit(self) -> int:
        """Return the maximum number of threads of a run: the limit, else ``default_threads()``."""
        return int(self.library.geon_get_num_threads())

    def set_limit(self, threads: int | None) -> None:
        """Limit the threads of every later run of this process; None removes the limit."""
        if threads is not None and threads < 1:
            raise ArgumentError(f"a limit of {threads} threads: give 1 or more, or None for none")
        self.library.geon_set_num_threads(min(threads or 0, MAX_THREADS))


def load_pool() -> Pool:
    """Return the pool of this process; the first call compiles and loads it.

    Raises ``UnavailableError`` if there is no C compiler.
    """
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = _load()
                _register()
    return _pool


def _load() -> Pool:
    toolchain = find_toolchain()
    if toolchain is None:
        raise UnavailableError(missing_compiler())
    path = pool_library(toolchain)
    library = ctypes.CDLL(str(path))
    library.geon_get_num_threads.restype = ctypes.c_int32
    library.geon_get_num_threads.argtypes = ()
    library.geon_set_num_threads.restype = None
    library.geon_set_num_threads.argtypes = (ctypes.c_int32,)
    library.geon_pool_configure.restype = None
    library.geon_pool_configure.argtypes = (ctypes.c_int32, ctypes.c_int32)
    library.geon_get_version.restype = ctypes.c_char_p
    library.geon_pool_configure(processors(), default_threads())
    library.geon_flush_subnormals.restype = ctypes.c_uint64
    library.geon_flush_subnormals.argtypes = ()
    library.geon_set_arithmetic.restype = None
    library.geon_set_arithmetic.argtypes = (ctypes.c_uint64,)
    library.geon_watch.restype = library.geon_unwatch.restype = None
    library.geon_watch.argtypes = library.geon_unwatch.argtypes = ()
    return Pool(
        library,
        path,
        run_address=_address(library.geon_pool_run),
        run_short_address=_address(library.geon_pool_run_short),
        seat_address=_address(library.geon_seat),
        interrupt_address=ctypes.addressof(ctypes.c_int32.in_dll(library, "geon_interrupt")),
        watched_address=_address(library.geon_is_watched),
        watch_address=_address(library.geon_watch),
        unwatch_address=_address(library.geon_unwatch),
    )


def pool_library(toolchain: Toolchain) -> Path:
    """Return the path of the pool's shared object."""
    # Its threads outlive every handle to it, so it must not be unloaded.
    extra = [f'-DGEON_VERSION="{__version__}"', "-pthread", "-O1"]
    if sys.platform == "linux":
        extra.append("-Wl,-z,nodelete")
    return shared_object(toolchain, [c_text("pool.c")], extra, name=PREFIX)


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def default_threads() -> int:
    """Return the default number of threads: ``GEON_THREADS``, else one for each processor.

    Raises ``ArgumentError`` for a value that is not an integer from 1 to 1024.
    """
    given = setting(THREADS)
    if not given:
        return processors()
    if not given.isdecimal() or not 1 <= int(given) <= MAX_THREADS:
        raise ArgumentError(
            f"{THREADS}={given!r} is no number of threads: set it to a whole number from 1 to "
            f"{MAX_THREADS}, or unset it for one thread per processor"
        )
    return int(given)


def processors() -> int:
    """Return the number of threads that can run at once: processors, limited by the CPU quota."""
    share = _quota()
    return available() if share is None else max(1, min(available(), share))


@functools.cache
def _quota(
    own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Return the processors that the process's control groups grant, rounded up; None: no limit.

    It is the minimum over the group and its ancestors, from the files that Linux's documentation of
    control groups describes: cpu.max in version 2, cpu.cfs_quota_us and cpu.cfs_period_us in
    version 1.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return None
    shares = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "cpu" if controllers else root
        place = top / group.lstrip("/")
        # In a container the files of its own group are at the root, whatever its outer name is.
        for where in dict.fromkeys((place, *place.parents, top)):
            if where.is_relative_to(root):
                shares.append(_share(where))
    granted = [share for share in shares if share is not None]
    return min(granted) if granted else None


def _share(group: Path) -> int | None:
    """Return the processors that one control group grants, rounded up; None: no limit."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        return None if quota == "max" or int(quota) <= 0 else -(-int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _register() -> None:
    """Register the pool with threadpoolctl, if that is installed, so that it lists and limits it.

    This happens when the pool is loaded. threadpoolctl inspects each loaded library only once:
    before loading there is nothing to find, and later would be too late for a user who asked in
    between. The import takes 2 ms if ctypes is loaded, as it is here.
    """
    try:
        threadpoolctl: Any = importlib.import_module("threadpoolctl")
    except ImportError:
        return
    register = getattr(threadpoolctl, "register", None)
    if register is not None:  # versions before 3.2 have no ``register``
        register(_controller(threadpoolctl.LibController))


def _controller(base: Any) -> type:
    """Return the class by which threadpoolctl controls the pool, derived from ``base``."""

    class GeonController(base):
        """The controller of geon's pool for threadpoolctl."""

        user_api = "geon"
        internal_api = "geon"
        filename_prefixes = (PREFIX,)
        check_symbols = ("geon_get_num_threads", "geon_set_num_threads")

        def get_num_threads(self) -> int:
            return int(self.dynlib.geon_get_num_threads())

        def set_num_threads(self, num_threads: int) -> None:
            self.dynlib.geon_set_num_threads(int(num_threads))

        def get_version(self) -> str:
            get = self.dynlib.geon_get_version
            get.restype = ctypes.c_char_p
            return str(get().decode())

    return GeonController
