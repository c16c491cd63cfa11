"""Compile C texts to a shared object, at most once per user and machine.

The cache key of an object contains its text, the compiler's version and flags, the processor's
features and the format of the cache; that of a shared object contains the keys of its objects.
Callers pass texts without user names and line numbers, so that an edited comment recompiles
nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ....errors import GeonError, UnavailableError
from ...cache import disk
from ...loading.compiling import in_parallel
from ...loading.environment import CACHE
from ...loading.progress import CompileProgress
from . import prebuilt
from .compilers import CURE, Toolchain, link_by_itself, run_compiler
from .flags import OF_VECTORS
from .translation_units import VECTOR_TEXT_COST_RATIO

# Number of units that this process compiled, without linking.
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
    """Return the path of a shared object with the functions of all these C texts.

    It comes from the cache if it was compiled before. Several units are compiled in parallel, equal
    ones once, and each object is cached for other shared objects too. After two seconds the
    progress is displayed. ``own`` are units of a single program, compiled with the toolchain's
    ``own_flags``. ``extra`` are flags for every run; ``name`` is the prefix of the file's name. A
    later call of any process may remove the file, after a minute at the earliest: load it at once.

    Raises ``UnavailableError`` with the compiler's messages if a text does not compile.
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
    """Return the shared object of the texts in ``flags``, whose cache keys are ``keys``."""
    texts = list(flags)
    file = f"{name}-{disk.digest('shared', *keys)}.so"
    found = _found(file)
    if found is not None:
        return found
    if len(texts) == 1 and not toolchain.linker:
        with disk.scratch_file(".so") as made, CompileProgress(1):
            _compile(toolchain, texts[0], keys[0], ("-shared", *flags[texts[0]], "-lm"), made)
            return disk.keep(file, made)
    with disk.scratch_file(".so") as made, disk.scratch_file(".o") as alone:
        if len(texts) == 1:
            with CompileProgress(1):
                _compile(toolchain, texts[0], keys[0], ("-c", *flags[texts[0]]), alone)
            objects = [alone]
        else:
            objects = _objects(toolchain, flags, keys)
        _link(toolchain, objects, extra, made)
        return disk.keep(file, made)


def _key(toolchain: Toolchain, flags: Sequence[str], text: str) -> str:
    """Return the cache key of an object."""
    common = (
        shlex.join(toolchain.command),
        toolchain.version,
        shlex.join(toolchain.flags),
        toolchain.cpu,
    )
    return disk.digest("object", *common, shlex.join(flags), text)


def begin(toolchain: Toolchain, text: str, flags: Sequence[str] = ()) -> None:
    """Start to compile in the background a unit that ``shared_object`` will probably need soon.

    ``flags`` are those that it will then have. An error is ignored here; it occurs again, and is
    raised, where the object is needed.
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
    """Return the objects of C texts that are shared by programs."""
    return _objects(toolchain, dict.fromkeys(units, ()), [_key(toolchain, (), u) for u in units])


def _found(name: str) -> Path | None:
    """Return the file of this name from the cache or the installation, or None."""
    return disk.find(name) or prebuilt.find(name)


def _object(toolchain: Toolchain, text: str, key: str, flags: Sequence[str]) -> Path:
    """Compile a text and return its object."""
    with disk.scratch_file(".o") as made:
        _compile(toolchain, text, key, ("-c", *flags), made)
        return disk.keep(f"{key}.o", made)


def _objects(
    toolchain: Toolchain, flags: Mapping[str, Sequence[str]], keys: Sequence[str]
) -> list[Path]:
    """Return the object of each text; compile missing ones in parallel."""
    texts = list(flags)

    def one(text: str, key: str) -> Path:
        """Return the object of one text, compiled if the cache has none."""
        begun = _begun.get(key)
        if begun is not None:
            begun.join()
        return _found(f"{key}.o") or _object(toolchain, text, key, flags[text])

    # Units that are being compiled already come first, as they have a processor. The others
    # follow by decreasing cost, so that the last ones are short and processors idle little.
    ahead = set(_begun)
    each = [(key not in ahead, -cost_of(text)) for text, key in zip(texts, keys, strict=True)]
    order = sorted(range(len(texts)), key=each.__getitem__)
    made = in_parallel([partial(one, texts[number], keys[number]) for number in order])
    found = dict(zip(order, made, strict=True))
    return [found[number] for number in range(len(texts))]


def cost_of(unit: str) -> float:
    """Return the estimated compile cost of a unit, in characters of scalar text."""
    return len(unit) * (VECTOR_TEXT_COST_RATIO if unit.startswith(OF_VECTORS) else 1)


def _compile(toolchain: Toolchain, text: str, key: str, flags: Sequence[str], made: Path) -> None:
    """Compile one text to the path ``made``; keep the source if that fails."""
    global compiled
    with _lock:
        compiled += 1
    kept = disk.folder() / f"{key}.c"
    with contextlib.ExitStack() as stack:
        source = "-"
        if "-g" in (*toolchain.flags, *flags):  # a debugger shows the source
            _write_source(kept, text)
            source = str(kept)
        elif toolchain.family == "zig":  # it stores a copy of standard input
            path = stack.enter_context(disk.scratch_file(".c"))
            _write_source(path, text)
            source = str(path)
        arguments = [*toolchain.flags, "-x", "c", source, "-x", "none", *flags, "-o", str(made)]
        status, said = _run(toolchain, arguments, text)
    if status != 0 or not made.exists():
        try:
            _write_source(kept, text)
        except OSError:  # the disk is full
            raise _failure("compile", toolchain, status, arguments, said, "") from None
        said = said.replace("<stdin>" if source == "-" else source, str(kept))
        again = [str(kept) if argument == source else argument for argument in arguments]
        again[-1] = "again.so"
        raise _failure("compile", toolchain, status, again, said, f"\nThe source is {kept}.")


def _run(
    toolchain: Toolchain, arguments: Sequence[str], text: str | None = None
) -> tuple[int, str]:
    """Run the compiler and return its exit status and messages."""
    try:
        status, _, said = run_compiler(toolchain.command, arguments, text)
    except OSError as error:
        raise UnavailableError(
            f"the C compiler {shlex.join(toolchain.command)}, which was there before, cannot be "
            f"run: {error}; {CURE}"
        ) from error
    return status, said


def _write_source(source: Path, text: str) -> None:
    """Store a text for a user to read; it is never read again, so it has no seal."""
    with disk.scratch_file(".tmp") as made:
        made.write_text(text, "utf-8", "surrogateescape")
        os.replace(made, source)


def _link(toolchain: Toolchain, objects: Sequence[Path], extra: Sequence[str], made: Path) -> None:
    """Link objects to the path ``made``, by the linker alone if possible."""
    names = [str(path) for path in objects]
    if toolchain.linker and not extra:
        # Most kernels call no library, and few call others than libm and libc.
        with contextlib.suppress(OSError):  # then the compiler links, below
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
    """Return the error of a failed compiler run, with its messages, the command and the cure."""
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
