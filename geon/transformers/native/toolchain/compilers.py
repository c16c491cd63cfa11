"""Find the machine's C compiler, its supported flags and the instruction set that they enable.

Running a compiler takes tens of milliseconds, so the result is cached per process and on disk,
under the compiler's path, time and size and the processor's features.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib.util
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ....errors import UnavailableError
from ....lazy_dataclasses import dataclass
from ...cache import disk
from ...loading.compiling import find_program, run_program
from ...loading.environment import COMPILER, PROGRAMS, setting
from . import prebuilt
from .flags import (
    ANY_TYPE,
    FEW_PASSES,
    FLAGS,
    INSTEAD,
    LEAN,
    NEEDED,
    OF_VECTORS,
    SANITIZERS,
    TUNED,
    UNTUNED,
    WIDE,
)

CURE = "install gcc (apt install gcc) or pip install 'geon[native]'"

MACROS = ("__AVX", "__SSE", "__FMA", "__F16C__", "__BMI", "__ARM_", "__aarch64__", "__x86_64__")
FAMILY_MACROS = ("__clang__", "__GNUC__", "__clang_major__", "__SIZEOF_INT128__", "__ELF__")

MAX_MESSAGE_CHARACTERS = (
    300  # maximum characters of a message: some compilers repeat a long command
)

# Test program: the compiler must find the includes of pool.c and make a shared object that this
# process can load, so it is not a cross-compiler.
TRIAL = """#include <pthread.h>
#include <stdint.h>
int32_t geon_trial(int32_t x) { return x + (int32_t)sizeof(pthread_t) * 0 + 1; }
"""


@dataclass(frozen=True)
class Toolchain:
    """A C compiler that works on this machine.

    ``command`` runs it. ``version`` is the first line of its ``--version`` output. ``flags`` are
    passed in every run. ``macros`` are its predefined macros with these flags that describe the
    instruction set. ``cpu`` is the processor's model and features, for which code is compiled.
    ``lean`` are further flags for units of a single program. ``linker`` is the path of its linker
    if that can link shared objects on its own, else "". ``libraries`` are the system libraries that
    a kernel may call.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    macros: Mapping[str, str] = dataclasses.field(hash=False)
    cpu: str
    lean: tuple[str, ...] = ()
    linker: str = ""
    libraries: tuple[str, ...] = ()

    def own_flags(self, unit: str) -> tuple[str, ...]:
        """Return the further flags of a unit of a single program: ``lean`` ones, and those that run
        few passes if the unit is vectorised and the compiler has lean flags.
        """
        few = bool(self.lean) and unit.startswith(OF_VECTORS)
        return (*self.lean, *FEW_PASSES) if few else self.lean

    @property
    def vector_bytes(self) -> int:
        """Return the width of vectors in bytes."""
        if "__AVX512F__" in self.macros:
            return 64
        return 32 if "__AVX2__" in self.macros else 16

    @property
    def family(self) -> str:
        """Return ``"zig"``, ``"clang"`` or ``"gcc"``, whose flags and builtins it has."""
        if _is_zig(self.command):
            return "zig"
        return "clang" if "__clang__" in self.macros else "gcc"


def _is_zig(command: Sequence[str]) -> bool:
    """Return True for ``zig cc`` and ``python -m ziglang cc``."""
    return command[-1] == "cc" and os.path.basename("".join(command[-2:-1])).startswith("zig")


_lock = disk.fork_safe_lock()
_found: dict[tuple[str, str], Toolchain | None] = {}
_refused: dict[tuple[str, str], list[str]] = {}


def _surroundings() -> tuple[str, str]:
    return setting(COMPILER), setting(PROGRAMS)


def find_toolchain() -> Toolchain | None:
    """Return the first C compiler that works: ``$CC``, ``cc``, ``gcc``, ``clang``, or the ziglang
    package.

    Return None if there is none; ``missing_compiler()`` then lists those tried.
    """
    key = _surroundings()
    if key not in _found:
        with _lock:
            if key not in _found:
                refused: list[str] = []
                found = next(
                    filter(None, (_examine(c, refused) for c in _candidates(refused))), None
                )
                _refused[key] = refused
                _found[key] = found
    return _found[key]


