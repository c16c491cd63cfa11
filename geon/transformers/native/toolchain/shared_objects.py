"""C texts become one shared object, compiled at most once per user and machine.

The key of an object is its text, the compiler's version and flags, the processor's features and
the format of the cache; a shared object's is those of its objects. Whoever calls gives texts
without names and line numbers, so that an edited comment compiles nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....errors import GeonError, UnavailableError
from ...cache import disk
from ...loading.environment import CACHE
from . import prebuilt
from .compilers import CURE, Toolchain, link_by_itself, run_compiler
from .flags import OF_VECTORS
from .progress import Progress
from .translation_units import VECTORS_COST

# How many units this process gave to a compiler; linking is not counted.
compiled = 0

FREE = f"free some of it, or set {CACHE} to another folder"

_lock = disk.fork_safe_lock()
_begun: dict[str, threading.Thread] = {}


def shared_object(
    toolchain: Toolchain,
    units: Sequence[str],
    extra: Sequence[str] = (),
    name: str = "geon",
    own: Sequence[str] = (),
) -> Path:
    """The path of a shared object with the functions of all these C texts.

    It comes from the cache where it was made before. Several units are compiled side by side, equal
    ones once, each object kept for other shared objects too. Compiling longer than two seconds says
    how far it is. ``own`` are units of one program, compiled with the toolchain's ``own_flags``.
    ``extra`` are flags for every run; ``name`` starts the file's name. The file may be removed by a
    later call of any process, a minute from now at the earliest: load it at once.

    Raises ``UnavailableError`` with the compiler's messages where a text does not compile.
    """
    flags: dict[str, Sequence[str]] = dict.fromkeys(units, extra)
    flags |= {unit: (*toolchain.own_flags(unit), *extra) for unit in own}
    texts = list(flags)
    if not texts:
        raise ValueError("no unit to compile")
    keys = [_key(toolchain, flags[text], text) for text in texts]
    try:
        return _shared(toolchain, flags, keys, extra, name)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise UnavailableError(
            f"there is no room for compiled code in {disk.folder()}: {FREE}"
        ) from error


def _shared(
    toolchain: Toolchain,
    flags: Mapping[str, Sequence[str]],
    keys: Sequence[str],
    extra: Sequence[str],
    name: str,
) -> Path:
    """The shared object of these texts, each with its flags and its key."""
    texts = list(flags)
    file = f"{name}-{disk.digest('shared', *keys)}.so"
    found = _found(file)
    if found is not None:
        return found
    if len(texts) == 1 and not toolchain.linker:
        with disk.scratch_file(".so") as made, Progress(1):
            _compile(toolchain, texts[0], keys[0], ("-shared", *flags[texts[0]], "-lm"), made)
            return disk.keep(file, made)
    with disk.scratch_file(".so") as made, disk.scratch_file(".o") as alone:
        if len(texts) == 1:
            with Progress(1):
                _compile(toolchain, texts[0], keys[0], ("-c", *flags[texts[0]]), alone)
            objects = [alone]
        else:
            objects = _objects(toolchain, flags, keys)
        _link(toolchain, objects, extra, made)
        return disk.keep(file, made)


def _key(toolchain: Toolchain, flags: Sequence[str], text: str) -> str:
    """What an object is found by in the cache."""
    common = (
        shlex.join(toolchain.command),
        toolchain.version,
        shlex.join(toolchain.flags),
        toolchain.cpu,
    )
    return disk.digest("object", *common, shlex.join(flags), text)


def begin(toolchain: Toolchain, text: str, flags: Sequence[str] = ()) -> None:
    """Begin to compile a unit that ``shared_object`` is likely to be asked for soon.

    ``flags`` are those that it will then have. What fails fails again, and is told, where the
    object is needed.
    """
    key = _key(toolchain, flags, text)
    if _found(f"{key}.o") is not None:
        return
    with _lock:
        if key in _begun:
            return
        made = _begun[key] = threading.Thread(
            target=_begin,
            args=(toolchain, text, key, flags),
            name="geon compiles ahead",
            daemon=True,
        )
    made.start()


def _begin(toolchain: Toolchain, text: str, key: str, flags: Sequence[str]) -> None:
    with contextlib.suppress(GeonError, OSError):
        _object(toolchain, text, key, flags)
    with _lock:
        _begun.pop(key, None)


def unit_objects(toolchain: Toolchain, units: Sequence[str]) -> list[Path]:
    """The object of each of these C texts, which are not those of one program alone."""
    return _objects(toolchain, dict.fromkeys(units, ()), [_key(toolchain, (), u) for u in units])


def _found(name: str) -> Path | None:
    """The file of this name, in the cache or from the installation."""
    return disk.find(name) or prebuilt.find(name)


def _object(toolchain: Toolchain, text: str, key: str, flags: Sequence[str]) -> Path:
    """The object of a text, compiled now."""
    with disk.scratch_file(".o") as made:
        _compile(toolchain, text, key, ("-c", *flags), made)
        return disk.keep(f"{key}.o", made)


def _objects(
    toolchain: Toolchain, flags: Mapping[str, Sequence[str]], keys: Sequence[str]
) -> list[Path]:
    """The object of each text, by its flags, those that are missing compiled side by side."""
    from concurrent.futures import ThreadPoolExecutor  # not needed where all is in the cache

    texts = list(flags)

    def one(text: str, key: str) -> Path:
        """The object of one text, compiled where the cache has none."""
        begun = _begun.get(key)
        if begun is not None:
            begun.join()
        found = _found(f"{key}.o") or _object(toolchain, text, key, flags[text])
        progress.done()
        return found

    with (
        Progress(len(texts)) as progress,
        ThreadPoolExecutor(min(len(texts), available())) as pool,
    ):
        # What was begun has a processor; of the rest the longest come first: what is left at the
        # end is short, and no processor waits for long.
        ahead = set(_begun)
        each = [(key not in ahead, -cost_of(text)) for text, key in zip(texts, keys, strict=True)]
        order = sorted(range(len(texts)), key=each.__getitem__)
        begun = {number: pool.submit(one, texts[number], keys[number]) for number in order}
        tasks = [begun[number] for number in range(len(texts))]
        try:
            return [task.result() for task in tasks]
        except BaseException:
            # The first failure ends it: what was not begun is not compiled for nothing.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def cost_of(unit: str) -> float:
    """What a compiler takes for a unit, in characters of most."""
    return len(unit) * (VECTORS_COST if unit.startswith(OF_VECTORS) else 1)


def available() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile(toolchain: Toolchain, text: str, key: str, flags: Sequence[str], made: Path) -> None:
    """Compiles one text to the path ``made``; where that fails, the source is kept."""
    global compiled
    with _lock:
        compiled += 1
    kept = disk.folder() / f"{key}.c"
    with contextlib.ExitStack() as stack:
        source = "-"
        if "-g" in (*toolchain.flags, *flags):  # a debugger will want to show it
            _write_source(kept, text)
            source = str(kept)
        elif toolchain.family == "zig":  # it keeps a copy of what comes by standard input
            path = stack.enter_context(disk.scratch_file(".c"))
            _write_source(path, text)
            source = str(path)
        arguments = [*toolchain.flags, "-x", "c", source, "-x", "none", *flags, "-o", str(made)]
        status, said = _run(toolchain, arguments, text)
    if status != 0 or not made.exists():
        try:
            _write_source(kept, text)
        except OSError:  # no room for it either
            raise _failure("compile", toolchain, status, arguments, said, "") from None
        said = said.replace("<stdin>" if source == "-" else source, str(kept))
        again = [str(kept) if argument == source else argument for argument in arguments]
        again[-1] = "again.so"
        raise _failure("compile", toolchain, status, again, said, f"\nThe source is {kept}.")


def _run(
    toolchain: Toolchain, arguments: Sequence[str], text: str | None = None
) -> tuple[int, str]:
    """Exit status and messages of one run of the compiler."""
    try:
        status, _, said = run_compiler(toolchain.command, arguments, text)
    except OSError as error:
        raise UnavailableError(
            f"the C compiler {shlex.join(toolchain.command)}, which was there before, cannot be "
            f"run: {error}; {CURE}"
        ) from error
    return status, said


def _write_source(source: Path, text: str) -> None:
    """Keeps a text for a person to look at; it is never read again, so it has no seal."""
    with disk.scratch_file(".tmp") as made:
        made.write_text(text, "utf-8", "surrogateescape")
        os.replace(made, source)


def _link(toolchain: Toolchain, objects: Sequence[Path], extra: Sequence[str], made: Path) -> None:
    """Links objects to the path ``made``: by the linker alone, where that will do."""
    names = [str(path) for path in objects]
    if toolchain.linker and not extra:
        # Most kernels call no library, and few call more than C's.
        with contextlib.suppress(OSError):  # the compiler finds another
            for libraries in ((), toolchain.libraries):
                arguments = link_by_itself(names, str(made), libraries)
                if run_compiler((toolchain.linker,), arguments)[0] == 0 and made.exists():
                    return
    arguments = [*toolchain.flags, "-shared", *names, *extra, "-lm", "-o", str(made)]
    status, said = _run(toolchain, arguments)
    if status != 0 or not made.exists():
        raise _failure("link", toolchain, status, arguments, said, "")


def _failure(
    verb: str,
    toolchain: Toolchain,
    status: int,
    arguments: Sequence[str],
    said: str,
    source: str,
) -> UnavailableError:
    """The error of a compiler run: what it said, what was run, and what can be done."""
    command = shlex.join((*toolchain.command, *arguments))
    ended = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
    cure = (
        "If the compiler itself is sound, this is a defect of geon: report it with the source; "
        "another compiler can be had with the environment variable CC."
    )
    with contextlib.suppress(OSError):
        free = os.statvfs(disk.folder())
        if free.f_bavail * free.f_frsize < 1 << 20:
            cure = f"The disk of {disk.folder()} is full: {FREE}."
    return UnavailableError(
        f"the C compiler ({toolchain.version}) could not {verb} what geon made: it {ended}."
        f"{source}\nThe command was\n  {command}\n"
        f"and it said\n{said.strip() or '(nothing)'}\n{cure}"
    )
