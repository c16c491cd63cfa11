"""File access: validation of paths, and atomic replacement of files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from string import hexdigits
from typing import Any

from ...errors import ArgumentError, CheckpointError

try:
    import fcntl
except ImportError:  # a system without file locks
    fcntl = None  # type: ignore[assignment]  # a module, or none

BEGIN = ".geon-"  # temporary files are named BEGIN, 16 hexadecimal digits, END
END = ".tmp"


def path_text(path: Any) -> str:
    """Return a path as text.

    Raise ``ArgumentError`` for other types, ``CheckpointError`` for text that no path can have.
    Integers are refused, though the operating system's functions take them as descriptors.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise ArgumentError(
            f"{path!r} is no path of a file: give a str or a pathlib.Path, not a value of type "
            f"{type(path).__name__}"
        )
    try:
        text = os.fsdecode(path)
        valid = bool(text) and b"\0" not in os.fsencode(text)
    except (TypeError, ValueError):
        valid, text = False, str(path)
    if not valid:
        raise CheckpointError(
            f"{text!r} cannot be the path of a file: it is empty, or has characters that no path "
            "has; give another path"
        )
    return text


def writable(what: str, path: str) -> tuple[str, int | None]:
    """Return the resolved path of a file to be written, and the permission bits of an existing one.

    Raises ``CheckpointError``, which calls the file ``what``, if it cannot be written.
    """
    target = os.path.realpath(path)
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return target, None
    except OSError as error:
        raise _unwritable(what, target, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError(
            f"{what} cannot be written: that is a folder or a device, not a file; "
            "give the path of a file"
        )
    if not os.access(target, os.W_OK):
        raise CheckpointError(
            f"{what} cannot be written: the file there is read-only; make it "
            "writable or give another path"
        )
    return target, stat.S_IMODE(status.st_mode)


def replace(what: str, target: str, pieces: Iterable[Any], mode: int | None) -> None:
    """Write ``pieces`` to ``target`` atomically: to a temporary file, flushed, then renamed.

    Temporary files that killed writers left in the folder are removed, if the system has file locks
    to recognise those still in use.
    """
    folder = os.path.dirname(target)
    remove_left(folder)
    temporary = ""
    try:
        file, temporary = _new_file(folder)
        with file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
            # renamed while locked: no other process may remove it as a stale file
            if fcntl is not None:
                os.replace(temporary, target)
        if fcntl is None:
            os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise _unwritable(what, target, error) from error
        raise
    try:
        _sync_folder(folder)
    except OSError as error:
        raise CheckpointError(
            f"{what} was written, but a power cut may bring the old file back: its "
            f"folder cannot be flushed ({error.strerror or error}); make the folder readable and "
            "save again"
        ) from error


def _new_file(folder: str) -> tuple[Any, str]:
    """Create a file, locked while it is open, and return it with its path."""
    import secrets  # loads OpenSSL, which nothing else here needs

    while True:
        path = os.path.join(folder, f"{BEGIN}{secrets.token_hex(8)}{END}")
        file = open(path, "xb")  # noqa: SIM115  # whoever asked for it closes it
        if fcntl is None or _locked(file.fileno(), path):
            return file, path
        file.close()  # another writer took it for stale and removes it


def _locked(descriptor: int, path: str) -> bool:
    """Lock a file; return True if that succeeded and the path still refers to it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        # Some network file systems have no locks; then no file there is removed as stale either.
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)


def remove_left(folder: str) -> None:
    """Remove temporary files that no process has open; ignore those that cannot be removed."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or "."):
            if _is_temporary(name):
                _remove_unlocked(os.path.join(folder, name))


def _is_temporary(name: str) -> bool:
    digits = name.removeprefix(BEGIN).removesuffix(END)
    return name == BEGIN + digits + END and len(digits) == 16 and set(digits) <= set(hexdigits)


def _remove_unlocked(path: str) -> None:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Make the rename durable, on systems where a folder can be flushed."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems flush renames by themselves and refuse this call.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _unwritable(what: str, target: str, error: OSError) -> CheckpointError:
    """Return the error for a refusal of the operating system, with a cure."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        cure = "free space there or give another path"
    elif isinstance(error, FileNotFoundError | NotADirectoryError):
        cure = "make the folder or give another path"
    else:
        cure = "give a path in a folder that can be written"
    return CheckpointError(
        f"{what} cannot be written in {os.path.dirname(target)!r}: "
        f"{error.strerror or error}; the old file, where there was one, is unchanged; {cure}"
    )
