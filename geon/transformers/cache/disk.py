"""Disk cache: files shared by all processes of a user, each sealed by a digest.

A file is written under a temporary name, sealed and renamed, so a reader sees a whole file or none,
and two writers of one name do no harm. The seal is the last ``SEAL_BYTES`` of a file: a mark and
the digest of its name and content. Files that were truncated, changed, renamed or put there by
another user are detected before use, removed and made again. Object files and shared objects may
have bytes behind their end, so a sealed one is linked and loaded unchanged.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ...errors import ArgumentError, UnavailableError
from ..loading.environment import CACHE, CACHE_BYTES, USER_CACHES, setting

FORMAT_VERSION = 1  # part of every key: a file of another format is never found
DEFAULT_CACHE_BYTES = 1 << 30

MARK = b"\ngeon seal\n"
SEAL_BYTES = len(MARK) + hashlib.sha256().digest_size
# A file used this recently is not removed: another process may be between finding and loading it.
GRACE_SECONDS = 60.0
# Min. free bytes on the file system; with less, a private folder is used.
MIN_FREE_BYTES = 4 << 20
# Seconds between checks of the folder's size if little is written.
TRIM_INTERVAL_SECONDS = 600.0
TRIM_STAMP = "trimmed"


def fork_safe_lock() -> threading.RLock:
    """Return a lock that is free in a forked child: a fork waits for the thread that holds it."""
    lock = threading.RLock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    return lock


_lock = fork_safe_lock()
_checked: dict[str, Path] = {}
_private: dict[int, Path] = {}
_written = 0


def cache_path() -> Path:
    """Return the cache folder: ``GEON_CACHE``, ``$XDG_CACHE_HOME/geon`` or ``~/.cache/geon``."""
    given = setting(CACHE)
    if given:
        return Path(given).absolute()
    base = setting(USER_CACHES)
    # The XDG specification requires relative paths to be ignored.
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "geon"


def cache_bytes() -> int:
    """Return the size limit of the cache folder in bytes: ``GEON_CACHE_BYTES``, else 1 GiB.

    Raises ``ArgumentError`` for a value that is no whole number of bytes.
    """
    given = setting(CACHE_BYTES)
    if not given:
        return DEFAULT_CACHE_BYTES
    if not given.isdecimal():
        raise ArgumentError(
            f"{CACHE_BYTES}={given!r} is no number of bytes: set it to a whole number such as "
            f"{DEFAULT_CACHE_BYTES}, or unset it"
        )
    return int(given)


def folder() -> Path:
    """Return the cache folder, created with mode 0700 if it is missing.

    A folder that cannot be created, written to or loaded from, or whose file system is full, is
    replaced by a private one that is removed when the process ends. Raises ``UnavailableError`` for
    one that other users could write to.
    """
    path = cache_path()
    known = _checked.get(str(path))
    # Checked each time: the folder may be removed while the process runs.
    if known is not None and known.is_dir():
        return known
    with _lock:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
            _refuse_foreign(path)
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(f"{path} cannot be written to")
            system = os.statvfs(path)
            if system.f_flag & getattr(os, "ST_NOEXEC", 0):
                raise PermissionError(f"{path} is mounted noexec")
            if system.f_bavail * system.f_frsize < MIN_FREE_BYTES:
                raise OSError(f"{path} has {system.f_bavail * system.f_frsize:,} bytes left")
            found = path
        except (OSError, RuntimeError) as error:
            if isinstance(error, UnavailableError):
                raise
            found = _private_folder(error)
        _checked[str(path)] = found
        return found


def _refuse_foreign(path: Path) -> None:
    """Raise ``UnavailableError`` if another user owns the folder or could write to it."""
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{path} is no folder")
    if status.st_uid != os.geteuid():
        raise UnavailableError(
            f"the cache folder {path} belongs to user {status.st_uid}, not to user "
            f"{os.geteuid()}, who runs this: compiled code from it could be anyone's; set {CACHE} "
            "to a folder of your own"
        )
    if status.st_mode & 0o022:
        raise UnavailableError(
            f"the cache folder {path} has mode {stat.S_IMODE(status.st_mode):04o}, so other users "
            f"could put compiled code there: chmod 700 {path}, or set {CACHE} to another folder"
        )


def _private_folder(reason: Exception) -> Path:
    """Return a folder of this process, removed when it ends; log the reason."""
    import tempfile  # imported here: rarely needed

    process = os.getpid()
    found = _private.get(process)
    if found is None:
        found = _private[process] = Path(tempfile.mkdtemp(prefix="geon-"))
        atexit.register(_remove_private, process, found)
        logging.getLogger("geon").warning(
            "compiled code is kept in %s until this process ends, not in %s: %s; set %s to a "
            "folder that can be written to",
            found,
            cache_path(),
            reason,
            CACHE,
        )
    return found


def _remove_private(process: int, path: Path) -> None:
    # A forked child must not remove its parent's folder.
    if os.getpid() == process:
        import shutil

        shutil.rmtree(path, ignore_errors=True)


def digest(*parts: str) -> str:
    """Return a cache key of these texts: 128 bits, as 32 hexadecimal digits."""
    made = hashlib.sha256(f"geon {FORMAT_VERSION}".encode())
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        made.update(b"%d:" % len(data))
        made.update(data)
    return made.hexdigest()[:32]


def _seal(name: str, content: bytes) -> bytes:
    return MARK + hashlib.sha256(name.encode() + b"\0" + content).digest()


def is_whole(name: str, sealed: bytes) -> bool:
    """Return True if ``sealed`` is the complete file of this name, with a valid seal."""
    content = sealed[:-SEAL_BYTES]
    return len(sealed) >= SEAL_BYTES and sealed[-SEAL_BYTES:] == _seal(name, content)


def load(name: str) -> bytes | None:
    """Return the content of a file, without its seal; ``None`` if it is missing or damaged."""
    path = folder() / name
    try:
        # Links are never cache entries, and opening a pipe would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        _discard(path)
        return None
    try:
        sealed = _own_bytes(descriptor)
        content = sealed[:-SEAL_BYTES]
        if is_whole(name, sealed):
            with contextlib.suppress(OSError):  # a folder that became read-only can still be read
                os.utime(descriptor)
            return content
    finally:
        os.close(descriptor)
    _discard(path)
    return None


def _own_bytes(descriptor: int) -> bytes:
    """Return the bytes of a file of this user; empty if another user could change it."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return b""
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        return file.readall()


