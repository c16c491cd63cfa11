"""The cache folder: files that any process of the user may find again, each sealed by a digest.

A file is written elsewhere, sealed and moved into place in one step, so a reader sees a whole file
or none, and two writers of one name do no harm. The seal is the last ``SEAL_BYTES`` of a file: a
mark and the digest of its name and content. What was cut short, changed, renamed or put there by
another user is found before it is used, taken away and made again. Object files and shared objects
may have bytes behind their end, so a sealed one is linked and loaded as it is.
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

FORMAT = 1  # part of every key: a file of another format is never found
DEFAULT_CACHE_BYTES = 1 << 30

MARK = b"\ngeon seal\n"
SEAL_BYTES = len(MARK) + hashlib.sha256().digest_size
# A file used this recently is not removed: another process may be between finding and loading it.
GRACE_SECONDS = 60.0
# With less room than this there may be none for what a program is compiled to.
LEAST_ROOM = 4 << 20
# How often the size of the folder is looked at where little is written.
TRIM_SECONDS = 600.0
TRIM_STAMP = "trimmed"


def fork_safe_lock() -> threading.RLock:
    """A lock that a forked child finds free: a fork waits for the other thread that holds it."""
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
    """Where files are kept: ``GEON_CACHE``, ``$XDG_CACHE_HOME/geon`` or ``~/.cache/geon``."""
    given = setting(CACHE)
    if given:
        return Path(given).absolute()
    base = setting(USER_CACHES)
    # The XDG specification has relative paths ignored.
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "geon"


def cache_bytes() -> int:
    """How large the cache folder may grow: ``GEON_CACHE_BYTES``, else 1 GiB.

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
    """The cache folder, made with mode 0700 where it is missing.

    A folder that cannot be made, written to or loaded from, or has no room, is replaced by a
    private one that ends with the process. Raises ``UnavailableError`` for one that other users
    could write to.
    """
    path = cache_path()
    known = _checked.get(str(path))
    # Asked each time: a folder may be removed while the process runs.
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
            if system.f_bavail * system.f_frsize < LEAST_ROOM:
                raise OSError(f"{path} has {system.f_bavail * system.f_frsize:,} bytes left")
            found = path
        except (OSError, RuntimeError) as error:
            if isinstance(error, UnavailableError):
                raise
            found = _private_folder(error)
        _checked[str(path)] = found
        return found


def _refuse_foreign(path: Path) -> None:
    """Raises ``UnavailableError`` where another user owns the folder or could write to it."""
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
    """A folder of this process alone, removed when it ends; says why in the log."""
    import tempfile  # not needed where the cache folder is sound

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
    # A forked child must not take its parent's folder away.
    if os.getpid() == process:
        import shutil

        shutil.rmtree(path, ignore_errors=True)


def digest(*parts: str) -> str:
    """The name of a result made from these texts: 128 bits, as 32 hexadecimal digits."""
    made = hashlib.sha256(f"geon {FORMAT}".encode())
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        made.update(b"%d:" % len(data))
        made.update(data)
    return made.hexdigest()[:32]


def _seal(name: str, content: bytes) -> bytes:
    return MARK + hashlib.sha256(name.encode() + b"\0" + content).digest()


def is_whole(name: str, sealed: bytes) -> bool:
    """Whether these are all bytes of a file of this name, its seal included."""
    content = sealed[:-SEAL_BYTES]
    return len(sealed) >= SEAL_BYTES and sealed[-SEAL_BYTES:] == _seal(name, content)


def load(name: str) -> bytes | None:
    """The content of a file, without its seal; ``None`` where there is none that is whole."""
    path = folder() / name
    try:
        # A link is nobody's entry, and opening a pipe would wait.
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
            with contextlib.suppress(OSError):  # a folder that became read-only serves as it is
                os.utime(descriptor)
            return content
    finally:
        os.close(descriptor)
    _discard(path)
    return None


def _own_bytes(descriptor: int) -> bytes:
    """What is in a file of this user; nothing for what another could change after it was read."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return b""
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        return file.readall()


def find(name: str) -> Path | None:
    """The path of a file that is whole; ``None`` where there is none."""
    return None if load(name) is None else folder() / name


def _discard(path: Path) -> None:
    """Takes away what is no entry, whatever it is."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            import shutil

            shutil.rmtree(path)
        else:
            path.unlink()


@contextlib.contextmanager
def scratch_file(suffix: str) -> Iterator[Path]:
    """A path in the cache folder that nobody has; what is there at the end is removed."""
    path = folder() / f"new-{os.getpid()}-{os.urandom(8).hex()}{suffix}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def keep(name: str, made: Path) -> Path:
    """Seals a finished file and moves it to its name; returns where it is."""
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
    """Writes, seals and names a file of this content; returns where it is."""
    with scratch_file(".tmp") as made:
        made.write_bytes(content)
        return keep(name, made)


def _count(size: int) -> None:
    """Trims the folder when enough was written since: by this process, or by others over time."""
    global _written
    with _lock:
        _written += size
        due = _written > cache_bytes() // 32
    if not due:
        try:
            due = (folder() / TRIM_STAMP).stat().st_mtime < time.time() - TRIM_SECONDS
        except FileNotFoundError:
            due = True
    if due:
        trim()


def trim(limit: int | None = None) -> None:
    """Removes the files used least recently until the folder has at most ``limit`` bytes.

    Files used within the last ``GRACE_SECONDS`` stay. Nothing else in the folder is looked into:
    folders there are not ours.
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