def passed_over() -> list[str]:
    """Return the compilers that were tried and rejected, each with the reason."""
    return list(_refused.get(_surroundings(), ()))


def missing_compiler() -> str:
    """Return the error message for a missing compiler: those tried, and the cure."""
    reasons = (
        "".join(f"\n  {line}" for line in passed_over()) or "\n  no cc, gcc or clang on the PATH"
    )
    return f"no C compiler works here: {CURE}. Tried:{reasons}"


def _candidates(refused: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield commands to try, in order.

    A missing command is included only if the user set it. A malformed one is added to ``refused``.
    """
    seen = set()
    given = setting(COMPILER).strip()
    # A path with spaces is a command if there is such a file.
    asked = (given,) if given and find_program(given) else _words(given, refused)
    for command in filter(None, (asked, ("cc",), ("gcc",), ("clang",))):
        where = find_program(command[0])
        if where is None:
            if command is asked:
                yield command
            continue
        # cc is usually gcc or clang, which is then not examined twice.
        identity = (os.path.realpath(where), command[1:])
        if identity not in seen:
            seen.add(identity)
            yield (where, *command[1:])
    zig = importlib.util.find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        binary = Path(zig.origin).with_name("zig")
        yield (str(binary), "cc") if binary.is_file() else (sys.executable, "-m", "ziglang", "cc")


def _words(given: str, refused: list[str]) -> tuple[str, ...]:
    """Split a command as a shell does; return () and add the reason to ``refused`` on error."""
    try:
        return tuple(shlex.split(given))
    except ValueError as error:
        refused.append(f"{COMPILER}={given!r}: {str(error).lower()}: close the quotes in it")
        return ()


def _examine(command: tuple[str, ...], refused: list[str]) -> Toolchain | None:
    """Return the toolchain of a command, cached or new; None, with the reason in ``refused``, if
    unusable.
    """
    try:
        name = record_name(command)
        known = disk.load(name) or prebuilt.load(name)
        if known is not None:
            row = json.loads(known)
            return Toolchain(
                tuple(row["command"]),
                row["version"],
                tuple(row["flags"]),
                row["macros"],
                row["cpu"],
                tuple(row["lean"]),
                row["linker"],
                tuple(row["libraries"]),
            )
        made = _make(command)
    except FileNotFoundError as error:
        refused.append(f"{shlex.join(command)}: no such program ({error.filename})")
    except (OSError, UnusableError) as error:
        refused.append(f"{shlex.join(command)}: {error}")
    else:
        disk.keep_bytes(name, record_text(made))
        return made
    return None


def record_name(command: Sequence[str]) -> str:
    """Return the name of the cache file of a command's toolchain."""
    status = os.stat(command[0])
    return "toolchain-" + disk.digest(
        *command,
        os.path.realpath(command[0]),
        f"{status.st_mtime_ns} {status.st_size}",
        processor(),
        " ".join((*FLAGS, WIDE, TUNED, ANY_TYPE, *LEAN)),
        " ".join(field.name for field in dataclasses.fields(Toolchain)),
    )


def record_text(toolchain: Toolchain) -> bytes:
    """Return the content of that file."""
    return json.dumps(dataclasses.asdict(toolchain)).encode()


class UnusableError(Exception):
    """Raised with the reason if a compiler cannot be used."""


def run_compiler(
    command: Sequence[str], arguments: Iterable[str], text: str | None = None
) -> tuple[int, str, str]:
    """Run a compiler as ``run_program`` does."""
    # zig has a cache of its own, which must not be in a read-only home.
    folders = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR") if _is_zig(command) else ()
    given = {name: str(disk.folder() / "zig") for name in folders}
    return run_program([*command, *arguments], text, **given)


def _make(command: tuple[str, ...]) -> Toolchain:
    """Run a compiler to find its properties; raise ``UnusableError`` if it fails."""
    from concurrent.futures import ThreadPoolExecutor  # not needed if the cache has the toolchain

    # Try all flags at once, which most compilers support, while querying single flags.
    with ThreadPoolExecutor(2) as pool:
        trial = pool.submit(_try, command, (*FLAGS, WIDE))
        status, said, complaint = run_compiler(command, ["--version"])
        if status != 0 or not said.strip():
            raise UnusableError(_first(complaint) or f"--version ended with status {status}")
        flags = _known(command, FLAGS)
        macros, tuned = instruction_macros(command, flags)
        # Other compilers have other passes.
        lean = () if "__clang__" in macros else _known(command, LEAN)
        if "__AVX512F__" in macros:
            # Without it gcc and clang use 256-bit vectors, for the clock rates of older processors.
            flags = _known(command, (*flags, WIDE) if tuned else (*flags, WIDE, TUNED))
        if "__clang__" in macros:
            flags = _known(command, (*flags, ANY_TYPE))
    if flags == (*FLAGS, WIDE) and trial.exception() is None:
        linker = trial.result()
    else:
        linker = _try(command, flags)
    version = said.splitlines()[0].strip()
    libraries = _libraries(command) if linker else ()
    return Toolchain(command, version, flags, macros, processor(), lean, linker, libraries)


def _first(text: str) -> str:
    """Return the first line that mentions an error, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return (
        found if len(found) <= MAX_MESSAGE_CHARACTERS else f"{found[:MAX_MESSAGE_CHARACTERS]} ..."
    )


def _accepts(command: tuple[str, ...], flags: Iterable[str]) -> bool:
    arguments = [*flags, "-Werror", "-x", "c", "-E", "-"]
    return run_compiler(command, arguments, "int x;\n")[0] == 0


def _known(command: tuple[str, ...], flags: Sequence[str]) -> tuple[str, ...]:
    """Return the supported flags; one run suffices if all are supported."""
    if _accepts(command, flags):
        return tuple(flags)
    known = []
    for flag in flags:
        if flag in NEEDED or _accepts(command, [flag]):
            known.append(flag)
        elif flag in INSTEAD and _accepts(command, [INSTEAD[flag]]):
            known.append(INSTEAD[flag])
    return tuple(known)


def instruction_macros(
    command: tuple[str, ...], flags: Sequence[str]
) -> tuple[dict[str, str], bool]:
    """Return the relevant predefined macros, and True if it tunes for this processor.

    Raises ``UnusableError`` with the compiler's message if it does not know one of the flags.
    """
    status, said, complaint = run_compiler(command, [*flags, "-v", "-x", "c", "-dM", "-E", "-"], "")
    if status != 0:
        raise UnusableError(_first(complaint))
    macros = {}
    for line in said.splitlines():
        _, name, *value = line.split(" ", 2)
        if name.startswith(MACROS) or name in FAMILY_MACROS:
            macros[name] = value[0] if value else ""
    return dict(sorted(macros.items())), UNTUNED not in complaint.split()


def _try(command: tuple[str, ...], flags: Sequence[str]) -> str:
    """Compile, load and call a small function; raise ``UnusableError`` if that fails.

    Return the linker if it can link on its own, else "".
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="trial-", dir=disk.folder()) as where:
        made = os.path.join(where, "trial.o")
        compile_it = [*flags, "-x", "c", "-", "-c", "-o", made]
        path = os.path.join(where, "trial.so")
        for arguments in (compile_it, [*flags, "-shared", made, "-o", path, "-pthread"]):
            status, _, complaint = run_compiler(command, arguments, TRIAL)
            if status != 0:
                raise UnusableError(_first(complaint) or f"a trial ended with status {status}")
        # An OSError here means a shared object for another machine, or a folder mounted noexec.
        if not _works(path):
            raise UnusableError("a trial gave a wrong number")
        return _linker(command, made, os.path.join(where, "linked.so"))