def find(name: str) -> Path | None:
    """Return the path of a valid file, or ``None``."""
    return None if load(name) is None else folder() / name


def _discard(path: Path) -> None:
    """Remove an invalid entry, be it a file, link or folder."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            import shutil

            shutil.rmtree(path)
        else:
            path.unlink()


@contextlib.contextmanager
def scratch_file(suffix: str) -> Iterator[Path]:
    """Yield a unique path in the cache folder; a file left there is removed at the end."""
    path = folder() / f"new-{os.getpid()}-{os.urandom(8).hex()}{suffix}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def keep(name: str, made: Path) -> Path:
    """Seal a finished file, rename it to ``name``, and return its path."""
    with open(made, "r+b") as file:
        content = file.read()
        file.write(_seal(name, content))
    made.chmod(0o700 if name.endswith(".so") else 0o600)
    path = made.parent / name
    try:
        os.replace(made, path)
    except IsADirectoryError:
        _discard(path)
        os.replace(made, path)
    _count(len(content) + SEAL_BYTES)
    return path


def keep_bytes(name: str, content: bytes) -> Path:
    """Write, seal and name a file with this content; return its path."""
    with scratch_file(".tmp") as made:
        made.write_bytes(content)
        return keep(name, made)


def _count(size: int) -> None:
    """Count written bytes; trim the folder if they are many or some time has passed."""
    global _written
    with _lock:
        _written += size
        due = _written > cache_bytes() // 32
    if not due:
        try:
            due = (folder() / TRIM_STAMP).stat().st_mtime < time.time() - TRIM_INTERVAL_SECONDS
        except FileNotFoundError:
            due = True
    if due:
        trim()


def trim(limit: int | None = None) -> None:
    """Remove the least recently used files until the folder has at most ``limit`` bytes.

    Files used within the last ``GRACE_SECONDS`` stay, and so do subfolders, which are not geon's.
    """
    global _written
    where = folder()
    limit = cache_bytes() if limit is None else limit
    with contextlib.suppress(OSError):
        (where / TRIM_STAMP).write_bytes(b"")
    with _lock:
        _written = 0
    entries = []
    with os.scandir(where) as listing:
        for entry in listing:
            with contextlib.suppress(OSError):  # another process may remove it meanwhile
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    newest = time.time() - GRACE_SECONDS
    for used, size, path in sorted(entries):
        if total <= limit or used > newest:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
