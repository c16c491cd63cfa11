"""Files: what a user gives as a path, and writing a file in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any

from ...errors import ArgumentError, CheckpointError


def path_text(path: Any) -> str:
    """A path as text; ``ArgumentError`` for what is none, ``CheckpointError`` for one no file has.

    Numbers are no paths, though the operating system's functions take them.
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
    """Where a file of this path is written, and the permission bits of the file that is replaced.

    Raises ``CheckpointError``, which calls the file ``what``, where it cannot be.
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


def replace(what: str, target: str, content: bytes, mode: int | None) -> None:
    """Puts ``content`` at ``target`` in one step: a temporary file, flushed and renamed."""
    folder = os.path.dirname(target)
    import secrets  # loads OpenSSL, which nothing else here needs

    temporary = os.path.join(folder, f".geon-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
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


def _sync_folder(folder: str) -> None:
    """Makes the rename durable, on systems where a folder can be flushed."""
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
    """What to raise for a refusal of the operating system, with the cure it suggests."""
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