def _works(path: str) -> bool:
    """Return True if the test function returns the right value."""
    function = ctypes.CDLL(path).geon_trial
    function.restype = ctypes.c_int32
    return bool(function(ctypes.c_int32(41)) == 42)


def _linker(command: tuple[str, ...], made: str, path: str) -> str:
    """Return the compiler's linker if it links the object ``made`` on its own, else ""."""
    if sys.platform != "linux" or _is_zig(command):
        return ""
    status, said, _ = run_compiler(command, ["-print-prog-name=ld"])
    linker = find_program(said.strip()) if status == 0 and said.strip() else None
    if linker is None:
        return ""
    try:
        status, _, _ = run_compiler((linker,), link_by_itself([made], path))
        return linker if status == 0 and _works(path) else ""
    except OSError:
        return ""


def _libraries(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of libm and libc, if the compiler finds them."""
    found = []
    for name in ("libm.so.6", "libc.so.6"):
        status, said, _ = run_compiler(command, [f"-print-file-name={name}"])
        if status == 0 and os.path.isabs(said.strip()):
            found.append(said.strip())
    return tuple(found)


def link_by_itself(objects: Iterable[str], made: str, libraries: Sequence[str] = ()) -> list[str]:
    """Return the linker's arguments to link objects and their libraries into a shared object.

    Linking fails if a function is undefined. A compiler passes its linker all that any program may
    need, which takes four times as long to read.
    """
    needed = ["--as-needed", *libraries]
    flags = ["-shared", "-z", "defs", "--eh-frame-hdr", "--hash-style=gnu"]
    return [*flags, *objects, *needed, "-o", made]


def processor() -> str:
    """Return a stable description of the processor's model and features, equal if code can be
    shared.

    It is from the first processor in ``/proc/cpuinfo``, elsewhere from Python.
    """
    keys = {"vendor_id", "cpu family", "model", "model name", "stepping", "flags"}
    keys |= {"Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"}
    lines = [f"machine: {platform.machine()}"]
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            # The kernel generates the text on reading; on a large machine it is megabytes long.
            text = b""
            while b"\n\n" not in text and (block := file.read(8192)):
                text += block
    except OSError:
        return f"{lines[0]}; {platform.processor()}"
    for line in text.partition(b"\n\n")[0].decode("ascii", "replace").splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key in keys:
            in_order = key in ("flags", "Features")
            lines.append(f"{key}: {' '.join(sorted(value.split())) if in_order else value}")
    return "; ".join(lines)


def with_sanitizers(toolchain: Toolchain) -> Toolchain:
    """Return the compiler with address and undefined-behaviour sanitizers enabled.

    Its objects can be loaded only in a process that was started with ``sanitizer_environment``.
    Raises ``UnavailableError`` for zig, which has no address sanitizer.
    """
    if toolchain.family == "zig":
        raise UnavailableError(
            f"{shlex.join(toolchain.command)} comes without the address sanitizer: {CURE_SANITIZER}"
        )
    kept = tuple(flag for flag in toolchain.flags if flag != "-O2")
    flags = (*kept, *SANITIZERS)
    return dataclasses.replace(toolchain, flags=flags, lean=(), linker="", libraries=())


CURE_SANITIZER = "install gcc (apt install gcc) or clang and set CC to it"


def sanitizer_environment(toolchain: Toolchain) -> dict[str, str]:
    """Return the environment variables with which a process can load what ``with_sanitizers``
    compiles.

    Leak detection is off, since the interpreter keeps memory until it ends. Raises
    ``UnavailableError`` if the compiler has no sanitizer library.
    """
    with_sanitizers(toolchain)
    library = f"libclang_rt.asan-{platform.machine()}.so"
    for name in (
        (library, "libclang_rt.asan.so") if toolchain.family == "clang" else ("libasan.so",)
    ):
        _, said, _ = run_compiler(toolchain.command, [f"-print-file-name={name}"])
        path = said.strip()
        if os.path.isabs(path) and os.path.isfile(path):
            return {"LD_PRELOAD": os.path.realpath(path), "ASAN_OPTIONS": "detect_leaks=0"}
    raise UnavailableError(
        f"{shlex.join(toolchain.command)} comes without the address sanitizer: {CURE_SANITIZER}"
    )
